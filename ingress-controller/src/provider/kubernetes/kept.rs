//! Our objects of one kind in the gateway cluster, and the writes to them.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use karmada_api::Key;
use karmada_rules::ingress::kubernetes::{Clash, Gateway, Managed, Update, ingress_of};
use karmada_runtime::watch::Guarded;
use karmada_runtime::write::{WriteError, WriteErrorKind, Writer};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::view::View;
use crate::provider::{Obstacle, ProviderError};

/// A kind of object we keep.
pub(super) trait Kind:
    Managed
    + Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Serialize
    + DeserializeOwned
    + Clone
    + Debug
    + Send
    + Sync
    + 'static
{
    /// What its writes are counted as.
    const TARGET: &'static str;
}

pub(super) struct Kept<K> {
    view: Mutex<View<K>>,
    client: Client,
    writer: Writer,
}

/// What was in the way of a write, if anything.
pub(super) type Written = Result<Option<Obstacle>, ProviderError>;

/// What came of creating an object.
pub(super) enum Creation {
    /// It is there, unless something is in the way.
    Answered(Option<Obstacle>),
    /// Its namespace is not there.
    NoNamespace,
}

impl<K: Kind> Kept<K> {
    pub(super) fn new(client: Client, writer: Writer) -> Self {
        Self {
            view: Mutex::default(),
            client,
            writer,
        }
    }

    pub(super) fn observe(&self, event: Event<Guarded<K>>) -> Vec<Key> {
        self.view.lock().observe(event)
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.view.lock().get(key).cloned()
    }

    pub(super) fn ingresses(&self) -> Vec<Key> {
        self.view.lock().ingresses().collect()
    }

    /// The objects made for `ingress`, and those with the name of one of `wanted`.
    pub(super) fn existing<'a>(
        &self,
        ingress: &Key,
        wanted: impl IntoIterator<Item = &'a K>,
    ) -> Vec<Arc<K>> {
        let view = self.view.lock();
        let mut found: Vec<Arc<K>> = view.of(ingress).cloned().collect();
        for object in wanted {
            if let Some(named) = view.get(&Key::of(object))
                && !found.iter().any(|object| Arc::ptr_eq(object, named))
            {
                found.push(Arc::clone(named));
            }
        }
        found
    }

    /// Creates `object`.
    pub(super) async fn create(
        &self,
        gateway: &Gateway,
        object: &K,
    ) -> Result<Creation, ProviderError> {
        let key = Key::of(object);
        let api = self.api(&key);
        let parameters = PostParams::default();
        let call = api.create(&parameters, object);
        match self.writer.write(K::TARGET, call).await {
            Ok(stored) => {
                self.view.lock().stored(stored);
                Ok(Creation::Answered(None))
            }
            Err(error) => match error.kind() {
                WriteErrorKind::Missing => Ok(Creation::NoNamespace),
                WriteErrorKind::Conflict => {
                    let obstacle = self.in_the_way(gateway, object).await?;
                    Ok(Creation::Answered(Some(obstacle)))
                }
                WriteErrorKind::Invalid | WriteErrorKind::Transient => {
                    failed::<K>(key, error).map(Creation::Answered)
                }
            },
        }
    }

    /// Sets the parts we own, if the object still is what it was.
    pub(super) async fn update(&self, update: &Update<K>) -> Written {
        let key = Key::of(&*update.existing);
        let guard = json!({
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": update.existing.meta().resource_version,
        });
        let edits = update.edits.iter().map(|edit| match &edit.value {
            Some(value) => json!({ "op": "add", "path": edit.path, "value": value }),
            None => json!({ "op": "remove", "path": edit.path }),
        });
        let steps = std::iter::once(guard).chain(edits).collect();
        let patch: Patch<()> = Patch::Json(serde_json::from_value(steps)?);
        let api = self.api(&key);
        let parameters = PatchParams::default();
        let call = api.patch(&key.name, &parameters, &patch);
        match self.writer.write(K::TARGET, call).await {
            Ok(stored) => {
                self.view.lock().stored(stored);
                Ok(None)
            }
            Err(error) => {
                if error.kind() == WriteErrorKind::Missing {
                    self.view.lock().deleted(&update.existing);
                }
                failed::<K>(key, error)
            }
        }
    }

    /// Deletes `object`, if it still is what it was.
    pub(super) async fn delete(&self, object: &K) -> Written {
        let key = Key::of(object);
        let parameters = DeleteParams::default().preconditions(Preconditions {
            resource_version: object.meta().resource_version.clone(),
            uid: object.meta().uid.clone(),
        });
        let api = self.api(&key);
        let call = api.delete(&key.name, &parameters);
        match self.writer.write(K::TARGET, call).await {
            Ok(_) => {}
            Err(error) if error.kind() == WriteErrorKind::Missing => {}
            Err(error) => return failed::<K>(key, error),
        }
        self.view.lock().deleted(object);
        Ok(None)
    }

    /// What to do about the object that has the name of `wanted`, which the view does not show.
    async fn in_the_way(&self, gateway: &Gateway, wanted: &K) -> Result<Obstacle, ProviderError> {
        let key = Key::of(wanted);
        let kind = K::KIND;
        let found = match self.api(&key).get_opt(&key.name).await {
            Ok(found) => found,
            Err(error) => {
                let source = Box::new(error);
                return Err(ProviderError::Read { kind, key, source });
            }
        };
        let Some(found) = found else {
            return Err(ProviderError::Stale { kind, key });
        };
        let owner = ingress_of(Managed::metadata(&found));
        let theirs = owner.is_some() && owner != ingress_of(Managed::metadata(wanted));
        if theirs || !gateway.owns(Managed::metadata(&found)) {
            return Ok(Obstacle::Clash(Clash { kind, key }));
        }
        self.view.lock().stored(found);
        Err(ProviderError::Stale { kind, key })
    }

    fn api(&self, key: &Key) -> Api<K> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

/// A write that is refused is for a person to look at; any other is tried again.
fn failed<K: Kind>(key: Key, error: WriteError) -> Written {
    let kind = K::KIND;
    match error.kind() {
        WriteErrorKind::Invalid => Ok(Some(Obstacle::Refused {
            kind,
            key,
            message: answer(&error),
        })),
        WriteErrorKind::Conflict | WriteErrorKind::Missing => {
            Err(ProviderError::Stale { kind, key })
        }
        WriteErrorKind::Transient => {
            let source = Box::new(error);
            Err(ProviderError::Write { kind, key, source })
        }
    }
}

/// What the API server said.
fn answer(error: &WriteError) -> String {
    match error {
        WriteError::Api(kube::Error::Api(status)) => status.message.clone(),
        other => other.to_string(),
    }
}
