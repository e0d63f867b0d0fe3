use karmada_api::work::WITHHELD;
use karmada_api::{Cluster, ClusterStatus, Condition, Work};
use objects::ownership::ObservedObject;
use objects::write::Plan;
use serde_json::{from_value, json};

use super::*;
use crate::execution::{Interpreted, Outcome, StatusNews, SyncOutcome, status};
use traffic::ingress::Cached;

/// Clusters in memory, and those that people have blocked.
#[derive(Default)]
struct Fleet {
    clusters: BTreeMap<String, Cluster>,
    unread: BTreeSet<String>,
    decided: BTreeSet<String>,
}

impl ClusterFacts for Fleet {
    fn cluster(&self, name: &str) -> Cached<&Cluster> {
        match self.clusters.get(name) {
            Some(cluster) => Cached::Present(cluster),
            None if self.unread.contains(name) => Cached::Unread,
            None => Cached::Absent,
        }
    }

    fn is_blocked_manually(&self, cluster: &str) -> bool {
        self.decided.contains(cluster)
    }
}

impl Fleet {
    /// The clusters `m1` to `m4`, of which these are blocked.
    fn blocking(blocked: &[&str]) -> Self {
        let clusters = ["m1", "m2", "m3", "m4"].map(|name| {
            let actions = blocked
                .contains(&name)
                .then(|| vec!["TrafficControl".to_owned()]);
            let cluster = Cluster {
                status: Some(ClusterStatus {
                    remedy_actions: actions,
                    ..ClusterStatus::default()
                }),
                ..Cluster::default()
            };
            (name.to_owned(), cluster)
        });
        Self {
            clusters: clusters.into(),
            ..Self::default()
        }
    }
}

/// The manifest of a slice of the Service `web`, as Karmada dispatches it.
fn manifest(name: &str, source: Option<&str>, ready: bool) -> Value {
    let annotations = source.map(|source| json!({ PROVISION_CLUSTER: source }));
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": name, "namespace": "shop", "annotations": annotations,
            "labels": { SERVICE_NAME: "web" } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": ready } }],
        "ports": [{ "name": "http", "port": 8080 }],
    })
}

fn slice(source: Option<&str>, ready: bool) -> ServiceSlice {
    ServiceSlice::of(&manifest("s", source, ready)).unwrap()
}

/// Returns the blocks of `web` in `m4`, as the lists of those that are withheld and of those that stay.
fn blocks(fleet: &Fleet, slices: &[ServiceSlice], withheld: &[&str]) -> [Vec<String>; 2] {
    let slices: Vec<_> = slices.iter().collect();
    let withheld: Vec<_> = withheld.iter().map(|&name| name.to_owned()).collect();
    let imports = ImportFacts {
        consumer: "m4",
        slices: &slices,
        withheld: &withheld,
        has_unread: false,
    };
    let ImportBlocks {
        withheld,
        readmitted,
    } = ImportBlocks::of(&imports, fleet);
    [withheld, readmitted].map(|names| names.into_iter().collect())
}

/// A manifest tells the Service and the source of its slice by annotation or label, and whether it serves; one that is
/// no slice of a Service tells nothing.
#[test]
fn manifest_tells_source() {
    let dispatched = slice(Some("m1"), true);
    assert_eq!(dispatched.service, Key::new("shop", "web"));
    assert_eq!(dispatched.source.as_deref(), Some("m1"));
    assert!(dispatched.takes_requests && !slice(None, false).takes_requests);
    let mut labelled = manifest("s", None, true);
    labelled["metadata"]["labels"][SOURCE_CLUSTER] = json!("m2");
    let labelled = ServiceSlice::of(&labelled).unwrap();
    assert_eq!(labelled.source.as_deref(), Some("m2"));
    for (pointer, value) in [
        ("/kind", json!("Endpoints")),
        ("/apiVersion", json!("v1")),
        ("/metadata/labels", Value::Null),
        ("/metadata", json!(7)),
    ] {
        let mut other = manifest("s", Some("m1"), true);
        *other.pointer_mut(pointer).unwrap() = value;
        assert_eq!(ServiceSlice::of(&other), None, "{pointer}");
    }
    for (pointer, value) in [
        ("/endpoints", json!("none")),
        ("/endpoints", Value::Null),
        ("/ports", json!([])),
    ] {
        let mut odd = manifest("s", Some("m1"), true);
        *odd.pointer_mut(pointer).unwrap() = value;
        assert!(!ServiceSlice::of(&odd).unwrap().takes_requests, "{pointer}");
    }
}

/// Blocked providers leave while another serves; without another they stay.
#[test]
fn last_providers_stay() {
    let [one, two] = ["m1", "m2"].map(|source| slice(Some(source), true));
    let idle = slice(Some("m2"), false);
    let own = slice(None, true);
    for (blocked, slices, withheld, readmitted) in [
        (&[][..], vec![one.clone(), two.clone()], &[][..], &[][..]),
        (&["m1"], vec![one.clone(), two.clone()], &["m1"], &[]),
        (
            &["m1", "m2"],
            vec![one.clone(), two.clone()],
            &[],
            &["m1", "m2"],
        ),
        (&["m1"], vec![one.clone()], &[], &["m1"]),
        // An admitted provider without ready endpoints serves nobody.
        (&["m1"], vec![one.clone(), idle.clone()], &[], &["m1"]),
        (&["m2"], vec![one.clone(), idle], &["m2"], &[]),
        // The consumer's own pods serve, and are nobody's to withhold.
        (&["m1"], vec![one.clone(), own.clone()], &["m1"], &[]),
        (&["m1", "m4"], vec![one.clone(), own.clone()], &[], &["m1"]),
        (&["m4"], vec![one, own], &[], &[]),
    ] {
        let found = blocks(&Fleet::blocking(blocked), &slices, &[]);
        assert_eq!(found, [withheld, readmitted], "{blocked:?}");
    }
}

/// A cluster that a person blocked stays blocked; one that is gone or cannot be read loses nothing, and keeps its slices.
#[test]
fn only_conditions_are_overruled() {
    let slices = ["m1", "m2"].map(|source| slice(Some(source), true));
    let mut fleet = Fleet::blocking(&["m1", "m2"]);
    fleet.decided.insert("m1".to_owned());
    assert_eq!(blocks(&fleet, &slices, &[]), [vec!["m1"], vec!["m2"]]);
    let mut fleet = Fleet::blocking(&[]);
    fleet.clusters.remove("m1");
    assert_eq!(blocks(&fleet, &slices, &["m1"]), [vec![""; 0], vec![]]);
    fleet.unread.insert("m1".to_owned());
    assert_eq!(blocks(&fleet, &slices, &[]), [vec![""; 0], vec![]]);
    assert_eq!(blocks(&fleet, &slices, &["m1"]), [vec!["m1"], vec![]]);
}

/// Plans the status of a Work after a sync of its slice of `m1`.
fn after(work: &Work, block: Option<Block>, error: Option<&str>) -> Plan<StatusNews> {
    let outcome = Outcome {
        manifest: &manifest("m1-web", Some("m1"), true),
        error: error.map(str::to_owned),
        note: None,
        block,
        object: &ObservedObject::Absent,
        interpreted: Interpreted::default(),
    };
    let synced = SyncOutcome {
        manifests: &[outcome],
        untouched: false,
    };
    status(work, synced, "2026-11-30T08:00:00Z".parse().unwrap())
}

fn withheld_news(plan: &Plan<StatusNews>) -> Option<&Condition> {
    plan.events.iter().find_map(|news| match news {
        StatusNews::Withheld(condition) => Some(condition),
        _ => None,
    })
}

/// The condition names the withheld slices, those that stay though their cluster is blocked, and the release. Each
/// is news once, a Work that was never concerned has no such condition, and a sync that failed tells nothing.
#[test]
fn condition_tells_blocks() {
    let mut work: Work =
        from_value(json!({ "metadata": { "generation": 3 }, "spec": {} })).unwrap();
    let condition = |plan: &Plan<StatusNews>| {
        let conditions = plan.writes.first()?.body()["status"]["conditions"].as_array()?;
        let mut conditions = conditions.iter();
        let found = conditions.find(|condition| condition["type"] == WITHHELD)?;
        Some((found["status"].clone(), found["reason"].clone()))
    };
    let clear = after(&work, None, None);
    assert_eq!((condition(&clear), withheld_news(&clear)), (None, None));
    for (block, status, reason) in [
        (Some(Block::Withheld), "True", "TrafficControl"),
        (Some(Block::Readmitted), "False", "AllProvidersBlocked"),
        (None, "False", "Released"),
    ] {
        let plan = after(&work, block, None);
        assert_eq!(condition(&plan), Some((json!(status), json!(reason))));
        let news = withheld_news(&plan).unwrap();
        if block.is_some() {
            let named = "EndpointSlice shop/m1-web of cluster m1";
            assert!(news.message.starts_with(named), "{}", news.message);
        }
        work.status = Some(from_value(plan.writes[0].body()["status"].clone()).unwrap());
        let applied = work.condition("Applied").unwrap();
        let has_hint = applied.message.contains("Withheld");
        assert_eq!(
            has_hint,
            block == Some(Block::Withheld),
            "{}",
            applied.message
        );
        assert_eq!(after(&work, block, None), Plan::default());
        let failed = after(&work, Some(Block::Withheld), Some("not deleted"));
        assert_eq!(withheld_news(&failed), None);
    }
}
