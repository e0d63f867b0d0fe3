//! Executes the evictions of one placement, one after the other, so that each finds the outcome of the former.

use std::sync::Arc;

use fleet_api::names::{EVICTED_BINDING, PARENT_PLACEMENT};
use fleet_api::{
    Binding, ClusterResourcePlacementDisruptionBudget, ClusterResourcePlacementEviction, Placement,
};
use jiff::Timestamp;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::write::WriteError;
use kube::api::ListParams;
use objects::qualified_name::{is_label_value, is_subdomain};
use objects::write::{Guard, ObjectRef, Write};
use objects::{Key, Metadata};
use placement_rules::eviction::{EvictionFacts, Verdict, is_terminal, judge, told};
use serde_json::json;

use crate::index::Index;
use crate::requests::HubApi;
use crate::shared::SharedIndex;

/// Reconciles the evictions of placements.
pub(crate) struct Evictor {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    pub(crate) clock: fn() -> Timestamp,
}

/// A placement, with the facts that decide about its evictions.
#[derive(Default)]
struct Placed {
    placement: Option<Placement>,
    bindings: Vec<Binding>,
    budget: Option<ClusterResourcePlacementDisruptionBudget>,
}

impl Controller for Evictor {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(Index::evicted_placements)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let waiting = self.index.read(|index| index.evictions_of(&key.name));
        let mut all = Ok(());
        for eviction in waiting {
            let executed = self.execute(key, &eviction).await;
            // The others need not wait for one that the API refuses.
            all = all.and(executed);
        }
        all
    }
}

impl Evictor {
    /// Decides about an eviction, for good, by the objects of the API now: a watch may not show yet those that its user made
    /// just before it.
    async fn execute(&self, placement: &Key, name: &str) -> Result<(), BoxError> {
        let hub = &self.hub;
        let evictions = hub.all::<ClusterResourcePlacementEviction>();
        let Some(eviction) = evictions.get_opt(name).await? else {
            return Ok(());
        };
        if is_terminal(&eviction) {
            return Ok(());
        }
        let placed = self.placed(&placement.name).await?;
        let verdict = judge(&EvictionFacts {
            eviction: &eviction,
            placement: placed.placement.as_ref(),
            bindings: &placed.bindings,
            budget: placed.budget.as_ref(),
        });
        if let Verdict::Evict { binding, .. } = &verdict {
            self.evict(&eviction, binding).await?;
        }
        let conditions = told(&eviction, &verdict, (self.clock)());
        let status = json!({ "status": { "conditions": conditions } });
        let tell = Write::merge("eviction_status", ObjectRef::of(&eviction, &()), status);
        hub.committer.write(&tell.of_status(), None).await?;
        Ok(())
    }

    /// Returns the placement as the API has it.
    async fn placed(&self, name: &str) -> Result<Placed, BoxError> {
        // No placement has another name, and a request for it would be another request.
        if !(is_subdomain(name) && is_label_value(name)) {
            return Ok(Placed::default());
        }
        let of_placement = ListParams::default().labels(&format!("{PARENT_PLACEMENT}={name}"));
        let placements = self.hub.of_scope::<Placement>("");
        let bindings = self.hub.of_scope::<Binding>("");
        let budgets = self.hub.all::<ClusterResourcePlacementDisruptionBudget>();
        let (placement, bindings, budget) = tokio::try_join!(
            placements.get_opt(name),
            bindings.list(&of_placement),
            budgets.get_opt(name),
        )?;
        Ok(Placed {
            placement,
            bindings: bindings.items,
            budget,
        })
    }

    /// Deletes a binding, noted in the eviction before: the next program finds there that it was this one.
    async fn evict(
        &self,
        eviction: &ClusterResourcePlacementEviction,
        binding: &Binding,
    ) -> Result<(), WriteError> {
        let uid = binding.metadata.uid();
        if eviction.metadata.annotation(EVICTED_BINDING) != Some(uid) {
            let body = json!({ "metadata": { "annotations": { EVICTED_BINDING: uid } } });
            let note = Write::merge("eviction", ObjectRef::of(eviction, &()), body);
            let noted = self.hub.committer.write(&note, None).await?;
            noted.if_present()?;
        }
        let deletion = Write::delete("binding", ObjectRef::of(binding, &binding.scope()));
        let deletion = deletion.guarded(Guard::Uid);
        self.hub.committer.write(&deletion, None).await?;
        Ok(())
    }
}
