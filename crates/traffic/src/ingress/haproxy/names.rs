use std::fmt;
use std::net::{IpAddr, SocketAddr};

use objects::Key;

use crate::ingress::http_route::own_name;

/// A backend in the configuration of HAProxy: `NAMESPACE_INGRESS_SERVICE_PORT`, with the number of the Service's port. No
/// name in Kubernetes has a `_`, nor a `:`, which that of an `HTTPRoute` has here. Each ingress has backends of its own, since
/// each chooses how to go on when every cluster is blocked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackendName {
    /// The ingress.
    pub ingress: Key,
    /// The Service.
    pub service: String,
    /// The number of the Service's port.
    pub port: u16,
}

/// The address of a member cluster that a server sends requests to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The member cluster.
    pub cluster: String,
    /// The address.
    pub address: SocketAddr,
}

impl BackendName {
    /// Returns the backend of a Service's port. `None` if a name is not one of Kubernetes: it would be a command.
    pub(super) fn new(ingress: &Key, service: &str, port: i32) -> Option<Self> {
        let names = [ingress.namespace.as_str(), own_name(ingress), service];
        names.into_iter().all(is_name).then_some(())?;
        Some(Self {
            ingress: ingress.clone(),
            service: service.to_owned(),
            port: port_number(port)?,
        })
    }

    /// Returns the prefix of the names of the backends of `ingress`.
    pub(super) fn prefix(ingress: &Key) -> String {
        format!("{}_{}_", ingress.namespace, ingress.name)
    }

    /// Reads the name of a backend. `None` if it is none of a `MultiClusterIngress`.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('_');
        let (namespace, ingress) = (parts.next()?, parts.next()?);
        let (service, port) = (parts.next()?, parts.next()?);
        let key = Key::new(namespace, ingress);
        let parsed = Self::new(&key, service, port.parse().ok()?)?;
        (parsed.to_string() == name).then_some(parsed)
    }
}

impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ingress: Key { namespace, name },
            service,
            port,
        } = self;
        write!(f, "{namespace}_{name}_{service}_{port}")
    }
}

impl Target {
    /// Returns the target at `ip` and `port`. `None` if the cluster's name is not one of Kubernetes.
    pub(super) fn new(cluster: &str, ip: IpAddr, port: u16) -> Option<Self> {
        is_name(cluster).then(|| Self {
            cluster: cluster.to_owned(),
            address: SocketAddr::new(ip, port),
        })
    }

    /// Returns the name of the server that `owner` makes for it: `OWNER_CLUSTER_IP_PORT`. Its state tells all of it again,
    /// and no server ever gets another address.
    pub(super) fn server_name(&self, owner: &str) -> String {
        let (cluster, ip, port) = (&self.cluster, self.address.ip(), self.address.port());
        format!("{owner}_{cluster}_{ip}_{port}")
    }

    /// Reads the name of a server. `None` if `owner` did not make it.
    pub(super) fn parse(owner: &str, name: &str) -> Option<Self> {
        let rest = name.strip_prefix(owner)?.strip_prefix('_')?;
        let mut parts = rest.rsplitn(3, '_');
        let (port, ip, cluster) = (parts.next()?, parts.next()?, parts.next()?);
        let port = port_number(port.parse().ok()?)?;
        let target = Self::new(cluster, ip.parse().ok()?, port)?;
        (target.server_name(owner) == name).then_some(target)
    }
}

/// Returns the port, checked here: HAProxy takes some that do not exist.
pub(super) fn port_number(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|&port| port != 0)
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingress::http_route::served_key;

    /// The name of a backend has the four parts, and nothing else is one.
    #[test]
    fn backend_name_has_four_parts() {
        let name = BackendName::new(&Key::new("ns", "shop.eu"), "web", 80).unwrap();
        assert_eq!(name.to_string(), "ns_shop.eu_web_80");
        assert_eq!(BackendName::parse("ns_shop.eu_web_80"), Some(name));
        let route = BackendName::parse("ns_httproute:shop_web_80").unwrap();
        assert_eq!(route.ingress, served_key(&Key::new("ns", "shop")));
        assert_eq!(route.to_string(), "ns_httproute:shop_web_80");
        for other in [
            "",
            "web",
            "ns_i_s",
            "ns_i_s_http",
            "ns_i_s_0",
            "ns_i_s_080",
            "ns_i_s_70000",
            "ns_i_s_80_x",
            "_i_s_80",
            "ns_other:i_s_80",
            "ns_httproute:_s_80",
        ] {
            assert_eq!(BackendName::parse(other), None, "{other}");
        }
    }

    /// A name that would be a command is none.
    #[test]
    fn command_is_no_name() {
        let key = Key::new("ns", "i");
        for service in ["", "s;show", "s show", "s\nshow", "a_b", "ü"] {
            assert_eq!(BackendName::new(&key, service, 80), None, "{service}");
        }
        let ip = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(Target::new("m1; del server x/y", ip, 80), None);
    }

    /// The name of a server tells its cluster and address, and those of others are not ours.
    #[test]
    fn server_name_tells_target() {
        let owner = "example.com_ours";
        for (ip, name) in [
            ("10.0.0.1", "example.com_ours_m1_10.0.0.1_8080"),
            ("fd00::1", "example.com_ours_m1_fd00::1_8080"),
        ] {
            let target = Target::new("m1", ip.parse().unwrap(), 8080).unwrap();
            assert_eq!(target.server_name(owner), name);
            assert_eq!(Target::parse(owner, name), Some(target));
        }
        for other in [
            "web1",
            "m1_10.0.0.1_8080",
            "example.com_ours_10.0.0.1_8080",
            "example.com_ours_m1_10.0.0.1_0",
            "example.com_ours_m1_10.0.0.01_80",
            // Of the owner `example.com_ours_b`.
            "example.com_ours_b_m1_10.0.0.1_8080",
        ] {
            assert_eq!(Target::parse(owner, other), None, "{other}");
        }
    }
}
