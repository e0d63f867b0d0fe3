//! The gateway: whether somebody tells which members it reaches, and whether something follows from that.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::condition::{GATEWAY_REPORTER_READY, REACHABLE, TRUE};
use karmada_api::{Cluster, MultiClusterIngress};
use kube::ResourceExt;
use traffic::remedy::required_conditions;

use super::report::Finding;
use crate::fleet::FleetSnapshot;
use crate::lease::Holder;

/// Returns the findings about the agents on the gateway's nodes, by their lease and their conditions. Nothing where no gateway
/// is known.
pub(super) fn findings(
    fleet: &FleetSnapshot,
    lease: Option<&Lease>,
    now: Timestamp,
) -> Vec<Finding> {
    let clusters = fleet.clusters.iter().map(|(_, cluster)| &**cluster);
    let judged: Vec<&Cluster> = clusters
        .filter(|cluster| cluster.condition(REACHABLE).is_some())
        .collect();
    if judged.is_empty() {
        let mut ingresses = fleet.ingresses.iter();
        let is_known = ingresses.any(|(_, ingress)| has_gateway(ingress));
        let unknown = is_known.then(|| {
            Finding::doubtful(
                "nobody tells whether the gateway reaches the members",
                "a member whose power fails keeps its traffic; agents on the gateway's nodes tell it: docs/reachability.md",
            )
        });
        return unknown.into_iter().collect();
    }
    let mut findings: Vec<Finding> = lease
        .map(|lease| Holder::of(lease, now))
        .filter(|holder| !holder.as_ref().is_some_and(Holder::is_live))
        .map(|_| {
            Finding::bad(
                "the gateway: no agent renews its lease",
                "look at the agents on its nodes, and at their way to the Karmada API; their verdicts keep their last values",
            )
        })
        .into_iter()
        .collect();
    if findings.is_empty() {
        findings.extend(judged.iter().filter_map(|cluster| stale(cluster)));
    }
    let reached = judged.iter().filter(|cluster| {
        let condition = cluster.condition(REACHABLE);
        condition.is_some_and(|condition| condition.status == TRUE)
    });
    let (reached, all) = (reached.count(), judged.len());
    findings.push(Finding::good(format!(
        "the gateway reaches {reached} of {all} members"
    )));
    let mut remedies = fleet.remedies.iter();
    if !remedies.any(|(_, remedy)| required_conditions(remedy).contains(REACHABLE)) {
        findings.push(Finding::doubtful(
            format!("no Remedy acts on {REACHABLE}"),
            "manifests/samples/remedy-unreachable.yaml takes the traffic off a member that the gateway does not reach",
        ));
    }
    findings
}

/// Returns `true` if a load balancer has said where it serves the ingress.
fn has_gateway(ingress: &MultiClusterIngress) -> bool {
    let status = ingress.status.as_ref();
    let balancer = status.and_then(|status| status.load_balancer.as_ref());
    balancer.is_some_and(|balancer| balancer.ingress.iter().flatten().next().is_some())
}

fn stale(cluster: &Cluster) -> Option<Finding> {
    let fresh = cluster.condition(GATEWAY_REPORTER_READY)?;
    let is_stale = fresh.status != TRUE;
    is_stale.then(|| {
        let name = cluster.name_any();
        let (status, message) = (&fresh.status, &fresh.message);
        Finding::doubtful(
            format!("{name}: {GATEWAY_REPORTER_READY} is {status}: {message}"),
            format!("{REACHABLE} keeps its last value; docs/reachability.md says how a blocked member comes back"),
        )
    })
}

#[cfg(test)]
mod tests {
    use karmada_api::TRAFFIC_CONTROL;
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::fixtures;
    use crate::fleet::put;

    fn lines(fleet: &FleetSnapshot, lease: Option<&Lease>) -> Vec<String> {
        let now: Timestamp = "2026-11-20T08:10:00Z".parse().unwrap();
        let findings = findings(fleet, lease, now).into_iter();
        let shown = findings.map(|finding| {
            let shown = finding.to_string();
            let shown = anstream::adapter::strip_str(&shown).to_string();
            shown.lines().next().unwrap_or_default().to_owned()
        });
        shown.collect()
    }

    fn judged(name: &str, reachable: &str, fresh: &str) -> Cluster {
        let conditions = json!([
            { "type": REACHABLE, "status": reachable },
            { "type": GATEWAY_REPORTER_READY, "status": fresh, "message": "no node votes" },
        ]);
        from_value(json!({ "metadata": { "name": name }, "spec": {},
            "status": { "conditions": conditions } }))
        .unwrap()
    }

    fn lease(renewed: &str) -> Lease {
        from_value(json!({ "metadata": {}, "spec": { "holderIdentity": "g1",
            "leaseDurationSeconds": 15, "renewTime": renewed } }))
        .unwrap()
    }

    /// Without a gateway there is nothing to say, and with one the agents are missed.
    #[test]
    fn agents_are_missed() {
        let mut fleet = FleetSnapshot::default();
        let ingress = |addresses: Value| -> MultiClusterIngress {
            from_value(
                json!({ "metadata": { "namespace": "shop", "name": "shop" }, "spec": {},
                "status": { "loadBalancer": { "ingress": addresses } } }),
            )
            .unwrap()
        };
        put(&mut fleet.ingresses, ingress(json!([])));
        assert_eq!(lines(&fleet, None), [""; 0]);
        put(
            &mut fleet.ingresses,
            ingress(json!([{ "ip": "203.0.113.7" }])),
        );
        let missed = "‼ nobody tells whether the gateway reaches the members";
        assert_eq!(lines(&fleet, None), [missed]);
    }

    /// A Remedy is recommended, and stale verdicts and silent agents are told.
    #[test]
    fn remedy_is_recommended() {
        let mut fleet = FleetSnapshot::default();
        put(&mut fleet.clusters, judged("m1", "True", "True"));
        put(&mut fleet.clusters, judged("m2", "False", "False"));
        let (live, dead) = ("2026-11-20T08:09:55.000000Z", "2026-11-20T07:00:00.000000Z");
        let reached = "✓ the gateway reaches 1 of 2 members";
        let recommended = "‼ no Remedy acts on ReachableFromGateway";
        let stale = "‼ m2: GatewayReporterReady is False: no node votes";
        let silent = "× the gateway: no agent renews its lease";
        assert_eq!(
            lines(&fleet, Some(&lease(live))),
            [stale, reached, recommended]
        );
        assert_eq!(
            lines(&fleet, Some(&lease(dead))),
            [silent, reached, recommended]
        );
        let wanted =
            json!({ "conditionType": REACHABLE, "operator": "Equal", "conditionStatus": "False" });
        let matches = json!([{ "clusterConditionMatch": wanted }]);
        let spec = json!({ "decisionMatches": matches, "actions": [TRAFFIC_CONTROL] });
        put(&mut fleet.remedies, fixtures::remedy("unreachable", &spec));
        assert_eq!(lines(&fleet, Some(&lease(live))), [stale, reached]);
    }
}
