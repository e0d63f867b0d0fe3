//! The writes to the hub.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::scope::objects_in;
use karmada_runtime::write::{self, WriteError, WriteErrorKind, WriteMode};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::DynamicResourceScope;
use kube::{Api, Client, Resource};
use objects::Scope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// The number of writes for one placement or binding that are under way at once.
const CONCURRENCY: usize = 8;
/// The number of writes that are under way at once. With more a busy API server writes no faster, but its watches fall
/// seconds behind, and what is decided by them conflicts.
const AT_ONCE: usize = 16;

/// Performs writes, some at once, and returns the first error once all have ended: what fails for one cluster must not
/// keep the others waiting.
pub(crate) async fn perform<'w, T, F>(
    writes: &'w [T],
    take: impl Fn(&'w T) -> F,
) -> Result<(), BoxError>
where
    F: Future<Output = Result<(), BoxError>>,
{
    let mut all = Ok(());
    for some in writes.chunks(CONCURRENCY) {
        let taken = futures::future::join_all(some.iter().map(&take)).await;
        all = taken.into_iter().fold(all, Result::and);
    }
    all
}

/// The API of the hub, and whether it is written to.
#[derive(Clone)]
pub(crate) struct HubApi {
    client: Client,
    writes: WriteMode,
    under_way: Arc<Semaphore>,
}

/// The version that a write has left; `None` if it was only counted.
pub(crate) type Written = Result<Option<String>, WriteError>;

impl HubApi {
    /// Returns the API of the hub behind `client`.
    pub(crate) fn new(client: Client, writes: WriteMode) -> Self {
        Self {
            client,
            writes,
            under_way: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Returns the objects of a cluster-scoped kind.
    pub(crate) fn all<K: Resource<DynamicType = (), Scope = ClusterResourceScope>>(
        &self,
    ) -> Api<K> {
        Api::all(self.client.clone())
    }

    /// Returns the objects of the kind which is that of a namespace, in that; those that are cluster-scoped if it is empty.
    pub(crate) fn of_scope<K: Resource<DynamicType = Scope, Scope = DynamicResourceScope>>(
        &self,
        namespace: &str,
    ) -> Api<K> {
        objects_in(self.client.clone(), namespace)
    }

    /// Returns the objects of a kind in a namespace.
    pub(crate) fn within<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(
        &self,
        namespace: &str,
    ) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates an object. `target` names what is written in the metrics.
    pub(crate) async fn create<K: Resource + Clone + Serialize>(
        &self,
        target: &'static str,
        objects: &Api<K>,
        object: &K,
    ) -> Written {
        let body = json!(object);
        let parameters = PostParams::default();
        let call = write::create(objects, &parameters, &body);
        self.version(target, call).await
    }

    /// Patches an object with a merge patch.
    pub(crate) async fn patch<K: Resource + Clone>(
        &self,
        target: &'static str,
        objects: &Api<K>,
        name: &str,
        patch: &Value,
    ) -> Written {
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let call = write::patch(objects, name, &parameters, &patch);
        self.version(target, call).await
    }

    /// Patches the status of an object with a merge patch.
    pub(crate) async fn patch_status<K: Resource + Clone>(
        &self,
        target: &'static str,
        objects: &Api<K>,
        name: &str,
        patch: &Value,
    ) -> Written {
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let call = write::patch_status(objects, name, &parameters, &patch);
        self.version(target, call).await
    }

    /// Deletes an object that is as `preconditions` say. One that is gone already is no error, and there is no version
    /// to tell of.
    pub(crate) async fn delete<K: Resource + Clone + DeserializeOwned + Debug>(
        &self,
        target: &'static str,
        objects: &Api<K>,
        name: &str,
        preconditions: Option<Preconditions>,
    ) -> Written {
        let parameters = DeleteParams {
            preconditions,
            ..DeleteParams::background()
        };
        let call = objects.delete(name, &parameters);
        match self.write(target, call).await {
            Ok(deleted) => Ok(deleted.map(|_| String::new())),
            Err(error) if error.kind() == WriteErrorKind::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn write<T>(
        &self,
        target: &'static str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<Option<T>, WriteError> {
        let _under_way = self.under_way.acquire().await;
        self.writes.write(target, call).await
    }

    async fn version(
        &self,
        target: &'static str,
        call: impl Future<Output = kube::Result<write::Stored>>,
    ) -> Written {
        let stored = self.write(target, call).await?;
        Ok(stored.and_then(write::Stored::version))
    }
}

/// Returns `true` if what was to be created exists: the watch is about to show it.
pub(crate) fn exists(error: &WriteError) -> bool {
    matches!(error, WriteError::Api(kube::Error::Api(status)) if status.reason == "AlreadyExists")
}

/// Returns what the API says where it rejects the content of a write: nothing becomes of it until somebody acts.
pub(crate) fn rejection(error: &BoxError) -> Option<String> {
    let error = error.downcast_ref::<WriteError>()?;
    match error.kind() {
        WriteErrorKind::Invalid => Some(Chain(error).to_string()),
        // A webhook that must answer and does not.
        _ => error.refusal().map(ToOwned::to_owned),
    }
}

/// Returns the result of a write to an object that may be gone by now: the watch is about to show that.
pub(crate) fn unless_gone(written: Written) -> Written {
    match written {
        Err(error) if error.kind() == WriteErrorKind::Missing => Ok(None),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    /// What the API rejects is told, also for a webhook that must answer and does not; what a retry may overcome is not.
    #[test]
    fn rejections_are_told() {
        let failed = |code, message: &str| -> BoxError {
            let status = Status::failure(message, "Reason").with_code(code);
            WriteError::Api(kube::Error::Api(status.boxed())).into()
        };
        let denied = rejection(&failed(403, "policy 'p' denied request")).unwrap();
        assert!(denied.contains("policy 'p' denied request"), "{denied}");
        let silent = "Internal error occurred: failed calling webhook \"w\"";
        let told = rejection(&failed(500, &format!("{silent}: EOF")));
        assert_eq!(told.as_deref(), Some(silent));
        assert_eq!(rejection(&failed(503, "away")), None);
        assert_eq!(rejection(&failed(409, "newer")), None);
    }
}
