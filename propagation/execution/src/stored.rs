//! The form in which Works are kept: as text, for their manifests are most of this program's memory.

use std::collections::BTreeSet;

use karmada_api::Work;
use karmada_runtime::as_text::AsText;
use objects::GroupVersionKind;

/// A Work as text, with what is asked of it often.
pub(crate) type StoredWork = AsText<Work, Summary>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// The kinds of the Work's manifests.
    pub(crate) kinds: BTreeSet<GroupVersionKind>,
    /// True if nothing is created or changed in the member.
    pub(crate) suspended: bool,
}

impl From<&Work> for Summary {
    fn from(work: &Work) -> Self {
        let kinds = work
            .spec
            .workload
            .manifests
            .iter()
            .map(GroupVersionKind::of);
        let kinds = kinds.filter(|kind| !kind.kind.is_empty() && !kind.version.is_empty());
        Self {
            kinds: kinds.collect(),
            suspended: work.is_suspended(),
        }
    }
}
