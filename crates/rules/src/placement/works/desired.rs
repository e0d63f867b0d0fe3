//! The Works that a cluster should have.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::fleet::names::{
    CLUSTER_OVERRIDES_HASH, OVERRIDES_HASH, PARENT_BINDING, PARENT_PLACEMENT,
    PARENT_SNAPSHOT_INDEX, PARENT_SNAPSHOT_NAME, PART_INDEX, RESOURCE_INDEX, member_namespace,
};
use karmada_api::fleet::work::WorkSpec;
use karmada_api::fleet::{ClusterResourceSnapshot, Work};
use karmada_api::work::Workload;
use objects::{Metadata, kind};

use super::facts::WorksFacts;
use crate::placement::hash::of_names;
use crate::placement::select::{identifier, show};

/// Returns the Works that the cluster of a binding should have: one for each part of the snapshot, even an empty one.
///
/// # Errors
/// Fails if an object asks for more than that.
pub(super) fn desired(facts: &WorksFacts<'_>) -> Result<Vec<Work>, String> {
    let objects = facts
        .snapshots
        .iter()
        .flat_map(|snapshot| &snapshot.spec.selected_resources);
    let mut envelopes = objects
        .filter(|object| matches!(kind(object), "ClusterResourceEnvelope" | "ResourceEnvelope"));
    if let Some(envelope) = envelopes.next() {
        let name = show(&identifier(envelope));
        return Err(format!(
            "{name} cannot be placed: envelopes are not opened yet"
        ));
    }
    let no_names = of_names::<String>(None).map_err(|error| error.to_string())?;
    let works = facts
        .snapshots
        .iter()
        .map(|snapshot| work(facts, snapshot, &no_names));
    Ok(works.collect())
}

fn work(facts: &WorksFacts<'_>, snapshot: &ClusterResourceSnapshot, no_names: &str) -> Work {
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
            workload: Workload {
                manifests: snapshot.spec.selected_resources.clone(),
            },
            apply_strategy: binding.spec.apply_strategy.clone(),
        },
        status: None,
    }
}
