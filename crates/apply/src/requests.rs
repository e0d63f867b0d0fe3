//! Requests about objects of any kind, as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use karmada_runtime::dynamic::ServedKind;
use karmada_runtime::write::{Sender, WriteMode, build, collection, in_path};
use kube::Client;
use kube::api::GetParams;
use kube::core::{DynamicObject, request};
use kube::discovery::{Scope, pinned_kind};
use objects::write::{Action, ObjectRef, Write};
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::timeout;

use crate::error::{MemberError, is_answer};
use crate::manifest_set::ManifestRef;

/// The longest duration of a read; a write is bounded by its writer.
const LIMIT: Duration = Duration::from_secs(10);
/// The time that an API has for a write, as it reads it: less than its writer waits. One that waits for an admission webhook
/// gives up then and says so, and is not taken for one that cannot be reached.
const TIME: &str = "timeout=9s";

/// The targets of writes, by which the metrics count them.
pub(crate) const CREATE: &str = "member_create";
pub(crate) const APPLY: &str = "member_apply";
pub(crate) const TAKE_OVER: &str = "member_managed_fields";
pub(crate) const RELEASE: &str = "member_release";
pub(crate) const DELETE: &str = "member_delete";

/// The API of one cluster.
pub(crate) struct Requests {
    client: Client,
    /// The manager of the fields that are written.
    manager: &'static str,
    kinds: Mutex<BTreeMap<GroupVersionKind, ServedKind>>,
}

impl Requests {
    pub(crate) fn new(client: Client, manager: &'static str) -> Self {
        Self {
            client,
            manager,
            kinds: Mutex::default(),
        }
    }

    /// Refers to the object of a manifest, which has no namespace if its kind has none.
    pub(crate) async fn object_ref<S>(
        &self,
        one: &ManifestRef<'_, S>,
    ) -> Result<ObjectRef, MemberError> {
        let lacks = |problem| MemberError::Manifest {
            object: one.name(),
            problem,
        };
        let (kind, key) = (one.kind(), one.key());
        if kind.kind.is_empty() || kind.version.is_empty() {
            return Err(lacks("has no apiVersion and kind"));
        }
        if key.name.is_empty() {
            return Err(lacks("has no name"));
        }
        let Some(served) = self.served(&kind).await? else {
            let object = one.name();
            return Err(MemberError::NotServed { object, kind });
        };
        let key = match (served.namespaced, key.namespace.is_empty()) {
            (true, true) => return Err(lacks("has no namespace")),
            (true, false) => key,
            (false, _) => Key::cluster_scoped(key.name),
        };
        Ok(ObjectRef::named::<DynamicObject>(key, &served.resource))
    }

    /// Returns how the API serves the kind, and `None` if it does not.
    pub(crate) async fn served(
        &self,
        kind: &GroupVersionKind,
    ) -> Result<Option<ServedKind>, MemberError> {
        if let Some(served) = self.kinds.lock().get(kind) {
            return Ok(Some(served.clone()));
        }
        let pinned = kube::core::GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        let request = format!("discover {kind}");
        let (resource, capabilities) =
            match timeout(LIMIT, pinned_kind(&self.client, &pinned)).await {
                Ok(Ok(found)) => found,
                Ok(Err(kube::Error::Discovery(_))) => return Ok(None),
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Ok(None),
                Ok(Err(error)) => return Err(MemberError::Request { request, error }),
                Err(_) => return Err(MemberError::TimedOut { request }),
            };
        let served = ServedKind {
            resource,
            namespaced: capabilities.scope == Scope::Namespaced,
        };
        self.kinds.lock().insert(kind.clone(), served.clone());
        Ok(Some(served))
    }

    /// Forgets how the API serves the kind: its definition may be gone, or another.
    pub(crate) fn forget(&self, kind: &GroupVersionKind) {
        self.kinds.lock().remove(kind);
    }

    /// Reads an object.
    pub(crate) async fn get(&self, object_ref: &ObjectRef) -> Result<Option<Value>, MemberError> {
        let request = named("get", object_ref);
        let name = in_path(&object_ref.key.name);
        let built = collection(object_ref).get(&name, &GetParams::default());
        match self.bounded(request, built).await {
            Err(MemberError::Request {
                error: kube::Error::Api(status),
                ..
            }) if status.code == 404 => Ok(None),
            read => read.map(Some),
        }
    }

    /// Sends a write. Returns the object as it is then, and `None` if writes are only counted.
    pub(crate) async fn write(
        &self,
        writes: &WriteMode,
        write: &Write,
    ) -> Result<Option<Value>, MemberError> {
        let built = build(write, self.sender()).map(timed);
        let written = writes.write(write.target, self.send(built)).await;
        let request = named(verb(write), &write.object);
        written.map_err(|error| MemberError::of_write(request, error))
    }

    /// Returns an object as a write would leave it, without storing it.
    pub(crate) async fn try_out(&self, write: &Write) -> Result<Value, MemberError> {
        let sender = Sender {
            is_dry_run: true,
            ..self.sender()
        };
        let request = named(format_args!("try to {}", verb(write)), &write.object);
        self.bounded(request, build(write, sender).map(timed)).await
    }

    /// Sends a request that stores nothing, and waits no longer than the limit.
    async fn bounded(&self, request: String, built: Built) -> Result<Value, MemberError> {
        match timeout(LIMIT, self.send(built)).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(error)) => Err(MemberError::Request { request, error }),
            Err(_) => Err(MemberError::TimedOut { request }),
        }
    }

    fn sender(&self) -> Sender<'_> {
        Sender {
            manager: self.manager,
            is_dry_run: false,
        }
    }

    /// Sends a request, and once more if its answer breaks off: that says nothing about the cluster, and none of these
    /// requests does more if it comes twice.
    async fn send(&self, built: Built) -> kube::Result<Value> {
        let request = built.map_err(kube::Error::BuildRequest)?;
        match self.client.request(request.clone()).await {
            Err(error) if !is_answer(&error) => self.client.request(request).await,
            answer => answer,
        }
    }
}

type Built = Result<http::Request<Vec<u8>>, request::Error>;

/// Returns the request of a write with the [`TIME`] that the API has for it.
fn timed(mut request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    let target = request.uri().to_string();
    let joint = if target.contains('?') { '&' } else { '?' };
    if let Ok(timed) = format!("{target}{joint}{TIME}").parse() {
        *request.uri_mut() = timed;
    }
    request
}

/// Returns the name of a request about an object.
fn named(verb: impl fmt::Display, object_ref: &ObjectRef) -> String {
    format!("{verb} {} {}", object_ref.resource.kind, object_ref.key)
}

/// Returns the verb of a write, as messages have it.
fn verb(write: &Write) -> &'static str {
    match write.target {
        CREATE => "create",
        TAKE_OVER => "take over",
        RELEASE => "release",
        DELETE => "delete",
        _ if matches!(write.action, Action::Replace(_)) => "replace",
        _ => "apply",
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ApiResource, GroupVersionKind as Kind};
    use serde_json::json;

    use super::*;

    /// Case P132: an API that waits for a silent admission webhook is to answer before its writer gives up.
    #[test]
    fn writes_have_their_time() {
        let kind = ApiResource::from_gvk(&Kind::gvk("", "v1", "ConfigMap"));
        let object = ObjectRef::named::<DynamicObject>(Key::new("shop", "a?b"), &kind);
        let writes = [
            Write::create_as(CREATE, object.clone(), json!({})),
            Write::replace(APPLY, object.clone(), json!({})),
            Write::delete(DELETE, object),
        ];
        let sender = Sender {
            manager: "ours",
            is_dry_run: true,
        };
        for write in writes {
            let request = timed(build(&write, sender).unwrap());
            let (path, query) = (request.uri().path(), request.uri().query().unwrap());
            assert!(
                path.starts_with("/api/v1/namespaces/shop/configmaps"),
                "{path}"
            );
            let times = query.split('&').filter(|one| *one == TIME);
            assert_eq!(times.count(), 1, "{query}");
        }
    }
}
