//! Our objects of one kind in the gateway cluster, and the writes to them. A write is known from then on: two
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
use objects::write::{Action, Write};
use parking_lot::Mutex;
use traffic::ingress::kubernetes::{Clash, ManagedBy, ingress_of};

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
    /// The namespace of an object of this kind does not exist.
    NoNamespace(&'static str),
}

/// Returns the committer to a gateway cluster. Its obstacles are those of the ingresses.
pub(in crate::provider) fn committer(client: &Client, writer: &Writer) -> Committer {
    let mode = WriteMode::Perform(writer.clone());
    Committer::new(client.clone(), NAME, mode, Expectations::default(), None)
}

fn references<K: GatewayKind>(object: &K) -> BTreeSet<Reference> {
    let ingress = ingress_of(object.meta()).map(Reference::Ingress);
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
        let ingresses = objects.filter_map(|(_, object)| ingress_of(object.meta()));
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
                && ingress_of(named.meta()).as_ref() != Some(ingress)
            {
                found.push(Arc::clone(named));
            }
        }
        found
    }

    /// Sends a write to one of the objects.
    pub(in crate::provider) async fn write(
        &self,
        managed_by: &ManagedBy,
        write: &Write,
    ) -> Result<Outcome, GatewayError> {
        let (kind, key) = (K::KIND, write.object.key.clone());
        let result = match write.action {
            // Owned only now: the copy of the body would double a plan of ten thousand slices.
            Action::Create(_) => {
                let write = write.clone().owning_all();
                self.committer.write(&write, None).await
            }
            _ => self.committer.write(write, None).await,
        };
        if write.action == Action::Delete && write.wanted.is_none() {
            // If it is us who make it again, once the cluster is back, nobody has undone our earlier writes.
            self.committer.forget(write.target, &key);
        }
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) if is_without_namespace(write, &error) => {
                return Ok(Outcome::NoNamespace(kind));
            }
            Err(error) => return failed(kind, key, error).map(Outcome::Done),
        };
        let obstacle = match (&write.action, outcome) {
            (_, commit::Outcome::Contended(_)) => Some(GatewayObstacle::Contested { kind, key }),
            (Action::Create(body), commit::Outcome::Stored(stored)) => {
                let object = K::deserialize(body)?;
                self.store.lock().created(object, &stored);
                None
            }
            (Action::Create(body), commit::Outcome::Exists(_)) => {
                let wanted = K::deserialize(body)?;
                Some(self.examine_conflict(managed_by, &wanted).await?)
            }
            (Action::Delete, _) => {
                self.store.lock().deleted(&write.object);
                None
            }
            (_, commit::Outcome::Stored(stored)) => {
                self.store.lock().written(write, &stored);
                None
            }
            (_, commit::Outcome::Gone(error)) => {
                self.store.lock().deleted(&write.object);
                failed(kind, key, error)?
            }
            _ => None,
        };
        Ok(Outcome::Done(obstacle))
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
        let owner = ingress_of(found.meta());
        let theirs = owner.is_some() && owner != ingress_of(wanted.meta());
        if theirs || !managed_by.owns(found.meta()) {
            return Ok(GatewayObstacle::Clash(Clash { kind, key }));
        }
        self.store.lock().add_ahead(found);
        Err(GatewayError::Stale { kind, key })
    }
}

/// Returns `true` if there is no namespace for an object that was to be created.
fn is_without_namespace(write: &Write, error: &WriteError) -> bool {
    matches!(write.action, Action::Create(_)) && error.kind() == WriteErrorKind::Missing
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
