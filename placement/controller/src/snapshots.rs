//! Brings the snapshots of one placement up to date, of its policy and of its selection.

use std::collections::BTreeSet;
use std::sync::Arc;

use fleet_api::Placement;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::expectations::Subject;
use objects::write::{ObjectRef, Write};
use objects::{Key, Metadata, api_version, kind};
use placement_rules::content::Hub;
use placement_rules::deletion::FINALIZERS;
use placement_rules::refuse::Refusal;
use placement_rules::select::{Selection, select};
use placement_rules::snapshot::{is_of_last, plan_policies, plan_resources, tidy_resources};
use placement_rules::strategy::is_external;
use serde_json::json;
use tokio::time::Instant;

use crate::deletion;
use crate::index::{Index, Placed, Selected};
use crate::inventory::Knowledge;
use crate::requests::{HubApi, Progress};
use crate::shared::SharedIndex;
use crate::topics::{BINDINGS, SNAPSHOTS};

/// Reconciles the snapshots of placements.
pub(crate) struct SnapshotReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    /// The facts about the hub.
    pub(crate) of: Hub,
}

impl Controller for SnapshotReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(Index::placement_keys)
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        // A binding that was just made would outlive a placement that goes.
        let of_bindings = self
            .index
            .read(|index| index.is_deleting(key))
            .then(|| self.hub.held_until(BINDINGS, key));
        self.hub
            .held_until(SNAPSHOTS, key)
            .max(of_bindings.flatten())
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let Some(placed) = self.index.read(|index| index.placed(key)) else {
            self.index.change(|index| {
                index.selected.remove(key);
                index.runs.answer(key, BTreeSet::new());
            });
            self.index.debounce.close(key);
            return Ok(());
        };
        if placed.placement.metadata.is_deleting() {
            return deletion::end(&self.hub, &placed).await;
        }
        if let Some(refusal) = placed.refusal() {
            self.note(key, &Err(refusal));
            return Ok(());
        }
        self.hold(&placed.placement).await?;
        let policies = plan_policies(&placed.placement, &placed.policies(), &placed.named())?;
        // While its selection is not known, no cluster gets or loses anything for another policy.
        if !policies.is_empty() {
            let is_told = self.knows(key, &placed) && self.selection(key, &placed).is_some();
            if !is_told {
                // The next change begins a burst of its own, or nobody would look at it.
                self.index.debounce.close(key);
                return Ok(());
            }
        }
        if self.write(key, &policies).await? == Progress::Overtaken {
            return Ok(());
        }
        self.select(key, &placed).await
    }
}

impl SnapshotReconciler {
    /// Gives a placement the finalizers with which it waits for the objects that are made for it.
    async fn hold(&self, placement: &Placement) -> Result<(), BoxError> {
        let Some(finalizers) = placement.metadata.with_finalizers(&FINALIZERS) else {
            return Ok(());
        };
        let object = ObjectRef::of(placement, &placement.scope());
        let write = Write::finalizers("placement_finalizers", object, &finalizers);
        self.hub.committer.write(&write, None).await?;
        Ok(())
    }

    /// Returns `true` if all is known of which a placement may select something.
    fn knows(&self, key: &Key, placed: &Placed) -> bool {
        match self.index.hub.knows(placed) {
            Knowledge::Complete => true,
            // Everything has been listed once the watch of the last kind says so, which wakes it again.
            Knowledge::Growing => false,
            // Without them, their objects would look as if they were deleted.
            Knowledge::Forbidden(kind) => {
                self.note(key, &Err(Refusal::of_forbidden(&kind)));
                false
            }
            Knowledge::Unanswered(part) => {
                self.note(key, &Err(Refusal::of_unanswered(&part)));
                false
            }
        }
    }

    /// Returns the objects that a placement selects, if its selectors are as they may be.
    fn selection(&self, key: &Key, placed: &Placed) -> Option<Selection> {
        match select(&placed.placement, &self.of, &self.index.hub) {
            Ok(selection) => Some(selection),
            Err(invalid) => {
                self.note(key, &Err(Refusal::from(&invalid)));
                None
            }
        }
    }

    /// Selects, and snapshots the selection.
    async fn select(&self, key: &Key, placed: &Placed) -> Result<(), BoxError> {
        let knows = self.knows(key, placed);
        if knows
            && !placed.snapshots.is_empty()
            && let Some(end) = self.index.debounce.open(key)
        {
            self.index.queues.snapshots.add_at(key.clone(), end);
            return Ok(());
        }
        self.index.debounce.close(key);
        if !knows {
            return Ok(());
        }
        let (existing, named) = (placed.snapshots(), placed.named());
        let Some(selection) = self.selection(key, placed) else {
            let left = tidy_resources(&placed.placement, &existing, &named);
            self.write(key, &left).await?;
            return Ok(());
        };
        let outline = outline(&selection);
        let asking = self.index.read(|index| index.runs.asking(key));
        // Where runs give snapshots to clusters, one is made when a run asks for it.
        let is_wanted = !is_external(&placed.placement)
            || !asking.is_empty()
            || is_of_last(existing.iter().copied(), &selection.hash);
        if is_wanted {
            let snapshots = plan_resources(&placed.placement, selection, &existing, &named)?;
            if self.write(key, &snapshots).await? == Progress::Overtaken {
                return Ok(());
            }
        }
        self.note(key, &Ok(outline));
        let open = self.index.change(|index| {
            index.runs.answer(key, asking);
            index.runs.open_keys([key.clone()])
        });
        self.index.queues.updates.add_all(open);
        Ok(())
    }

    async fn write(&self, placement: &Key, writes: &[Write]) -> Result<Progress, BoxError> {
        let subject = Subject::new(SNAPSHOTS, placement);
        Ok(self.hub.write_snapshots(writes, &subject).await?)
    }

    /// Notes the selection of a placement, and wakes its status if that is news.
    fn note(&self, key: &Key, selected: &Selected) {
        let before = self.index.change(|index| {
            let selected = selected.clone();
            index.selected.insert(key.clone(), selected)
        });
        if before.as_ref() != Some(selected) {
            self.index.wake_status(key.clone());
        }
    }
}

/// Returns a selection of which only the identities of the objects are left.
fn outline(selection: &Selection) -> Selection {
    let objects = selection.objects.iter().map(|object| {
        json!({
            "apiVersion": api_version(object), "kind": kind(object),
            "metadata": { "namespace": object.namespace(), "name": object.name() },
        })
    });
    Selection {
        objects: objects.collect(),
        too_large: selection.too_large.clone(),
        idle: selection.idle.clone(),
        unanswered: selection.unanswered.clone(),
        hash: String::new(),
    }
}
