//! The steps of a binding's Works, and the Events about them.

use std::collections::BTreeMap;

use karmada_api::{Work, execution_namespace};
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::write::{WriteError, WriteErrorKind};
use objects::Key;
use propagation_rules::works::{self, WorkChange, WorkStep};
use serde_json::Value;
use tokio::time::Instant;

use super::known::Known;
use super::{BindingReconciler, reference, template_reference};
use crate::index::StoredBinding;
use crate::reason::Reason;
use crate::work_writer::WorkWrite;

/// The outcome of the steps of a binding's Works.
#[derive(Default)]
pub(super) struct Outcome {
    /// True if a Work was written or deleted.
    written: bool,
    /// The clusters whose Work was written with other override rules than before.
    overridden: Vec<String>,
    /// The override policy that cannot be applied.
    refused: Option<String>,
    /// The first cluster whose Work could not be written, and the reason.
    failed: Option<String>,
    /// The end of the first pause, if another client undoes the writes of a Work.
    pub(super) paused: Option<Instant>,
    pub(super) error: Option<BoxError>,
}

impl BindingReconciler {
    /// Takes the steps, unless a policy that may pause them has changed since it was `known`.
    pub(super) async fn take_steps(
        &self,
        stored: &StoredBinding,
        known: &Known,
        works: &[Work],
        steps: BTreeMap<String, WorkStep>,
    ) -> Option<Outcome> {
        if steps.values().any(is_write) {
            match known.is_latest(&self.policies).await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    return Some(Outcome {
                        failed: Some(format!("cannot read its policy: {}", Chain(&error))),
                        error: Some(error.into()),
                        ..Outcome::default()
                    });
                }
            }
        }
        Some(self.apply_all(stored, works, steps).await)
    }

    /// Takes the step of every cluster, whatever becomes of the others.
    async fn apply_all(
        &self,
        stored: &StoredBinding,
        works: &[Work],
        steps: BTreeMap<String, WorkStep>,
    ) -> Outcome {
        let works: BTreeMap<_, _> = works.iter().map(|work| (Key::of(work), work)).collect();
        let name = works::work_name(stored.view());
        let owner = &reference(stored);
        let mut outcome = Outcome::default();
        let writes = steps.into_iter().map(|(cluster, step)| {
            let is_overridden = match &step {
                WorkStep::Apply(change) => change.is_overridden(),
                WorkStep::Refused(error) => {
                    let trouble = format!("{error} for cluster {cluster}");
                    outcome.refused.get_or_insert(trouble);
                    false
                }
                WorkStep::Unrevised(error) => {
                    let unrevised = format!("cluster {cluster}: {error}");
                    outcome
                        .error
                        .get_or_insert_with(|| unrevised.clone().into());
                    outcome.failed.get_or_insert(unrevised);
                    false
                }
                WorkStep::Taken(other) => {
                    let taken =
                        format!("cluster {cluster}: work {name} is that of binding({other})");
                    // Tried again: nothing wakes this binding when the other lets go.
                    outcome.error.get_or_insert_with(|| taken.clone().into());
                    outcome.failed.get_or_insert(taken);
                    false
                }
                _ => false,
            };
            let key = Key::new(execution_namespace(&cluster), &name);
            let current = works.get(&key).copied();
            async move {
                let result = self.apply(&key, current, step, owner).await;
                (cluster, is_overridden, result)
            }
        });
        let writes: Vec<_> = writes.collect();
        for (cluster, is_overridden, result) in futures::future::join_all(writes).await {
            match result {
                Ok(WorkWrite::Written) => {
                    outcome.written = true;
                    if is_overridden {
                        outcome.overridden.push(cluster);
                    }
                }
                Ok(WorkWrite::Paused(until)) => {
                    outcome.paused = outcome.paused.into_iter().chain([until]).min();
                }
                Ok(WorkWrite::Unwritten) => {}
                Err(error) => {
                    if outcome.failed.is_none() && is_trouble(&error) {
                        outcome.failed = Some(format!("cluster {cluster}: {error}"));
                    }
                    outcome.error.get_or_insert(error);
                }
            }
        }
        outcome
    }

    /// Records the outcome for the Works on the binding and its template.
    pub(super) fn record(&self, stored: &StoredBinding, template: &Value, outcome: &Outcome) {
        if outcome.error.is_some() && outcome.failed.is_none() {
            return;
        }
        let key = stored.view().key();
        let (of_binding, of_template) = (reference(stored), template_reference(template));
        let failed = outcome.failed.as_ref();
        let failed = failed.map(|failed| format!("Sync work of binding({key}) failed: {failed}"));
        match (&failed, &outcome.refused) {
            (Some(note), _) => {
                let reason = Reason::SyncWorkFailed;
                self.events.trouble(&of_template, reason, note.clone());
            }
            (None, Some(note)) => {
                let reason = Reason::ApplyOverridePolicyFailed;
                self.events.trouble(&of_template, reason, note.clone());
            }
            (None, None) => self.events.settled(&of_template),
        }
        match failed {
            Some(note) => {
                return self
                    .events
                    .trouble(&of_binding, Reason::SyncWorkFailed, note);
            }
            None => self.events.settled(&of_binding),
        }
        for cluster in &outcome.overridden {
            let note = format!("Apply override policies for cluster({cluster}) successfully.");
            self.events.success(
                of_template.clone(),
                Reason::ApplyOverridePolicySucceed,
                note,
            );
        }
        if outcome.written {
            let note = format!("Sync work of binding({key}) successful.");
            for reference in [of_binding, of_template] {
                self.events
                    .success(reference, Reason::SyncWorkSucceed, note.clone());
            }
        }
    }
}

/// Returns `true` if a Work changes with the step.
fn is_write(step: &WorkStep) -> bool {
    match step {
        WorkStep::Apply(change) => *change != WorkChange::Unchanged,
        WorkStep::Delete { .. } => true,
        _ => false,
    }
}

/// Returns `true` for an error that users should know of: not if another writer, or another leader, was
/// faster.
pub(crate) fn is_trouble(error: &BoxError) -> bool {
    error
        .downcast_ref::<WriteError>()
        .is_none_or(|error| match error {
            WriteError::NotLeading => false,
            error => error.kind() != WriteErrorKind::Conflict,
        })
}
