//! Our objects of one kind in the gateway cluster, and the writes to them. What is written is known from then on: two
//! reconciles in quick succession would create and delete twice otherwise, and an ingress could be released with objects
//! left behind.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_runtime::commit::{self, Committer};
use karmada_runtime::expectations::Expectations;
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use karmada_runtime::write::{WriteError, WriteErrorKind, WriteMode, Writer};
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use objects::Key;
use objects::wanted::Wanted;
use objects::write::{Guard, ObjectRef, Write};
use parking_lot::Mutex;
use serde_json::Value;
use traffic::ingress::kubernetes::{self, Clash, Managed, ManagedBy, Update, ingress_of};

use super::error::{GatewayError, GatewayObstacle};
use super::kind::GatewayKind;
use crate::identity::NAME;

/// Our objects of one kind.
pub struct GatewayObjects<K> {
    store: Mutex<Store<K, Reference>>,
    client: Client,
    committer: Committer,
}

/// By which objects are looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reference {
    /// The ingress to which an object belongs.
    Ingress(Key),
    /// A host of a route.
    Host(String),
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

/// Returns the committer to a gateway cluster. Its obstacles are those of the ingresses.
pub(in crate::provider) fn committer(client: &Client, writer: &Writer) -> Committer {
    let mode = WriteMode::Perform(writer.clone());
    Committer::new(client.clone(), NAME, mode, Expectations::default(), None)
}

fn references<K: GatewayKind>(object: &K) -> BTreeSet<Reference> {
    let ingress = ingress_of(Managed::metadata(object)).map(Reference::Ingress);
    let hosts = object.hosts().into_iter().map(Reference::Host);
    ingress.into_iter().chain(hosts).collect()
}

impl<K: GatewayKind> GatewayObjects<K> {
    pub(in crate::provider) fn new(client: Client, committer: Committer) -> Self {
        Self {
            store: Mutex::new(Store::by(references)),
            client,
            committer,
        }
    }

    /// Applies an event of the watch and returns the ingresses it concerns.
    pub(in crate::provider) fn observe(&self, event: Event<Decoded<K>>) -> Vec<Key> {
        let mut store = self.store.lock();
        let changes = store.observe(event).objects;
        let concerned = changes.iter().flat_map(|change| store.concerned(change));
        let ingresses = concerned.filter_map(|reference| match reference {
            Reference::Ingress(key) => Some(key),
            Reference::Host(_) => None,
        });
        ingresses.collect()
    }

    #[cfg(test)]
    pub(in crate::provider) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.store.lock().get(key).cloned()
    }

    /// Returns the ingresses that have an object of this kind.
    pub(in crate::provider) fn ingresses(&self) -> Vec<Key> {
        let store = self.store.lock();
        let objects = store.iter();
        let ingresses = objects.filter_map(|(_, object)| ingress_of(Managed::metadata(&**object)));
        ingresses.collect()
    }

    /// Returns the objects of `ingress`.
    pub(in crate::provider) fn of(&self, ingress: &Key) -> Vec<Arc<K>> {
        self.with(&Reference::Ingress(ingress.clone()))
    }

    /// Returns the objects that route `host`, of every ingress.
    pub(in crate::provider) fn with_host(&self, host: &str) -> Vec<Arc<K>> {
        self.with(&Reference::Host(host.to_owned()))
    }

    fn with(&self, reference: &Reference) -> Vec<Arc<K>> {
        self.store.lock().of(reference).cloned().collect()
    }

    /// Returns the objects of `ingress`, and those with the name of an object in `wanted`.
    pub(in crate::provider) fn existing<'a>(
        &self,
        ingress: &Key,
        wanted: impl IntoIterator<Item = &'a K>,
    ) -> Vec<Arc<K>> {
        let mut found = self.of(ingress);
        let store = self.store.lock();
        for object in wanted {
            if let Some(named) = store.get(&Key::of(object))
                && ingress_of(Managed::metadata(&**named)).as_ref() != Some(ingress)
            {
                found.push(Arc::clone(named));
            }
        }
        found
    }

    /// Creates an object, or sets the fields of it that we own.
    pub(in crate::provider) async fn write(
        &self,
        managed_by: &ManagedBy,
        write: &kubernetes::Write<K>,
    ) -> Result<Outcome, GatewayError> {
        match write {
            kubernetes::Write::Create(object) => self.create(managed_by, object).await,
            kubernetes::Write::Update(update) => self.update(update).await.map(Outcome::Done),
        }
    }

    async fn create(&self, managed_by: &ManagedBy, object: &K) -> Result<Outcome, GatewayError> {
        let key = Key::of(object);
        let write = Write::create(K::TARGET, object, &());
        let wanted = Wanted::created(write.body().clone());
        let obstacle = match self.committer.write(&write.bringing(wanted), None).await {
            Ok(commit::Outcome::Stored(stored)) => {
                self.store.lock().created(object.clone(), &stored);
                None
            }
            Ok(commit::Outcome::Exists(_)) => {
                Some(self.examine_conflict(managed_by, object).await?)
            }
            Ok(commit::Outcome::Contended(_)) => Some(contested::<K>(key)),
            Ok(_) => None,
            Err(error) if error.kind() == WriteErrorKind::Missing => {
                return Ok(Outcome::NoNamespace(key));
            }
            Err(error) => failed(K::KIND, key, error)?,
        };
        Ok(Outcome::Done(obstacle))
    }

    /// Sets the fields we own, provided that the object is still the version that was seen.
    async fn update(&self, update: &Update<K>) -> WriteResult {
        let (existing, edits) = (&*update.existing, &update.edits);
        let (key, object) = (Key::of(existing), ObjectRef::of(existing, &()));
        let wanted = Wanted::patched(edits, &[]);
        let write = Write::json(K::TARGET, object, edits.clone());
        let write = write.guarded(Guard::Version).bringing(wanted);
        match self.committer.write(&write, None).await {
            Ok(commit::Outcome::Stored(stored)) => {
                self.store.lock().written(&write, &stored);
                Ok(None)
            }
            Ok(commit::Outcome::Gone(error)) => {
                self.store.lock().deleted(existing);
                failed(K::KIND, key, error)
            }
            Ok(commit::Outcome::Contended(_)) => Ok(Some(contested::<K>(key))),
            Ok(_) => Ok(None),
            Err(error) => failed(K::KIND, key, error),
        }
    }

    /// Deletes `object`, provided that it is still the version that was seen.
    pub(in crate::provider) async fn delete(&self, object: &K) -> WriteResult {
        let write = deletion(object).bringing(Wanted::created(Value::Null));
        self.remove(object, &write).await
    }

    /// Deletes `object` without a pause, whoever makes it again: it is traffic into a broken cluster. If that is us, once the
    /// cluster is back, nobody has undone what we wrote before.
    pub(in crate::provider) async fn cut(&self, object: &K) -> WriteResult {
        let removed = self.remove(object, &deletion(object)).await;
        self.committer.forget(K::TARGET, &Key::of(object));
        removed
    }

    async fn remove(&self, object: &K, write: &Write) -> WriteResult {
        let key = Key::of(object);
        match self.committer.write(write, None).await {
            Ok(commit::Outcome::Contended(_)) => Ok(Some(contested::<K>(key))),
            Ok(_) => {
                self.store.lock().deleted(object);
                Ok(None)
            }
            Err(error) => failed(K::KIND, key, error),
        }
    }

    /// Finds out why the object `wanted`, which is not known, exists already: another owner
    /// made it, or we did and the watch lags behind.
    async fn examine_conflict(
        &self,
        managed_by: &ManagedBy,
        wanted: &K,
    ) -> Result<GatewayObstacle, GatewayError> {
        let key = Key::of(wanted);
        let kind = K::KIND;
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        let found = match api.get_opt(&key.name).await {
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
        self.store.lock().add_ahead(found);
        Err(GatewayError::Stale { kind, key })
    }
}

fn deletion<K: GatewayKind>(object: &K) -> Write {
    Write::delete(K::TARGET, ObjectRef::of(object, &())).guarded(Guard::Version)
}

/// Returns the obstacle that it is if another client undoes every write. The pause ends with a retry: this obstacle has a
/// backoff like any other.
fn contested<K: GatewayKind>(key: Key) -> GatewayObstacle {
    let kind = K::KIND;
    GatewayObstacle::Contested { kind, key }
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
