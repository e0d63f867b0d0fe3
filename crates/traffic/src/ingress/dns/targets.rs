use std::collections::BTreeSet;
use std::net::IpAddr;

use objects::Metadata;
use objects::ip::non_special;
use serde::{Deserialize, Serialize};

use super::problem::DnsProblem;
use crate::ingress::addresses::source;
use crate::ingress::fail_open::takes_requests;
use crate::ingress::node_ports::TRAFFIC_POLICY_ANNOTATION;
use crate::ingress::{Backend, Cached, ClusterEndpoints, Desired, WhenAllBlocked};

/// A target of a record, and its source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(super) struct Origin {
    /// An address, or a host name.
    pub(super) target: String,
    pub(super) cluster: String,
    /// The slice, or the status.
    pub(super) source: String,
}

/// Returns where the name `host` leads, to the addresses that serve all of `services`, or to one other name. Of unreadable
/// objects it keeps the targets that are `held`.
pub(super) fn targets(
    desired: &Desired,
    host: &str,
    services: &BTreeSet<String>,
    held: &BTreeSet<Origin>,
    problems: &mut BTreeSet<DnsProblem>,
) -> BTreeSet<Origin> {
    let backends = services.iter().filter_map(|name| desired.backend(name));
    // Without a port there is nothing to serve, as in a gateway.
    let backends = backends.filter(|backend| match &backend.ports {
        Cached::Present(ports) => !ports.is_empty(),
        Cached::Absent => false,
        Cached::Unread => true,
    });
    let backends: Vec<&Backend> = backends.collect();
    let alias = alias(&backends);
    let by_service = backends.iter().map(|backend| match &alias {
        Some(name) => aliased(backend, name),
        None => addresses(desired, host, backend, held, problems),
    });
    let by_service: Vec<_> = by_service.filter(|targets| !targets.is_empty()).collect();
    let everywhere = by_service.iter().flatten().filter(|origin| {
        let mut all = by_service.iter();
        all.all(|targets| targets.iter().any(|one| one.target == origin.target))
    });
    let mut common: BTreeSet<Origin> = everywhere.cloned().collect();
    if common.is_empty() && !by_service.is_empty() {
        problems.insert(DnsProblem::Apart {
            host: host.to_owned(),
            services: services.clone(),
        });
        // A record is not emptied for that.
        common = by_service.into_iter().flatten().collect();
    }
    if common.is_empty() && desired.when_all_blocked == WhenAllBlocked::FailOpen {
        return kept(&backends, held);
    }
    of_one_kind(host, common, problems)
}

/// Returns the name to which a record may lead: the only one, if all clusters that may serve are called by it, and by nothing
/// else. Of two names a provider of DNS would take either, and it would take addresses and no name.
fn alias(backends: &[&Backend]) -> Option<String> {
    let clusters = backends.iter().flat_map(|backend| &backend.clusters);
    let reached = clusters.filter(|cluster| {
        let is_reached = cluster.takes_requests() || !cluster.only_names.is_empty();
        cluster.admission.is_served() && is_reached
    });
    let reached: Vec<&ClusterEndpoints> = reached.collect();
    let name = reached.first()?.only_names.first()?;
    let mut names = reached.iter().map(|cluster| &cluster.only_names);
    names
        .all(|names| names.iter().eq([name]))
        .then(|| name.clone())
}

fn aliased(backend: &Backend, name: &str) -> BTreeSet<Origin> {
    let clusters = backend
        .clusters
        .iter()
        .filter(|cluster| cluster.admission.is_served() && cluster.only_names.contains(name));
    clusters
        .map(|cluster| Origin {
            target: name.to_owned(),
            cluster: cluster.cluster.clone(),
            source: source(&backend.service),
        })
        .collect()
}

/// Returns the addresses of a Service in the clusters that may serve it.
fn addresses(
    desired: &Desired,
    host: &str,
    backend: &Backend,
    held: &BTreeSet<Origin>,
    problems: &mut BTreeSet<DnsProblem>,
) -> BTreeSet<Origin> {
    let mut leave_out = |cluster: &ClusterEndpoints, target: &str, reason| {
        problems.insert(DnsProblem::Unusable {
            host: host.to_owned(),
            cluster: cluster.cluster.clone(),
            target: target.to_owned(),
            reason,
        });
    };
    let (mut ready, mut ending) = (BTreeSet::new(), BTreeSet::new());
    for cluster in backend.clusters.iter().filter(|c| c.admission.is_served()) {
        if !cluster.takes_requests() && !backend.untold.contains(&cluster.cluster) {
            for name in &cluster.only_names {
                leave_out(cluster, name, "does not resolve to an address");
            }
        }
        for slice in cluster.routable() {
            let source = slice.metadata.name.clone().unwrap_or_default();
            let mark = slice.metadata.annotation(TRAFFIC_POLICY_ANNOTATION);
            for endpoint in slice.endpoints.iter().flatten() {
                let conditions = endpoint.conditions.as_ref();
                if !conditions.is_none_or(takes_requests) {
                    continue;
                }
                let is_ready = conditions.is_none_or(|found| found.ready != Some(false));
                for address in &endpoint.addresses {
                    let parsed = address.parse::<IpAddr>().map_err(|_| "is no IP address");
                    let usable = match mark {
                        None => parsed.and_then(non_special),
                        Some(_) => Err("is an address of a node, and DNS tells no port"),
                    };
                    match usable {
                        Ok(ip) => {
                            let found = if is_ready { &mut ready } else { &mut ending };
                            found.insert(Origin {
                                target: ip.to_string(),
                                cluster: cluster.cluster.clone(),
                                source: source.clone(),
                            });
                        }
                        Err(reason) => leave_out(cluster, address, reason),
                    }
                }
            }
        }
    }
    let is_unread = backend.ports == Cached::Unread;
    let unread = held.iter().filter(|origin| {
        (is_unread || desired.is_unread(&origin.source)) && may_serve(backend, &origin.cluster)
    });
    ready.extend(unread.cloned());
    if ready.is_empty() { ending } else { ready }
}

/// Returns those of the held targets whose clusters may serve, though they report no address now.
fn kept(backends: &[&Backend], held: &BTreeSet<Origin>) -> BTreeSet<Origin> {
    let kept = held.iter().filter(|origin| {
        let mut backends = backends.iter();
        backends.any(|backend| may_serve(backend, &origin.cluster))
    });
    kept.cloned().collect()
}

fn may_serve(backend: &Backend, cluster: &str) -> bool {
    let cluster = backend.cluster(cluster);
    cluster.is_some_and(|cluster| cluster.admission.is_served())
}

fn is_address(origin: &Origin) -> bool {
    origin.target.parse::<IpAddr>().is_ok()
}

/// Returns the targets without names beside addresses, of which a record can have one kind only.
fn of_one_kind(
    host: &str,
    mut targets: BTreeSet<Origin>,
    problems: &mut BTreeSet<DnsProblem>,
) -> BTreeSet<Origin> {
    if targets.iter().any(is_address) {
        targets.retain(|origin| {
            let stays = is_address(origin);
            if !stays {
                problems.insert(DnsProblem::Unusable {
                    host: host.to_owned(),
                    cluster: origin.cluster.clone(),
                    target: origin.target.clone(),
                    reason: "is a name, and others have addresses",
                });
            }
            stays
        });
    }
    targets
}
