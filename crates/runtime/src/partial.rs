//! Objects of which only a part is kept.

use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::resource::names_of;
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use crate::store::Store;
use crate::watch::{Decoded, events};

/// An object of the kind `K` of which only its identity and `P` are kept.
#[derive(Clone, Debug, Default)]
pub struct Partial<K, P> {
    metadata: ObjectMeta,
    /// The part.
    pub part: P,
    kind: PhantomData<K>,
}

impl<'de, K, P> Deserialize<'de> for Partial<K, P>
where
    P: for<'a> TryFrom<&'a Value, Error: Display>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Value::deserialize(deserializer)?;
        let metadata = ObjectMeta::deserialize(&object["metadata"]).map_err(de::Error::custom)?;
        Ok(Self {
            metadata: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                deletion_timestamp: metadata.deletion_timestamp,
                ..ObjectMeta::default()
            },
            part: P::try_from(&object).map_err(de::Error::custom)?,
            kind: PhantomData,
        })
    }
}

impl<K: Resource, P> Resource for Partial<K, P> {
    names_of!(K);

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The objects of one kind, which count once all of them are known.
#[derive(Debug)]
pub struct PartialList<K, P>(Mutex<Store<Partial<K, P>>>);

impl<K, P> Default for PartialList<K, P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K, P> PartialList<K, P>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Default + Send + Sync + 'static,
    P: for<'a> From<&'a Value> + Clone + Debug + Default + Send + Sync + 'static,
{
    /// Keeps the selected objects known, and calls `listed` whenever they have been listed. It never ends; without the
    /// right to list them, they stay unknown.
    pub async fn watch(&self, client: Client, selected: Config, listed: impl Fn()) {
        let all: Api<Decoded<Partial<K, P>>> = Api::all(client);
        let mut changes = std::pin::pin!(events(all, selected));
        while let Some(event) = changes.next().await {
            let ends_list = matches!(event, Event::InitDone);
            self.0.lock().observe(event);
            if ends_list {
                listed();
            }
        }
    }

    /// Returns the objects, once all of them are known.
    pub fn known(&self) -> Option<Vec<Arc<Partial<K, P>>>> {
        let store = self.0.lock();
        let objects = store.iter().map(|(_, object)| Arc::clone(object));
        store.is_listed().then(|| objects.collect())
    }
}
