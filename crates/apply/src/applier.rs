//! Applies the manifests of units, and observes their objects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches, WatchState};
use karmada_runtime::write::WriteMode;
use kube::Client;
use objects::ownership::ObservedObject;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::error::MemberError;
use crate::ownership::{Ownership, WriteStyle};
use crate::plan::{ApplyPlan, plan, reapply};
use crate::records::Records;
use crate::requests::{ObjectPath, Requests};
use crate::result::{SyncResult, Synced};
use crate::unit::{ManifestRef, Unit};
use crate::wake::{Wake, woken};

/// The time after a start for which a unit waits for the list of its kinds: until then nearly every object
/// is known to be as its manifest has it, without a request for each.
const START: Duration = Duration::from_secs(5);

/// One cluster to one owner: what was applied there, and what has become of it.
pub struct Applier<O> {
    pub(crate) ownership: Arc<O>,
    pub(crate) requests: Requests,
    pub(crate) watches: DynamicWatches,
    started: Instant,
    records: Arc<Mutex<Records>>,
}

impl<O: Ownership> Applier<O> {
    /// Creates the applier for the cluster that `client` is connected to, and the future that runs its watches.
    /// Changes of the owner's objects are passed to `wake`.
    pub fn new(
        client: Client,
        ownership: O,
        wake: impl Fn(Wake) + Send + Sync + 'static,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let ownership = Arc::new(ownership);
        let records = Arc::new(Mutex::new(Records::default()));
        let selected = ownership.watched();
        let (owner, waiting) = (Arc::clone(&ownership), Arc::clone(&records));
        let observe = move |_: &GroupVersionKind, event| match event {
            DynamicEvent::Changed(changes) => changes
                .iter()
                .flat_map(|change| woken(&*owner, change))
                .for_each(&wake),
            DynamicEvent::Listed => {
                let units = waiting.lock().take_waiting();
                units.into_iter().map(Wake::Now).for_each(&wake);
            }
            DynamicEvent::NotServed => {}
        };
        let (watches, running) =
            DynamicWatches::new(client.clone(), move |_| selected.clone(), observe);
        let applier = Self {
            requests: Requests::new(client, ownership.managers().ours),
            ownership,
            watches,
            started: Instant::now(),
            records,
        };
        (applier, running)
    }

    /// Watches the objects of these kinds, and no others.
    pub fn want(&self, kinds: BTreeSet<GroupVersionKind>) {
        self.watches.want(kinds);
    }

    /// Forgets a unit that is gone.
    pub fn forget(&self, unit: &Key) {
        self.records.lock().forget(unit);
    }

    /// Brings the objects of `unit` to its manifests, unless it is suspended, and observes them.
    pub async fn sync(&self, writes: &WriteMode, unit: &Unit<'_, O::Source>) -> SyncResult {
        let left = START.saturating_sub(self.started.elapsed());
        let mut kinds = unit.refs().map(|one| one.kind());
        if !left.is_zero() && kinds.any(|kind| self.watches.state(&kind) == WatchState::Listing) {
            self.records.lock().wait(unit.key.clone());
            return SyncResult::Later(left);
        }
        self.records.lock().begin(unit);
        let mut synced = Vec::new();
        for one in unit.refs() {
            synced.push(self.sync_manifest(writes, &one).await);
        }
        let mut records = self.records.lock();
        if synced.iter().any(Synced::waits) {
            records.wait(unit.key.clone());
        }
        SyncResult::Done {
            manifests: synced,
            untouched: records.is_untouched(unit),
        }
    }

    async fn sync_manifest(&self, writes: &WriteMode, one: &ManifestRef<'_, O::Source>) -> Synced {
        let cached = self.cached(one);
        if one.unit.suspended {
            return self.observe(one, cached).await;
        }
        if let ObservedObject::Present(object) = &cached
            && self.is_settled(one, object)
        {
            return Synced::observed(cached);
        }
        match self.apply_manifest(writes, one, cached.seen()).await {
            Ok((object, written)) => Synced {
                error: None,
                object: self.owned(one, object),
                written,
            },
            Err(error @ (MemberError::Refused { .. } | MemberError::NotServed { .. })) => {
                Synced::failed(error, ObservedObject::Absent)
            }
            Err(error) => Synced::failed(error, cached),
        }
    }

    /// Returns the object as the watch shows it.
    fn cached(&self, one: &ManifestRef<'_, O::Source>) -> ObservedObject {
        let kind = one.kind();
        if self.watches.state(&kind) != WatchState::Complete {
            return ObservedObject::Unknown;
        }
        let object = self.watches.get(&kind, &one.key());
        self.owned(one, object.map(|object| object.value()))
    }

    /// Returns what is observed of the manifest if `object` is there: nothing, unless it is the unit's.
    fn owned(&self, one: &ManifestRef<'_, O::Source>, object: Option<Value>) -> ObservedObject {
        match object {
            Some(object) if self.ownership.unit_of(&object).as_ref() == Some(&one.unit.key) => {
                ObservedObject::Present(object)
            }
            _ => ObservedObject::Absent,
        }
    }

    /// Observes the object of a suspended unit. If its application was not reported, what the object has shows it.
    async fn observe(&self, one: &ManifestRef<'_, O::Source>, object: ObservedObject) -> Synced {
        let settled = match &object {
            ObservedObject::Present(cached) if !one.unit.applied => {
                self.find_settled(one, cached).await
            }
            _ => Ok(None),
        };
        match settled {
            Ok(settled) => Synced::observed(settled.map_or(object, ObservedObject::Settled)),
            Err(error) => Synced::failed(error, object),
        }
    }

    /// Returns the object if a sync would find nothing to apply. Only a live look can tell: a field that has
    /// left the manifest shows in the managed fields, which the cache lacks.
    async fn find_settled(
        &self,
        one: &ManifestRef<'_, O::Source>,
        cached: &Value,
    ) -> Result<Option<Value>, MemberError> {
        if !self.needs_nothing(one, cached) {
            return Ok(None);
        }
        let path = self.requests.path(one).await?;
        let object = self.requests.get(&path).await?;
        Ok(object.filter(|object| self.needs_nothing(one, object)))
    }

    fn needs_nothing(&self, one: &ManifestRef<'_, O::Source>, object: &Value) -> bool {
        let style = self.ownership.write_style(one.unit);
        plan(&*self.ownership, one, Some(object), style) == ApplyPlan::Unchanged
    }

    /// Returns `true` if the object in the cache needs nothing.
    fn is_settled(&self, one: &ManifestRef<'_, O::Source>, object: &Value) -> bool {
        let record = self.records.lock().of(one);
        let was_applied = match record {
            // The edit may have taken a field out, which only the managed fields show.
            Some(before) if !before.is_of(one) => return false,
            Some(before) if before.has_left(object) => return true,
            Some(_) => true,
            None => one.unit.applied,
        };
        let is_settled = was_applied && self.needs_nothing(one, object);
        if is_settled {
            self.settle(one, object);
        }
        is_settled
    }

    fn settle(&self, one: &ManifestRef<'_, O::Source>, object: &Value) {
        let managers = self.ownership.managers();
        self.records.lock().settle(one, object, managers);
    }

    /// Plans the write of a new manifest without a live look at the object, which `cached` shows as we
    /// have left it.
    fn reapply(
        &self,
        one: &ManifestRef<'_, O::Source>,
        cached: Option<&Value>,
    ) -> Option<ApplyPlan> {
        let (record, cached) = (self.records.lock().of(one)?, cached?);
        let is_as_left = record.has_left_ours(cached);
        is_as_left.then(|| reapply(&*self.ownership, one, cached))?
    }

    /// Writes what the object lacks. Returns the object, and if it was written. Unless [`Self::reapply`]
    /// shows that there is no need to, it is read live.
    async fn apply_manifest(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        cached: Option<&Value>,
    ) -> Result<(Option<Value>, bool), MemberError> {
        let path = self.requests.path(one).await?;
        let mut style = self.ownership.write_style(one.unit);
        let mut reapplied = match style {
            WriteStyle::Apply => self.reapply(one, cached),
            WriteStyle::Replace => None,
        };
        let mut is_retried = false;
        loop {
            let (object, plan) = if let Some(reapply) = reapplied.take() {
                (cached.cloned(), reapply)
            } else {
                let object = self.requests.get(&path).await?;
                let plan = plan(&*self.ownership, one, object.as_ref(), style);
                (object, plan)
            };
            match self.write(writes, one, &path, plan, style).await {
                Ok(written) => {
                    let is_written = written.is_some();
                    if is_written {
                        self.records.lock().touch(&one.unit.key);
                    }
                    let object = written.or(object);
                    if let Some(object) = &object {
                        self.settle(one, object);
                    }
                    return Ok((object, is_written));
                }
                Err(error) if error.is_about_duplicates() && style == WriteStyle::Apply => {
                    style = WriteStyle::Replace;
                }
                // Another was faster: its object is to be looked at first.
                Err(error) if error.is_conflict() && !is_retried => is_retried = true,
                Err(error) => {
                    if error.is_missing() {
                        self.requests.forget(&one.kind());
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Carries out a plan. Returns the object as written, and `None` if it was not.
    async fn write(
        &self,
        writes: &WriteMode,
        one: &ManifestRef<'_, O::Source>,
        path: &ObjectPath,
        plan: ApplyPlan,
        style: WriteStyle,
    ) -> Result<Option<Value>, MemberError> {
        match plan {
            ApplyPlan::Unchanged => Ok(None),
            ApplyPlan::Refuse { reason } => Err(MemberError::Refused {
                object: one.name(),
                reason,
            }),
            ApplyPlan::Create { body } => match style {
                WriteStyle::Apply => self.requests.create_by_apply(writes, path, &body).await,
                WriteStyle::Replace => self.requests.create(writes, path, &body).await,
            },
            ApplyPlan::Apply { body, take_over } => {
                if let Some(patch) = take_over {
                    self.requests.take_over(writes, path, patch).await?;
                }
                self.requests.apply(writes, path, &body).await
            }
            ApplyPlan::Replace { body } => self.requests.replace(writes, path, &body).await,
        }
    }
}
