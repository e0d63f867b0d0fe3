//! The writes about a Work beside those of its objects: on the hub to the Work, in the member to its `AppliedWork`.

use fleet_api::names::WORK_FINALIZER;
use fleet_api::work::{AppliedResource, WorkResourceIdentifier, WorkStatus};
use fleet_api::{AppliedWork, Work};
use jiff::Timestamp;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Subject;
use karmada_runtime::write::WriteError;
use kube::runtime::events::Event;
use kube::{Api, Client, Resource};
use objects::Metadata;
use objects::patch::merge_between;
use objects::write::{Guard, ObjectRef, Write};
use placement_rules::manifests::owner_status;
use serde_json::json;

use crate::events::failure;
use crate::index::WORKS;

/// Writes Works and `AppliedWork`s.
pub(crate) struct Reporter {
    pub(crate) hub: Client,
    pub(crate) member: Client,
    pub(crate) of_hub: Committer,
    pub(crate) of_member: Committer,
    /// Absent if nothing is written.
    pub(crate) events: Option<EventRecorder>,
    pub(crate) clock: fn() -> Timestamp,
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
        let object = ObjectRef::of(work, &());
        let Some(write) = Write::status_between("work_status", object, &before, &after) else {
            return Ok(());
        };
        self.write(work, &write).await?;
        self.record(owner, failure(&before, &after));
        work.status = Some(after);
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
        let of = &work.metadata;
        let works: Api<Work> = Api::namespaced(self.hub.clone(), of.namespace());
        let found = works.get_metadata_opt(of.name()).await?;
        let found = found.map(|found| found.metadata);
        Ok(found.is_some_and(|found| found.uid == of.uid && !found.is_deleting()))
    }

    /// Adds our finalizer to a Work. `work` is then as it is stored.
    pub(crate) async fn add_finalizer(&self, work: &mut Work) -> Result<(), BoxError> {
        let all = work.metadata.with_finalizers(&[WORK_FINALIZER]);
        self.set_finalizers(work, all).await
    }

    /// Removes our finalizer from a Work. `work` is then as it is stored.
    pub(crate) async fn remove_finalizer(&self, work: &mut Work) -> Result<(), BoxError> {
        let rest = work.metadata.without_finalizers(&[WORK_FINALIZER]);
        self.set_finalizers(work, rest).await
    }

    async fn set_finalizers(
        &self,
        work: &mut Work,
        finalizers: Option<Vec<String>>,
    ) -> Result<(), BoxError> {
        let Some(finalizers) = finalizers else {
            return Ok(());
        };
        let object = ObjectRef::of(work, &());
        let write = Write::finalizers("work_finalizer", object, &finalizers);
        self.write(work, &write).await?;
        work.metadata.finalizers = Some(finalizers);
        Ok(())
    }

    /// Writes to a Work, which has the version then that this has left.
    async fn write(&self, work: &mut Work, write: &Write) -> Result<(), WriteError> {
        let subject = Subject::new(WORKS, &work.metadata.key());
        let outcome = self.of_hub.write(write, Some(&subject)).await?;
        if let Outcome::Stored(stored) = outcome.if_present()? {
            work.metadata.resource_version = stored.version;
        }
        Ok(())
    }

    /// Returns the `AppliedWork` that is stored under a name.
    pub(crate) async fn owner(&self, name: &str) -> Result<Option<AppliedWork>, BoxError> {
        let owners: Api<AppliedWork> = Api::all(self.member.clone());
        Ok(owners.get_opt(name).await?)
    }

    /// Creates an `AppliedWork`, and returns the one that there is then; as it is given if writes are only counted.
    pub(crate) async fn create_owner(
        &self,
        mut owner: AppliedWork,
    ) -> Result<AppliedWork, BoxError> {
        let write = Write::create("appliedwork", &owner, &());
        match self.of_member.write(&write, None).await? {
            Outcome::Stored(stored) => {
                owner.metadata.uid = stored.uid;
                owner.metadata.resource_version = stored.version;
            }
            Outcome::Exists(error) => {
                let existing = self.owner(owner.metadata.name()).await?;
                return existing.ok_or_else(|| error.into());
            }
            _ => {}
        }
        Ok(owner)
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
        let (object, body) = (ObjectRef::of(owner, &()), json!({ "status": patch }));
        let write = Write::merge("appliedwork_status", object, body).of_status();
        self.of_member.write(&write, None).await?.if_present()?;
        Ok(())
    }

    /// Deletes an `AppliedWork`, whose objects are gone.
    pub(crate) async fn delete_owner(&self, owner: &AppliedWork) -> Result<(), BoxError> {
        let deletion = Write::delete("appliedwork", ObjectRef::of(owner, &()));
        let deletion = deletion.guarded(Guard::Uid);
        self.of_member.write(&deletion, None).await?;
        Ok(())
    }
}
