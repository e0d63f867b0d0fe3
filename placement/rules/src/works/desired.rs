//! The Works that a cluster should have.

use fleet_api::names::{
    CLUSTER_OVERRIDES_HASH, ENVELOPE_NAME, ENVELOPE_NAMESPACE, ENVELOPE_TYPE, OVERRIDES_HASH,
    PARENT_BINDING, PARENT_NAMESPACE, PARENT_PLACEMENT, PARENT_SNAPSHOT_INDEX,
    PARENT_SNAPSHOT_NAME, PART_INDEX, RESOURCE_INDEX, member_namespace,
};
use fleet_api::placement::EnvelopeIdentifier;
use fleet_api::work::WorkSpec;
use fleet_api::work::Workload;
use fleet_api::{Binding, ResourceSnapshot, Work};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::Metadata;
use serde_json::Value;

use super::facts::{Failure, WorksFacts};
use crate::envelope::{Opened, envelope_of, open};
use crate::hash::{of_envelope_identity, of_names};
use crate::overrides::overridden;

/// Returns the Works that the cluster of a binding should have: one for each part of the snapshot, even an empty one, and
/// one for each envelope in it.
///
/// # Errors
/// Fails if an envelope cannot be opened, or an override cannot be applied.
pub(super) fn desired(facts: &WorksFacts<'_>) -> Result<Vec<Work>, Failure> {
    let marks = marks(facts.binding).map_err(|error| Failure::Synchronizing(error.to_string()))?;
    let mut works = Vec::new();
    for snapshot in facts.snapshots {
        let objects = snapshot.spec.selected_resources.iter();
        let (envelopes, objects): (Vec<_>, Vec<_>) =
            objects.partition(|object| facts.opening.applies_to(object));
        let objects = objects.into_iter().cloned().collect();
        let of_part = work(facts, snapshot, &marks, objects)?;
        let part = of_part.metadata.name().to_owned();
        works.push(of_part);
        for envelope in envelopes {
            let Opened {
                identifier,
                manifests,
            } = open(envelope, snapshot.scope()).map_err(Failure::Synchronizing)?;
            let work = work(facts, snapshot, &marks, manifests)?;
            works.push(of_envelope(work, &part, identifier, facts.works));
        }
    }
    Ok(works)
}

/// Returns the manifests as the cluster of the binding is to have them.
fn for_cluster(manifests: Vec<Value>, facts: &WorksFacts<'_>) -> Result<Vec<Value>, String> {
    let Some(cluster) = facts.cluster.filter(|_| !facts.overrides.is_empty()) else {
        return Ok(manifests);
    };
    let manifests = manifests.into_iter();
    let manifests = manifests.map(|manifest| overridden(manifest, facts.overrides, cluster));
    manifests.filter_map(Result::transpose).collect()
}

/// Returns `true` if there are Works, and all of them were made of the snapshots that the binding names.
pub(super) fn are_current(facts: &WorksFacts<'_>) -> bool {
    let works = facts.works.iter();
    let mut staying = works.filter(|work| !work.metadata.is_deleting());
    let least = facts.snapshots.len().max(1);
    staying.clone().count() >= least && staying.all(|work| is_current(work, facts.binding))
}

/// Returns `true` if a Work was made of the snapshots that its binding names.
pub(super) fn is_current(work: &Work, binding: &Binding) -> bool {
    let metadata = &work.metadata;
    marks(binding).is_ok_and(|marks| {
        let mut marks = marks.iter();
        marks.all(|(key, value)| metadata.annotation(key) == Some(value))
    })
}

/// The annotations of a Work that name its sources.
type Marks = [(&'static str, String); 3];

/// Returns the marks of the Works of a binding: the snapshot, and the hashes of the overrides that it lists.
fn marks(binding: &Binding) -> serde_json::Result<Marks> {
    let spec = &binding.spec;
    let cluster_scoped = &spec.cluster_resource_override_snapshots;
    let namespaced = &spec.resource_override_snapshots;
    let of_cluster_scoped = of_names((!cluster_scoped.is_empty()).then_some(&**cluster_scoped))?;
    let of_namespaced = of_names((!namespaced.is_empty()).then_some(&**namespaced))?;
    Ok([
        (CLUSTER_OVERRIDES_HASH, of_cluster_scoped),
        (OVERRIDES_HASH, of_namespaced),
        (PARENT_SNAPSHOT_NAME, spec.resource_snapshot_name.clone()),
    ])
}

/// Returns the Work of these manifests, as the cluster of the binding is to have them.
///
/// # Errors
/// Fails if an override cannot be applied.
fn work(
    facts: &WorksFacts<'_>,
    snapshot: &ResourceSnapshot,
    marks: &Marks,
    manifests: Vec<Value>,
) -> Result<Work, Failure> {
    let manifests = for_cluster(manifests, facts).map_err(Failure::Overriding)?;
    let WorksFacts {
        placement, binding, ..
    } = facts;
    let base = match &*placement.namespace {
        "" => placement.name.clone(),
        namespace => format!("{namespace}.{}", placement.name),
    };
    let name = match snapshot.metadata.annotation(PART_INDEX) {
        None => format!("{base}-work"),
        Some(part) => format!("{base}-{part}"),
    };
    let index = snapshot.metadata.label(RESOURCE_INDEX).unwrap_or_default();
    let mut labels = vec![
        (PARENT_PLACEMENT, &*placement.name),
        (PARENT_BINDING, binding.metadata.name()),
        (PARENT_SNAPSHOT_INDEX, index),
    ];
    if !placement.namespace.is_empty() {
        labels.push((PARENT_NAMESPACE, &placement.namespace));
    }
    let annotations = marks.clone().map(|(key, value)| (key.to_owned(), value));
    let labels = labels.into_iter();
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Ok(Work {
        api_version: Work::API_VERSION.to_owned(),
        kind: Work::KIND.to_owned(),
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(member_namespace(&binding.spec.target_cluster)),
            labels: Some(labels.collect()),
            annotations: Some(annotations.into()),
            ..ObjectMeta::default()
        },
        spec: WorkSpec {
            workload: Workload { manifests },
            apply_strategy: binding.spec.apply_strategy.clone(),
        },
        status: None,
    })
}

/// Makes a Work that of an envelope. It keeps the name that such a Work of the binding has, for with another its objects
/// would go and come again: versions of KubeFleet chose names at random, and an envelope may move to another part of its
/// snapshot.
fn of_envelope(mut work: Work, part: &str, envelope: EnvelopeIdentifier, works: &[&Work]) -> Work {
    let staying = works.iter().filter(|work| !work.metadata.is_deleting());
    let mut same = staying.filter(|work| envelope_of(work).as_ref() == Some(&envelope));
    let name = same.next().map(|work| work.metadata.name().to_owned());
    let name = name.unwrap_or_else(|| {
        let suffix = of_envelope_identity(&envelope);
        format!("{part}-envelope-{suffix}")
    });
    work.metadata.name = Some(name);
    let labels = work.metadata.labels.get_or_insert_default();
    labels.insert(ENVELOPE_TYPE.to_owned(), envelope.type_);
    labels.insert(ENVELOPE_NAME.to_owned(), envelope.name);
    if !envelope.namespace.is_empty() {
        labels.insert(ENVELOPE_NAMESPACE.to_owned(), envelope.namespace);
    }
    work
}
