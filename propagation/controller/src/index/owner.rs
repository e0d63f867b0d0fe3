//! The Works as text, and their owners.

use std::collections::BTreeSet;

use karmada_api::Work;
use karmada_api::work::APPLIED;
use karmada_runtime::as_text::AsText;
use kube::Resource;
use objects::Key;
use propagation_rules::works;

/// A Work as text.
pub(crate) type StoredWork = AsText<Work, Progress>;

/// The progress of a Work in its member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// True once its condition shows the outcome of this version, or there is to be none.
    pub(super) is_reported: bool,
}

impl From<&Work> for Progress {
    fn from(work: &Work) -> Self {
        let applied = work.condition(APPLIED);
        let is_current = applied.is_some_and(|applied| {
            let observed = applied.observed_generation;
            observed.is_none() || observed == work.metadata.generation
        });
        Self {
            is_reported: is_current || work.is_suspended(),
        }
    }
}

/// The object for which a Work is made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// The key of a binding; one without a namespace is a `ClusterResourceBinding`.
    Binding(Key),
    /// The name of a Namespace.
    Namespace(String),
}

impl Owner {
    /// Returns the owner of a Work; it is one at most.
    pub(crate) fn of(work: &StoredWork) -> BTreeSet<Self> {
        let metadata = work.meta();
        let binding = works::bound(metadata).map(Self::Binding);
        let owner = binding.or_else(|| {
            let mut owners = metadata.owner_references.iter().flatten();
            let namespace = owners.find(|owner| owner.kind == "Namespace")?;
            Some(Self::Namespace(namespace.name.clone()))
        });
        owner.into_iter().collect()
    }
}
