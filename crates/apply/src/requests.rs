//! Requests about objects of any kind, as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::time::Duration;

use karmada_runtime::dynamic::ServedKind;
use karmada_runtime::write::{WriteMode, in_path};
use kube::Client;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{DynamicObject, Request, request};
use kube::discovery::{Scope, pinned_kind};
use objects::patch::JsonPatch;
use objects::yaml::as_yaml;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::error::{MemberError, is_answer};
use crate::manifest_set::ManifestRef;

/// The longest duration of a read; a write is bounded by its writer.
const LIMIT: Duration = Duration::from_secs(10);

/// The API of one cluster.
pub(crate) struct Requests {
    client: Client,
    /// The manager of the fields that are written.
    manager: &'static str,
    kinds: Mutex<BTreeMap<GroupVersionKind, ServedKind>>,
}

/// The way to an object: its kind and key, and the path to those of its kind.
#[derive(Clone, Debug)]
pub(crate) struct ObjectPath {
    kind: String,
    key: Key,
    collection: String,
    /// True if the manifest names a namespace, though its kind has none.
    pub(crate) is_stray: bool,
}

/// The kind of a write, as messages name it.
#[derive(Clone, Copy, Debug)]
enum Write {
    Create,
    Apply,
    Replace,
    TakeOver,
    Release,
    Delete,
}

impl Write {
    /// Returns the target by which the metrics count such writes.
    fn target(self) -> &'static str {
        match self {
            Self::Create => "member_create",
            Self::Apply | Self::Replace => "member_apply",
            Self::TakeOver => "member_managed_fields",
            Self::Release => "member_release",
            Self::Delete => "member_delete",
        }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Apply => "apply",
            Self::Replace => "replace",
            Self::TakeOver => "take over",
            Self::Release => "release",
            Self::Delete => "delete",
        })
    }
}

impl ObjectPath {
    /// Returns the name of a request about the object.
    fn request(&self, verb: impl fmt::Display) -> String {
        format!("{verb} {} {}", self.kind, self.key)
    }

    /// Returns the object's name as its path has it.
    fn name(&self) -> Cow<'_, str> {
        in_path(&self.key.name)
    }

    fn builder(&self) -> Request {
        Request::new(&self.collection)
    }
}

impl Requests {
    pub(crate) fn new(client: Client, manager: &'static str) -> Self {
        Self {
            client,
            manager,
            kinds: Mutex::default(),
        }
    }

    /// Returns the path of the object of a manifest.
    pub(crate) async fn path<S>(
        &self,
        one: &ManifestRef<'_, S>,
    ) -> Result<ObjectPath, MemberError> {
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
        let namespace = match (served.namespaced, key.namespace.is_empty()) {
            (true, true) => return Err(lacks("has no namespace")),
            (true, false) => Some(key.namespace.as_str()),
            (false, _) => None,
        };
        let collection = <DynamicObject as kube::Resource>::url_path(&served.resource, namespace);
        Ok(ObjectPath {
            is_stray: namespace.is_none() && !key.namespace.is_empty(),
            kind: kind.kind,
            key,
            collection,
        })
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
    pub(crate) async fn get(&self, path: &ObjectPath) -> Result<Option<Value>, MemberError> {
        let request = path.request("get");
        let built = path.builder().get(&path.name(), &GetParams::default());
        match self.bounded(request, built).await {
            Err(MemberError::Request {
                error: kube::Error::Api(status),
                ..
            }) if status.code == 404 => Ok(None),
            read => read.map(Some),
        }
    }

    /// Creates an object. `None`, here and below, if writes are only counted.
    pub(crate) async fn create(
        &self,
        writes: &WriteMode,
        path: &ObjectPath,
        body: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let body = body.to_string().into_bytes();
        let built = path.builder().create(&self.posted(), body);
        self.write(writes, Write::Create, path, built).await
    }

    /// Creates an object by server-side apply, unless another has set its fields otherwise meanwhile.
    pub(crate) async fn create_by_apply(
        &self,
        writes: &WriteMode,
        path: &ObjectPath,
        body: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let parameters = PatchParams::apply(self.manager);
        let built = apply(path, &parameters, body);
        self.write(writes, Write::Create, path, built).await
    }

    /// Applies an object; fields of other managers become ours.
    pub(crate) async fn apply(
        &self,
        writes: &WriteMode,
        path: &ObjectPath,
        body: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let parameters = PatchParams::apply(self.manager).force();
        let built = apply(path, &parameters, body);
        self.write(writes, Write::Apply, path, built).await
    }

    /// Applies an object, unless another manager has set one of its fields otherwise.
    pub(crate) async fn apply_unforced(
        &self,
        writes: &WriteMode,
        path: &ObjectPath,
        body: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let built = apply(path, &PatchParams::apply(self.manager), body);
        self.write(writes, Write::Apply, path, built).await
    }

    /// Replaces an object as a whole.
    pub(crate) async fn replace(
        &self,
        writes: &WriteMode,
        path: &ObjectPath,
        body: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let body = body.to_string().into_bytes();
        let built = path.builder().replace(&path.name(), &self.posted(), body);
        self.write(writes, Write::Replace, path, built).await
    }

    /// Returns an object as it would be stored, without storing it: as a new one, or in place of one that exists.
    pub(crate) async fn try_out(
        &self,
        path: &ObjectPath,
        body: &Value,
        exists: bool,
    ) -> Result<Value, MemberError> {
        let request = path.request("try out");
        let bytes = body.to_string().into_bytes();
        let parameters = PostParams {
            dry_run: true,
            ..self.posted()
        };
        let built = if exists {
            path.builder().replace(&path.name(), &parameters, bytes)
        } else {
            path.builder().create(&parameters, bytes)
        };
        self.bounded(request, built).await
    }

    /// Returns an object as the application of `body` would leave it, without storing it.
    pub(crate) async fn try_apply(
        &self,
        path: &ObjectPath,
        body: &Value,
    ) -> Result<Value, MemberError> {
        let parameters = PatchParams::apply(self.manager).force().dry_run();
        let built = apply(path, &parameters, body);
        self.bounded(path.request("try to apply"), built).await
    }

    /// Sends a request that stores nothing, and waits no longer than the limit.
    async fn bounded(&self, request: String, built: Built) -> Result<Value, MemberError> {
        match timeout(LIMIT, self.send(built)).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(error)) => Err(MemberError::Request { request, error }),
            Err(_) => Err(MemberError::TimedOut { request }),
        }
    }

    /// Makes fields of others ours by a patch of the managed fields.
    pub(crate) async fn take_over(
        &self,
        writes: &WriteMode,
        path: &ObjectPath,
        takes: JsonPatch,
    ) -> Result<Option<Value>, MemberError> {
        let takes: Patch<()> = takes.into();
        let built = patch(path, &PatchParams::apply(self.manager), &takes);
        self.write(writes, Write::TakeOver, path, built).await
    }

    /// Takes marks off an object by a merge patch (RFC 7396).
    pub(crate) async fn release(
        &self,
        writes: &WriteMode,
        path: &ObjectPath,
        body: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let built = patch(path, &PatchParams::apply(self.manager), &Patch::Merge(body));
        self.write(writes, Write::Release, path, built).await
    }

    /// Deletes an object, and what depends on it in the background, if it still has the uid.
    pub(crate) async fn delete(
        &self,
        writes: &WriteMode,
        path: &ObjectPath,
        uid: &str,
    ) -> Result<Option<Value>, MemberError> {
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let built = path.builder().delete(&path.name(), &parameters);
        self.write(writes, Write::Delete, path, built).await
    }

    async fn write(
        &self,
        writes: &WriteMode,
        write: Write,
        path: &ObjectPath,
        built: Built,
    ) -> Result<Option<Value>, MemberError> {
        let written = writes.write(write.target(), self.send(built)).await;
        written.map_err(|error| MemberError::of_write(path.request(write), error))
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

    fn posted(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.manager.to_owned()),
            ..PostParams::default()
        }
    }
}

type Built = Result<http::Request<Vec<u8>>, request::Error>;

/// Builds a server-side apply, whose body is YAML to an API server.
fn apply(path: &ObjectPath, parameters: &PatchParams, body: &Value) -> Built {
    let built = patch(path, parameters, &Patch::Apply(body));
    built.map(|request| request.map(as_yaml))
}

fn patch<P: Serialize + Debug>(
    path: &ObjectPath,
    parameters: &PatchParams,
    body: &Patch<P>,
) -> Built {
    path.builder().patch(&path.name(), parameters, body)
}
