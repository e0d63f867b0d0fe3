//! The Works that a cluster should have.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::fleet::names::{
    CLUSTER_OVERRIDES_HASH, ENVELOPE_NAME, ENVELOPE_NAMESPACE, ENVELOPE_TYPE, OVERRIDES_HASH,
    PARENT_BINDING, PARENT_PLACEMENT, PARENT_SNAPSHOT_INDEX, PARENT_SNAPSHOT_NAME, PART_INDEX,
    RESOURCE_INDEX, member_namespace,
};
use karmada_api::fleet::placement::EnvelopeIdentifier;
use karmada_api::fleet::work::WorkSpec;
use karmada_api::fleet::{ClusterResourceSnapshot, Work};
use karmada_api::work::Workload;
use objects::Metadata;
use serde_json::Value;

use super::facts::WorksFacts;
use crate::placement::content::is_envelope;
use crate::placement::envelope::{Opened, envelope_of, is_config_map_envelope, open};
use crate::placement::hash::{of_envelope_identity, of_names};

/// Returns the Works that the cluster of a binding should have: one for each part of the snapshot, even an empty one, and
/// one for each envelope in it.
///
/// # Errors
/// Fails if an envelope cannot be opened.
pub(super) fn desired(facts: &WorksFacts<'_>) -> Result<Vec<Work>, String> {
    let no_names = of_names::<String>(None).map_err(|error| error.to_string())?;
    let mut works = Vec::new();
    for snapshot in facts.snapshots {
        let objects = snapshot.spec.selected_resources.iter();
        let (envelopes, objects): (Vec<_>, Vec<_>) = objects.partition(|object| {
            is_envelope(object) || facts.opens_config_maps && is_config_map_envelope(object)
        });
        let work = |manifests| work(facts, snapshot, &no_names, manifests);
        let of_part = work(objects.into_iter().cloned().collect());
        let part = of_part.metadata.name().to_owned();
        works.push(of_part);
        for envelope in envelopes {
            let Opened {
                identifier,
                manifests,
            } = open(envelope)?;
            let work = work(manifests);
            works.push(of_envelope(work, &part, identifier, facts.works));
        }
    }
    Ok(works)
}

fn work(
    facts: &WorksFacts<'_>,
    snapshot: &ClusterResourceSnapshot,
    no_names: &str,
    manifests: Vec<Value>,
) -> Work {
    let WorksFacts {
        placement, binding, ..
    } = facts;
    let name = match snapshot.metadata.annotation(PART_INDEX) {
        None => format!("{placement}-work"),
        Some(part) => format!("{placement}-{part}"),
    };
    let index = snapshot.metadata.label(RESOURCE_INDEX).unwrap_or_default();
    let labels = [
        (PARENT_PLACEMENT, *placement),
        (PARENT_BINDING, binding.metadata.name()),
        (PARENT_SNAPSHOT_INDEX, index),
    ];
    let annotations = [
        (CLUSTER_OVERRIDES_HASH, no_names),
        (OVERRIDES_HASH, no_names),
        (PARENT_SNAPSHOT_NAME, &*binding.spec.resource_snapshot_name),
    ];
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    Work {
        api_version: Work::API_VERSION.to_owned(),
        kind: Work::KIND.to_owned(),
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(member_namespace(&binding.spec.target_cluster)),
            labels: Some(labels.map(owned).into()),
            annotations: Some(annotations.map(owned).into()),
            ..ObjectMeta::default()
        },
        spec: WorkSpec {
            workload: Workload { manifests },
            apply_strategy: binding.spec.apply_strategy.clone(),
        },
        status: None,
    }
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
