//! Applies the manifests of sets, and observes their objects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use karmada_runtime::contention::Contention;
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches, Selected, WatchState};
use karmada_runtime::write::WriteMode;
use kube::Client;
use objects::ownership::ObservedObject;
use objects::reverse_index::ReverseIndex;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::error::MemberError;
use crate::manifest_set::{LastWrite, ManifestRef, ManifestSet, Object};
use crate::not_written::{NotWritten, NotWrittenCache, REJECTION};
use crate::ownership::Ownership;
use crate::records::Records;
use crate::requests::Requests;
use crate::result::{Again, Need, SyncResult, Synced};
use crate::schemas::Schemas;
use crate::wake::{Wake, set_named, woken};

/// The time after a start for which a set waits for the list of its kinds: until then nearly every object
/// is known to be as its manifest has it, without a request for each.
const START: Duration = Duration::from_secs(5);

/// The time after which an object that was left is looked at again if no watch shows its changes.
const UNSEEN: Duration = Duration::from_mins(1);

/// The number of manifests of a wave that are applied at once.
pub(crate) const CONCURRENCY: usize = 8;

/// One cluster to one owner: the records of its applications there, and of their outcome.
pub struct Applier<O> {
    pub(crate) ownership: Arc<O>,
    pub(crate) requests: Requests,
    pub(crate) watches: DynamicWatches,
    pub(crate) schemas: Schemas,
    started: Instant,
    /// True once a sync has not reached the cluster: nobody knows when its lists will come.
    unreached: AtomicBool,
    pub(crate) records: Arc<Mutex<Records>>,
    pub(crate) not_written: Arc<Mutex<NotWrittenCache>>,
    /// From an object of a kind that is pruned to the set that it names.
    pub(crate) prunable: Arc<Mutex<ReverseIndex<Object, Key>>>,
    /// Who changes objects back that we write.
    pub(crate) contention: Contention<Object>,
    /// True if the watches are sent every object of a kind, those of others too.
    pub(crate) sees_all: bool,
}

impl<O: Ownership> Applier<O> {
    /// Creates the applier for the cluster that `client` is connected to, and the future that runs its watches of the objects
    /// that are `selected`: all that may belong to a set. Changes of the owner's objects are passed to `wake`.
    pub fn new(
        client: Client,
        ownership: O,
        selected: Selected,
        wake: impl Fn(Wake) + Send + Sync + 'static,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let ownership = Arc::new(ownership);
        let records = Arc::new(Mutex::new(Records::default()));
        let not_written = Arc::new(Mutex::new(NotWrittenCache::new(O::IGNORED)));
        let selected = Selected {
            labels_at_hand: false,
            ..selected
        };
        let sent = &selected.sent;
        let sees_all = sent.label_selector.is_none() && sent.field_selector.is_none();
        let (owner, waiting) = (Arc::clone(&ownership), Arc::clone(&records));
        let found = Arc::clone(&not_written);
        let prunable = Arc::new(Mutex::new(ReverseIndex::default()));
        let named = Arc::clone(&prunable);
        let observe = move |kind: &GroupVersionKind, event| match event {
            DynamicEvent::Changed(changes) => {
                for change in &changes {
                    if (O::PRUNED)(kind) {
                        let object = (kind.clone(), change.key.clone());
                        named.lock().replace(&object, set_named(&*owner, change));
                    }
                    woken(&*owner, change).into_iter().for_each(&wake);
                    let new = change.new.as_deref();
                    let looking = found.lock().change(kind, &change.key, new);
                    looking.into_iter().map(Wake::Paced).for_each(&wake);
                }
            }
            DynamicEvent::Unkept(key, object) => {
                let looking = found.lock().change(kind, &key, object.as_deref());
                looking.into_iter().map(Wake::Paced).for_each(&wake);
            }
            DynamicEvent::Listed => {
                let mut sets = waiting.lock().take_waiting();
                sets.extend(found.lock().list(kind));
                sets.into_iter().map(Wake::Now).for_each(&wake);
            }
            DynamicEvent::NotServed | DynamicEvent::Forbidden | DynamicEvent::Failing => {}
        };
        let (watches, running) =
            DynamicWatches::new(client.clone(), move |_| selected.clone(), observe);
        let applier = Self {
            schemas: Schemas::new(client.clone()),
            requests: Requests::new(client, O::MANAGERS.ours),
            ownership,
            watches,
            started: Instant::now(),
            unreached: AtomicBool::new(false),
            records,
            not_written,
            prunable,
            contention: Contention::default(),
            sees_all,
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

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &Key) {
        self.records.lock().forget(set);
        self.not_written.lock().forget(set);
    }

    /// Returns the sets that were refused an object, and will look at it again: its owner may be another by now.
    pub fn reopen(&self) -> BTreeSet<Key> {
        self.not_written.lock().reopen()
    }

    /// Brings the objects of `set` to its manifests, unless it is suspended, and observes them.
    pub async fn sync(&self, writes: &WriteMode, set: &ManifestSet<'_, O::Source>) -> SyncResult {
        let left = START.saturating_sub(self.started.elapsed());
        let may_wait = !left.is_zero() && !self.unreached.load(Ordering::Relaxed);
        let mut kinds = set.refs().map(|one| one.kind());
        if may_wait && kinds.any(|kind| self.watches.state(&kind) == WatchState::Listing) {
            self.records.lock().wait(set.key.clone());
            return SyncResult::Later(left);
        }
        self.records.lock().begin(set);
        self.not_written.lock().keep(set);
        let synced = self.sync_waves(writes, set).await;
        let mut errors = synced.iter().filter_map(|one| one.error.as_ref());
        if errors.any(MemberError::is_unreachable) {
            self.unreached.store(true, Ordering::Relaxed);
        }
        let mut records = self.records.lock();
        if synced.iter().any(Synced::waits) {
            records.wait(set.key.clone());
        }
        SyncResult::Done {
            manifests: synced,
            untouched: records.is_untouched(set),
        }
    }

    /// Syncs the manifests wave by wave, and returns the results in the order of the manifests.
    async fn sync_waves(
        &self,
        writes: &WriteMode,
        set: &ManifestSet<'_, O::Source>,
    ) -> Vec<Synced> {
        let refs = set.refs();
        let refs = refs.map(|one| (self.ownership.instruction(&one, None).wave, one));
        let mut refs: Vec<_> = refs.collect();
        refs.sort_by_key(|(wave, _)| *wave);
        let mut synced = Vec::new();
        for wave in refs.chunk_by(|(one, _), (next, _)| one == next) {
            // No closure: a future that holds one is not known to be `Send`.
            let mut syncs = Vec::new();
            for (_, one) in wave {
                syncs.push(self.sync_manifest(writes, one));
            }
            let results = futures::stream::iter(syncs).buffered(CONCURRENCY);
            let results: Vec<_> = results.collect().await;
            synced.extend(wave.iter().map(|(_, one)| one.ordinal).zip(results));
        }
        synced.sort_by_key(|(ordinal, _)| *ordinal);
        synced.into_iter().map(|(_, one)| one).collect()
    }

    async fn sync_manifest(&self, writes: &WriteMode, one: &ManifestRef<'_, O::Source>) -> Synced {
        let cached = self.cached(one);
        if one.set.suspended {
            return self.observe(one, cached).await;
        }
        if one.set.withheld.contains(&one.ordinal) {
            return self.withhold(writes, one, cached).await;
        }
        let standing = self.not_written.lock().standing(one);
        if let Some(cause) = standing.filter(|_| self.awaits(one)) {
            return self.left(one, cause);
        }
        let told = self.ownership.instruction(one, cached.seen());
        if let ObservedObject::Present(object) = &cached {
            match self.need(one, object, &told).await {
                Ok(Need::Nothing { note }) => return Synced::noted(cached, note),
                Ok(Need::Write) => {}
                Err(error) => return Synced::failed(error, cached),
            }
        }
        match self.write_manifest(writes, one, &cached, told).await {
            Ok(synced) => synced,
            Err(error @ MemberError::NotServed { .. }) => {
                Synced::failed(error, ObservedObject::Absent)
            }
            Err(error) => Synced::failed(error, cached),
        }
    }

    /// Returns the result of a manifest if its object was left as it is.
    pub(crate) fn left(&self, one: &ManifestRef<'_, O::Source>, cause: NotWritten) -> Synced {
        let again = match &cause {
            _ if !self.awaits(one) => Again::After(UNSEEN),
            NotWritten::Rejected { .. } => Again::After(REJECTION),
            _ => Again::AtChange,
        };
        Synced {
            left: Some(again),
            ..cause.into_synced(one)
        }
    }

    /// Returns `true` if a change of the manifest's object wakes its set, whosever it is.
    pub(crate) fn awaits(&self, one: &ManifestRef<'_, O::Source>) -> bool {
        self.sees_all && self.watches.state(&one.kind()) == WatchState::Complete
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

    /// Returns the observation of the manifest if `object` is there: nothing, unless it is the set's.
    pub(crate) fn owned(
        &self,
        one: &ManifestRef<'_, O::Source>,
        object: Option<Value>,
    ) -> ObservedObject {
        match object {
            Some(object) if self.is_of_set(one, &object) => ObservedObject::Present(object),
            _ => ObservedObject::Absent,
        }
    }

    /// Returns `true` if an object is that of the manifest's set.
    pub(crate) fn is_of_set(&self, one: &ManifestRef<'_, O::Source>, object: &Value) -> bool {
        self.ownership.set_of(object).as_ref() == Some(&one.set.key)
    }

    /// Observes the object of a suspended set. If its application was not reported, the object itself shows it.
    async fn observe(&self, one: &ManifestRef<'_, O::Source>, object: ObservedObject) -> Synced {
        let settled = match &object {
            ObservedObject::Present(cached) if one.set.last_write == LastWrite::Unknown => {
                self.find_settled(one, cached).await
            }
            _ => Ok(None),
        };
        match settled {
            Ok(settled) => Synced::observed(settled.map_or(object, ObservedObject::Settled)),
            Err(error) => Synced::failed(error, object),
        }
    }
}
