//! Brings the snapshots of one override up to date, and ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet_api::names::OVERRIDE_FINALIZER;
use fleet_api::overrides::{Override, OverrideSnapshot};
use fleet_api::{ClusterResourceOverride, ResourceOverride};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::expectations::Subject;
use karmada_runtime::write::WriteError;
use kube::runtime::events::Event;
use objects::write::{Action, ObjectRef, Write};
use objects::{Key, Metadata};
use parking_lot::Mutex;
use placement_rules::overrides::{TOGETHER, is_for, listed, named_placement};
use placement_rules::snapshot::{may_go, plan_end, plan_overrides};
use tokio::time::Instant;

use crate::events::{of_absent_placement, of_refusal, of_unnamed_placement};
use crate::index::Index;
use crate::overrides::InScope;
use crate::requests::{HubApi, Progress, rejection};
use crate::shared::SharedIndex;
use crate::topics::OVERRIDES;

/// Reconciles the snapshots of overrides.
pub(crate) struct OverrideReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    /// Absent if nothing is written.
    pub(crate) events: Option<EventRecorder>,
    pub(crate) notices: Mutex<Notices>,
}

/// The news about overrides, told and to be told.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    /// Why the present content of each is not taken up, where it is not.
    refused: BTreeMap<Key, String>,
    /// Those whose placement is not there, and when that is told: it may be written after them.
    unplaced: BTreeMap<Key, Instant>,
}

impl Notices {
    fn forget(&mut self, key: &Key) {
        self.refused.remove(key);
        self.unplaced.remove(key);
    }
}

/// An override, and the facts that decide about its snapshots.
struct Known<K: InScope> {
    /// Absent if it is gone.
    one: Option<Arc<K>>,
    refused: Option<String>,
    snapshots: Vec<Arc<K::Snapshot>>,
    /// The snapshots in its namespace that bindings list.
    named: BTreeSet<String>,
}

impl<K: InScope> Known<K> {
    fn read(index: &Index, key: &Key) -> Self {
        let scope = K::scope(&index.overrides);
        let one = scope.overrides.get(key).map(Arc::clone);
        let snapshots = scope.snapshots_of(key);
        let taken = snapshots.last().map(|one| &one.spec().override_spec);
        // Which placement an override names never changes.
        let spec = one.as_ref().map(|one| one.spec()).or(taken);
        let bindings = spec.map_or_else(Vec::new, |spec| index.overridden_by(spec, &key.namespace));
        let listed = bindings.iter().flat_map(|binding| listed(&binding.spec));
        let own = listed.filter(|(namespace, _)| *namespace == key.namespace);
        let named = own.map(|(_, name)| name.to_owned()).collect();
        Self {
            refused: scope.refusal(key),
            one,
            snapshots,
            named,
        }
    }

    fn snapshots(&self) -> Vec<&K::Snapshot> {
        self.snapshots.iter().map(|snapshot| &**snapshot).collect()
    }

    fn named(&self) -> BTreeSet<&str> {
        self.named.iter().map(|name| &**name).collect()
    }
}

impl Controller for OverrideReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(|index| index.overrides.keys())
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.hub.held_until(OVERRIDES, key)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        if key.namespace.is_empty() {
            self.bring_up_to_date::<ClusterResourceOverride>(key).await
        } else {
            self.bring_up_to_date::<ResourceOverride>(key).await
        }
    }
}

impl OverrideReconciler {
    async fn bring_up_to_date<K: InScope>(&self, key: &Key) -> Result<(), BoxError> {
        let known = self.index.read(|index| Known::<K>::read(index, key));
        let Some(one) = known.one.as_deref() else {
            return self.sweep(key, &known).await;
        };
        if one.meta().is_deleting() {
            return self.end(key, one, &known).await;
        }
        if known.refused.is_some() {
            self.tell_refusal(key, one, known.refused.as_deref());
            return Ok(());
        }
        let finalizers = one.meta().with_finalizers(&[OVERRIDE_FINALIZER]);
        self.set_finalizers(one, finalizers).await?;
        let writes = plan_overrides(one, &known.snapshots(), &known.named())?;
        let mut actions = writes.iter().map(|write| &write.action);
        let is_new = matches!(actions.next(), Some(Action::Create(_)));
        let written = self.write(key, &writes).await;
        let rejected = written.as_ref().err().and_then(rejection);
        let rejected =
            rejected.map(|reason| format!("The override cannot be snapshotted: {reason}"));
        self.tell_refusal(key, one, rejected.as_deref());
        let is_written = written? == Progress::Done;
        self.tell_placement(key, one, is_new && is_written);
        Ok(())
    }

    /// Deletes the snapshots of an override that is being deleted, and lets it go once none belongs to it.
    async fn end<K: InScope>(&self, key: &Key, one: &K, known: &Known<K>) -> Result<(), BoxError> {
        if may_go(&known.snapshots()) {
            let rest = one.meta().without_finalizers(&[OVERRIDE_FINALIZER]);
            return self.set_finalizers(one, rest).await;
        }
        let writes = plan_end(&known.snapshots(), &known.named());
        self.write(key, &writes).await?;
        Ok(())
    }

    /// Deletes the rest of an override that does not exist any more, once no binding lists it.
    async fn sweep<K: InScope>(&self, key: &Key, known: &Known<K>) -> Result<(), BoxError> {
        self.notices.lock().forget(key);
        let writes = plan_end(&known.snapshots(), &known.named());
        if writes.is_empty() {
            return Ok(());
        }
        // Absence from the cache is no deletion.
        let overrides = K::overrides(&self.hub, &key.namespace);
        if overrides.get_metadata_opt(&key.name).await?.is_some() {
            return Ok(());
        }
        self.write(key, &writes).await?;
        Ok(())
    }

    async fn write(&self, key: &Key, writes: &[Write]) -> Result<Progress, WriteError> {
        let subject = Subject::new(OVERRIDES, key);
        self.hub.write_snapshots(writes, &subject).await
    }

    /// Gives an override these finalizers, if it is to have others. By ours it waits for its snapshots.
    async fn set_finalizers<K: InScope>(
        &self,
        one: &K,
        finalizers: Option<Vec<String>>,
    ) -> Result<(), BoxError> {
        let Some(finalizers) = finalizers else {
            return Ok(());
        };
        let object = ObjectRef::of(one, &());
        let write = Write::finalizers("override_finalizers", object, &finalizers);
        self.hub.committer.write(&write, None).await?;
        Ok(())
    }

    /// Tells why an override is not taken up, if it is not and that is news.
    fn tell_refusal<K: InScope>(&self, key: &Key, one: &K, refused: Option<&str>) {
        let mut notices = self.notices.lock();
        let before = match refused {
            Some(reason) => notices.refused.insert(key.clone(), reason.to_owned()),
            None => notices.refused.remove(key),
        };
        if before.as_deref() != refused
            && let Some(reason) = refused
        {
            self.tell(one, of_refusal(reason));
        }
    }

    /// Tells of an override that names no placement, or one that is not there.
    fn tell_placement<K: InScope>(&self, key: &Key, one: &K, is_taken: bool) {
        let Some(placement) = &one.spec().placement else {
            if is_taken {
                self.tell(one, of_unnamed_placement());
            }
            return;
        };
        let mut notices = self.notices.lock();
        if is_taken && !self.has_placement(key, one) {
            let at = Instant::now() + TOGETHER.unsigned_abs();
            notices.unplaced.insert(key.clone(), at);
        }
        let Some(at) = notices.unplaced.get(key).copied() else {
            return;
        };
        if Instant::now() < at {
            self.index.queues.overrides.add_at(key.clone(), at);
            return;
        }
        notices.unplaced.remove(key);
        if !self.has_placement(key, one) {
            self.tell(one, of_absent_placement(placement));
        }
    }

    /// Returns `true` if the placement that an override names is there.
    fn has_placement<K: InScope>(&self, key: &Key, one: &K) -> bool {
        let placement = named_placement(one.spec(), &key.namespace).unwrap_or_default();
        is_for(one.spec(), &key.namespace, &placement)
            && self
                .index
                .read(|index| index.placements.get(&placement).is_some())
    }

    fn tell<K: Override>(&self, one: &K, event: Event) {
        if let Some(events) = &self.events {
            events.record(one.object_ref(&()), event);
        }
    }
}
