//! The pauses between writes of clusters that another client undoes each time.

use std::fmt::Debug;

use karmada_runtime::contention::{Attempt, find_rival};
use kube::Api;
use objects::Key;
use propagation_rules::schedule::SpecWrite;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::Reconciler;
use crate::binding::AnyBinding;
use crate::events;
use crate::identity::NAME;

impl Reconciler {
    /// Begins the write of a binding's clusters. During a pause, returns `None` and has the binding woken at its end.
    pub(super) async fn begin<K>(
        &self,
        api: &Api<K>,
        key: &Key,
        binding: &AnyBinding,
        spec: &SpecWrite,
    ) -> Option<Attempt<Key>>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let wanted = spec.wanted(binding.view());
        let replaced = wanted.replaced.as_deref();
        let begun = (self.contention).begin(key.clone(), &wanted.value, replaced, Instant::now());
        match begun {
            Ok(attempt) => Some(attempt),
            Err(backoff) => {
                if backoff.is_news {
                    let rival = find_rival(api, &key.name, NAME, &wanted.paths).await;
                    let manager = rival.as_deref().unwrap_or("another client");
                    tracing::warn!(
                        binding = %key,
                        manager,
                        "Another writer undoes every write of the clusters, will write again after growing pauses"
                    );
                    self.record(binding, || events::contested(manager));
                }
                self.update(|index| index.assume(key, None));
                self.queue.add_at(key.clone(), backoff.until);
                None
            }
        }
    }
}
