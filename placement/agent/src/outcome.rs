//! The outcome of a sync of a Work, as its status tells it.

use apply::{MemberError, Synced};
use fleet_api::work::AppliedResource;
use fleet_api::{AppliedWork, Work};
use karmada_runtime::error::Chain;
use objects::comparison::Compared;
use placement_rules::manifests::{Failure, Prepared, is_same_object};
use placement_rules::strategy::{Strategy, WhenToTakeOver};
use placement_rules::work_status::ManifestResult;
use serde_json::Value;

/// The outcome of a sync of a Work.
pub(crate) struct Outcome<'a> {
    pub(crate) owner: &'a AppliedWork,
    pub(crate) prepared: &'a [Prepared],
    /// The results of those manifests that are ready, in their order.
    pub(crate) synced: &'a [Synced],
}

/// The report of a Job that has done its work, and need not be there.
static NO_DIFFERENCE: Compared = Compared {
    generation: None,
    is_owned: true,
    differences: Vec::new(),
};

impl Outcome<'_> {
    /// Returns the object of a manifest as the owner has it since earlier.
    pub(crate) fn known(&self, manifest: &Value) -> Option<&AppliedResource> {
        let status = self.owner.status.as_ref()?;
        let mut known = status.applied_resources.iter();
        known.find(|one| is_same_object(&one.identifier, manifest))
    }

    /// Returns `true` if a replica that has lost its lease knows nothing of it.
    pub(crate) fn is_unknown(&self) -> bool {
        let mut errors = self.synced.iter().filter_map(|one| one.error.as_ref());
        errors.any(|error| matches!(error, MemberError::NotLeading))
    }

    /// Returns the texts of the errors of those manifests that are ready, in their order.
    pub(crate) fn texts(&self) -> Vec<Option<String>> {
        let errors = self.synced.iter().map(|one| one.error.as_ref());
        errors
            .map(|error| error.map(|error| Chain(error).to_string()))
            .collect()
    }

    /// Returns the fate of each manifest of a Work, with these texts of errors.
    pub(crate) fn results<'r>(
        &'r self,
        work: &Work,
        texts: &'r [Option<String>],
    ) -> Vec<ManifestResult<'r>> {
        let is_reported = Strategy::of(work.spec.apply_strategy.as_ref()).only_reports();
        let mut ready = self.synced.iter().zip(texts);
        let manifests = self.prepared.iter().zip(&work.spec.workload.manifests);
        let results = manifests.map(|(prepared, manifest)| match prepared {
            Prepared::Failed(failure, reason) => ManifestResult::failed(*failure, reason, None),
            Prepared::Finished if is_reported => ManifestResult::Reported(&NO_DIFFERENCE),
            Prepared::Finished => ManifestResult::Unknown,
            Prepared::Ready(_) => match ready.next() {
                Some((one, text)) if is_reported => reported(one, text.as_deref()),
                Some((one, text)) => {
                    let refused = self.refusal(work, manifest);
                    applied(one, text.as_deref(), refused)
                }
                None => ManifestResult::Unknown,
            },
        });
        results.collect()
    }

    /// Returns the kind of a refusal of a manifest's object: to take it over, or to go on with it.
    fn refusal(&self, work: &Work, manifest: &Value) -> Failure {
        if self.known(manifest).is_some() {
            Failure::Apply
        } else {
            match Strategy::of(work.spec.apply_strategy.as_ref()).when_to_take_over {
                WhenToTakeOver::Never => Failure::NotTakenOver,
                WhenToTakeOver::Always | WhenToTakeOver::IfNoDiff => Failure::TakeOver,
            }
        }
    }
}

/// Returns the result of a manifest that was to be applied.
fn applied<'r>(one: &'r Synced, text: Option<&'r str>, refused: Failure) -> ManifestResult<'r> {
    match (&one.error, text, one.object.seen()) {
        // That is no news about the manifest.
        (Some(error), ..) if error.is_of_member() => ManifestResult::Unknown,
        (Some(MemberError::Differs { .. }), ..) => {
            let compared = one.compared.as_deref();
            compared.map_or(ManifestResult::Unknown, ManifestResult::Differs)
        }
        (Some(MemberError::Refused { .. }), Some(text), object) => {
            ManifestResult::failed(refused, text, object)
        }
        // Without the kind, nothing can be made of it there.
        (Some(MemberError::NotServed { .. }), Some(text), _) => {
            ManifestResult::failed(Failure::Undecodable, text, None)
        }
        (Some(_), Some(text), object) => ManifestResult::failed(Failure::Apply, text, object),
        (None, _, Some(object)) => ManifestResult::Applied {
            object,
            note: one.note.as_deref(),
            compared: one.compared.as_deref(),
        },
        _ => ManifestResult::Unknown,
    }
}

/// Returns the result of a manifest that was only compared.
fn reported<'r>(one: &'r Synced, text: Option<&'r str>) -> ManifestResult<'r> {
    match (&one.error, text) {
        (Some(error), _) if error.is_of_member() => ManifestResult::Unknown,
        (Some(_), Some(text)) => ManifestResult::failed(Failure::Report, text, one.object.seen()),
        _ => {
            let compared = one.compared.as_deref();
            compared.map_or(ManifestResult::Unknown, ManifestResult::Reported)
        }
    }
}
