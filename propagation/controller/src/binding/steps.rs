//! The steps of a binding's Works, and the Events about them.

use std::collections::BTreeMap;

use karmada_runtime::commit;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::write::{WriteError, WriteErrorKind};
use propagation_rules::works::{self, Step, Unwritten};
use serde_json::Value;
use tokio::time::Instant;

use super::known::Known;
use super::{BindingReconciler, reference, template_reference};
use crate::index::StoredBinding;
use crate::reason::Reason;

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

impl Outcome {
    /// Notes the Work `name` of a cluster that is left as it is, if that is a trouble.
    fn note_unwritten(&mut self, cluster: &str, name: &str, reason: &Unwritten) {
        let failure = match reason {
            Unwritten::Refused(error) => {
                let trouble = format!("{error} for cluster {cluster}");
                self.refused.get_or_insert(trouble);
                return;
            }
            Unwritten::Unrevised(error) => format!("cluster {cluster}: {error}"),
            // Tried again: nothing wakes this binding when the other lets go.
            Unwritten::Taken(other) => {
                format!("cluster {cluster}: work {name} is that of binding({other})")
            }
            _ => return,
        };
        self.error.get_or_insert_with(|| failure.clone().into());
        self.failed.get_or_insert(failure);
    }
}

impl BindingReconciler {
    /// Takes the steps, unless a policy that may pause them has changed since it was `known`.
    pub(super) async fn take_steps(
        &self,
        stored: &StoredBinding,
        known: &Known,
        steps: BTreeMap<String, Step>,
    ) -> Option<Outcome> {
        if steps.values().any(|step| matches!(step, Ok(Some(_)))) {
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
        Some(self.apply_all(stored, steps).await)
    }

    /// Takes the step of every cluster, whatever becomes of the others.
    async fn apply_all(&self, stored: &StoredBinding, steps: BTreeMap<String, Step>) -> Outcome {
        let name = works::work_name(stored.view());
        let owner = &reference(stored);
        let mut outcome = Outcome::default();
        let mut writes = Vec::new();
        for (cluster, step) in steps {
            match step {
                Ok(Some(write)) => writes.push(async move {
                    let is_overridden = works::is_overridden(&write);
                    let result = self.writer.write(write, owner).await;
                    (cluster, is_overridden, result)
                }),
                Ok(None) => {}
                Err(reason) => outcome.note_unwritten(&cluster, &name, &reason),
            }
        }
        for (cluster, is_overridden, result) in futures::future::join_all(writes).await {
            match result {
                Ok(commit::Outcome::Contended(until)) => {
                    outcome.paused = outcome.paused.into_iter().chain([until]).min();
                }
                Ok(one) if one.is_stored() => {
                    outcome.written = true;
                    if is_overridden {
                        outcome.overridden.push(cluster);
                    }
                }
                Ok(_) => {}
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
