//! The copy of a placement's status in the namespace that it places, for those who may read there only.

use fleet_api::conditions::{STATUS_SYNCED, of_placement};
use fleet_api::placement::{PlacementStatus, ResourceIdentifier};
use fleet_api::{ClusterResourcePlacementStatus, Placement};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use objects::Metadata;
use objects::condition::{FALSE, TRUE, find, transition, upsert, whole_seconds};
use objects::patch::merge_between;
use objects::write::{ObjectRef, Write};
use serde_json::json;

use crate::accessible::readable_in;
use crate::condition::condition;
use crate::drift::hide_values;

/// Plans the copy of the status of a placement; `existing` is the one that is there. Returns nothing if nobody asks for
/// one, or it is up to date. Neither whether there is one is said in it, nor anything that is none of the namespace's business.
pub fn copy(
    placement: &Placement,
    said: &PlacementStatus,
    existing: Option<&ClusterResourcePlacementStatus>,
    now: Timestamp,
) -> Option<Write> {
    const TARGET: &str = "status_copy";
    let namespace = readable_in(placement, said)?.to_owned();
    let mut said = said.clone();
    let kind = of_placement(placement.scope(), STATUS_SYNCED);
    said.conditions.retain(|one| one.type_ != kind);
    narrow(&mut said, &namespace);
    let time = whole_seconds(now);
    let Some(existing) = existing else {
        let new = ClusterResourcePlacementStatus {
            api_version: ClusterResourcePlacementStatus::API_VERSION.to_owned(),
            kind: ClusterResourcePlacementStatus::KIND.to_owned(),
            metadata: ObjectMeta {
                name: Some(placement.metadata.name().to_owned()),
                namespace: Some(namespace),
                owner_references: Some(vec![owner(placement)]),
                ..ObjectMeta::default()
            },
            source_status: said,
            last_updated_time: Some(time),
        };
        return Some(Write::create(TARGET, &new, &()));
    };
    let mut patch = json!({});
    if let Some(change) = merge_between(&json!(existing.source_status), &json!(said)) {
        patch["sourceStatus"] = change;
    }
    let owner = owner(placement);
    let owners = existing.metadata.owner_references.iter().flatten();
    // That of an earlier placement of the name goes.
    if !owners.clone().any(|one| one.uid == owner.uid) {
        let mut owners: Vec<_> = owners
            .filter(|one| one.kind != owner.kind)
            .cloned()
            .collect();
        owners.push(owner);
        patch["metadata"]["ownerReferences"] = json!(owners);
    }
    if patch == json!({}) {
        return None;
    }
    patch["lastUpdatedTime"] = json!(time);
    Some(Write::merge(TARGET, ObjectRef::of(existing, &()), patch))
}

/// Reduces a status to the part that readers in the namespace may know: its own objects and overrides, and of no object a value.
fn narrow(said: &mut PlacementStatus, namespace: &str) {
    keep_own(&mut said.selected_resources, |one| one, namespace);
    for cluster in &mut said.placement_statuses {
        cluster.applicable_cluster_resource_overrides.clear();
        let overrides = &mut cluster.applicable_resource_overrides;
        overrides.retain(|one| one.namespace == namespace);
        let (failed, drifted, diffed) = (
            &mut cluster.failed_placements,
            &mut cluster.drifted_placements,
            &mut cluster.diffed_placements,
        );
        keep_own(failed, |one| &mut one.identifier, namespace);
        keep_own(drifted, |one| &mut one.identifier, namespace);
        keep_own(diffed, |one| &mut one.identifier, namespace);
        let drifts = drifted.iter_mut().flat_map(|one| &mut one.observed_drifts);
        let diffs = diffed.iter_mut().flat_map(|one| &mut one.observed_diffs);
        drifts.chain(diffs).for_each(hide_values);
    }
}

/// Keeps the entries about the namespace or an object in it. An envelope is named if it is there, too.
fn keep_own<T>(
    all: &mut Vec<T>,
    identifier: fn(&mut T) -> &mut ResourceIdentifier,
    namespace: &str,
) {
    all.retain_mut(|one| {
        let object = identifier(one);
        let envelope = object.envelope.take();
        object.envelope = envelope.filter(|envelope| envelope.namespace == namespace);
        let is_namespace = object.group.is_empty() && object.kind == "Namespace";
        object.namespace == namespace || is_namespace && object.name == namespace
    });
}

fn owner(placement: &Placement) -> OwnerReference {
    let metadata = &placement.metadata;
    OwnerReference {
        api_version: Placement::API_VERSION.to_owned(),
        kind: Placement::kind_of(placement.scope()).to_owned(),
        name: metadata.name().to_owned(),
        uid: metadata.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Returns the status of a placement with the condition whether it was copied, if it is to be, or why not.
pub fn with_copied(
    placement: &Placement,
    mut said: PlacementStatus,
    copied: Result<(), &str>,
    now: Timestamp,
) -> PlacementStatus {
    let Some(namespace) = readable_in(placement, &said) else {
        return said;
    };
    let kind = of_placement(placement.scope(), STATUS_SYNCED);
    let mut synced = match copied {
        Ok(()) => {
            let message = format!(
                "Successfully created or updated ClusterResourcePlacementStatus in namespace '{namespace}'"
            );
            condition((&kind, TRUE), "StatusSyncSucceeded", &message)
        }
        Err(problem) => {
            let message =
                format!("Failed to create or update ClusterResourcePlacementStatus: {problem}");
            condition((&kind, FALSE), "StatusSyncFailed", &message)
        }
    };
    let before = placement.status.as_ref();
    let old = before.and_then(|before| find(&before.conditions, &kind));
    synced.observed_generation = placement.metadata.generation;
    synced.last_transition_time = Some(transition(old, &synced.status, now));
    upsert(&mut said.conditions, synced);
    said
}

#[cfg(test)]
mod tests {
    use objects::write::Action;
    use serde_json::{Value, from_value};

    use super::*;
    use crate::fixtures::fixture;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn placement(selectors: &Value) -> Placement {
        let mut placement: Placement = from_value(fixture("crp-all-available")).unwrap();
        placement.spec.status_reporting_scope = Some("NamespaceAccessible".to_owned());
        placement.spec.resource_selectors = from_value(selectors.clone()).unwrap();
        placement
    }

    fn namespace(name: &str) -> Value {
        json!({ "group": "", "version": "v1", "kind": "Namespace", "name": name })
    }

    /// Case F116: the status of a placement is copied into its namespace once, and again when it says something else; whether
    /// it could be is said on the placement alone.
    #[test]
    fn status_is_copied_once() {
        let mut placement = placement(&json!([namespace("application-1")]));
        let status = placement.status.clone().unwrap();
        let write = copy(&placement, &status, None, NOW).unwrap();
        let Action::Create(created) = write.action else {
            panic!("not created");
        };
        let created: ClusterResourcePlacementStatus = from_value(created).unwrap();
        assert_eq!(created.metadata.key().to_string(), "application-1/crp-all");
        assert_eq!(
            created.metadata.owners()[0].kind,
            "ClusterResourcePlacement"
        );
        assert_eq!(created.source_status, status);
        let told = with_copied(&placement, status.clone(), Ok(()), NOW);
        let last = told.conditions.last().unwrap();
        assert_eq!(
            [&*last.type_, &last.status, &last.reason],
            [
                "ClusterResourcePlacementStatusSynced",
                "True",
                "StatusSyncSucceeded"
            ]
        );
        placement.status = Some(told.clone());
        assert_eq!(copy(&placement, &told, Some(&created), NOW), None);
        let again = with_copied(&placement, status.clone(), Ok(()), Timestamp::now());
        assert_eq!(again, told);

        let mut other = status;
        other.observed_resource_index = "7".to_owned();
        let write = copy(&placement, &other, Some(&created), NOW).unwrap();
        let expected = json!({ "sourceStatus": { "observedResourceIndex": "7" },
            "lastUpdatedTime": "1970-01-01T00:00:00Z" });
        assert_eq!(write.action, Action::Merge(expected));
        let failed = with_copied(&placement, other, Err("forbidden"), NOW);
        assert_eq!(failed.conditions.last().unwrap().reason, "StatusSyncFailed");
    }

    /// Case F113: the users of a namespace are not told the values of its objects that differ: they may not be theirs to read.
    #[test]
    fn values_are_hidden() {
        let placement = placement(&json!([namespace("app-10")]));
        let recorded = fixture("crp-diff-reported");
        let status: PlacementStatus = from_value(recorded["status"].clone()).unwrap();
        let write = copy(&placement, &status, None, NOW).unwrap();
        let created: ClusterResourcePlacementStatus = from_value(write.body().clone()).unwrap();
        let [told, copied] = [&status, &created.source_status].map(|status| {
            let clusters = status.placement_statuses.iter();
            let diffed = clusters.flat_map(|one| &one.diffed_placements);
            let all = diffed.flat_map(|one| &one.observed_diffs).cloned();
            all.collect::<Vec<_>>()
        });
        assert_eq!(told.len(), copied.len());
        for (told, copied) in told.iter().zip(&copied) {
            assert_eq!(told.path, copied.path);
            let in_hub = (&told.value_in_hub, &copied.value_in_hub);
            let in_member = (&told.value_in_member, &copied.value_in_member);
            for (told, copied) in [in_hub, in_member] {
                let hidden = ["", "(redacted for security reasons)"];
                assert_eq!(copied, hidden[usize::from(!told.is_empty())]);
            }
        }
        assert_eq!(copy(&placement, &status, Some(&created), NOW), None);
    }

    fn of(namespace: &str) -> Value {
        json!({ "name": "o", "namespace": namespace })
    }

    /// Case F116: of objects that are not in the namespace its users hear nothing, not even a name.
    #[test]
    fn others_are_not_named() {
        let placement = placement(&json!([namespace("app-10")]));
        let status = |objects: &Value, overrides: &Value, of_hub: &[&str]| -> PlacementStatus {
            let cluster = json!({ "clusterName": "kind-cluster-1", "failedPlacements": objects,
                "driftedPlacements": objects, "diffedPlacements": objects,
                "applicableResourceOverrides": overrides,
                "applicableClusterResourceOverrides": of_hub });
            let said = json!({ "selectedResources": objects, "placementStatuses": [cluster] });
            from_value(said).unwrap()
        };
        let [own, other] = ["app-10", "app-11"].map(|namespace| {
            json!({ "version": "v1", "kind": "ConfigMap", "name": "c", "namespace": namespace })
        });
        let envelope = json!({ "name": "e", "namespace": "app-10", "type": "ResourceEnvelope" });
        let of_cluster = json!({ "name": "e", "type": "ClusterResourceEnvelope" });
        let role = json!({ "group": "rbac.authorization.k8s.io", "version": "v1",
            "kind": "ClusterRole", "name": "app-10" });
        let (first, second) = (namespace("app-10"), namespace("app-11"));
        let [kept, bare] = [envelope, of_cluster].map(|envelope| {
            let mut object = own.clone();
            object["envelope"] = envelope;
            object
        });
        let said = status(
            &json!([first, second, own, other, role, kept, bare]),
            &json!([of("app-10"), of("app-11")]),
            &["o"],
        );
        let copied = status(&json!([first, own, kept, own]), &json!([of("app-10")]), &[]);
        let write = copy(&placement, &said, None, NOW).unwrap();
        let created: ClusterResourcePlacementStatus = from_value(write.body().clone()).unwrap();
        assert_eq!(created.source_status, copied);
    }

    /// Nobody else's status is copied.
    #[test]
    fn rest_is_not_copied() {
        let mut only_cluster = placement(&json!([namespace("application-1")]));
        only_cluster.spec.status_reporting_scope = None;
        let two = placement(&json!([
            namespace("application-1"),
            namespace("application-2")
        ]));
        let unnamed = placement(&json!([namespace("")]));
        for placement in [only_cluster, two, unnamed] {
            let status = placement.status.clone().unwrap();
            assert_eq!(copy(&placement, &status, None, NOW), None);
            let told = with_copied(&placement, status.clone(), Ok(()), NOW);
            assert_eq!(told, status);
        }
    }
}
