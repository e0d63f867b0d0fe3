//! Requests about objects of any kind, as JSON.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use karmada_runtime::dynamic::ServedKind;
use kube::Client;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, Request};
use kube::discovery::{Scope, pinned_kind};
use objects::patch::JsonPatch;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::error::MemberError;

/// The longest duration of a read; a write is bounded by its writer.
const LIMIT: Duration = Duration::from_secs(10);
/// The manager of the fields that we write.
const MANAGER: &str = karmada_rules::execution::APPLY_MANAGER;

/// The API of one member.
pub(crate) struct Objects {
    client: Client,
    kinds: Mutex<BTreeMap<GroupVersionKind, ServedKind>>,
}

/// An object in a member: its name, and the path to those of its kind.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    name: String,
    path: String,
}

impl Objects {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            kinds: Mutex::default(),
        }
    }

    /// Returns the place of the object `key` of the kind `kind`.
    pub(crate) async fn place(
        &self,
        kind: &GroupVersionKind,
        key: &Key,
    ) -> Result<Place, MemberError> {
        let served = self.served(kind).await?;
        let namespace = match (served.namespaced, key.namespace.is_empty()) {
            (true, true) => return Err(MemberError::Manifest("namespace")),
            (true, false) => Some(key.namespace.as_str()),
            (false, _) => None,
        };
        Ok(Place {
            name: key.name.clone(),
            path: path(&served.resource, namespace),
        })
    }

    async fn served(&self, kind: &GroupVersionKind) -> Result<ServedKind, MemberError> {
        if let Some(served) = self.kinds.lock().get(kind) {
            return Ok(served.clone());
        }
        let pinned = kube::core::GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        let found = timeout(LIMIT, pinned_kind(&self.client, &pinned)).await;
        let (resource, capabilities) = match found.map_err(|_| MemberError::TimedOut)? {
            Ok(found) => found,
            Err(kube::Error::Discovery(_)) => return Err(MemberError::NotServed(kind.clone())),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                return Err(MemberError::NotServed(kind.clone()));
            }
            Err(error) => return Err(MemberError::Request(error)),
        };
        let served = ServedKind {
            resource,
            namespaced: capabilities.scope == Scope::Namespaced,
        };
        self.kinds.lock().insert(kind.clone(), served.clone());
        Ok(served)
    }

    /// Forgets how the API serves the kind: its definition may be gone, or another.
    pub(crate) fn forget(&self, kind: &GroupVersionKind) {
        self.kinds.lock().remove(kind);
    }

    /// Reads an object.
    pub(crate) async fn get(&self, place: &Place) -> Result<Option<Value>, MemberError> {
        let request = Request::new(&place.path).get(&place.name, &GetParams::default());
        let call = async { self.client.request::<Value>(build(request)?).await };
        match timeout(LIMIT, call)
            .await
            .map_err(|_| MemberError::TimedOut)?
        {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(MemberError::Request(error)),
        }
    }

    /// Applies an object; with `force`, fields of other managers become ours.
    pub(crate) async fn apply(
        &self,
        place: &Place,
        body: &Value,
        force: bool,
    ) -> kube::Result<Value> {
        let parameters = PatchParams {
            force,
            ..PatchParams::apply(MANAGER)
        };
        self.patch(place, &parameters, &Patch::Apply(body)).await
    }

    /// Patches an object by a JSON patch (RFC 6902).
    pub(crate) async fn json_patch(&self, place: &Place, patch: JsonPatch) -> kube::Result<Value> {
        let patch: Patch<()> = patch.into();
        self.patch(place, &managed(), &patch).await
    }

    /// Patches an object by a merge patch (RFC 7396).
    pub(crate) async fn merge(&self, place: &Place, patch: &Value) -> kube::Result<Value> {
        self.patch(place, &managed(), &Patch::Merge(patch)).await
    }

    async fn patch<P: Serialize + Debug>(
        &self,
        place: &Place,
        parameters: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<Value> {
        let request = Request::new(&place.path).patch(&place.name, parameters, patch);
        self.client.request(build(request)?).await
    }

    /// Creates an object.
    pub(crate) async fn create(&self, place: &Place, body: &Value) -> kube::Result<Value> {
        let request = Request::new(&place.path).create(&posted(), body.to_string().into_bytes());
        self.client.request(build(request)?).await
    }

    /// Replaces an object as a whole.
    pub(crate) async fn replace(&self, place: &Place, body: &Value) -> kube::Result<Value> {
        let body = body.to_string().into_bytes();
        let request = Request::new(&place.path).replace(&place.name, &posted(), body);
        self.client.request(build(request)?).await
    }

    /// Deletes an object, and what depends on it in the background, if it still has the uid.
    pub(crate) async fn delete(&self, place: &Place, uid: &str) -> kube::Result<()> {
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let request = Request::new(&place.path).delete(&place.name, &parameters);
        let deleted = self.client.request_status::<Value>(build(request)?).await?;
        drop(deleted);
        Ok(())
    }
}

fn path(resource: &ApiResource, namespace: Option<&str>) -> String {
    <kube::core::DynamicObject as kube::Resource>::url_path(resource, namespace)
}

fn managed() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

fn posted() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

fn build(
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> kube::Result<http::Request<Vec<u8>>> {
    request.map_err(kube::Error::BuildRequest)
}
