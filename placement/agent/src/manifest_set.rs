//! A Work as the engine sees it.

use std::collections::BTreeSet;

use apply::{LastWrite, ManifestSet};
use fleet_api::Work;
use fleet_api::conditions::APPLIED;
use objects::Key;
use objects::condition::{TRUE, find};
use serde_json::{Value, json};

use crate::ownership::PlacedWork;

/// Returns the manifests of a Work, or some that were.
pub(crate) fn manifest_set<'a>(
    key: &Key,
    placed: &'a PlacedWork,
    manifests: impl Iterator<Item = &'a Value>,
) -> ManifestSet<'a, PlacedWork> {
    ManifestSet {
        source: placed,
        key: key.clone(),
        generation: placed.work.metadata.generation,
        manifests: manifests.collect(),
        withheld: BTreeSet::new(),
        terms: json!(placed.work.spec.apply_strategy).to_string(),
        suspended: false,
        last_write: LastWrite::Unknown,
        notes: "",
    }
}

/// Returns the knowledge of a Work's status about the last write of its objects.
pub(crate) fn last_write(work: &Work) -> LastWrite {
    let status = work.status.as_ref();
    let applied = status.and_then(|status| find(&status.conditions, APPLIED));
    let is_applied = applied.is_some_and(|applied| {
        applied.status == TRUE && applied.observed_generation == work.metadata.generation
    });
    if is_applied {
        LastWrite::OfManifest
    } else {
        LastWrite::Unknown
    }
}

/// Returns the messages of a Work's status about its manifests that were applied.
pub(crate) fn notes(work: &Work) -> String {
    let manifests = work
        .status
        .iter()
        .flat_map(|status| &status.manifest_conditions);
    let applied = manifests.filter_map(|one| find(&one.conditions, APPLIED));
    let applied = applied.filter(|applied| applied.status == TRUE);
    applied
        .map(|applied| &*applied.message)
        .collect::<Vec<_>>()
        .join("\n")
}
