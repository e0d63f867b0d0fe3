//! Applies the manifests of units, and observes their objects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches, Selected, WatchState};
use karmada_runtime::write::WriteMode;
use kube::Client;
use objects::drift::take_left_out;
use objects::ownership::ObservedObject;
use objects::retain::without_generated;
use objects::{GroupVersionKind, Key, metadata};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::error::MemberError;
use crate::ownership::{Ownership, WriteStyle};
use crate::plan::{ApplyPlan, plan};
use crate::records::Records;
use crate::requests::Requests;
use crate::result::{SyncResult, Synced};
use crate::schemas::Schemas;
use crate::unit::{LastWrite, ManifestRef, Unit};
use crate::wake::{Wake, woken};

/// The time after a start for which a unit waits for the list of its kinds: until then nearly every object
/// is known to be as its manifest has it, without a request for each.
const START: Duration = Duration::from_secs(5);

/// The number of manifests of a wave that are applied at once.
pub(crate) const CONCURRENCY: usize = 8;

/// One cluster to one owner: what was applied there, and what has become of it.
pub struct Applier<O> {
    pub(crate) ownership: Arc<O>,
    pub(crate) requests: Requests,
    pub(crate) watches: DynamicWatches,
    schemas: Schemas,
    started: Instant,
    pub(crate) records: Arc<Mutex<Records>>,
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
        let selected = Selected {
            labels_at_hand: false,
            ..ownership.watched()
        };
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
            DynamicEvent::NotServed | DynamicEvent::Forbidden => {}
        };
        let (watches, running) =
            DynamicWatches::new(client.clone(), move |_| selected.clone(), observe);
        let applier = Self {
            schemas: Schemas::new(client.clone()),
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

    /// Returns the name of a kind in the paths of the cluster's API; empty if it is not served, or cannot be looked up.
    pub async fn resource(&self, kind: &GroupVersionKind) -> String {
        let served = self.requests.served(kind).await;
        let served = served.ok().flatten();
        served
            .map(|served| served.resource.plural)
            .unwrap_or_default()
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
        let synced = self.sync_waves(writes, unit).await;
        let mut records = self.records.lock();
        if synced.iter().any(Synced::waits) {
            records.wait(unit.key.clone());
        }
        SyncResult::Done {
            manifests: synced,
            untouched: records.is_untouched(unit),
        }
    }

    /// Syncs the manifests wave by wave, and returns the results in the order of the manifests.
    async fn sync_waves(&self, writes: &WriteMode, unit: &Unit<'_, O::Source>) -> Vec<Synced> {
        let mut refs: Vec<_> = unit.refs().collect();
        let wave = |one: &ManifestRef<'_, O::Source>| self.ownership.wave(one);
        refs.sort_by_key(wave);
        let mut synced = Vec::new();
        for wave in refs.chunk_by(|one, next| wave(one) == wave(next)) {
            // No closure: a future that holds one is not known to be `Send`.
            let mut syncs = Vec::new();
            for one in wave {
                syncs.push(self.sync_manifest(writes, one));
            }
            let results = futures::stream::iter(syncs).buffered(CONCURRENCY);
            let results: Vec<_> = results.collect().await;
            synced.extend(wave.iter().map(|one| one.ordinal).zip(results));
        }
        synced.sort_by_key(|(ordinal, _)| *ordinal);
        synced.into_iter().map(|(_, one)| one).collect()
    }

    async fn sync_manifest(&self, writes: &WriteMode, one: &ManifestRef<'_, O::Source>) -> Synced {
        let cached = self.cached(one);
        if one.unit.suspended {
            return self.observe(one, cached).await;
        }
        if let ObservedObject::Present(object) = &cached {
            match self.settled(one, object).await {
                Ok(Some(note)) => {
                    return Synced {
                        note,
                        ..Synced::observed(cached)
                    };
                }
                Ok(None) => {}
                Err(error) => return Synced::failed(error, cached),
            }
        }
        match self.write_manifest(writes, one, &cached).await {
            Ok(written) => Synced {
                error: None,
                object: self.owned(one, written.object),
                written: written.is_new,
                note: written.note,
            },
            Err(error @ (MemberError::Refused { .. } | MemberError::NotServed { .. })) => {
                Synced::failed(error, ObservedObject::Absent)
            }
            Err(error) => Synced::failed(error, cached),
        }
    }

    /// Returns the note on a manifest whose object needs nothing, and `None` if it needs a write.
    pub(crate) async fn settled(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
    ) -> Result<Option<Option<String>>, MemberError> {
        if !self.is_settled(one, object) {
            return Ok(None);
        }
        let has_note = |note: Option<&str>| {
            let record = self.records.lock().of(one);
            record.is_some_and(|record| record.has_note(note))
        };
        if has_note(None) {
            return Ok(Some(None));
        }
        let note = self.note(one, object).await?;
        let Some(text) = note.as_deref() else {
            self.records.lock().note(one, None);
            return Ok(Some(None));
        };
        // With another, the cluster may know more by now.
        let is_known = has_note(Some(text)) || one.unit.notes.contains(text);
        Ok(is_known.then_some(note))
    }

    /// Returns what there is to note about a manifest whose object has what a write could give it.
    pub(crate) async fn note(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
    ) -> Result<Option<String>, MemberError> {
        let paths = take_left_out(&mut without_generated(one.manifest), object);
        if paths.is_empty() {
            return Ok(None);
        }
        let schema = self.schemas.hash(&one.kind()).await?;
        let (paths, name) = (paths.join(", "), one.name());
        Ok(Some(format!(
            "the member's schema {schema} lacks {paths} of {name}"
        )))
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
            ObservedObject::Present(cached) if one.unit.last_write == LastWrite::Unknown => {
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
        if !self.needs_nothing(one, cached, LastWrite::Unknown) {
            return Ok(None);
        }
        let path = self.requests.path(one).await?;
        let object = self.requests.get(&path).await?;
        Ok(object.filter(|object| self.needs_nothing(one, object, LastWrite::Unknown)))
    }

    /// Returns `true` if a sync would find nothing to write to the object.
    fn needs_nothing(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: &Value,
        last: LastWrite,
    ) -> bool {
        let style = self.ownership.write_style(one.unit);
        plan(&*self.ownership, one, Some(object), style, last) == ApplyPlan::Unchanged
    }

    /// Returns `true` if the object, from a cache or not, needs nothing, but for what its cluster may not know.
    fn is_settled(&self, one: &ManifestRef<'_, O::Source>, object: &Value) -> bool {
        // What says so may be where a record does not look, as its owners are.
        if self.ownership.unit_of(object).as_ref() != Some(&one.unit.key) {
            return false;
        }
        let style = self.ownership.write_style(one.unit);
        let record = self.records.lock().of(one);
        let last = match record {
            // The edit may have taken a field out, which only the managed fields show.
            Some(before) if !before.is_of(one) => return false,
            Some(before) if before.has_left(object) => return true,
            // What somebody added shows in them, too.
            Some(before) if style == WriteStyle::Replace && !before.has_left_content(object) => {
                return false;
            }
            Some(_) => LastWrite::OfManifest,
            None => one.unit.last_write,
        };
        let may_hide_more = style == WriteStyle::Replace && self.hides_others(one, object);
        if last == LastWrite::Unknown || may_hide_more {
            return false;
        }
        let mut known = one.manifest.clone();
        if style == WriteStyle::Replace {
            take_left_out(&mut known, object);
        }
        let known = ManifestRef {
            manifest: &known,
            ..*one
        };
        let is_settled = self.needs_nothing(&known, object, last);
        if is_settled {
            self.settle(one, object);
        }
        is_settled
    }

    /// Returns `true` if others have written something of an object from the cache, outside of metadata and status.
    /// Only a live look can tell what.
    pub(crate) fn hides_others(&self, one: &ManifestRef<'_, O::Source>, object: &Value) -> bool {
        if metadata::field(object, "managedFields").is_some() {
            return false;
        }
        let cached = self.watches.get(&one.kind(), &one.key());
        let managers = self.ownership.managers();
        cached.is_some_and(|cached| managers.are_with_others(cached.writers()))
    }

    pub(crate) fn settle(&self, one: &ManifestRef<'_, O::Source>, object: &Value) {
        let managers = self.ownership.managers();
        let is_ours = match self.ownership.write_style(one.unit) {
            WriteStyle::Apply => managers.have_applied_all(object),
            WriteStyle::Replace => managers.have_updated_all(object),
        };
        self.records.lock().settle(one, object, is_ours);
    }
}
