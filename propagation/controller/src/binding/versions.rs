//! Bindings of which nobody says in which version their templates are wanted. Those of a preliminary one are to follow the
//! version that the API prefers before theirs is not served any more: the garbage collector finds no template in that.

use propagation_rules::binding_ref::BindingRef;
use propagation_rules::template::is_preliminary;
use tokio::time::Instant;

use super::BindingReconciler;
use super::wanted::is_free;
use crate::index::template_of;
use crate::preferred::ASKED_AGAIN;

impl BindingReconciler {
    /// Has the templates of a kind watched in the version that the API prefers, if it is up to us which one a binding is to
    /// follow.
    pub(super) async fn watch_preferred(&self, binding: BindingRef<'_>) {
        let kind = template_of(binding.spec).kind;
        if !is_free(binding) || !is_preliminary(&kind.version) {
            return;
        }
        self.queue
            .add_at(binding.key(), Instant::now() + ASKED_AGAIN);
        if let Some(preferred) = self.preferred.of(&kind).await {
            self.templates.watch_preferred(preferred);
        }
    }
}
