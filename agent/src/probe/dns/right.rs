//! The addresses that a probe name must have.

use std::env;
use std::net::IpAddr;

use hickory_proto::rr::Name;
use karmada_runtime::resolv_conf::ResolvConf;
use objects::ip::non_special;

/// The name of the API's own Service, as pods write it.
const API: [&[u8]; 2] = [b"kubernetes", b"default"];
/// The label above the namespaces of Services in a cluster's zone.
const SERVICES: &[u8] = b"svc";

/// Which addresses of a name are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Right<'a> {
    /// All.
    Any,
    /// These.
    Given(&'a [IpAddr]),
    /// Those of the API's Service in the cluster's zone, whatever else a domain of the search list answers.
    Api {
        /// The full names of that Service.
        names: Vec<Name>,
        /// Its address, if that is known.
        address: Option<IpAddr>,
    },
}

impl<'a> Right<'a> {
    /// Returns which addresses of `name` are right: those `given` if there are any. `address` is that of the
    /// API's Service.
    pub(super) fn new(
        name: &Name,
        conf: &ResolvConf,
        given: &'a [IpAddr],
        address: Option<IpAddr>,
    ) -> Self {
        if !given.is_empty() {
            return Self::Given(given);
        }
        let is_api = !name.is_fqdn()
            && name.iter().take(API.len()).eq(API)
            && name
                .iter()
                .nth(API.len())
                .is_none_or(|label| label == SERVICES);
        let zones = services_zones(conf).filter(|_| is_api);
        let names = zones.filter_map(|zone| {
            let full = Name::from_labels(API).ok()?.append_domain(zone).ok()?;
            let begins = full.iter().take(name.iter().len()).eq(name.iter());
            begins.then_some(full)
        });
        let names: Vec<_> = names.collect();
        if names.is_empty() && (address.is_none() || !is_api) {
            return Self::Any;
        }
        Self::Api { names, address }
    }

    /// Returns `true` if all addresses of this name are right.
    pub(super) fn covers(&self, owner: &Name, addresses: &[IpAddr]) -> bool {
        match self {
            Self::Any => true,
            Self::Given(given) => addresses.iter().all(|address| given.contains(address)),
            // Of the Service's own name another address may be right: the Service was created anew, or has one of
            // each family, of which pods are told one. A filter on the way gives special ones for names that it blocks.
            Self::Api { names, address } => addresses.iter().all(|found| {
                address.is_some_and(|own| same(own, *found))
                    || names.contains(owner) && (address.is_none() || non_special(*found).is_ok())
            }),
        }
    }
}

/// Returns `true` if `found` is the address `own`, or is made of it by DNS64 (RFC 6147).
fn same(own: IpAddr, found: IpAddr) -> bool {
    match (own, found) {
        (IpAddr::V4(own), IpAddr::V6(found)) => found.octets().ends_with(&own.octets()),
        (own, found) => own == found,
    }
}

/// Returns the domains of the search list that hold the namespaces of a cluster, such as `svc.cluster.local`. A pod has its
/// own namespace's before that; where a list has such a pair, a company's domain that also begins with `svc` is none.
pub(super) fn services_zones(conf: &ResolvConf) -> impl Iterator<Item = &Name> {
    let domains = conf.search.iter();
    let domains = domains.filter(|domain| domain.iter().next() == Some(SERVICES));
    let is_pods = domains.clone().any(|domain| holds_namespace(domain, conf));
    domains.filter(move |domain| !is_pods || holds_namespace(domain, conf))
}

/// Returns `true` if the search list has the domain of a namespace in this one.
fn holds_namespace(domain: &Name, conf: &ResolvConf) -> bool {
    let mut searched = conf.search.iter();
    searched.any(|other| other.iter().len() == domain.iter().len() + 1 && domain.zone_of(other))
}

/// Returns the domain beside the full name of a Service: the one that holds the namespaces, or else the one
/// that the name is in.
pub(super) fn beside(name: &Name) -> Name {
    let labels = name.iter().len();
    let above = (1..labels).map(|kept| name.trim_to(labels - kept));
    let services = above
        .clone()
        .find(|domain| domain.iter().next() == Some(SERVICES));
    services.unwrap_or_else(|| name.base_name())
}

/// Returns the address of the API's Service, which the kubelet gives every pod. Where somebody has directed the
/// clients of this pod elsewhere, the variables differ, and it is not known.
pub(super) fn api_address() -> Option<IpAddr> {
    let host = env::var("KUBERNETES_SERVICE_HOST").ok()?.parse().ok()?;
    let elsewhere =
        env::var("KUBERNETES_PORT_443_TCP_ADDR").is_ok_and(|address| address.parse() != Ok(host));
    (!elsewhere).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str =
        "search shop.svc.cluster.local svc.cluster.local cluster.local apps.example.net\n";

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    /// A company's domain may begin like that of a pod's namespaces.
    #[test]
    fn zones_are_those_of_pods() {
        let cases: [(&str, &[&str]); 4] = [
            (POD, &["svc.cluster.local"]),
            (
                "search a.svc.local svc.local svc.example.net\n",
                &["svc.local"],
            ),
            ("search svc.svc.local svc.local local\n", &["svc.local"]),
            ("search svc.example.net\n", &["svc.example.net"]),
        ];
        for (conf, expected) in cases {
            let conf = ResolvConf::parse(conf.as_bytes());
            let zones: Vec<_> = services_zones(&conf).map(Name::to_string).collect();
            assert_eq!(zones, expected, "{conf:?}");
        }
    }

    /// A company's wildcard, the API's own name behind an alias, as autopath answers, its known address, and that of the other
    /// family in a cluster with both.
    #[test]
    fn only_the_cluster_answers_for_its_api() {
        let own: IpAddr = [10, 96, 0, 1].into();
        let other: IpAddr = [203, 0, 113, 7].into();
        let full = "kubernetes.default.svc.cluster.local.";
        let wildcard = "kubernetes.default.apps.example.net.";
        let cases = [
            ("kubernetes.default", full, other, true),
            ("kubernetes.default", full, "fd00::1".parse().unwrap(), true),
            (
                "kubernetes.default",
                wildcard,
                "fd00::1".parse().unwrap(),
                false,
            ),
            (
                "kubernetes.default",
                full,
                "0.0.0.0".parse().unwrap(),
                false,
            ),
            ("kubernetes.default", full, "::1".parse().unwrap(), false),
            (
                "kubernetes.default",
                full,
                "fe80::1".parse().unwrap(),
                false,
            ),
            ("kubernetes.default", wildcard, other, false),
            ("kubernetes.default", "kubernetes.default.", other, false),
            ("kubernetes.default", wildcard, own, true),
            (
                "kubernetes.default",
                wildcard,
                "64:ff9b::a60:1".parse().unwrap(),
                true,
            ),
            ("kubernetes.default.svc", full, other, true),
            (
                "kubernetes.default.svc",
                "kubernetes.default.svc.apps.example.net.",
                other,
                false,
            ),
            ("kubernetes.default.svc.cluster.local", full, other, true),
            ("kubernetes.default.apps", wildcard, other, true),
            (full, full, other, true),
            ("web.shop", "web.shop.apps.example.net.", other, true),
        ];
        for (probe, owner, address, expected) in cases {
            let conf = ResolvConf::parse(POD.as_bytes());
            let right = Right::new(&name(probe), &conf, &[], Some(own));
            let covered = right.covers(&name(owner), &[address]);
            assert_eq!(covered, expected, "{probe} {owner} {address}");
        }
    }

    #[test]
    fn without_a_zone_or_an_address_all_are_right() {
        let conf = ResolvConf::parse(b"search corp.example\n");
        let probe = name("kubernetes.default");
        assert_eq!(Right::new(&probe, &conf, &[], None), Right::Any);
        let own: IpAddr = [10, 96, 0, 1].into();
        let right = Right::new(&probe, &conf, &[], Some(own));
        let owner = name("kubernetes.default.corp.example.");
        assert!(right.covers(&owner, &[own]));
        assert!(!right.covers(&owner, &[[10, 96, 0, 2].into()]));
        let given = [own];
        let right = Right::new(&name("one."), &conf, &given, None);
        assert_eq!(right, Right::Given(&given));
    }
}
