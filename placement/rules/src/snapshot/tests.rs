use std::collections::BTreeSet;

use fleet_api::names::{IS_LATEST, PARENT_PLACEMENT, PLACEMENT_GENERATION};
use fleet_api::placement::PlacementSpec;
use fleet_api::policy::{PlacementPolicy, PlacementType};
use fleet_api::{Placement, PolicySnapshot, ResourceSnapshot};
use objects::Metadata;
use objects::write::{Action, Write};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::*;
use crate::fixtures::{
    POLICY_SNAPSHOTS, RESOURCE_SNAPSHOTS, fixture, items, merged, without_server_fields,
};
use crate::hash::of_objects;
use crate::select::Selection;

fn placement(name: &str) -> Placement {
    let mut placement = Placement::default();
    placement.metadata.name = Some(name.to_owned());
    placement.metadata.generation = Some(1);
    placement
}

/// Returns the placement that a recorded snapshot belongs to.
fn owner(snapshot: &Value) -> Placement {
    let mut owner = placement(snapshot.label(PARENT_PLACEMENT).unwrap());
    let uid = &snapshot["metadata"]["ownerReferences"][0]["uid"];
    owner.metadata.uid = Some(uid.as_str().unwrap().to_owned());
    let generation = snapshot.annotation(PLACEMENT_GENERATION);
    owner.metadata.generation = generation.map(|generation| generation.parse().unwrap());
    owner
}

/// The snapshots of one placement on its hub.
#[derive(Clone, Default)]
struct Snapshots(Vec<ResourceSnapshot>);

impl Snapshots {
    fn plan(&self, placement: &Placement, objects: Vec<Value>) -> Vec<Write> {
        self.plan_with(placement, objects, &BTreeSet::new())
    }

    fn plan_with(
        &self,
        placement: &Placement,
        objects: Vec<Value>,
        named: &BTreeSet<&str>,
    ) -> Vec<Write> {
        let existing: Vec<_> = self.0.iter().map(|snapshot| &snapshot.metadata).collect();
        let selection = Selection {
            hash: of_objects(objects.clone()).unwrap(),
            objects,
            ..Selection::default()
        };
        plan_resources(placement, selection, &existing, named).unwrap()
    }

    fn write(&mut self, write: &Write) {
        let key = &write.object.key;
        let mut existing = self.0.iter_mut();
        let existing = existing.find(|one| one.metadata.key() == *key);
        match (&write.action, existing) {
            (Action::Create(snapshot), None) => {
                self.0.push(from_value(snapshot.clone()).unwrap());
            }
            (Action::Merge(_), Some(snapshot)) => *snapshot = merged(snapshot, write),
            (Action::Delete, _) => self.0.retain(|one| one.metadata.key() != *key),
            (action, existing) => panic!("{action:?} of {existing:?}"),
        }
    }

    fn apply(&mut self, writes: impl IntoIterator<Item = Write>) {
        for write in writes {
            self.write(&write);
        }
    }

    fn latest(&self) -> Option<&str> {
        let latest = latest_resources(self.0.iter().map(|snapshot| &snapshot.metadata));
        latest.map(Metadata::name)
    }

    fn names(&self) -> BTreeSet<&str> {
        let snapshots = self.0.iter();
        snapshots.map(|snapshot| snapshot.metadata.name()).collect()
    }
}

fn config_map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "v": value },
        "metadata": { "name": name, "namespace": "shop" } })
}

fn large(name: &str) -> Value {
    config_map(name, &"x".repeat(300_000))
}

fn created(writes: &[Write]) -> Vec<Value> {
    let created = writes.iter().filter_map(|write| match &write.action {
        Action::Create(snapshot) => Some(snapshot.clone()),
        _ => None,
    });
    created.collect()
}

fn names(writes: &[Write]) -> Vec<&str> {
    let names = writes.iter().map(|write| &*write.object.key.name);
    names.collect()
}

fn selected(snapshot: &Value) -> Vec<Value> {
    let selected = snapshot["spec"]["selectedResources"].as_array();
    selected.cloned().unwrap()
}

/// Case F14: from the selection of a running KubeFleet we make the snapshots that it made, field by field, and after it
/// nothing.
#[test]
fn recorded_groups_are_ours() {
    for name in RESOURCE_SNAPSHOTS {
        let recorded = fixture(name);
        let owner = owner(&recorded);
        let writes = Snapshots::default().plan(&owner, selected(&recorded));
        let mut expected = without_server_fields(recorded.clone());
        // When KubeFleet will look again; it writes this a little later than the rest.
        let annotations = expected["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.retain(|key, _| !key.ends_with("candidate-detection-time"));
        assert_eq!(created(&writes), [expected], "{name}");

        let existing = Snapshots(vec![from_value(recorded.clone()).unwrap()]);
        assert_eq!(existing.plan(&owner, selected(&recorded)), []);
    }
}

/// Case F13: two parts, and the master is the last to be written.
#[test]
fn recorded_parts_are_ours() {
    let mut recorded = items("crp-big-resourcesnapshots");
    for object in recorded.iter_mut().flat_map(|snapshot| {
        let selected = snapshot.pointer_mut("/spec/selectedResources").unwrap();
        selected.as_array_mut().unwrap()
    }) {
        if let Some(text) = object.pointer_mut("/data/d") {
            *text = json!("x".repeat(300_000));
        }
    }
    let [part, master] = &recorded[..] else {
        panic!()
    };
    let objects = [selected(master), selected(part)].concat();
    let writes = Snapshots::default().plan(&owner(part), objects.clone());
    let mut expected = recorded.clone().into_iter().map(without_server_fields);
    let [part, mut master] = [expected.next().unwrap(), expected.next().unwrap()];
    let annotations = master["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.retain(|key, _| !key.ends_with("candidate-detection-time"));
    assert_eq!(created(&writes), [part, master]);

    let existing = recorded.into_iter().map(|one| from_value(one).unwrap());
    let existing = Snapshots(existing.collect());
    assert_eq!(existing.plan(&placement("crp-big"), objects), []);
}

#[test]
fn recorded_history_needs_no_write() {
    let recorded = items("crp-roll-resourcesnapshots");
    let objects = selected(&recorded[1]);
    let existing = recorded.into_iter().map(|one| from_value(one).unwrap());
    let existing = Snapshots(existing.collect());
    assert_eq!(existing.latest(), Some("crp-roll-1-snapshot"));
    assert_eq!(existing.plan(&placement("crp-roll"), objects), []);
}

/// Case F15.
#[test]
fn changes_make_the_next_group() {
    let placement = placement("crp");
    let mut snapshots = Snapshots::default();
    snapshots.apply(snapshots.plan(&placement, vec![config_map("a", "1")]));
    let writes = snapshots.plan(&placement, vec![config_map("a", "2")]);
    assert_eq!(names(&writes), ["crp-1-snapshot", "crp-0-snapshot"]);
    assert_eq!(created(&writes).len(), 1);
    snapshots.apply(writes);
    assert_eq!(snapshots.latest(), Some("crp-1-snapshot"));
    let marked = snapshots.0.iter().map(|one| one.metadata.label(IS_LATEST));
    assert_eq!(marked.collect::<Vec<_>>(), [Some("false"), Some("true")]);
}

/// Case F13: a part that somebody deleted is made again, and until then the group before is the latest.
#[test]
fn lost_parts_are_made_again() {
    let placement = placement("crp");
    let objects = ["a", "b", "c"].map(large).to_vec();
    let mut snapshots = Snapshots::default();
    snapshots.apply(snapshots.plan(&placement, vec![config_map("a", "1")]));
    snapshots.apply(snapshots.plan(&placement, objects.clone()));
    let whole = snapshots.clone();
    snapshots.0.retain(|one| one.metadata.name() != "crp-1-0");
    assert_eq!(snapshots.latest(), Some("crp-0-snapshot"));
    snapshots.apply(snapshots.plan(&placement, objects));
    assert_eq!(
        (snapshots.names(), snapshots.latest()),
        (whole.names(), Some("crp-1-snapshot"))
    );
}

/// Case F13: a snapshot that somebody deleted is made again with its index, also where it was the only one.
#[test]
fn lost_index_comes_back() {
    let mut placement = placement("crp");
    for kept in [1, 10] {
        placement.spec.revision_history_limit = Some(kept);
        let mut snapshots = Snapshots::default();
        for value in ["1", "2", "3"] {
            snapshots.apply(snapshots.plan(&placement, vec![config_map("a", value)]));
        }
        let before = snapshots.clone();
        snapshots
            .0
            .retain(|one| one.metadata.name() != "crp-2-snapshot");
        let named = BTreeSet::from(["crp-2-snapshot", "crp-0"]);
        let writes = snapshots.plan_with(&placement, vec![config_map("a", "3")], &named);
        snapshots.apply(writes);
        assert_eq!(snapshots.names(), before.names(), "{kept}");
        assert_eq!(snapshots.latest(), Some("crp-2-snapshot"), "{kept}");
        // The next one has the next.
        let writes = snapshots.plan_with(&placement, vec![config_map("a", "4")], &named);
        snapshots.apply(writes);
        assert_eq!(snapshots.latest(), Some("crp-3-snapshot"), "{kept}");
    }
}

/// Case F17.
#[test]
fn older_groups_than_kept_go() {
    let mut placement = placement("crp");
    placement.spec.revision_history_limit = Some(2);
    let mut snapshots = Snapshots::default();
    let named = BTreeSet::from(["crp-0-snapshot"]);
    for value in ["1", "2", "3", "4"] {
        let writes = snapshots.plan_with(&placement, vec![config_map("a", value)], &named);
        snapshots.apply(writes);
    }
    let expected = BTreeSet::from(["crp-0-snapshot", "crp-2-snapshot", "crp-3-snapshot"]);
    assert_eq!(snapshots.names(), expected);
    snapshots.apply(snapshots.plan(&placement, vec![config_map("a", "4")]));
    assert_eq!(
        snapshots.names(),
        BTreeSet::from(["crp-2-snapshot", "crp-3-snapshot"])
    );
}

proptest! {
    // Objects of this size take their time to hash.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A controller that dies between any two writes leaves a latest group that is whole, and the next one goes on
    /// to where it would have come, with nothing left over.
    #[test]
    fn crashes_leave_a_latest(
        contents in proptest::collection::vec((1_usize..5, 0_u8..3, 0_usize..6), 1..4),
    ) {
        let mut placement = placement("crp");
        placement.spec.revision_history_limit = Some(2);
        let mut snapshots = Snapshots::default();
        snapshots.apply(snapshots.plan(&placement, vec![config_map("a", "0")]));
        let mut objects = Vec::new();
        for (number, value, writes) in contents {
            objects = (0..number).map(|n| {
                let mut object = large(&n.to_string());
                object["data"]["other"] = json!(value);
                object
            }).collect();
            for write in snapshots.plan(&placement, objects.clone()).into_iter().take(writes) {
                snapshots.write(&write);
                prop_assert!(snapshots.latest().is_some());
            }
        }
        snapshots.apply(snapshots.plan(&placement, objects.clone()));
        prop_assert_eq!(snapshots.plan(&placement, objects.clone()), []);
        let latest = snapshots.latest().unwrap().to_owned();
        let group = latest.trim_end_matches("snapshot");
        let of_latest = snapshots.0.iter().filter(|one| one.metadata.name().starts_with(group));
        let mut of_latest: Vec<_> = of_latest.collect();
        // The master has the first part, whatever its name.
        of_latest.sort_by_key(|one| one.metadata.name() != latest);
        let held = of_latest.iter().flat_map(|one| one.spec.selected_resources.clone());
        prop_assert_eq!(held.collect::<Vec<_>>(), objects);
    }
}

/// Case F14: the policies that a running KubeFleet had become the snapshots that it made.
#[test]
fn recorded_policies_are_ours() {
    for name in POLICY_SNAPSHOTS {
        let recorded = fixture(name);
        let mut owner = owner(&recorded);
        owner.spec.policy = from_value(recorded["spec"]["policy"].clone()).unwrap();
        let index: usize = name.rsplit('-').find_map(|part| part.parse().ok()).unwrap();
        let mut former = PolicySnapshot::default();
        former.metadata.labels =
            Some([(fleet_api::names::POLICY_INDEX.to_owned(), "0".to_owned())].into());
        let existing = [&former];
        let writes = plan_policies(&owner, &existing[..index], &BTreeSet::new()).unwrap();
        let mut expected = without_server_fields(recorded.clone());
        expected.as_object_mut().unwrap().remove("status");
        assert_eq!(created(&writes), [expected], "{name}");

        let existing: PolicySnapshot = from_value(recorded).unwrap();
        let writes = plan_policies(&owner, &[&existing], &BTreeSet::new());
        assert_eq!(writes.unwrap(), [], "{name}");
    }
}

/// Case F16: `numberOfClusters` from 5 to 1, as it was recorded: the snapshot's spec keeps the number it was created
/// with.
#[test]
fn number_changes_an_annotation_only() {
    let scaled = fixture("crp-five-policysnapshot-0-scaled");
    let mut owner = owner(&scaled);
    owner.spec.policy = from_value(scaled["spec"]["policy"].clone()).unwrap();
    owner.spec.policy.as_mut().unwrap().number_of_clusters = Some(1);
    let before = fixture("crp-five-policysnapshot-0");
    let existing = from_value(before.clone()).unwrap();
    let writes = plan_policies(&owner, &[&existing], &BTreeSet::new()).unwrap();
    let [write] = &writes[..] else {
        panic!("{writes:?}")
    };
    let after = merged(&before, write);
    assert_eq!(
        without_server_fields(after)["metadata"],
        without_server_fields(scaled)["metadata"]
    );
}

#[test]
fn absent_policies_have_snapshots() {
    let writes = plan_policies(&placement("crp"), &[], &BTreeSet::new()).unwrap();
    let first = created(&writes).remove(0);
    let mut fixed = placement("crp");
    fixed.spec = PlacementSpec {
        policy: Some(PlacementPolicy {
            placement_type: PlacementType::PickFixed,
            ..PlacementPolicy::default()
        }),
        ..PlacementSpec::default()
    };
    let first: PolicySnapshot = from_value(first).unwrap();
    let writes = plan_policies(&fixed, &[&first], &BTreeSet::new()).unwrap();
    assert_eq!(names(&writes), ["crp-1", "crp-0"]);
    assert_eq!(created(&writes).len(), 1);
}
