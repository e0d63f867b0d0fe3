//! The writes about a Work beside those of its objects: on the hub to the Work, in the member to its `AppliedWork`.

use fleet_api::names::WORK_FINALIZER;
use fleet_api::work::{AppliedResource, WorkResourceIdentifier, WorkStatus};
use fleet_api::{AppliedWork, Work};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::write::{self, Stored, WriteErrorKind, WriteMode};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::events::Event;
use kube::{Api, Client, Resource};
use objects::Metadata;
use objects::patch::{guarded, merge_between};
use placement_rules::manifests::owner_status;
use serde_json::json;

use crate::events::failure;
use crate::identity::NAME;
use crate::written::WrittenWorks;

/// Writes Works and `AppliedWork`s.
pub(crate) struct Reporter {
    pub(crate) hub: Client,
    pub(crate) member: Client,
    pub(crate) writes: WriteMode,
    /// Absent if nothing is written.
    pub(crate) events: Option<EventRecorder>,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) written: WrittenWorks,
}

impl Reporter {
    /// Writes the status of a Work, if it is news. `work` is then as it is stored.
    pub(crate) async fn report(
        &self,
        owner: &AppliedWork,
        work: &mut Work,
        after: Option<WorkStatus>,
    ) -> Result<(), BoxError> {
        let Some(after) = after else {
            return Ok(());
        };
        let before = work.status.clone().unwrap_or_default();
        let Some(patch) = merge_between(&json!(before), &json!(after)) else {
            return Ok(());
        };
        let version = Some(work.metadata.resource_version());
        let patch = Patch::Merge(guarded(version, json!({ "status": patch })));
        let (works, parameters) = (self.works(work), PatchParams::apply(NAME));
        let call = write::patch_status(&works, work.metadata.name(), &parameters, &patch);
        let stored = self.writes.write("work_status", call).await?;
        self.record(owner, failure(&before, &after));
        work.status = Some(after);
        self.note(work, stored);
        Ok(())
    }

    /// Records an Event about a Work, in the member: on the hub, an agent has no right to do so.
    pub(crate) fn record(&self, owner: &AppliedWork, event: Option<Event>) {
        if let (Some(events), Some(event)) = (&self.events, event) {
            events.record(owner.object_ref(&()), event);
        }
    }

    /// Returns `true` if a Work is on the hub now, and stays there.
    pub(crate) async fn exists(&self, work: &Work) -> Result<bool, BoxError> {
        let (works, of) = (self.works(work), &work.metadata);
        let found = works.get_metadata_opt(of.name()).await?;
        let is_same = |found: &ObjectMeta| found.uid == of.uid && !found.is_deleting();
        Ok(found.is_some_and(|found| is_same(&found.metadata)))
    }

    /// Adds our finalizer to a Work. `work` is then as it is stored.
    pub(crate) async fn hold(&self, work: &mut Work) -> Result<(), BoxError> {
        let mut finalizers = work.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(WORK_FINALIZER.to_owned());
        self.set_finalizers(work, finalizers).await
    }

    /// Takes our finalizer off a Work.
    pub(crate) async fn let_go(&self, work: &mut Work) -> Result<(), BoxError> {
        let mut finalizers = work.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|one| one != WORK_FINALIZER);
        self.set_finalizers(work, finalizers).await
    }

    async fn set_finalizers(
        &self,
        work: &mut Work,
        finalizers: Vec<String>,
    ) -> Result<(), BoxError> {
        let version = Some(work.metadata.resource_version());
        let body = json!({ "metadata": { "finalizers": finalizers } });
        let patch = Patch::Merge(guarded(version, body));
        let (works, parameters) = (self.works(work), PatchParams::apply(NAME));
        let call = write::patch(&works, work.metadata.name(), &parameters, &patch);
        let stored = self.writes.write("work_finalizer", call).await?;
        work.metadata.finalizers = Some(finalizers);
        self.note(work, stored);
        Ok(())
    }

    /// Notes the version that a write has left.
    fn note(&self, work: &mut Work, stored: Option<Stored>) {
        if let Some(version) = stored.and_then(Stored::version) {
            let replaced = work.metadata.resource_version.replace(version);
            self.written.note(&replaced.unwrap_or_default(), work);
        }
    }

    fn works(&self, work: &Work) -> Api<Work> {
        Api::namespaced(self.hub.clone(), work.metadata.namespace())
    }

    /// Returns the `AppliedWork` that is stored under a name.
    pub(crate) async fn owner(&self, name: &str) -> Result<Option<AppliedWork>, BoxError> {
        Ok(self.owners().get_opt(name).await?)
    }

    /// Creates an `AppliedWork`, and returns the one that there is then; as it is given if writes are only counted.
    pub(crate) async fn create_owner(&self, owner: AppliedWork) -> Result<AppliedWork, BoxError> {
        let (owners, parameters) = (self.owners(), PostParams::default());
        let call = owners.create(&parameters, &owner);
        match self.writes.write("appliedwork", call).await {
            Ok(created) => Ok(created.unwrap_or(owner)),
            Err(error) if error.kind() == WriteErrorKind::Conflict => {
                let existing = self.owner(owner.metadata.name()).await?;
                existing.ok_or_else(|| error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Says in the status of an `AppliedWork` which objects it has.
    pub(crate) async fn report_owner(
        &self,
        owner: &AppliedWork,
        applied: Vec<AppliedResource>,
        left: &[WorkResourceIdentifier],
    ) -> Result<(), BoxError> {
        let Some(after) = owner_status(owner, applied, left) else {
            return Ok(());
        };
        let before = owner.status.clone().unwrap_or_default();
        // The last object leaves no list, which a merge patch must name to take it away.
        let patch = merge_between(&json!(before), &json!(after));
        let patch = Patch::Merge(json!({ "status": patch }));
        let (owners, parameters) = (self.owners(), PatchParams::apply(NAME));
        let call = write::patch_status(&owners, owner.metadata.name(), &parameters, &patch);
        self.writes.write("appliedwork_status", call).await?;
        Ok(())
    }

    /// Deletes an `AppliedWork`, whose objects are gone.
    pub(crate) async fn delete_owner(&self, owner: &AppliedWork) -> Result<(), BoxError> {
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: owner.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let owners = self.owners();
        let call = owners.delete(owner.metadata.name(), &parameters);
        match self.writes.write("appliedwork", call).await {
            Err(error) if error.kind() != WriteErrorKind::Missing => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn owners(&self) -> Api<AppliedWork> {
        Api::all(self.member.clone())
    }
}
