//! The addresses that load balancers and ingress controllers of members report in the status of an object there, as slices
//! like those that are collected: the rules after it treat both alike.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use karmada_api::ResourceBinding;
use karmada_api::names::NODE_PORTS;
use objects::ip::non_special;
use objects::lenient;
use objects::qualified_name::is_subdomain;
use serde::Deserialize;
use serde_json::Value;

use super::facts::Facts;
use crate::cached::Cached;

/// The most endpoints of a slice (Kubernetes, validation of EndpointSlice): a gateway refuses one that has more.
const MOST_ADDRESSES: usize = 1000;
/// The most host names of one member that are looked up.
const MOST_NAMES: usize = 100;
/// The reason for which a host name gets no request.
const UNRESOLVED: &str = "does not resolve to an address; it is looked up every 30 s";
/// The protocol of a port that names none.
const TCP: &str = "TCP";

/// An address in a member to which no request can be sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unusable {
    /// The member.
    pub cluster: String,
    /// The address or host name; empty if there is neither.
    pub address: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cluster,
            address,
            reason,
        } = self;
        if address.is_empty() {
            return write!(f, "an entry of cluster {cluster} {reason}");
        }
        write!(f, "{address} of cluster {cluster} {reason}")
    }
}

/// The reports of the members about one Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reported {
    /// The slices of each cluster.
    pub(super) slices: BTreeMap<String, Vec<Arc<EndpointSlice>>>,
    /// The addresses that are left out.
    pub(super) unusable: BTreeSet<Unusable>,
    /// The host names among the addresses.
    pub(super) names: BTreeSet<String>,
    /// Those of each cluster that reports nothing else.
    pub(super) only_names: BTreeMap<String, BTreeSet<String>>,
    /// The clusters with a host name of which DNS has told nothing yet.
    pub(super) untold: BTreeSet<String>,
}

/// A port of a backend Service, and the port at which the reported addresses serve it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServedPort {
    pub(super) port: ServicePort,
    pub(super) at: i32,
}

impl ServedPort {
    fn protocol(&self) -> &str {
        self.port.protocol.as_deref().unwrap_or(TCP)
    }
}

impl fmt::Display for ServedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol() {
            TCP => write!(f, "{}", self.at),
            protocol => write!(f, "{}/{protocol}", self.at),
        }
    }
}

/// An entry of `status.loadBalancer.ingress`. Any client may write it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    #[serde(deserialize_with = "lenient::or_default")]
    ip: String,
    #[serde(deserialize_with = "lenient::or_default")]
    hostname: String,
    #[serde(deserialize_with = "lenient::or_default")]
    ports: Vec<PortStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PortStatus {
    #[serde(deserialize_with = "lenient::or_default")]
    port: i32,
    #[serde(deserialize_with = "lenient::option")]
    protocol: Option<String>,
    #[serde(deserialize_with = "lenient::or_default")]
    error: String,
}

/// Returns the prefix of the names of the slices of `service`. No object can be called so.
pub(super) fn source(service: &str) -> String {
    format!("status/{service}")
}

/// Returns the reports of the members in the status of the object of `binding`, for `service` with these ports.
pub(super) fn reported(
    service: &str,
    binding: &ResourceBinding,
    ports: &[ServedPort],
    facts: &impl Facts,
) -> Reported {
    let mut reported = Reported::default();
    let status = binding.status.as_ref();
    let items = status.and_then(|status| status.aggregated_status.as_ref());
    for item in items.into_iter().flatten() {
        // By family and by the ports that have no error.
        let mut groups: BTreeMap<(&str, Vec<usize>), BTreeSet<Target>> = BTreeMap::new();
        let (mut names, mut has_address) = (BTreeSet::new(), false);
        let mut looked_up = 0;
        for entry in entries(item.status.as_ref()) {
            let mut leave_out = |reason: String| {
                reported.unusable.insert(Unusable {
                    cluster: item.cluster_name.clone(),
                    address: entry.shown().to_owned(),
                    reason,
                });
            };
            let served: Vec<usize> = (0..ports.len())
                .filter(|&port| {
                    let error = entry.error(&ports[port]);
                    if let Some(error) = error {
                        leave_out(format!("does not serve port {}: {error}", ports[port]));
                    }
                    error.is_none()
                })
                .collect();
            let targets = match entry.target() {
                Ok(Target::Ip(ip)) => {
                    has_address = true;
                    vec![Target::Ip(ip)]
                }
                Ok(Target::Name(_)) if looked_up == MOST_NAMES => {
                    leave_out(format!("is one of more than {MOST_NAMES} host names"));
                    continue;
                }
                Ok(Target::Name(name)) => {
                    looked_up += 1;
                    if !served.is_empty() {
                        names.insert(name.clone());
                    }
                    let known = facts.addresses(&name);
                    if known.is_some() {
                        reported.names.insert(name.clone());
                    }
                    match known {
                        None => vec![Target::Name(name)],
                        Some(Cached::Present(known)) => known.into_iter().map(Target::Ip).collect(),
                        Some(Cached::Absent) => {
                            leave_out(UNRESOLVED.to_owned());
                            continue;
                        }
                        Some(Cached::Unread) => {
                            reported.untold.insert(item.cluster_name.clone());
                            continue;
                        }
                    }
                }
                Err(reason) => {
                    leave_out(reason.to_owned());
                    continue;
                }
            };
            for target in targets {
                match target.usable() {
                    Ok(target) if !served.is_empty() => {
                        let group = (target.family(), served.clone());
                        groups.entry(group).or_default().insert(target);
                    }
                    Ok(_) => {}
                    Err(reason) => leave_out(reason),
                }
            }
        }
        let slices = groups.into_iter().map(|((family, served), targets)| {
            let ports = served.into_iter().map(|port| &ports[port]);
            Arc::new(slice(service, family, &targets, ports))
        });
        let slices: Vec<_> = slices.collect();
        if !slices.is_empty() {
            reported.slices.insert(item.cluster_name.clone(), slices);
        }
        if !has_address && !names.is_empty() {
            let cluster = item.cluster_name.clone();
            reported.only_names.insert(cluster, names);
        }
    }
    reported
}

/// Returns `true` if the members report the same in the status of two versions of a binding.
pub fn same_reports(a: &ResourceBinding, b: &ResourceBinding) -> bool {
    reports(a).eq(reports(b))
}

/// Returns the fields of each member's report that are read here, if there is one.
fn reports(binding: &ResourceBinding) -> impl Iterator<Item = (&str, [Option<&Value>; 2])> {
    let status = binding.status.iter();
    let items = status.flat_map(|status| &status.aggregated_status);
    items.flatten().filter_map(|item| {
        let status = item.status.as_ref()?;
        let fields = ["loadBalancer", NODE_PORTS].map(|field| status.get(field));
        let says = fields.iter().any(Option::is_some);
        says.then_some((item.cluster_name.as_str(), fields))
    })
}

fn entries(status: Option<&Value>) -> Vec<Entry> {
    let list = status.and_then(|status| status.pointer("/loadBalancer/ingress"));
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.map(|entry| Entry::deserialize(entry).unwrap_or_default())
        .collect()
}

/// Where requests are sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Ip(IpAddr),
    Name(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => write!(f, "{ip}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Target {
    /// Returns the type of the addresses of a slice with it.
    pub(super) fn family(&self) -> &'static str {
        match self {
            Self::Ip(IpAddr::V4(_)) => "IPv4",
            Self::Ip(IpAddr::V6(_)) => "IPv6",
            Self::Name(_) => "FQDN",
        }
    }

    /// Returns the target as a slice takes it, or the reason for which none does.
    fn usable(self) -> Result<Self, String> {
        match self {
            Self::Ip(ip) => non_special(ip)
                .map(Self::Ip)
                .map_err(|reason| format!("{reason} ({ip})")),
            Self::Name(_) => Ok(self),
        }
    }
}

impl Entry {
    /// Returns the address, or else the host name, as the user wrote it.
    fn shown(&self) -> &str {
        if self.ip.is_empty() {
            &self.hostname
        } else {
            &self.ip
        }
    }

    /// Returns the error of a port. One for UDP may have the number of one for TCP.
    fn error(&self, served: &ServedPort) -> Option<&str> {
        let found = self.ports.iter().find(|found| {
            let protocol = found.protocol.as_deref().unwrap_or(TCP);
            (found.port, protocol) == (served.at, served.protocol()) && !found.error.is_empty()
        });
        found.map(|found| found.error.as_str())
    }

    fn target(&self) -> Result<Target, &'static str> {
        if !self.ip.is_empty() {
            let ip: Result<IpAddr, _> = self.ip.parse();
            return ip.map(Target::Ip).map_err(|_| "is no IP address");
        }
        let name = self.hostname.trim_end_matches('.').to_ascii_lowercase();
        if name.is_empty() {
            return Err("has neither an address nor a host name");
        }
        // Names of objects may have longer labels than DNS.
        if !is_subdomain(&name) || name.split('.').any(|label| label.len() > 63) {
            return Err("is no host name");
        }
        if !name.contains('.') {
            return Err("is a host name of one label, which means another host elsewhere");
        }
        Ok(Target::Name(name))
    }
}

/// Returns the slice of these targets of one family, with these ports.
pub(super) fn slice<'a>(
    service: &str,
    family: &str,
    targets: &BTreeSet<Target>,
    ports: impl Iterator<Item = &'a ServedPort>,
) -> EndpointSlice {
    let ports: Vec<&ServedPort> = ports.collect();
    let shown: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let name = format!("{}/{family}/{}", source(service), shown.join(","));
    let ports = ports.into_iter().map(|served| EndpointPort {
        app_protocol: served.port.app_protocol.clone(),
        name: Some(served.port.name.clone().unwrap_or_default()),
        port: Some(served.at),
        protocol: served.port.protocol.clone(),
    });
    let targets = targets.iter().take(MOST_ADDRESSES);
    let endpoints = targets.map(|target| Endpoint {
        addresses: vec![target.to_string()],
        ..Endpoint::default()
    });
    let mut slice = EndpointSlice {
        address_type: family.to_owned(),
        endpoints: Some(endpoints.collect()),
        ports: Some(ports.collect()),
        ..EndpointSlice::default()
    };
    slice.metadata.name = Some(name);
    slice
}

#[cfg(test)]
mod tests;
