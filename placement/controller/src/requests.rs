//! The API of the hub: its reads, and the committer of its writes.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::error::Chain;
use karmada_runtime::expectations::Subject;
use karmada_runtime::scope::objects_in;
use karmada_runtime::write::{WriteError, WriteErrorKind};
use kube::core::DynamicResourceScope;
use kube::{Api, Client, Resource};
use objects::write::Write;
use objects::{Key, Scope};
use tokio::time::Instant;

/// The API of the hub.
#[derive(Clone)]
pub(crate) struct HubApi {
    client: Client,
    pub(crate) committer: Committer,
}

/// Whether snapshots were written as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    /// Another one is there, which the watch is about to show.
    Overtaken,
}

impl HubApi {
    /// Returns the API of the hub behind `client`, to which `committer` writes.
    pub(crate) fn new(client: Client, committer: Committer) -> Self {
        Self { client, committer }
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

    /// Returns the time until which nothing is decided about a key, for the writes in this topic.
    pub(crate) fn held_until(&self, topic: &'static str, key: &Key) -> Option<Instant> {
        self.committer.held_until([Subject::new(topic, key)])
    }

    /// Writes snapshots in their order: those after one that was overtaken were decided on less than there is.
    pub(crate) async fn write_snapshots(
        &self,
        writes: &[Write],
        subject: &Subject,
    ) -> Result<Progress, WriteError> {
        for write in writes {
            if let Outcome::Exists(_) = self.committer.write(write, Some(subject)).await? {
                return Ok(Progress::Overtaken);
            }
        }
        Ok(Progress::Done)
    }
}

/// Returns the API's reason where it rejects the content of a write: nothing becomes of it until somebody acts.
pub(crate) fn rejection(error: &WriteError) -> Option<String> {
    match error.kind() {
        WriteErrorKind::Invalid => Some(Chain(error).to_string()),
        // A webhook that must answer and does not.
        _ => error.refusal().map(ToOwned::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn failed(code: u16, message: &str) -> WriteError {
        let status = Status::failure(message, "Reason").with_code(code);
        WriteError::Api(kube::Error::Api(status.boxed()))
    }

    /// A rejection by the API is told, also for a webhook that must answer and does not; one that a retry may overcome is not.
    #[test]
    fn rejections_are_told() {
        let denied = rejection(&failed(403, "policy 'p' denied request")).unwrap();
        assert!(denied.contains("policy 'p' denied request"), "{denied}");
        let silent = "Internal error occurred: failed calling webhook \"w\"";
        let told = rejection(&failed(500, &format!("{silent}: EOF")));
        assert_eq!(told.as_deref(), Some(silent));
        assert_eq!(rejection(&failed(503, "away")), None);
        assert_eq!(rejection(&failed(409, "newer")), None);
    }
}
