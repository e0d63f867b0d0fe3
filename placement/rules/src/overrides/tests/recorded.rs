//! The overrides of a running KubeFleet.

use std::collections::BTreeSet;

use fleet_api::names::{IS_LATEST, OVERRIDES_DIGEST, PARENT_BINDING, PARENT_SNAPSHOT_NAME};
use fleet_api::overrides::Override;
use fleet_api::{Binding, ClusterResourceOverride, ResourceOverride, Work};
use objects::write::{Action, Write};
use objects::{Key, Metadata};
use serde::de::DeserializeOwned;

use super::*;
use crate::fixtures::{fixture, items, merged, without_server_fields};
use crate::snapshot::{may_go, plan_end, plan_overrides};
use crate::works::{Synchronization, WorksFacts, plan};

fn read<T: DeserializeOwned>(name: &str) -> T {
    from_value(fixture(name)).unwrap()
}

fn all<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let items = items(name).into_iter();
    items.map(|item| from_value(item).unwrap()).collect()
}

/// The fleet in which they were recorded.
struct Recorded {
    cluster_scoped: ClusterResourceOverrideSnapshot,
    namespaced: ResourceOverrideSnapshot,
    selected: ResourceSnapshot,
    clusters: Vec<MemberCluster>,
    bindings: Vec<Binding>,
}

impl Recorded {
    fn new() -> Self {
        let labels = [["east", "prod"], ["east", "canary"], ["west", "prod"]];
        let clusters = (1..).zip(labels).map(|(number, [region, env])| {
            let labels = json!({ "region": region, "env": env });
            cluster(&format!("kind-cluster-{number}"), &labels)
        });
        let namespace = items("crp-over-works")[0]["spec"]["workload"]["manifests"][0].clone();
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "c", "namespace": "app-6" }, "data": { "k": "hub" } });
        let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] });
        let mut reader = role("app-6-reader");
        reader["rules"] = json!([rule]);
        Self {
            cluster_scoped: read("crp-over-clusterresourceoverridesnapshot"),
            namespaced: read("crp-over-resourceoverridesnapshot"),
            selected: from_value(json!({
                "metadata": { "labels": { "kubernetes-fleet.io/resource-index": "0" } },
                "spec": { "selectedResources": [namespace, map, reader] },
            }))
            .unwrap(),
            clusters: clusters.collect(),
            bindings: all("crp-over-bindings"),
        }
    }

    fn views(&self) -> [SnapshotView<'_>; 2] {
        [
            SnapshotView::of(&self.cluster_scoped),
            SnapshotView::of(&self.namespaced),
        ]
    }

    fn plan(&self, binding: &Binding, works: &[&Work]) -> Option<(Synchronization, Vec<Write>)> {
        let target = &binding.spec.target_cluster;
        let mut clusters = self.clusters.iter();
        plan(&WorksFacts {
            placement: &Key::cluster_scoped("crp-over"),
            binding,
            snapshots: &[&self.selected],
            opening: Opening { config_maps: false },
            overrides: &self.views(),
            cluster: clusters.find(|one| one.metadata.name() == target),
            works,
        })
    }
}

/// Case F36: the lists of each binding are ours.
#[test]
fn recorded_lists_are_ours() {
    let recorded = Recorded::new();
    let (taken, clusters) = (
        recorded.views(),
        recorded.clusters.iter().collect::<Vec<_>>(),
    );
    let placement = from_value(fixture("crp-over-available")).unwrap();
    let opening = Opening { config_maps: false };
    let objects = contents(std::slice::from_ref(&recorded.selected), opening);
    let overrides = Overrides::of(&OverridesFacts {
        placement: &placement,
        latest: &taken,
        listed: &taken,
        objects: &objects,
        clusters: &clusters,
    });
    for binding in &recorded.bindings {
        let applicable = overrides.applicable(binding).unwrap();
        assert!(applicable.names().eq(listed(&binding.spec)));
        assert!(!overrides.are_stale(binding));
    }
}

/// Case F36: by the same snapshots each cluster gets the Work that it had there, and one that has it is left alone.
#[test]
fn recorded_works_are_made() {
    let recorded = Recorded::new();
    for work in items("crp-over-works") {
        let mut bindings = recorded.bindings.iter();
        let binding = bindings.find(|one| work.label(PARENT_BINDING) == Some(one.metadata.name()));
        let Some((Synchronization::Written, writes)) = recorded.plan(binding.unwrap(), &[]) else {
            panic!("{work}")
        };
        let [created] = &writes[..] else {
            panic!("{writes:?}")
        };
        let existing: Work = from_value(work.clone()).unwrap();
        let mut expected = without_server_fields(work);
        expected.as_object_mut().unwrap().remove("status");
        let metadata = expected["metadata"].as_object_mut().unwrap();
        metadata.remove("finalizers");
        assert_eq!(created.action, Action::Create(expected));
        let plan = recorded.plan(binding.unwrap(), &[&existing]);
        assert_eq!(plan, Some((Synchronization::Synchronized, vec![])));
    }
}

/// An override without a snapshot gets the one that it had there, and one that has it gets no other.
fn snapshot_is_ours<K: Override>(name: &str) {
    let owner: K = read(name);
    let recorded = format!("{name}snapshot");
    let existing: K::Snapshot = read(&recorded);
    let named = BTreeSet::new();
    assert!(
        plan_overrides(&owner, &[&existing], &named)
            .unwrap()
            .is_empty()
    );
    let writes = plan_overrides(&owner, &[], &named).unwrap();
    let [created] = &writes[..] else {
        panic!("{writes:?}")
    };
    let expected = without_server_fields(fixture(&recorded));
    assert_eq!(created.action, Action::Create(expected));
}

/// Case F36.
#[test]
fn recorded_snapshots_are_ours() {
    snapshot_is_ours::<ClusterResourceOverride>("crp-over-clusterresourceoverride");
    snapshot_is_ours::<ResourceOverride>("crp-over-resourceoverride");
}

/// Case F36: of a binding whose cluster or snapshots are gone, the Works stay, but nothing that was made of others: that
/// would pass for synchronized.
#[test]
fn works_outlive_their_snapshots() {
    let mut recorded = Recorded::new();
    let works: Vec<Work> = all("crp-over-works");
    let mut binding = recorded.bindings[0].clone();
    recorded.clusters.clear();
    let plan = recorded.plan(&binding, &[&works[0]]);
    assert_eq!(plan, Some((Synchronization::Kept, vec![])));
    let plan = recorded.plan(&binding, &[]);
    assert!(
        matches!(plan, Some((Synchronization::Failed(_), _))),
        "{plan:?}"
    );
    binding.spec.resource_override_snapshots.clear();
    let plan = recorded.plan(&binding, &[&works[0]]);
    assert!(
        matches!(plan, Some((Synchronization::Failed(_), _))),
        "{plan:?}"
    );
    let mut of_another = works[0].clone();
    let annotations = of_another.metadata.annotations.as_mut().unwrap();
    annotations.insert(
        PARENT_SNAPSHOT_NAME.to_owned(),
        "crp-over-1-snapshot".to_owned(),
    );
    let binding = &recorded.bindings[0];
    let plan = recorded.plan(binding, &[&of_another]);
    assert!(
        matches!(plan, Some((Synchronization::Failed(_), _))),
        "{plan:?}"
    );
}

/// Case F68: where the labels of a cluster make something else of its overrides, its Works stay until the rollout gives it
/// that; Works that are made of others are not kept for it.
#[test]
fn labels_change_no_work() {
    let mut recorded = Recorded::new();
    let works: Vec<Work> = all("crp-over-works");
    let mut binding = recorded.bindings[0].clone();
    let given = digest(&recorded.views(), &recorded.clusters[0]);
    let annotations = binding.metadata.annotations.get_or_insert_default();
    annotations.insert(OVERRIDES_DIGEST.to_owned(), given.unwrap());
    let up_to_date = Some((Synchronization::Synchronized, vec![]));
    assert_eq!(recorded.plan(&binding, &[&works[0]]), up_to_date);
    let labels = recorded.clusters[0].metadata.labels.as_mut().unwrap();
    labels.insert("region".to_owned(), "north".to_owned());
    let kept = Some((Synchronization::Kept, vec![]));
    assert_eq!(recorded.plan(&binding, &[&works[0]]), kept);
    let mut of_another = works[0].clone();
    let annotations = of_another.metadata.annotations.as_mut().unwrap();
    annotations.insert(
        PARENT_SNAPSHOT_NAME.to_owned(),
        "crp-over-1-snapshot".to_owned(),
    );
    let plan = recorded.plan(&binding, &[&of_another]);
    assert!(
        matches!(plan, Some((Synchronization::Written, _))),
        "{plan:?}"
    );
}

/// Case F36: the snapshot of an override that goes stays as long as a binding lists it, and belongs to nobody then.
#[test]
fn listed_snapshot_outlives_its_override() {
    let mut snapshot: ResourceOverrideSnapshot = read("crp-over-resourceoverridesnapshot");
    let name = snapshot.metadata.name().to_owned();
    let named = BTreeSet::from([&*name]);
    assert!(!may_go(&[&snapshot]));
    let writes = plan_end(&[&snapshot], &named);
    let [write] = &writes[..] else {
        panic!("{writes:?}")
    };
    snapshot = merged(&snapshot, write);
    assert_eq!(snapshot.metadata.label(IS_LATEST), Some("false"));
    assert!(may_go(&[&snapshot]));
    assert_eq!(plan_end(&[&snapshot], &named), []);
    let writes = plan_end(&[&snapshot], &BTreeSet::new());
    assert_eq!(writes[0].action, Action::Delete);
    assert_eq!((writes.len(), &writes[0].object.key.name), (1, &name));
}
