//! The writes of Works, those of bindings and those of Namespaces.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_api::Work;
use karmada_runtime::error::BoxError;
use karmada_runtime::write::{self, WriteError, WriteErrorKind, WriteMode};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client};
use objects::Key;
use propagation_rules::works::WorkChange;
use tokio::time::Instant;

use crate::identity::NAME;
use crate::rivals::{Part, Rivals};
use crate::works::SharedWorks;

/// Writes Works.
#[derive(Clone)]
pub(crate) struct WorkWriter {
    client: Client,
    writes: WriteMode,
    works: Arc<SharedWorks>,
    rivals: Arc<Rivals>,
}

/// What has become of the write of a Work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkWrite {
    Written,
    /// There was nothing to write, or the watch is about to show another Work than that which was read.
    Unwritten,
    /// Another client undoes it: it may be tried again then.
    Paused(Instant),
}

impl WorkWriter {
    pub(crate) fn new(
        client: &Client,
        writes: &WriteMode,
        works: &Arc<SharedWorks>,
        rivals: &Arc<Rivals>,
    ) -> Self {
        Self {
            client: client.clone(),
            writes: writes.clone(),
            works: Arc::clone(works),
            rivals: Arc::clone(rivals),
        }
    }

    /// Changes the Work `key` of `owner`.
    pub(crate) async fn change(
        &self,
        key: &Key,
        change: WorkChange,
        owner: &ObjectReference,
    ) -> Result<WorkWrite, BoxError> {
        let Some(wanted) = change.wanted() else {
            return Ok(WorkWrite::Unwritten);
        };
        // Whatever was decided on a version that is replaced could only conflict.
        if let Some(replaced) = &wanted.replaced
            && self.works.is_patched(key, replaced)
        {
            return Ok(WorkWrite::Unwritten);
        }
        let works: Api<Work> = Api::namespaced(self.client.clone(), &key.namespace);
        let part = Part::Work(key.clone());
        let concerned = || vec![owner.clone(), reference(key)];
        let attempt = match self.rivals.begin(part, &wanted, &works, concerned).await {
            Ok(attempt) => attempt,
            Err(until) => return Ok(WorkWrite::Paused(until)),
        };
        let result = match change {
            WorkChange::Unchanged | WorkChange::Deleting => return Ok(WorkWrite::Unwritten),
            WorkChange::Create(body) => {
                let parameters = PostParams {
                    field_manager: Some(NAME.to_owned()),
                    ..PostParams::default()
                };
                let call = write::create(&works, &parameters, &body);
                self.writes.write("work", call).await
            }
            WorkChange::Patch { patch, .. } => {
                let patch: Patch<()> = patch.into();
                let parameters = PatchParams::apply(NAME);
                let call = write::patch(&works, &key.name, &parameters, &patch);
                self.writes.write("work", call).await
            }
        };
        match result {
            Ok(None) => Ok(WorkWrite::Unwritten),
            Ok(Some(stored)) => {
                let version = stored.version();
                // What the server stores as it was before has no echo.
                if let (Some(replaced), Some(version)) = (wanted.replaced, &version)
                    && replaced != *version
                {
                    self.works.note_patched(key, replaced);
                }
                self.rivals.stored(attempt, version);
                Ok(WorkWrite::Written)
            }
            // Made before: the watch is about to show it, and wakes its owner again.
            Err(WriteError::Api(kube::Error::Api(status))) if status.reason == "AlreadyExists" => {
                Ok(WorkWrite::Unwritten)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a Work, if it is that with the uid.
    pub(crate) async fn delete(
        &self,
        key: &Key,
        uid: Option<String>,
    ) -> Result<WorkWrite, BoxError> {
        let works: Api<Work> = Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = DeleteParams {
            preconditions: uid.map(|uid| Preconditions {
                uid: Some(uid),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        // One that is made again afterwards is the first of its kind.
        self.rivals.forget(&Part::Work(key.clone()));
        let call = works.delete(&key.name, &parameters);
        match self.writes.write("work", call).await {
            Ok(Some(_)) => Ok(WorkWrite::Written),
            Ok(None) => Ok(WorkWrite::Unwritten),
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(WorkWrite::Unwritten),
            Err(error) => Err(error.into()),
        }
    }
}

fn reference(work: &Key) -> ObjectReference {
    ObjectReference {
        api_version: Some(Work::API_VERSION.to_owned()),
        kind: Some(Work::KIND.to_owned()),
        namespace: Some(work.namespace.clone()),
        name: Some(work.name.clone()),
        ..ObjectReference::default()
    }
}
