//! The form in which Works are kept: as text, for their manifests are most of this program's memory.

use std::collections::BTreeSet;

use jiff::Timestamp;
use karmada_api::Work;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::work::{APPLIED, WITHHELD};
use karmada_runtime::as_text::AsText;
use objects::{GroupVersionKind, Key, Metadata};
use propagation_rules::execution::{Progress, ServiceSlice, unapplied_since};
use serde_json::Value;

/// A Work as text, with the parts that are read often.
pub(crate) type StoredWork = AsText<Work, Summary>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// The kinds of the Work's manifests.
    pub(crate) kinds: BTreeSet<GroupVersionKind>,
    /// The Services among the manifests.
    pub(crate) services: BTreeSet<Key>,
    /// The slices of Services among them that are, or may be, in the member.
    pub(crate) slices: Box<[ServiceSlice]>,
    /// True if the Work says that slices are withheld.
    pub(crate) is_withheld: bool,
    /// True if nothing is created or changed in the member.
    pub(crate) suspended: bool,
    /// How far it has come.
    pub(crate) progress: Progress,
    /// Since when it is not applied, if it says so.
    pub(crate) unapplied_since: Option<Timestamp>,
    /// True if it says that it could not be applied.
    pub(crate) has_failed: bool,
}

impl From<&Work> for Summary {
    fn from(work: &Work) -> Self {
        let manifests = &work.spec.workload.manifests;
        let kinds = manifests.iter().map(GroupVersionKind::of);
        let kinds = kinds.filter(|kind| !kind.kind.is_empty() && !kind.version.is_empty());
        Self {
            kinds: kinds.collect(),
            services: manifests.iter().filter_map(service).collect(),
            slices: slices(work),
            is_withheld: work
                .condition(WITHHELD)
                .is_some_and(|withheld| withheld.status == TRUE),
            suspended: work.is_suspended(),
            progress: Progress::of(work),
            unapplied_since: unapplied_since(work),
            has_failed: work
                .condition(APPLIED)
                .is_some_and(|applied| applied.status == FALSE),
        }
    }
}

/// Returns the slices of Services that a Work brings to its member, or has collected there: Karmada suspends the Works that
/// carry those.
fn slices(work: &Work) -> Box<[ServiceSlice]> {
    if work.metadata.deletion_timestamp.is_some() {
        return Box::default();
    }
    let manifests = work.spec.workload.manifests.iter();
    let slices = manifests.filter_map(ServiceSlice::of);
    slices
        .filter(|slice| slice.source.is_none() || !work.is_suspended())
        .collect()
}

/// The longest name of a Service, in bytes. A longer one exists nowhere, and no selector may have it as a value.
const LONGEST_NAME: usize = 63;

/// Returns the key of a manifest that is a Service.
fn service(manifest: &Value) -> Option<Key> {
    let is_service = manifest["apiVersion"] == "v1" && manifest["kind"] == "Service";
    let key = is_service.then(|| manifest.key())?;
    (key.name.len() <= LONGEST_NAME).then_some(key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A Service whose name no API accepts is none.
    #[test]
    fn overlong_name_is_left_out() {
        for (length, is_taken) in [(63, true), (64, false)] {
            let metadata = json!({ "name": "a".repeat(length) });
            let manifest = json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata });
            assert_eq!(service(&manifest).is_some(), is_taken);
        }
    }
}
