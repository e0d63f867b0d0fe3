//! The changes in a member that wake a Work.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::names::{WORK_NAME, WORK_NAMESPACE};
use karmada_rules::execution::Settled;
use karmada_runtime::cache::Transition;
use karmada_runtime::untyped::Untyped;
use kube::Resource;
use objects::Key;

/// A change in a member that concerns a Work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Content of ours changed, or what the Work waited for is known.
    Now(Key),
    /// Only the status changed: many such changes may be taken together.
    Paced(Key),
}

/// Returns the Works in `namespace` that the change concerns: those that the object names and named.
pub(crate) fn woken(change: &Transition<Untyped>, namespace: &str) -> Vec<Wake> {
    let named = |object: &Arc<Untyped>| {
        let annotations = object.meta().annotations.as_ref()?;
        let own = annotations.get(WORK_NAMESPACE)? == namespace;
        own.then(|| annotations.get(WORK_NAME).cloned()).flatten()
    };
    let versions = change.old.iter().chain(&change.new);
    let works: BTreeSet<_> = versions.filter_map(named).collect();
    let content = |object: &Arc<Untyped>| Settled::of(&object.value());
    let same = match (&change.old, &change.new) {
        (Some(old), Some(new)) => content(old) == content(new),
        _ => false,
    };
    let keys = works.into_iter().map(|name| Key::new(namespace, name));
    keys.map(|key| {
        if same {
            Wake::Paced(key)
        } else {
            Wake::Now(key)
        }
    })
    .collect()
}
