//! Keeps the copy of a placement's status in the namespace that it places.

use fleet_api::Placement;
use fleet_api::placement::PlacementStatus;
use jiff::Timestamp;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::expectations::Subject;
use karmada_runtime::write::{WriteError, WriteErrorKind};
use objects::{Key, Metadata};
use placement_rules::accessible::readable_in;
use placement_rules::status::{copy, with_copied};

use super::StatusReconciler;
use crate::topics::STATUSES;

impl StatusReconciler {
    /// Copies the status of a placement, or the next one, if those are to read it who may read in its namespace only. Returns
    /// the status that it is to have then, if that is news, and the error if it is to be tried again.
    pub(super) async fn copied(
        &self,
        placement: &Placement,
        status: Option<PlacementStatus>,
        now: Timestamp,
    ) -> (Option<PlacementStatus>, Result<(), BoxError>) {
        let before = placement.status.clone().unwrap_or_default();
        let said = status.clone().unwrap_or_else(|| before.clone());
        let Some(namespace) = readable_in(placement, &said) else {
            return (status, Ok(()));
        };
        // A placement that nobody has looked at yet says nothing.
        if said.conditions.is_empty() {
            return (None, Ok(()));
        }
        let key = Key::new(namespace, placement.metadata.name());
        let written = self.write(placement, &key, &said, now).await;
        let problem = written.as_ref().err().map(|error| Chain(error).to_string());
        let copied = problem.as_deref().map_or(Ok(()), Err);
        let after = with_copied(placement, said, copied, now);
        let result = match written {
            // The namespace is not there: once it is, something else is selected.
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(()),
            written => written.map_err(BoxError::from),
        };
        ((after != before).then_some(after), result)
    }

    async fn write(
        &self,
        placement: &Placement,
        key: &Key,
        said: &PlacementStatus,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let existing = self
            .index
            .read(|index| index.status_copies.get(key).cloned());
        let Some(write) = copy(placement, said, existing.as_deref(), now) else {
            return Ok(());
        };
        let subject = Subject::new(STATUSES, &placement.metadata.key());
        let outcome = self.hub.committer.write(&write, Some(&subject)).await?;
        outcome.if_present().map(drop)
    }
}
