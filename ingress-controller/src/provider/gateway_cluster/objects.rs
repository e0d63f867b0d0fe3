//! Our objects of one kind in the gateway cluster, and the writes to them.

use std::sync::Arc;

use karmada_runtime::contention::{Attempt, Contention};
use karmada_runtime::watch::Decoded;
use karmada_runtime::write::{WriteError, WriteErrorKind, Writer};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use objects::Key;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use traffic::ingress::kubernetes::{Clash, Managed, ManagedBy, Update, Write, ingress_of};

use super::error::{GatewayError, GatewayObstacle};
use super::index::ObjectIndex;
use super::kind::GatewayKind;
use crate::identity::NAME;

/// Our objects of one kind.
pub struct GatewayObjects<K> {
    index: Mutex<ObjectIndex<K>>,
    client: Client,
    /// The objects that others change or delete as often as we write them.
    contention: Contention<Key>,
}

/// The result of a write: stored, met an obstacle, or failed.
pub(in crate::provider) type WriteResult = Result<Option<GatewayObstacle>, GatewayError>;

/// The outcome of an answered write.
pub(in crate::provider) enum Outcome {
    /// The object is as it was written, unless there is an obstacle.
    Done(Option<GatewayObstacle>),
    /// The namespace of this object does not exist.
    NoNamespace(Key),
}

impl<K: GatewayKind> GatewayObjects<K> {
    pub(in crate::provider) fn new(client: Client) -> Self {
        Self {
            index: Mutex::default(),
            client,
            contention: Contention::default(),
        }
    }

    /// Applies an event of the watch and returns the ingresses it concerns.
    pub(in crate::provider) fn observe(&self, event: Event<Decoded<K>>) -> Vec<Key> {
        self.index.lock().observe(event)
    }

    #[cfg(test)]
    pub(in crate::provider) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.index.lock().get(key).cloned()
    }

    /// Returns the ingresses that have an object of this kind.
    pub(in crate::provider) fn ingresses(&self) -> Vec<Key> {
        self.index.lock().ingresses().collect()
    }

    /// Returns the objects of `ingress`.
    pub(in crate::provider) fn of(&self, ingress: &Key) -> Vec<Arc<K>> {
        self.index.lock().of(ingress).cloned().collect()
    }

    /// Returns the objects that route `host`, of every ingress.
    pub(in crate::provider) fn with_host(&self, host: &str) -> Vec<Arc<K>> {
        self.index.lock().with_host(host).cloned().collect()
    }

    /// Returns the objects of `ingress`, and those with the name of an object in `wanted`.
    pub(in crate::provider) fn existing<'a>(
        &self,
        ingress: &Key,
        wanted: impl IntoIterator<Item = &'a K>,
    ) -> Vec<Arc<K>> {
        let index = self.index.lock();
        let mut found: Vec<Arc<K>> = index.of(ingress).cloned().collect();
        for object in wanted {
            if let Some(named) = index.get(&Key::of(object))
                && ingress_of(Managed::metadata(&**named)).as_ref() != Some(ingress)
            {
                found.push(Arc::clone(named));
            }
        }
        found
    }

    /// Begins a write of `value`. A pause ends with a retry: this obstacle has a backoff like any other.
    fn begin(
        &self,
        key: &Key,
        value: &Value,
        seen: Option<&str>,
    ) -> Result<Attempt<Key>, GatewayObstacle> {
        let begun = (self.contention).begin(key.clone(), value, seen, Instant::now());
        begun.map_err(|_| GatewayObstacle::Contested {
            kind: K::KIND,
            key: key.clone(),
        })
    }

    /// Takes in the response to a creation or an update.
    fn stored(&self, attempt: Attempt<Key>, stored: K) {
        let version = stored.meta().resource_version.clone();
        self.contention.stored(attempt, version, Instant::now());
        self.index.lock().stored(stored);
    }

    /// Creates an object, or sets the fields of it that we own.
    pub(in crate::provider) async fn write(
        &self,
        writer: &Writer,
        managed_by: &ManagedBy,
        write: &Write<K>,
    ) -> Result<Outcome, GatewayError> {
        match write {
            Write::Create(object) => self.create(writer, managed_by, object).await,
            Write::Update(update) => self.update(writer, update).await.map(Outcome::Done),
        }
    }

    async fn create(
        &self,
        writer: &Writer,
        managed_by: &ManagedBy,
        object: &K,
    ) -> Result<Outcome, GatewayError> {
        let key = Key::of(object);
        let value = serde_json::to_value(object)?;
        let attempt = match self.begin(&key, &value, None) {
            Ok(attempt) => attempt,
            Err(contested) => return Ok(Outcome::Done(Some(contested))),
        };
        let api = self.api(&key);
        let parameters = PostParams::default();
        let call = api.create(&parameters, object);
        match writer.write(K::TARGET, call).await {
            Ok(stored) => {
                self.stored(attempt, stored);
                Ok(Outcome::Done(None))
            }
            Err(error) => match error.kind() {
                WriteErrorKind::Missing => Ok(Outcome::NoNamespace(key)),
                WriteErrorKind::Conflict => {
                    let obstacle = self.examine_conflict(managed_by, object).await?;
                    Ok(Outcome::Done(Some(obstacle)))
                }
                WriteErrorKind::Invalid | WriteErrorKind::Transient => {
                    failed(K::KIND, key, error).map(Outcome::Done)
                }
            },
        }
    }

    /// Sets the fields we own, provided that the object is still the version that was seen.
    async fn update(&self, writer: &Writer, update: &Update<K>) -> WriteResult {
        let key = Key::of(&*update.existing);
        let value = serde_json::to_value(&update.edits)?;
        let seen = update.existing.meta().resource_version.as_deref();
        let attempt = match self.begin(&key, &value, seen) {
            Ok(attempt) => attempt,
            Err(contested) => return Ok(Some(contested)),
        };
        let patch: Patch<()> = update.edits.clone().guarded(seen).into();
        let api = self.api(&key);
        let parameters = PatchParams::apply(NAME);
        let call = api.patch(&key.name, &parameters, &patch);
        match writer.write(K::TARGET, call).await {
            Ok(stored) => {
                self.stored(attempt, stored);
                Ok(None)
            }
            Err(error) => {
                if error.kind() == WriteErrorKind::Missing {
                    self.index.lock().deleted(&update.existing);
                }
                failed(K::KIND, key, error)
            }
        }
    }

    /// Deletes `object`, provided that it is still the version that was seen.
    pub(in crate::provider) async fn delete(&self, writer: &Writer, object: &K) -> WriteResult {
        match self.begin(&Key::of(object), &Value::Null, None) {
            Ok(attempt) => self.remove(writer, object, attempt).await,
            Err(contested) => Ok(Some(contested)),
        }
    }

    /// Deletes `object` without a pause, whoever makes it again: it is traffic into a broken cluster.
    pub(in crate::provider) async fn cut(&self, writer: &Writer, object: &K) -> WriteResult {
        let attempt = Attempt::at_once(Key::of(object), &Value::Null);
        self.remove(writer, object, attempt).await
    }

    async fn remove(&self, writer: &Writer, object: &K, attempt: Attempt<Key>) -> WriteResult {
        let key = Key::of(object);
        let parameters = DeleteParams::default().preconditions(Preconditions {
            resource_version: object.meta().resource_version.clone(),
            uid: object.meta().uid.clone(),
        });
        let api = self.api(&key);
        let call = api.delete(&key.name, &parameters);
        match writer.write(K::TARGET, call).await {
            Ok(_) => {}
            Err(error) if error.kind() == WriteErrorKind::Missing => {}
            Err(error) => return failed(K::KIND, key, error),
        }
        self.contention.stored(attempt, None, Instant::now());
        self.index.lock().deleted(object);
        Ok(None)
    }

    /// Finds out why the object `wanted`, which the index does not show, exists already: another owner
    /// made it, or we did and the watch lags behind.
    async fn examine_conflict(
        &self,
        managed_by: &ManagedBy,
        wanted: &K,
    ) -> Result<GatewayObstacle, GatewayError> {
        let key = Key::of(wanted);
        let kind = K::KIND;
        let found = match self.api(&key).get_opt(&key.name).await {
            Ok(found) => found,
            Err(error) => {
                let source = Box::new(error);
                return Err(GatewayError::Read { kind, key, source });
            }
        };
        let Some(found) = found else {
            return Err(GatewayError::Stale { kind, key });
        };
        let owner = ingress_of(Managed::metadata(&found));
        let theirs = owner.is_some() && owner != ingress_of(Managed::metadata(wanted));
        if theirs || !managed_by.owns(Managed::metadata(&found)) {
            return Ok(GatewayObstacle::Clash(Clash { kind, key }));
        }
        self.index.lock().stored(found);
        Err(GatewayError::Stale { kind, key })
    }

    fn api(&self, key: &Key) -> Api<K> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

/// Separates rejected writes, which a user must resolve, from those to retry. A webhook that must answer and does not rejects, too.
pub(super) fn failed(kind: &'static str, key: Key, error: WriteError) -> WriteResult {
    if let WriteErrorKind::Conflict | WriteErrorKind::Missing = error.kind() {
        return Err(GatewayError::Stale { kind, key });
    }
    if let Some(message) = error.refusal().map(ToOwned::to_owned) {
        return Ok(Some(GatewayObstacle::Rejected { kind, key, message }));
    }
    let source = Box::new(error);
    Err(GatewayError::Write { kind, key, source })
}
