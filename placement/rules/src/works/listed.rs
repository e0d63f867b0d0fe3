//! The objects of a binding's Works that are not as they shall be.

use fleet_api::Work;
use fleet_api::placement::{
    DiffedPlacement, Difference, DriftedPlacement, FailedPlacement, ResourceIdentifier,
};
use fleet_api::work::{ManifestCondition, WorkResourceIdentifier};
use objects::condition::{FALSE, find};

use crate::drift::without_values;
use crate::envelope::envelope_of;

/// The most objects of each list.
const MOST: usize = 100;
/// The most bytes of JSON that the differences of a list have, of all its objects: etcd takes 1.5 MiB for the binding.
const MOST_BYTES: usize = 400 * 1024;

/// Returns the objects of which a condition of these kinds is False, each with the first.
pub(super) fn failed(works: &[&Work], kinds: &[&str]) -> Vec<FailedPlacement> {
    let failed = manifests(works).filter_map(|(identifier, manifest)| {
        let conditions = kinds
            .iter()
            .filter_map(|kind| find(&manifest.conditions, kind));
        let condition = conditions.into_iter().find(|one| one.status == FALSE)?;
        Some(FailedPlacement {
            identifier,
            condition: condition.clone(),
        })
    });
    failed.take(MOST).collect()
}

/// Returns the objects that somebody has changed.
pub(super) fn drifted(works: &[&Work]) -> Vec<DriftedPlacement> {
    let mut room = MOST_BYTES;
    let drifted = manifests(works).filter_map(|(identifier, manifest)| {
        let details = manifest.drift_details.as_ref()?;
        Some(DriftedPlacement {
            identifier,
            observation_time: details.observation_time.clone(),
            target_cluster_observed_generation: details.observed_in_member_cluster_generation,
            first_drifted_observed_time: details.first_drifted_observed_time.clone(),
            observed_drifts: fitting(&details.observed_drifts, &mut room),
        })
    });
    drifted.take(MOST).collect()
}

/// Returns the objects that differ.
pub(super) fn diffed(works: &[&Work]) -> Vec<DiffedPlacement> {
    let mut room = MOST_BYTES;
    let diffed = manifests(works).filter_map(|(identifier, manifest)| {
        let details = manifest.diff_details.as_ref()?;
        Some(DiffedPlacement {
            identifier,
            observation_time: details.observation_time.clone(),
            target_cluster_observed_generation: details.observed_in_member_cluster_generation,
            first_diffed_observed_time: details.first_diffed_observed_time.clone(),
            observed_diffs: fitting(&details.observed_diffs, &mut room),
        })
    });
    diffed.take(MOST).collect()
}

/// Returns the differences of an object for which there is room, without their values if there is none for these.
fn fitting(differences: &[Difference], room: &mut usize) -> Vec<Difference> {
    let mut fitting = Vec::new();
    for one in differences {
        for version in [one.clone(), without_values(one)] {
            let bytes = serde_json::to_vec(&version).map_or(0, |json| json.len());
            if let Some(left) = room.checked_sub(bytes) {
                *room = left;
                fitting.push(version);
                break;
            }
        }
    }
    fitting
}

fn manifests<'w>(
    works: &'w [&Work],
) -> impl Iterator<Item = (ResourceIdentifier, &'w ManifestCondition)> {
    works.iter().flat_map(|work| {
        let manifests = work.status.iter();
        let manifests = manifests.flat_map(|status| &status.manifest_conditions);
        manifests.map(|manifest| (identifier(work, &manifest.identifier), manifest))
    })
}

fn identifier(work: &Work, manifest: &WorkResourceIdentifier) -> ResourceIdentifier {
    ResourceIdentifier {
        group: manifest.group.clone(),
        version: manifest.version.clone(),
        kind: manifest.kind.clone(),
        name: manifest.name.clone(),
        namespace: manifest.namespace.clone(),
        envelope: envelope_of(work),
    }
}
