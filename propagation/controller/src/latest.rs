//! Reads the newest version of a policy, where a cache that is behind would mislead.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{ClusterPropagationPolicy, PropagationPolicy};
use kube::{Api, Client};
use objects::Key;
use parking_lot::Mutex;
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

/// Reads of policies that are shared by all who ask while one is made: a policy may have thousands of bindings.
pub(crate) struct SharedReads {
    client: Client,
    reads: Mutex<BTreeMap<Key, Arc<Turn<Read>>>>,
}

/// The last read of a policy: its begin, and its finding.
type Read = Option<(Instant, Option<ObjectMeta>)>;

impl SharedReads {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            reads: Mutex::default(),
        }
    }

    /// Returns the metadata of a policy, if it exists, by a read that began after the call.
    pub(crate) async fn policy(&self, key: &Key) -> Result<Option<ObjectMeta>, kube::Error> {
        let asked = Instant::now();
        let read = Arc::clone(self.reads.lock().entry(key.clone()).or_default());
        let mut last = read.lock().await;
        let found = match &*last {
            Some((began, found)) if *began > asked => found.clone(),
            _ => {
                let began = Instant::now();
                let found = policy(&self.client, key).await?;
                *last = Some((began, found.clone()));
                found
            }
        };
        drop(last);
        let mut reads = self.reads.lock();
        // The map has it, and nobody waits.
        if Arc::strong_count(&read) == 2 {
            reads.remove(key);
        }
        Ok(found)
    }
}

/// Returns the metadata of a policy of either scope, if it exists.
pub(crate) async fn policy(client: &Client, key: &Key) -> Result<Option<ObjectMeta>, kube::Error> {
    let client = client.clone();
    let found = if key.namespace.is_empty() {
        let policies: Api<ClusterPropagationPolicy> = Api::all(client);
        let found = policies.get_metadata_opt(&key.name).await?;
        found.map(|found| found.metadata)
    } else {
        let policies: Api<PropagationPolicy> = Api::namespaced(client, &key.namespace);
        let found = policies.get_metadata_opt(&key.name).await?;
        found.map(|found| found.metadata)
    };
    Ok(found)
}
