//! A rollout that gets no further: the version of some cluster does not become available.

use fleet_api::Binding;
use fleet_api::conditions::{AVAILABLE, ROLLOUT_STARTED, ROLLOUT_STUCK, of_placement};
use jiff::{SignedDuration, Timestamp};
use objects::Scope;
use objects::condition::{Condition, FALSE};

use crate::condition::current_condition;
use crate::select::show;

/// The clusters that a message names.
const NAMED: usize = 3;

/// The clusters in which something is not available.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    /// The message about those in which it has not been for long.
    said: Vec<String>,
    /// The time from which the first of the others is one of them.
    pub(super) next: Option<Timestamp>,
}

impl Stuck {
    /// Looks for clusters that have not made it for `deadline`.
    pub(super) fn among<'a>(
        bindings: impl Iterator<Item = &'a Binding>,
        deadline: SignedDuration,
        now: Timestamp,
    ) -> Self {
        let mut stuck = Self::default();
        for binding in bindings {
            match unavailable_since(binding).map(|since| since.saturating_add(deadline)) {
                Some(Ok(at)) if at <= now => stuck.said.push(said(binding)),
                Some(Ok(at)) => stuck.next = Some(stuck.next.map_or(at, |next| next.min(at))),
                _ => {}
            }
        }
        stuck
    }

    /// Gives the condition of a placement of a scope that waits for them the reason that nothing will come of waiting.
    pub(super) fn mark(&self, scope: Scope, conditions: &mut [Condition]) {
        let waits = [ROLLOUT_STARTED, AVAILABLE].map(|step| of_placement(scope, step));
        let last = conditions.last_mut();
        let last = last.filter(|one| one.status == FALSE && waits.contains(&one.type_));
        let (Some(last), false) = (last, self.said.is_empty()) else {
            return;
        };
        let (named, others) = self.said.split_at(NAMED.min(self.said.len()));
        let more = match others.len() {
            0 => String::new(),
            others => format!("; and {others} more"),
        };
        ROLLOUT_STUCK.clone_into(&mut last.reason);
        last.message = format!("{}{more}", named.join("; "));
    }
}

fn unavailable_since(binding: &Binding) -> Option<Timestamp> {
    let available = current_condition(binding, AVAILABLE)?;
    let since = available.last_transition_time.as_ref()?;
    (available.status == FALSE).then_some(since.0)
}

/// Returns the cluster, and the first object that is not available there.
fn said(binding: &Binding) -> String {
    let cluster = &binding.spec.target_cluster;
    let failed = binding
        .status
        .iter()
        .flat_map(|status| &status.failed_placements);
    let mut failed = failed.filter(|failed| failed.condition.type_ == AVAILABLE);
    let Some(failed) = failed.next() else {
        return format!("{cluster} does not say which object is not available");
    };
    let object = show(&failed.identifier);
    format!(
        "{object} is not available in {cluster}: {}",
        failed.condition.message
    )
}
