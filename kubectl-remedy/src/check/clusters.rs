//! The clusters: whether the agents of each report, and those of the gateway.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::ClusterRole;
use karmada_api::condition::{
    DNS_READY, GATEWAY_REPORTER_NAMESPACE, REPORTER_LEASE, REPORTER_READY, TRUE,
};
use karmada_api::{Cluster, Work, cluster_of_execution_namespace};
use karmada_runtime::store::Store;
use kube::{Api, Client, ResourceExt};
use objects::Key;

use super::gateway;
use super::report::{Finding, Section};
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::lease::Holder;
use crate::lists::{by_name, list, list_each_metadata};
use crate::membership::agent::{self, works};

/// Checks every cluster, and that every object can be read.
pub(super) async fn section(
    client: &Client,
    fleet: &FleetSnapshot,
    now: Timestamp,
) -> Result<Section, Error> {
    let leases: Store<Lease> = list(Api::all(client.clone()), by_name(REPORTER_LEASE)).await?;
    let of_gateway = leases.get(&Key::new(GATEWAY_REPORTER_NAMESPACE, REPORTER_LEASE));
    let of_gateway = of_gateway.map(AsRef::as_ref);
    let leases: BTreeMap<&str, &Lease> = leases
        .iter()
        .filter_map(|(key, lease)| {
            Some((cluster_of_execution_namespace(&key.namespace)?, &**lease))
        })
        .collect();
    let (joined, works) = (joined(client).await, works(client).await?);
    let clusters = fleet.clusters.iter().map(|(_, cluster)| &**cluster);
    let mut findings = Vec::new();
    for cluster in clusters {
        let name = cluster.name_any();
        findings.push(match leases.get(&*name) {
            Some(lease) => reports(cluster, lease, now),
            None => never_reported(cluster, joined.contains(&name), works.get(&name)),
        });
    }
    findings.extend(gateway::findings(fleet, of_gateway, now));
    findings.extend(unread(fleet));
    if findings.is_empty() {
        findings.push(Finding::doubtful("there are no clusters", "join one"));
    }
    Ok(Section {
        title: "Clusters",
        findings,
    })
}

fn unread(fleet: &FleetSnapshot) -> impl Iterator<Item = Finding> {
    let clusters = fleet.clusters.unread().iter().map(|key| ("cluster", key));
    let remedies = fleet.remedies.unread().iter().map(|key| ("Remedy", key));
    let ingresses = fleet.ingresses.unread().iter();
    let ingresses = ingresses.map(|key| ("MultiClusterIngress", key));
    clusters
        .chain(remedies)
        .chain(ingresses)
        .map(|(kind, key)| {
            let text = format!("{kind} {key} cannot be read");
            Finding::bad(
                text,
                "nothing is taken away on its account: correct it, or delete it",
            )
        })
}

/// Returns the clusters whose agents have rights, however they got them: none where the caller may not list roles.
async fn joined(client: &Client) -> BTreeSet<String> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let mut joined = BTreeSet::new();
    let read = list_each_metadata(&roles, |role| {
        let name = role.name_any();
        joined.extend(name.strip_prefix(agent::ROLE).map(ToOwned::to_owned));
    });
    match read.await {
        Ok(()) => joined,
        Err(_) => BTreeSet::new(),
    }
}

/// Returns the findings about the reporter of a cluster that never had a lease.
fn never_reported(cluster: &Cluster, is_joined: bool, work: Option<&Work>) -> Finding {
    let name = cluster.name_any();
    if cluster.condition(DNS_READY).is_some() {
        return Finding::doubtful(
            format!("{name} has a verdict of another reporter, which may be old"),
            "nothing tells whether that reporter still runs",
        );
    }
    if is_joined {
        return Finding::bad(
            format!("{name} has joined, and never reported"),
            agent::unreported::explain(work),
        );
    }
    Finding::doubtful(
        format!("{name} has not joined"),
        "`kubectl remedy join` installs its agents; without them only its other conditions count",
    )
}

/// Returns the findings about the reporter of `cluster`, by its lease and its condition.
fn reports(cluster: &Cluster, lease: &Lease, now: Timestamp) -> Finding {
    let name = cluster.name_any();
    let verdict = cluster.condition(DNS_READY);
    let holder = Holder::of(lease, now);
    let Some(holder) = holder.filter(Holder::is_live) else {
        return Finding::bad(
            format!("{name}: no agent renews its lease"),
            "look at the agents there, and at their way to the Karmada API; the verdict keeps its last value",
        );
    };
    match cluster.condition(REPORTER_READY) {
        Some(fresh) if fresh.status != TRUE => Finding::bad(
            format!(
                "{name}: {REPORTER_READY} is {}: {}",
                fresh.status, fresh.message
            ),
            "look at the agents on the nodes that have no vote; the verdict keeps its last value",
        ),
        _ => match verdict {
            Some(verdict) => {
                Finding::good(format!("{name} reports: {DNS_READY} is {}", verdict.status))
            }
            None => Finding::doubtful(
                format!("{name} has no verdict yet, and its lease is {holder}"),
                "a verdict takes as long as the agents' thresholds",
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn shown(finding: &Finding) -> String {
        let shown = anstream::adapter::strip_str(&finding.to_string()).to_string();
        shown.lines().next().unwrap_or_default().to_owned()
    }

    fn cluster(conditions: &Value) -> Cluster {
        from_value(json!({ "metadata": { "name": "m1" }, "spec": {},
            "status": { "conditions": conditions } }))
        .unwrap()
    }

    fn lease(renewed: &str) -> Lease {
        from_value(json!({ "metadata": {}, "spec": { "holderIdentity": "n1",
            "leaseDurationSeconds": 15, "renewTime": renewed } }))
        .unwrap()
    }

    /// A cluster is well while its agents report a fresh verdict.
    #[test]
    fn fresh_verdict_is_well() {
        let now: Timestamp = "2026-11-20T08:10:00Z".parse().unwrap();
        let dns = json!({ "type": DNS_READY, "status": "False" });
        let fresh = json!({ "type": REPORTER_READY, "status": "True" });
        let stale = json!({ "type": REPORTER_READY, "status": "False", "message": "too few" });
        let live = lease("2026-11-20T08:09:55.000000Z");
        let dead = lease("2026-11-20T07:00:00.000000Z");
        for (conditions, lease, line) in [
            (
                json!([dns, fresh]),
                &live,
                "✓ m1 reports: ServiceDomainNameResolutionReady is False",
            ),
            (
                json!([dns, stale]),
                &live,
                "× m1: HealthReporterReady is False: too few",
            ),
            (
                json!([]),
                &live,
                "‼ m1 has no verdict yet, and its lease is held by n1, renewed 5s ago",
            ),
            (
                json!([dns, fresh]),
                &dead,
                "× m1: no agent renews its lease",
            ),
        ] {
            assert_eq!(shown(&reports(&cluster(&conditions), lease, now)), line);
        }
        for (conditions, is_joined, line) in [
            (
                json!([dns]),
                true,
                "‼ m1 has a verdict of another reporter, which may be old",
            ),
            (json!([]), true, "× m1 has joined, and never reported"),
            (json!([]), false, "‼ m1 has not joined"),
        ] {
            let found = never_reported(&cluster(&conditions), is_joined, None);
            assert_eq!(shown(&found), line);
        }
    }
}
