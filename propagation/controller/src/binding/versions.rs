//! Bindings of which nobody says in which version their templates are wanted. Those of a preliminary one are to follow the
//! version that the API prefers before theirs is not served any more: the garbage collector finds no template in that.

use std::collections::BTreeMap;
use std::time::Duration;

use karmada_rules::binding_ref::BindingRef;
use karmada_rules::propagation::template::is_preliminary;
use karmada_runtime::error::Chain;
use kube::discovery;
use objects::GroupVersionKind;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{BindingReconciler, is_free};
use crate::index::template_of;

/// The time after which the API is asked again which version of a kind it prefers.
const ASKED_AGAIN: Duration = Duration::from_mins(10);

/// The kinds of which the API was asked which version it prefers, with the times.
pub(crate) type AskedKinds = Mutex<BTreeMap<GroupVersionKind, Instant>>;

impl BindingReconciler {
    /// Has the templates of a kind watched in the version that the API prefers, if it is up to us which one a binding is to
    /// follow.
    pub(super) async fn watch_preferred(&self, binding: BindingRef<'_>) {
        let kind = template_of(binding.spec).kind;
        if !is_free(binding) || !is_preliminary(&kind.version) {
            return;
        }
        let now = Instant::now();
        self.queue.add_at(binding.key(), now + ASKED_AGAIN);
        let last = self.asked.lock().get(&kind).copied();
        if last.is_some_and(|last| now < last + ASKED_AGAIN) {
            return;
        }
        self.asked.lock().insert(kind.clone(), now);
        match discovery::group(&self.client, &kind.group).await {
            Ok(group) => {
                if let Some((preferred, _)) = group.recommended_kind(&kind.kind) {
                    let kind = GroupVersionKind::new(&preferred.api_version, &preferred.kind);
                    self.index.watch_preferred(kind);
                }
            }
            Err(error) => {
                let error = Chain(&error).to_string();
                tracing::warn!(%kind, error, "Cannot ask which version is preferred, will retry");
            }
        }
    }
}
