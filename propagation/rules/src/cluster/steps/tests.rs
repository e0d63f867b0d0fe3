use proptest::prelude::*;

use super::*;
use crate::cluster::{Health, NOT_READY, Probe, served};
use karmada_api::cluster_view::NodeSummary;
use karmada_api::condition::FALSE;
use objects::write::Action;

const NOW: &str = "2026-11-20T08:00:00Z";

fn situation<'a>(cluster: &'a Value, observed: Option<&'a ClusterObservation>) -> Situation<'a> {
    Situation {
        cluster,
        namespace: Some(labelled(false)),
        is_targeted: false,
        observed,
        node_slices: None,
        silent_for: Duration::ZERO,
        unready_for: Duration::ZERO,
        evict_after: None,
        condition_taints: &[],
        now: NOW.parse().unwrap(),
    }
}

fn labelled(is_deleting: bool) -> ExecutionNamespace {
    ExecutionNamespace {
        uid: Some("u".to_owned()),
        is_labelled: true,
        is_deleting,
    }
}

/// Returns the one write of the one step, and its change.
fn single(steps: &[Step]) -> (&Write, Option<&ClusterChange>) {
    let [step] = steps else {
        panic!("{steps:?}");
    };
    (&step.writes[0], step.events.first())
}

fn report(probe: &Probe) -> Report {
    let now = std::time::Instant::now();
    Health::default().judge(probe, None, now).unwrap()
}

fn discovery(kinds: &[&str]) -> Vec<ServedKinds> {
    let resources: Vec<_> = kinds
        .iter()
        .map(|kind| {
            json!({ "resource": format!("{}s", kind.to_lowercase()),
                "responseKind": { "kind": kind } })
        })
        .collect();
    served(&json!({ "kind": "APIGroupDiscoveryList", "items": [
        { "metadata": { "name": "apps" }, "versions": [
            { "version": "v1", "freshness": "Current", "resources": resources },
        ] },
    ] }))
    .unwrap()
}

/// Applies a step as an API server does.
fn apply(cluster: &mut Value, namespace: &mut Option<ExecutionNamespace>, step: &Step) {
    let (write, _) = single(std::slice::from_ref(step));
    let version = cluster.resource_version().to_owned();
    match (&*write.object.resource.kind, &write.action) {
        ("Cluster", Action::Merge(patch)) => {
            let is_current = write.object.version.as_ref() == Some(&version);
            assert!(write.guard == Guard::None || is_current, "{write:?}");
            json_patch::merge(cluster, patch);
        }
        ("Namespace", Action::Delete) => *namespace = None,
        ("Namespace", _) => *namespace = Some(labelled(false)),
        _ => panic!("{write:?}"),
    }
    let version: u64 = version.parse().unwrap();
    cluster["metadata"]["resourceVersion"] = json!((version + 1).to_string());
}

/// Applies the first step again and again, and returns the number of writes until nothing is left to do.
fn settle(
    cluster: &mut Value,
    namespace: &mut Option<ExecutionNamespace>,
    observed: Option<&ClusterObservation>,
) -> usize {
    for count in 0..12 {
        let situation = Situation {
            namespace: namespace.clone(),
            ..situation(cluster, observed)
        };
        let Some(step) = steps(&situation).into_iter().next() else {
            return count;
        };
        apply(cluster, namespace, &step);
    }
    panic!("never settled: {cluster}");
}

fn joined() -> Value {
    json!({ "metadata": { "name": "m1", "resourceVersion": "1" }, "spec": { "syncMode": "Push" } })
}

fn of(resources: Value) -> Capacity {
    Capacity {
        nodes: NodeSummary {
            total_num: 3,
            ready_num: 2,
        },
        resources: ResourceSummary::deserialize(resources).unwrap(),
    }
}

fn healthy() -> ClusterObservation {
    ClusterObservation {
        ready: Some(report(&Probe::Healthy)),
        version: Some("v1.36.3".to_owned()),
        served: Some(Ok(discovery(&["Deployment"]))),
        capacity: Some(of(json!({
            "allocatable": { "cpu": "4" }, "allocated": { "cpu": "1", "pods": "2" },
        }))),
        nodes: None,
    }
}

/// A new cluster gets everything and then nothing more.
#[test]
fn new_cluster_gets_everything_once() {
    let (mut cluster, mut namespace, observed) = (joined(), None, healthy());
    assert_eq!(settle(&mut cluster, &mut namespace, Some(&observed)), 5);
    assert_eq!(
        cluster,
        json!({
            "metadata": { "name": "m1", "resourceVersion": "6", "finalizers": [FINALIZER] },
            "spec": { "syncMode": "Push" },
            "status": {
                "conditions": [
                    { "type": "Ready", "status": "True", "reason": "ClusterReady",
                        "message": "cluster is healthy and ready to accept workloads",
                        "lastTransitionTime": NOW },
                    { "type": "CompleteAPIEnablements", "status": "True", "reason": "Complete",
                        "message": "collected complete APIEnablements from the cluster",
                        "lastTransitionTime": NOW },
                ],
                "kubernetesVersion": "v1.36.3",
                "nodeSummary": { "totalNum": 3, "readyNum": 2 },
                "apiEnablements": [{ "groupVersion": "apps/v1",
                    "resources": [{ "name": "deployments", "kind": "Deployment" }] }],
                "resourceSummary": { "allocatable": { "cpu": "4" },
                    "allocated": { "cpu": "1", "pods": "2" } },
            },
        })
    );
    assert_eq!(settle(&mut cluster, &mut namespace, Some(&observed)), 0);
    assert_eq!(settle(&mut cluster, &mut namespace, None), 0, "a restart");
}

/// A cluster without a verdict is tainted until it has one.
#[test]
fn unjudged_cluster_is_tainted() {
    let (mut cluster, mut namespace) = (joined(), None);
    settle(&mut cluster, &mut namespace, None);
    assert_eq!(cluster["spec"]["taints"][0]["key"], NOT_READY);
    settle(&mut cluster, &mut namespace, Some(&healthy()));
    assert_eq!(cluster["spec"]["taints"], Value::Null);
}

/// A taint for a condition has a time and is one write with those of its health.
#[test]
fn all_taints_are_one_write() {
    let mut cluster = joined();
    cluster["metadata"]["finalizers"] = json!([FINALIZER]);
    cluster["status"] = json!({ "conditions": [{ "type": "DnsReady", "status": "False" }] });
    let planned = steps(&Situation {
        condition_taints: &["DnsReady=False:NoExecute".parse().unwrap()],
        ..situation(&cluster, None)
    });
    let (write, change) = single(&planned);
    assert_eq!(write.body()["spec"]["taints"][0]["timeAdded"], NOW);
    let taints = [
        "cluster.karmada-rs.io/DnsReady=False:NoExecute",
        "cluster.karmada.io/not-ready:NoSchedule",
    ];
    let taints = taints.map(str::to_owned).to_vec();
    assert_eq!(change, Some(&ClusterChange::Taints(taints)));
}

/// A pull cluster gets finalizer namespace and taints but no status.
#[test]
fn pull_cluster_gets_no_status() {
    let (mut cluster, mut namespace) = (joined(), None);
    cluster["spec"]["syncMode"] = json!("Pull");
    settle(&mut cluster, &mut namespace, Some(&healthy()));
    assert_eq!(cluster.get("status"), None);
    assert!(namespace.is_some());
    cluster["status"] = json!({ "conditions": [{ "type": "Ready", "status": "Unknown" }] });
    settle(&mut cluster, &mut namespace, None);
    assert_eq!(
        cluster["spec"]["taints"],
        json!([{ "key": "cluster.karmada.io/unreachable", "effect": "NoSchedule" }])
    );
}

fn silent(cluster: &Value) -> Vec<Step> {
    steps(&Situation {
        silent_for: Duration::from_secs(40),
        ..situation(cluster, None)
    })
}

/// Case I100: of a cluster that reports on itself, and no longer does, the health is unknown and a taint says so. A
/// Push cluster is asked itself.
#[test]
fn only_pull_clusters_fall_silent() {
    let mut cluster = joined();
    cluster["metadata"]["finalizers"] = json!([FINALIZER]);
    cluster["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    assert_eq!(silent(&cluster), []);
    cluster["spec"]["syncMode"] = json!("Pull");
    let planned = silent(&cluster);
    let (_, Some(ClusterChange::Health(health))) = single(&planned) else {
        panic!("{planned:?}");
    };
    assert_eq!(health.reason, "ClusterStatusUnknown");
    apply(&mut cluster, &mut None, &planned[0]);
    let taint = "cluster.karmada.io/unreachable:NoSchedule".to_owned();
    let change = ClusterChange::Taints(vec![taint]);
    assert_eq!(single(&silent(&cluster)).1, Some(&change));
}

fn down(now: &str) -> ClusterObservation {
    let error = format!("certificate expired: verification time {now} (UNIX)");
    ClusterObservation {
        ready: Some(report(&Probe::Unreachable(error))),
        ..ClusterObservation::default()
    }
}

/// Case P130: an outage that is worded anew with each probe is no news.
#[test]
fn reworded_outage_is_no_news() {
    let (mut cluster, mut namespace) = (joined(), Some(labelled(false)));
    settle(&mut cluster, &mut namespace, Some(&down("1764581643")));
    let again = down("1764581653");
    assert_eq!(settle(&mut cluster, &mut namespace, Some(&again)), 0);
}

/// A change of health is one write and names itself.
#[test]
fn health_change_is_one_write() {
    let (mut cluster, mut namespace) = (joined(), None);
    settle(&mut cluster, &mut namespace, Some(&healthy()));
    let down = ClusterObservation {
        ready: Some(report(&Probe::Unreachable("connection refused".to_owned()))),
        ..healthy()
    };
    let planned = steps(&situation(&cluster, Some(&down)));
    let (write, change) = single(&planned);
    assert_eq!(
        change,
        down.ready.clone().map(ClusterChange::Health).as_ref()
    );
    let version = cluster.resource_version().to_owned();
    assert_eq!(
        (write.guard, &write.object.version),
        (Guard::Version, &Some(version))
    );
    let other = ClusterObservation {
        ready: Some(report(&Probe::Unhealthy("500".to_owned()))),
        ..healthy()
    };
    settle(&mut cluster, &mut namespace, Some(&down));
    let planned = steps(&situation(&cluster, Some(&other)));
    let (write, change) = single(&planned);
    assert_eq!(write.target, "conditions");
    assert_eq!(change, None, "a reason alone is no transition");
}

/// Kinds that cannot be read are kept and the condition has the reason.
#[test]
fn unreadable_kinds_are_kept() {
    let (mut cluster, mut namespace) = (joined(), None);
    settle(&mut cluster, &mut namespace, Some(&healthy()));
    let enabled = cluster["status"]["apiEnablements"].clone();
    let garbage = ClusterObservation {
        served: Some(Err("not a discovery document".to_owned())),
        ..healthy()
    };
    assert_eq!(settle(&mut cluster, &mut namespace, Some(&garbage)), 1);
    assert_eq!(cluster["status"]["apiEnablements"], enabled);
    let complete = condition(&cluster, COMPLETE_API_ENABLEMENTS);
    assert_eq!(
        (&complete["status"], &complete["reason"]),
        (&json!(FALSE), &json!("Empty"))
    );
    assert_eq!(
        complete["message"],
        "collected empty APIEnablements from the cluster: not a discovery document"
    );
}

/// The nodes of each model are written if they are counted, as the amounts are, when they change.
#[test]
fn model_counts_are_written_once() {
    let (mut cluster, mut namespace) = (joined(), None);
    let counts = json!([{ "grade": 0, "count": 1 }, { "grade": 1, "count": 2 }]);
    let counted = ClusterObservation {
        capacity: Some(of(json!({ "allocatableModelings": counts }))),
        ..healthy()
    };
    settle(&mut cluster, &mut namespace, Some(&counted));
    let summary = &cluster["status"]["resourceSummary"];
    assert_eq!(summary["allocatableModelings"], counts);
    assert_eq!(settle(&mut cluster, &mut namespace, Some(&counted)), 0);
}

/// Amounts that are gone leave the summary and those of others stay.
#[test]
fn gone_amounts_leave_summary() {
    let (mut cluster, mut namespace) = (joined(), None);
    settle(&mut cluster, &mut namespace, Some(&healthy()));
    let models = json!([{ "grade": 0, "count": 0 }]);
    cluster["status"]["resourceSummary"]["allocatableModelings"] = models.clone();
    let idle = ClusterObservation {
        capacity: Some(of(json!({ "allocatable": { "cpu": "8" } }))),
        ..healthy()
    };
    assert_eq!(settle(&mut cluster, &mut namespace, Some(&idle)), 1);
    let summary = &cluster["status"]["resourceSummary"];
    assert_eq!(
        *summary,
        json!({ "allocatable": { "cpu": "8" }, "allocated": {}, "allocatableModelings": models })
    );
}

/// A cluster goes after its namespace and its bindings.
#[test]
fn cluster_goes_last() {
    let mut cluster = joined();
    cluster["metadata"]["finalizers"] = json!(["x.io/other", FINALIZER]);
    cluster["metadata"]["deletionTimestamp"] = json!(NOW);
    let planned = |namespace, is_targeted| {
        steps(&Situation {
            namespace,
            is_targeted,
            ..situation(&cluster, Some(&healthy()))
        })
    };
    let deletion = planned(Some(labelled(false)), true);
    let (write, change) = single(&deletion);
    assert_eq!(change, Some(&ClusterChange::NamespaceDeleted));
    assert_eq!((&write.action, write.guard), (&Action::Delete, Guard::Uid));
    assert_eq!(write.object.uid.as_deref(), Some("u"));
    assert_eq!(planned(Some(labelled(true)), false), []);
    assert_eq!(planned(None, true), []);
    let release = planned(None, false);
    let sent = json!({ "metadata": { "resourceVersion": "1", "finalizers": ["x.io/other"] } });
    assert_eq!(single(&release).0.guarded_body(), sent);
    let mut given_up = cluster.clone();
    given_up["metadata"]["finalizers"] = json!(["x.io/other"]);
    assert_eq!(
        steps(&situation(&given_up, None)),
        [],
        "its namespace is not ours any more"
    );
}

/// Nodes are published only where that is asked for, once they are known and there is a namespace for them that stays.
#[test]
fn nodes_are_published_on_request() {
    let cluster = joined();
    let node = NodeAddresses {
        name: "n1".to_owned(),
        addresses: vec!["10.0.0.1".parse().unwrap()],
        is_ready: true,
    };
    let known = ClusterObservation {
        nodes: Some(vec![node]),
        ..ClusterObservation::default()
    };
    let targets = |situation: Situation<'_>| {
        let planned = steps(&situation);
        let writes = planned.iter().flat_map(|step| &step.writes);
        let slices = writes.filter(|write| write.target == "node_slice");
        slices.count()
    };
    let asked = |observed| Situation {
        node_slices: Some(&[]),
        ..situation(&cluster, Some(observed))
    };
    assert_eq!(targets(asked(&known)), 1);
    assert_eq!(targets(situation(&cluster, Some(&known))), 0);
    let unknown = ClusterObservation::default();
    assert_eq!(targets(asked(&unknown)), 0);
    for namespace in [None, Some(labelled(true))] {
        let without = Situation {
            namespace,
            ..asked(&known)
        };
        assert_eq!(targets(without), 0);
    }
}

/// A namespace that somebody made gets the label and one being deleted nothing.
#[test]
fn found_namespace_is_labelled() {
    let cluster = joined();
    for is_deleting in [false, true] {
        let namespace = Some(ExecutionNamespace {
            is_labelled: false,
            ..labelled(is_deleting)
        });
        let planned = steps(&Situation {
            namespace,
            ..situation(&cluster, None)
        });
        let writes = planned.iter().flat_map(|step| &step.writes);
        let mut writes = writes.filter(|write| write.target == "namespace");
        let is_labelled = writes.any(|write| matches!(write.action, Action::Merge(_)));
        assert_eq!(is_labelled, !is_deleting);
    }
}

/// The targets of a binding are its clusters.
#[test]
fn targets_are_bound_clusters() {
    let clusters = json!([{ "name": "m1" }, { "replicas": 1 }, 7, { "name": "m2" }]);
    let metadata = json!({ "labels": { names::POLICY_ID: "1" } });
    let mut binding = json!({ "metadata": metadata, "spec": { "clusters": clusters } });
    assert_eq!(
        targets(&binding).into_iter().collect::<Vec<_>>(),
        ["m1", "m2"]
    );
    let odd = json!({ "metadata": metadata, "spec": { "clusters": "m1" } });
    assert!(targets(&odd).is_empty());
    // Nobody schedules one that no policy has.
    binding["metadata"]["labels"] = json!({});
    assert!(targets(&binding).is_empty());
}

fn odd_values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(7)),
        Just(json!("x")),
        Just(json!([7, null, {}])),
        Just(json!({ "a": [] })),
    ]
}

proptest! {
    /// Whatever others wrote survives and the end needs no write.
    #[test]
    fn foreign_fields_survive(
        foreign in prop::collection::vec("[A-C]", 0..4),
        ready in prop::option::of(prop_oneof!["True", "False", "Unknown"]),
        healthy_now in any::<bool>(),
        taints in prop::collection::vec(("[ab]", prop_oneof!["NoSchedule", "NoExecute"]), 0..3),
    ) {
        let mut cluster = joined();
        let others: Vec<_> = foreign.iter()
            .map(|kind| json!({ "type": kind, "status": "True", "newer": [1] })).collect();
        let mut conditions = others.clone();
        conditions.extend(ready.map(|status| json!({ "type": "Ready", "status": status })));
        cluster["status"] = json!({ "conditions": conditions, "remedyActions": ["TrafficControl"] });
        let taints: Vec<_> = taints.iter()
            .map(|(key, effect)| json!({ "key": key, "effect": effect })).collect();
        cluster["spec"]["taints"] = json!(taints);
        let probe = if healthy_now { Probe::Healthy } else { Probe::Unhealthy("500".to_owned()) };
        let observed = ClusterObservation { ready: Some(report(&probe)), ..healthy() };
        let mut namespace = None;
        settle(&mut cluster, &mut namespace, Some(&observed));
        prop_assert_eq!(settle(&mut cluster, &mut namespace, Some(&observed)), 0);
        let after = list(&cluster["status"]["conditions"]).iter();
        let after: Vec<_> = after
            .filter(|c| c["type"] != READY && c["type"] != COMPLETE_API_ENABLEMENTS).cloned().collect();
        prop_assert_eq!(after, others);
        prop_assert_eq!(&cluster["status"]["remedyActions"], &json!(["TrafficControl"]));
        let is_tainted = list(&cluster["spec"]["taints"]).iter().any(|taint| taint["key"] == NOT_READY);
        prop_assert_eq!(is_tainted, !healthy_now);
        for taint in &taints {
            let kept = list(&cluster["spec"]["taints"]).iter().any(|found| {
                found["key"] == taint["key"] && found["effect"] == taint["effect"]
            });
            prop_assert!(kept);
        }
    }

    /// A cluster of any shape is read without harm.
    #[test]
    fn any_shape_is_harmless(
        metadata in odd_values(), spec in odd_values(), status in odd_values(), part in odd_values(),
    ) {
        for cluster in [
            json!({ "metadata": metadata, "spec": spec, "status": status }),
            json!({ "metadata": { "name": "m1", "finalizers": part }, "spec": { "syncMode": "Push", "taints": part },
                "status": { "conditions": part, "apiEnablements": part, "resourceSummary": part } }),
        ] {
            steps(&situation(&cluster, Some(&healthy())));
        }
    }
}
