//! Whether a change of an override is a change for a cluster.

use fleet_api::Binding;
use fleet_api::names::OVERRIDES_DIGEST;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

/// A binding of the placement `crp` on a cluster, and the overrides that are there.
struct World<'a> {
    listed: Vec<Value>,
    given: Option<String>,
    existing: Vec<&'a ResourceOverrideSnapshot>,
    latest: Vec<&'a ResourceOverrideSnapshot>,
    labels: Value,
}

impl<'a> World<'a> {
    fn new(
        listed: &[&'a ResourceOverrideSnapshot],
        latest: &[&'a ResourceOverrideSnapshot],
    ) -> Self {
        let names = listed.iter().map(|one| name(one));
        Self {
            listed: names.collect(),
            given: None,
            existing: listed.to_vec(),
            latest: latest.to_vec(),
            labels: json!({ "env": "test" }),
        }
    }

    fn is_stale(&self) -> bool {
        let binding: Binding = from_value(json!({
            "metadata": { "annotations": self.given.as_ref().map(|given| json!({ OVERRIDES_DIGEST: given })) },
            "spec": { "targetCluster": "m1", "resourceOverrideSnapshots": self.listed },
        }))
        .unwrap();
        let [latest, listed] = [&self.latest, &self.existing].map(|all| {
            all.iter()
                .map(|one| SnapshotView::of(*one))
                .collect::<Vec<_>>()
        });
        let cluster = cluster("m1", &self.labels);
        let objects = [identifier(&map("shop", "settings"))];
        let clusters = [&cluster];
        let mut placement = placement();
        placement.metadata.creation_timestamp = Some(Time(at(60)));
        let overrides = Overrides::of(&OverridesFacts {
            placement: &placement,
            latest: &latest,
            listed: &listed,
            objects: &objects,
            clusters: &clusters,
        });
        overrides.are_stale(&binding)
    }
}

fn name(snapshot: &ResourceOverrideSnapshot) -> Value {
    json!({ "name": snapshot.metadata.name, "namespace": snapshot.metadata.namespace })
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn snapshot(index: u8, placement: Option<&str>) -> ResourceOverrideSnapshot {
    let mut spec = everywhere(&set("/data", &json!({ "a": index })));
    if let Some(placement) = placement {
        spec["placement"] = json!({ "name": placement });
    }
    let mut snapshot = of_namespace("a", &spec);
    snapshot.metadata.name = Some(format!("a-{index}"));
    snapshot.spec.override_hash = index.to_string();
    snapshot.metadata.creation_timestamp = Some(Time(at(600)));
    snapshot
}

/// Case F36: a change of an override rolls out by itself if it names the placement, and not if it names none.
#[test]
fn named_placement_is_stale() {
    for (placement, expected) in [(Some("crp"), true), (None, false)] {
        let [before, after] = [0, 1].map(|index| snapshot(index, placement));
        let is_stale = World::new(&[&before], &[&after]).is_stale();
        assert_eq!(is_stale, expected, "{placement:?}");
        let is_stale = World::new(&[], &[&before]).is_stale();
        assert_eq!(is_stale, expected, "{placement:?}");
        assert!(!World::new(&[&before], &[&before]).is_stale());
    }
    // Beside one of this placement, that of another is none.
    let [own, other] = [snapshot(0, Some("crp")), snapshot(1, Some("other"))];
    assert!(World::new(&[], &[&own, &other]).is_stale());
    assert!(!World::new(&[&own], &[&own, &other]).is_stale());
}

/// Case F36: an override that names no placement, and was written with this one, goes out with it, also if it was seen later.
#[test]
fn written_together_is_stale() {
    for (second, expected) in [(0, true), (60, true), (120, true), (121, false)] {
        let mut snapshot = snapshot(0, None);
        snapshot.metadata.creation_timestamp = Some(Time(at(second)));
        let is_stale = World::new(&[], &[&snapshot]).is_stale();
        assert_eq!(is_stale, expected, "{second}");
    }
}

/// Case F36: of whichever kind it was, an override that is gone is taken back, whether or not its snapshot is there.
#[test]
fn gone_override_is_stale() {
    for placement in [Some("crp"), None] {
        let snapshot = snapshot(0, placement);
        let mut world = World::new(&[&snapshot], &[]);
        assert!(world.is_stale(), "{placement:?}");
        world.existing.clear();
        assert!(world.is_stale(), "{placement:?}");
    }
}

/// Case F36: a rule for other clusters is none for this one.
#[test]
fn rule_of_others_is_ignored() {
    let snapshot = of_namespace("a", &by_environment());
    let mut world = World::new(&[], &[&snapshot]);
    assert!(!world.is_stale());
    world.labels = json!({ "env": "prod" });
    assert!(world.is_stale());
}

fn with_env(env: &str) -> Value {
    json!({ "clusterSelectorTerms": [{ "labelSelector": { "matchLabels": { "env": env } } }] })
}

/// Returns a spec for this placement, with a rule for each of two environments, of which the second names the region.
fn by_environment() -> Value {
    let region = json!("${MEMBER-CLUSTER-NAME} in ${MEMBER-CLUSTER-LABEL-KEY-region}");
    let mut spec = rules(&json!([
        { "clusterSelector": with_env("canary"), "overrideType": "Delete" },
        { "clusterSelector": with_env("prod"), "jsonPatchOverrides": set("/data", &json!({ "a": [region] })) },
    ]));
    spec["placement"] = json!({ "name": "crp" });
    spec
}

/// Case F68: where other labels change the objects of a cluster, that is a change; labels that nothing reads are
/// none. Overrides of another controller are left alone.
#[test]
fn labels_that_decide_are_stale() {
    let snapshot = of_namespace("a", &by_environment());
    let mut world = World::new(&[&snapshot], &[&snapshot]);
    world.labels = json!({ "env": "prod", "region": "east" });
    let given = digest(
        &[SnapshotView::of(&snapshot)],
        &cluster("m1", &world.labels),
    );
    for (labels, expected) in [
        (json!({ "env": "prod", "region": "east" }), false),
        (json!({ "env": "prod", "region": "east", "x": "y" }), false),
        (json!({ "env": "prod", "region": "west" }), true),
        (json!({ "env": "prod" }), true),
        (json!({ "env": "canary", "region": "east" }), true),
    ] {
        world.labels = labels;
        world.given.clone_from(&given);
        assert_eq!(world.is_stale(), expected, "{}", world.labels);
        world.given = None;
        assert!(!world.is_stale(), "{}", world.labels);
    }
}
