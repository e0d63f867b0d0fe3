//! The manifests of a Work as they are written in its member, and the record of them there.

use std::collections::{BTreeMap, BTreeSet};

use fleet_api::conditions::{APPLIED, FINISHED};
use fleet_api::names::{PARENT_NAMESPACE, PARENT_PLACEMENT, PLACEMENT, SPEC_HASH};
use fleet_api::work::{
    AppliedResource, AppliedWorkSpec, AppliedWorkStatus, ManifestCondition, WorkResourceIdentifier,
};
use fleet_api::{AppliedWork, Work};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::condition::find;
use objects::retain::{PULL_SECRETS, pull_secret_names};
use objects::{GroupVersionKind, Metadata, metadata};
use serde_json::{Value, json};

use super::hash::of_manifest;
use super::parents::placement_of_work;

/// A manifest of a Work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// As it is written.
    Ready(Value),
    /// It has been, and is not again: its Job has done its work, and the member deletes such Jobs after a while.
    Finished,
    /// It cannot be written, for this reason.
    Failed(Failure, String),
}

/// Why a manifest is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It is no object.
    Undecodable,
    /// It leaves its name to the member.
    GenerateName,
    /// Another manifest of the Work is of the same object.
    Duplicate,
    /// There was an object that is not ours to change.
    TakeOver,
    /// There was an object, and none that was there is to be taken over.
    NotTakenOver,
    /// Somebody has changed the object, and it is left so.
    Drift,
    /// The member refused it.
    Apply,
    /// The member did not tell the differences.
    Report,
}

impl Failure {
    /// Returns the reason of the condition that says so.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Undecodable => "DecodingErred",
            Self::GenerateName => "FoundGenerateName",
            Self::Duplicate => "Duplicated",
            Self::TakeOver => "FailedToTakeOver",
            Self::NotTakenOver => "NotTakenOver",
            Self::Drift => "FoundDrifts",
            Self::Apply => "ManifestApplyFailed",
            Self::Report => "FailedToReportDiff",
        }
    }
}

impl Prepared {
    /// Returns the manifest as it is written, if it can be.
    pub fn ready(&self) -> Option<&Value> {
        match self {
            Self::Ready(manifest) => Some(manifest),
            Self::Finished | Self::Failed(..) => None,
        }
    }
}

/// Returns the owner of the objects of a Work in its member. It carries the placement's name, and so do the objects of
/// an owner that does.
pub fn owner(work: &Work) -> AppliedWork {
    let labels = [PARENT_PLACEMENT, PARENT_NAMESPACE].into_iter();
    let labels = labels.filter_map(|key| {
        let value = work.metadata.label(key)?;
        Some((key.to_owned(), value.to_owned()))
    });
    let labels: BTreeMap<_, _> = labels.collect();
    AppliedWork {
        api_version: AppliedWork::API_VERSION.to_owned(),
        kind: AppliedWork::KIND.to_owned(),
        metadata: ObjectMeta {
            name: work.metadata.name.clone(),
            labels: (!labels.is_empty()).then_some(labels),
            ..ObjectMeta::default()
        },
        spec: AppliedWorkSpec {
            work_name: work.metadata.name().to_owned(),
            work_namespace: work.metadata.namespace().to_owned(),
        },
        status: None,
    }
}

/// Returns the manifests of a Work, in their order, as they are written for `owner`; without one, as they are compared.
pub fn prepare(work: &Work, owner: Option<&AppliedWork>) -> Vec<Prepared> {
    let mut seen = BTreeSet::new();
    let manifests = work.spec.workload.manifests.iter();
    let prepared = manifests.map(|manifest| {
        let identifier = identifier(manifest, 0, "");
        if let Some((failure, message)) = problem(manifest, &identifier) {
            return Prepared::Failed(failure, message.to_owned());
        }
        if !seen.insert(object(&identifier).map(ToOwned::to_owned)) {
            let message = "An earlier manifest of the Work is of the same object";
            return Prepared::Failed(Failure::Duplicate, message.to_owned());
        }
        match of_manifest(manifest) {
            Ok(hash) if is_finished(work, manifest, &hash) => Prepared::Finished,
            Ok(hash) => Prepared::Ready(match owner {
                Some(owner) => written(manifest, hash, owner),
                None => manifest.clone(),
            }),
            Err(error) => Prepared::Failed(Failure::Undecodable, error.to_string()),
        }
    });
    prepared.collect()
}

/// Returns the reason why a manifest is not of one object, if it is not.
fn problem(
    manifest: &Value,
    identifier: &WorkResourceIdentifier,
) -> Option<(Failure, &'static str)> {
    if identifier.kind.is_empty() || identifier.version.is_empty() {
        let message = "The manifest has no apiVersion or no kind";
        Some((Failure::Undecodable, message))
    } else if !identifier.name.is_empty() {
        None
    } else if metadata::field(manifest, "generateName").is_some() {
        let message = "The manifest has a generateName in place of a name";
        Some((Failure::GenerateName, message))
    } else {
        Some((Failure::Undecodable, "The manifest has no name"))
    }
}

/// Returns a manifest with its hash and the marks of its owner.
fn written(manifest: &Value, hash: String, owner: &AppliedWork) -> Value {
    let mut written = manifest.clone();
    metadata::edit(&mut written, "annotations", |annotations| {
        annotations.insert(SPEC_HASH.to_owned(), hash.into());
        // KubeFleet's owners have none: then nothing is written where a member changes hands.
        if let Some(placement) = placement_of_work(&owner.metadata) {
            annotations.insert(PLACEMENT.to_owned(), placement.to_string().into());
            if let Some(names) = pull_secret_names(manifest) {
                annotations.insert(PULL_SECRETS.to_owned(), names.into());
            }
        }
    });
    let reference = json!({
        "apiVersion": AppliedWork::API_VERSION,
        "kind": AppliedWork::KIND,
        "name": owner.metadata.name(),
        "uid": owner.metadata.uid(),
        "blockOwnerDeletion": true,
    });
    metadata::set(&mut written, "ownerReferences", json!([reference]));
    written
}

/// Returns the identity of a manifest at a place of its Work. `resource` is the name of its kind in the paths of the
/// member's API.
pub fn identifier(manifest: &Value, ordinal: i64, resource: &str) -> WorkResourceIdentifier {
    let GroupVersionKind {
        group,
        version,
        kind,
    } = GroupVersionKind::of(manifest);
    WorkResourceIdentifier {
        ordinal,
        group,
        version,
        kind,
        resource: resource.to_owned(),
        namespace: manifest.namespace().to_owned(),
        name: manifest.name().to_owned(),
    }
}

/// Returns the identity that tells an object from all others, whatever its version and its place in a Work.
fn object(identifier: &WorkResourceIdentifier) -> [&str; 4] {
    let WorkResourceIdentifier {
        group,
        kind,
        namespace,
        name,
        ..
    } = identifier;
    [group, kind, namespace, name]
}

/// Returns `true` if it is the identity of the object of a manifest.
pub fn is_same_object(one: &WorkResourceIdentifier, manifest: &Value) -> bool {
    object(one) == object(&identifier(manifest, 0, ""))
}

/// Returns the objects that were, or were about to be, written for a Work, and are in no manifest of it any more. Both its own
/// status and its owner's tell: between the writes of the two, the agent may have ended.
pub fn leftovers(work: &Work, owner: &AppliedWork) -> Vec<WorkResourceIdentifier> {
    let manifests = work.spec.workload.manifests.iter();
    let wanted: Vec<_> = manifests.map(|one| identifier(one, 0, "")).collect();
    let mut known: BTreeSet<_> = wanted.iter().map(object).collect();
    let begun = work
        .status
        .iter()
        .flat_map(|status| &status.manifest_conditions);
    let written = owner
        .status
        .iter()
        .flat_map(|status| &status.applied_resources);
    let all = begun
        .map(|one| &one.identifier)
        .chain(written.map(|one| &one.identifier));
    all.filter(|one| known.insert(object(one)))
        .cloned()
        .collect()
}

/// Returns the objects that a Work names as applied, or about to be, and its owner does not: between the writes of the two,
/// the agent may have ended.
pub fn begun(work: &Work, owner: &AppliedWork) -> Vec<WorkResourceIdentifier> {
    let known = owner.status.iter().flat_map(|one| &one.applied_resources);
    let known: BTreeSet<_> = known.map(|one| object(&one.identifier)).collect();
    let said = work.status.iter().flat_map(|one| &one.manifest_conditions);
    let begun = said.filter(|one| find(&one.conditions, APPLIED).is_some());
    let begun = begun.map(|one| &one.identifier);
    begun
        .filter(|one| !known.contains(&object(one)))
        .cloned()
        .collect()
}

/// Returns a manifest of which no more is known than the identity of its object.
pub fn stub(identifier: &WorkResourceIdentifier) -> Value {
    let kind = GroupVersionKind {
        group: identifier.group.clone(),
        version: identifier.version.clone(),
        kind: identifier.kind.clone(),
    };
    let mut metadata = json!({ "name": identifier.name });
    if !identifier.namespace.is_empty() {
        metadata["namespace"] = identifier.namespace.clone().into();
    }
    json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata })
}

/// Returns `true` if the status of a Work names the object of a manifest, so that it may be written.
pub fn is_named(work: &Work, manifest: &Value) -> bool {
    named(work, manifest).is_some()
}

fn named<'a>(work: &'a Work, manifest: &Value) -> Option<&'a ManifestCondition> {
    let manifests = work.status.iter();
    let mut named = manifests.flat_map(|status| &status.manifest_conditions);
    named.find(|one| is_same_object(&one.identifier, manifest))
}

/// Returns `true` if a Work says that the Job of a manifest of this hash has done its work.
fn is_finished(work: &Work, manifest: &Value, hash: &str) -> bool {
    let said = named(work, manifest).and_then(|one| find(&one.conditions, FINISHED));
    said.is_some_and(|finished| finished.message == hash)
}

/// Returns the status of an owner that has these objects, besides those that are `left` of manifests that are gone;
/// `None` if it says so.
pub fn owner_status(
    owner: &AppliedWork,
    applied: impl IntoIterator<Item = AppliedResource>,
    left: &[WorkResourceIdentifier],
) -> Option<AppliedWorkStatus> {
    let before = owner.status.clone().unwrap_or_default();
    let left = left.iter().map(|left| {
        let mut known = before.applied_resources.iter();
        let known = known.find(|one| object(&one.identifier) == object(left));
        known.cloned().unwrap_or_else(|| AppliedResource {
            identifier: left.clone(),
            uid: String::new(),
        })
    });
    let applied_resources = applied.into_iter().chain(left).collect();
    let after = AppliedWorkStatus { applied_resources };
    (after != before).then_some(after)
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::super::fixtures::{fixture, items};
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
        from_value(fixture(name)).unwrap()
    }

    /// The status that an agent of KubeFleet wrote for a Work of two manifests, our own owner apart.
    #[test]
    fn recorded_objects_have_manifests() {
        let (work, owner): (Work, AppliedWork) = (read("crp-1-work"), read("crp-all-appliedwork"));
        let objects = items("crp-1-member-objects");
        let mut count = 0;
        for prepared in prepare(&work, Some(&owner)) {
            let Prepared::Ready(written) = prepared else {
                panic!("{prepared:?}");
            };
            let kind = objects::kind(&written);
            let mut namesakes = objects.iter().filter(|one| one.name() == written.name());
            let object = namesakes.find(|one| objects::kind(one) == kind);
            let Some(hash) = object.and_then(|one| one.annotation(SPEC_HASH)) else {
                continue;
            };
            assert_eq!(written.annotation(SPEC_HASH), Some(hash), "{kind}");
            assert_eq!(written.annotation(PLACEMENT), None);
            count += 1;
        }
        assert!(count >= 4, "{count}");
    }

    #[test]
    fn bad_manifests_fail_alone() {
        let work: Work = from_value(json!({ "metadata": { "name": "w", "namespace": "fleet-member-a",
            "labels": { PARENT_PLACEMENT: "p" } }, "spec": { "workload": { "manifests": [
                { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "n" } },
                { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "a-" } },
                { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "n" } },
                { "kind": "ConfigMap", "metadata": { "name": "b" } },
                { "apiVersion": "v1", "kind": "ConfigMap" },
                "text",
            ] } } }))
        .unwrap();
        let mut applied = owner(&work);
        applied.metadata.uid = Some("u".to_owned());
        let prepared = prepare(&work, Some(&applied));
        let Prepared::Ready(first) = &prepared[0] else {
            panic!("{prepared:?}");
        };
        assert_eq!(first.annotation(PLACEMENT), Some("p"));
        let owners = first.owners();
        assert_eq!(
            (owners[0].kind, owners[0].name, owners[0].uid),
            ("AppliedWork", "w", "u")
        );
        let failures: Vec<_> = prepared[1..]
            .iter()
            .map(|one| match one {
                Prepared::Failed(failure, _) => *failure,
                other => panic!("{other:?}"),
            })
            .collect();
        let undecodable = Failure::Undecodable;
        let expected = [
            Failure::GenerateName,
            Failure::Duplicate,
            undecodable,
            undecodable,
            undecodable,
        ];
        assert_eq!(failures, expected);
    }

    /// A manifest that left the Work is known from either status, once; one that is of another version now is still
    /// there.
    #[test]
    fn leftovers_are_found() {
        let id = |version: &str, kind: &str, name: &str| json!({ "ordinal": 0, "version": version, "kind": kind, "name": name, "resource": "r" });
        let work: Work = from_value(json!({ "metadata": { "name": "w" }, "spec": { "workload": {
            "manifests": [{ "apiVersion": "v2", "kind": "A", "metadata": { "name": "stays" } }] } },
            "status": { "manifestConditions": [{ "identifier": id("v1", "A", "stays") },
                { "identifier": id("v1", "A", "begun") }, { "identifier": id("v1", "A", "both") }] } }))
        .unwrap();
        let applied: AppliedWork = from_value(json!({ "metadata": { "name": "w" }, "status": {
            "appliedResources": [id("v1", "A", "both"), id("v1", "B", "written")] } }))
        .unwrap();
        let left = leftovers(&work, &applied);
        let names: Vec<_> = left.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["begun", "both", "written"]);
        assert_eq!(
            stub(&left[2]),
            json!({ "apiVersion": "v1", "kind": "B", "metadata": { "name": "written" } })
        );
    }

    /// A status says nothing anew of objects that are as they were.
    #[test]
    fn recorded_owner_status_stands() {
        let applied: AppliedWork = read("crp-all-appliedwork");
        let resources = applied.status.clone().unwrap().applied_resources;
        assert_eq!(owner_status(&applied, resources.clone(), &[]), None);
        let left = [resources[1].identifier.clone()];
        assert_eq!(owner_status(&applied, [resources[0].clone()], &left), None);
        let after = owner_status(&applied, [resources[0].clone()], &[]).unwrap();
        assert_eq!(after.applied_resources, resources[..1]);
    }
}
