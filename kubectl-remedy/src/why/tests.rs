use karmada_api::remedy::{EXPIRES_AT, OBSERVE_ONLY, REASON, WHEN};
use karmada_api::{MultiClusterIngress, TRAFFIC_CONTROL};
use karmada_runtime::store::Store;
use kube::ResourceExt;
use objects::Key;
use serde_json::{Value, from_value, json};

use super::explanation::Refusal;
use super::*;
use crate::fixtures::{self, controllers, hub, maintenance, remedy};
use crate::fleet::put;
use crate::manifest::Format;
use crate::writer::Writer;

fn explanation(fleet: &FleetSnapshot, name: &str, traces: &Traces) -> Explanation {
    Explanation::of(&Links {
        fleet,
        cluster: fleet.require(name).unwrap(),
        traces,
        controllers: &controllers(&[]),
    })
}

fn explain(fleet: &FleetSnapshot, name: &str, traces: &Traces) -> String {
    explanation(fleet, name, traces).text(fleet.now)
}

/// Returns the fleet of the fixtures at the moment of these tests.
fn fleet() -> FleetSnapshot {
    FleetSnapshot {
        now: "2026-11-20T08:12:00Z".parse().unwrap(),
        ..fixtures::fleet()
    }
}

fn writer(name: &str) -> Writer {
    Writer {
        name: name.to_owned(),
        time: from_value(json!("2026-11-20T08:01:00Z")).unwrap(),
    }
}

fn traces() -> Traces {
    let spec = json!({ "holderIdentity": "n1_x", "renewTime": "2026-11-20T08:11:57.000000Z" });
    Traces {
        lease: from_value(json!({ "metadata": {}, "spec": spec })).unwrap(),
        refusals: Vec::new(),
        actions: Some(writer("remedy-controller")),
        blocks: [(Key::new("shop", "shop"), writer("ingress-controller"))].into(),
    }
}

/// A blocked cluster is explained from the verdict to the load balancer.
#[test]
fn blocked_cluster_is_explained() {
    let mut fleet = fleet();
    put(&mut fleet.remedies, maintenance(&["member2"]));
    put(
        &mut fleet.remedies,
        remedy("never", &json!({ "decisionMatches": [] })),
    );
    assert_eq!(
        explain(&fleet, "member1", &traces()),
        "\
member1 is blocked by Remedy dns (ServiceDomainNameResolutionReady is False).

Verdict of its nodes
  ServiceDomainNameResolutionReady is False for 12m: ServiceDomainNameResolutionFailed
    service domain name resolution is unready
  HealthReporterReady: none
  lease karmada-es-member1/cluster-health-agent is held by n1_x, renewed 3s ago

Remedies
  NAME          ACTS   ACTIONS          BECAUSE
  dns           yes    TrafficControl   ServiceDomainNameResolutionReady is False
  maintenance   no     TrafficControl   it does not name this cluster
  never         no     <none>           decisionMatches is empty, so this Remedy never acts: leave decisionMatches out to act at once

Actions
  TrafficControl, last written by remedy-controller 11m ago

Ingresses with a backend there
  shop/shop: blocked, last written by ingress-controller 11m ago
    blocked clusters: member1
    Service web is served by member2
"
    );
}

/// A member of a hub is explained by the objects of the hub: its lease is in the namespace of the member.
#[tokio::test]
async fn member_of_hub_is_explained() {
    let (client, now) = (hub().await.client(), fleet().now);
    let fleet = FleetSnapshot::read(&client, None, now).await.unwrap();
    let traces = Traces::read(&client, None, fleet.kind, "m1").await.unwrap();
    assert_eq!(
        explain(&fleet, "m1", &traces),
        "\
m1 is blocked although no Remedy asks for it any more.

Verdict of its nodes
  ServiceDomainNameResolutionReady is False for 12m: Because
  HealthReporterReady: none
  lease fleet-member-m1/cluster-health-agent does not exist: no agent has reported

Remedies
  none

Actions
  TrafficControl
  not done yet: TrafficControl cleared: no Remedy asks for it any more

Ingresses with a backend there
  none
"
    );
}

/// The addresses of a load balancer are shown, for which kubectl may have no column.
#[test]
fn addresses_are_shown() {
    let mut fleet = fleet();
    let key = Key::new("shop", "shop");
    let mut ingress = MultiClusterIngress::clone(fleet.ingresses.get(&key).unwrap());
    let addresses = json!({ "ingress": [{ "ip": "192.0.2.1" }, { "hostname": "lb.example.com" }] });
    ingress.status.as_mut().unwrap().load_balancer = from_value(addresses).unwrap();
    put(&mut fleet.ingresses, ingress);
    let shown = explain(&fleet, "member1", &traces());
    let line = "    addresses: 192.0.2.1, lb.example.com";
    assert!(shown.lines().any(|shown| shown == line), "{shown}");
}

/// A write of its agents that the API refuses is told beside their lease.
#[test]
fn refused_condition_is_said() {
    let refusal = Refusal {
        time: from_value(json!("2026-11-20T08:09:00.000000Z")).unwrap(),
        note: "the API refuses it:\npolicy p".to_owned(),
    };
    let traces = Traces {
        refusals: vec![refusal],
        ..traces()
    };
    let shown = explain(&fleet(), "member1", &traces);
    let line = "  3m ago: the API refuses it: policy p";
    assert!(shown.lines().any(|shown| shown == line), "{shown}");
}

/// A change that is not made yet is told.
#[test]
fn pending_steps_are_said() {
    let mut fleet = fleet();
    put(&mut fleet.remedies, maintenance(&["member2"]));
    let shown = explain(&fleet, "member2", &Traces::default());
    for line in [
        "member2 is not blocked although Remedy maintenance (it names no condition) asks for it.",
        "  lease karmada-es-member2/cluster-health-agent does not exist: no agent has reported",
        "  not done yet: TrafficControl set by Remedy maintenance: it names no condition",
        "  shop/shop: not blocked",
        "  dns           no     TrafficControl   ServiceDomainNameResolutionReady is True, and False is asked for",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
}

/// A readmitted cluster serves although it is blocked.
#[test]
fn readmitted_cluster_serves() {
    let mut fleet = fleet();
    put(&mut fleet.bindings, fixtures::binding("web", &["member1"]));
    fleet.slices = Store::default();
    let shown = explain(&fleet, "member1", &Traces::default());
    let line = "    Service web is served by member1 (blocked, readmitted): no other cluster does, and fail-open is assumed";
    assert!(shown.lines().any(|shown| shown == line), "{shown}");
}

/// Returns the spec of a Remedy that acts on a condition.
fn on(kind: &str, operator: &str) -> Value {
    let wanted = json!({ "conditionType": kind, "operator": operator, "conditionStatus": "True" });
    json!({ "decisionMatches": [{ "clusterConditionMatch": wanted }] })
}

/// Every reason why a remedy does not act has its words.
#[test]
fn every_inaction_has_words() {
    let fleet = fleet();
    let traces = Traces::default();
    let controllers = controllers(&[]);
    let links = Links {
        fleet: &fleet,
        cluster: fleet.require("member2").unwrap(),
        traces: &traces,
        controllers: &controllers,
    };
    let dns = "ServiceDomainNameResolutionReady";
    for (spec, reason) in [
        (on("Full", "Equal"), "the cluster has no Full"),
        (
            on(dns, "NotEqual"),
            "ServiceDomainNameResolutionReady is True, and any other is asked for",
        ),
        (
            json!({ "decisionMatches": [{}] }),
            "a match names no condition",
        ),
        (
            json!({ "clusterAffinity": { "clusterNames": ["other"] } }),
            "it does not name this cluster",
        ),
    ] {
        assert_eq!(links.why_not(&remedy("r", &spec)), reason);
    }
}

/// Of conditions that must all match, those are named that do not.
#[test]
fn unmet_conditions_are_named() {
    let (fleet, traces) = (fleet(), Traces::default());
    let controllers = controllers(&[]);
    let links = Links {
        fleet: &fleet,
        cluster: fleet.require("member2").unwrap(),
        traces: &traces,
        controllers: &controllers,
    };
    for (when, reason) in [
        (
            "ServiceDomainNameResolutionReady=True,Ready!=True",
            "the cluster has no Ready",
        ),
        (
            "ServiceDomainNameResolutionReady!=True,Ready!=True",
            "ServiceDomainNameResolutionReady is True, and any other is asked for; the cluster has no Ready",
        ),
        (
            "Ready",
            "annotation remedy.karmada-rs.io/when is \"Ready\", so this Remedy sets no action and clears none: write conditions such as HealthReporterReady=False,Ready!=True",
        ),
    ] {
        let mut found = remedy("r", &json!({ "decisionMatches": [] }));
        let annotations = found.annotations_mut();
        annotations.insert(WHEN.to_owned(), when.to_owned());
        assert_eq!(links.why_not(&found), reason);
    }
}

/// The reason and the end of a remedy are shown with it.
#[test]
fn reason_and_end_are_shown() {
    let mut block = maintenance(&["member2"]);
    let annotations = block.annotations_mut();
    annotations.insert(REASON.to_owned(), "new\nkernel".to_owned());
    annotations.insert(EXPIRES_AT.to_owned(), "2026-11-20T10:00:00Z".to_owned());
    let mut fleet = fleet();
    put(&mut fleet.remedies, block);
    let shown = explain(&fleet, "member2", &Traces::default());
    let row = "it names no condition (new kernel; until 2026-11-20T10:00:00Z)";
    assert!(shown.lines().any(|line| line.ends_with(row)), "{shown}");
}

/// A remedy that only observes or has expired says so.
#[test]
fn inactive_remedy_says_so() {
    let (fleet, traces) = (fleet(), Traces::default());
    let controllers = controllers(&[]);
    let links = Links {
        fleet: &fleet,
        cluster: fleet.require("member2").unwrap(),
        traces: &traces,
        controllers: &controllers,
    };
    for (annotation, value, reason) in [
        (EXPIRES_AT, "2026-11-20T08:00:00Z", "it has expired"),
        (
            OBSERVE_ONLY,
            "true",
            "it only observes: it names no condition",
        ),
        (
            OBSERVE_ONLY,
            "maybe",
            "what decides about it cannot be read",
        ),
    ] {
        let mut found = maintenance(&["member2"]);
        let annotations = found.annotations_mut();
        annotations.insert(annotation.to_owned(), value.to_owned());
        assert_eq!(links.why_not(&found), reason);
    }
}

/// The explanation is for programs too.
#[test]
fn explanation_is_machine_readable() {
    let mut fleet = fleet();
    let mut block = maintenance(&["member2"]);
    let annotations = block.annotations_mut();
    annotations.insert(REASON.to_owned(), "new\nkernel".to_owned());
    put(&mut fleet.remedies, block);
    let explanation = explanation(&fleet, "member1", &traces());
    let text = manifest::text(&explanation, Format::Json).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        read,
        json!({
            "cluster": "member1",
            "summary": "member1 is blocked by Remedy dns (ServiceDomainNameResolutionReady is False).",
            "blocked": true,
            "conditions": [{
                "type": "ServiceDomainNameResolutionReady", "status": "False",
                "reason": "ServiceDomainNameResolutionFailed",
                "message": "service domain name resolution is unready",
                "lastTransitionTime": "2026-11-20T08:00:00Z",
            }],
            "lease": {
                "namespace": "karmada-es-member1", "name": "cluster-health-agent", "exists": true,
                "holder": { "name": "n1_x", "renewTime": "2026-11-20T08:11:57.000000Z", "live": true },
            },
            "remedies": [
                { "name": "dns", "acts": true, "actions": [TRAFFIC_CONTROL],
                    "because": "ServiceDomainNameResolutionReady is False" },
                { "name": "maintenance", "acts": false, "actions": [TRAFFIC_CONTROL],
                    "because": "it does not name this cluster", "reason": "new\nkernel" },
            ],
            "actions": {
                "present": [TRAFFIC_CONTROL], "pending": [],
                "lastWriter": { "name": "remedy-controller", "time": "2026-11-20T08:01:00Z" },
            },
            "ingresses": [{
                "namespace": "shop", "name": "shop", "blocked": true, "blockedClusters": ["member1"],
                "addresses": [],
                "lastWriter": { "name": "ingress-controller", "time": "2026-11-20T08:01:00Z" },
                "backends": [{ "service": "web",
                    "servedBy": [{ "name": "member2", "state": "Admitted" }] }],
            }],
        })
    );
    let yaml = manifest::text(&explanation, Format::Yaml).unwrap();
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), read);
}
