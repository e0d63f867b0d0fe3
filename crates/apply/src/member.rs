//! The objects of Works in one member.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use karmada_api::Work;
use karmada_api::condition::TRUE;
use karmada_api::names::MANAGED;
use karmada_api::work::APPLIED;
use karmada_rules::execution::{
    ApplyPlan, Deletion, Settled, deletion, plan, reapply, replacement,
};
use karmada_rules::propagation::works::is_delivered;
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches, WatchState};
use karmada_runtime::write::{WriteError, WriteMode};
use kube::Client;
use kube::runtime::watcher::Config;
use objects::patch::JsonPatch;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::error::MemberError;
use crate::known::{Known, OfWork, State};
use crate::requests::{Objects, Place};
use crate::result::{ObservedObject, SyncResult, Synced};
use crate::wake::{Wake, woken};

/// The time after a start for which a Work waits for the list of its kinds: until then nearly every object
/// is known to be as its manifest has it, without a request for each.
const START: Duration = Duration::from_secs(5);

/// One member cluster: what was applied there, and what has become of it.
pub struct MemberCluster {
    objects: Objects,
    watches: DynamicWatches,
    started: Instant,
    state: Arc<Mutex<State>>,
}

impl MemberCluster {
    /// Creates a member whose Works are in `namespace`, and the future that runs its watches. Changes of
    /// their objects are passed to `wake`.
    pub fn new(
        client: Client,
        namespace: String,
        wake: impl Fn(Wake) + Send + Sync + 'static,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let state = Arc::new(Mutex::new(State::default()));
        let selected = Config::default().labels(&format!("{MANAGED}=true"));
        let waiting = Arc::clone(&state);
        let observe = move |_: &GroupVersionKind, event| match event {
            DynamicEvent::Changed(transitions) => {
                transitions
                    .iter()
                    .flat_map(|change| woken(change, &namespace))
                    .for_each(&wake);
            }
            DynamicEvent::Listed => {
                let works = std::mem::take(&mut waiting.lock().waiting);
                works.into_iter().map(Wake::Now).for_each(&wake);
            }
            DynamicEvent::NotServed => {}
        };
        let (watches, running) =
            DynamicWatches::new(client.clone(), move |_| selected.clone(), observe);
        let member = Self {
            objects: Objects::new(client),
            watches,
            started: Instant::now(),
            state,
        };
        (member, running)
    }

    /// Watches the objects of these kinds, and no others.
    pub fn want(&self, kinds: BTreeSet<GroupVersionKind>) {
        self.watches.want(kinds);
    }

    /// Forgets a Work that is gone.
    pub fn forget(&self, work: &Key) {
        let mut state = self.state.lock();
        state.works.remove(work);
        state.waiting.remove(work);
    }

    /// Brings the objects of `work` to its manifests, unless it is suspended, and reads them.
    pub async fn sync(&self, writes: &WriteMode, work: &Work) -> SyncResult {
        let key = Key::of(work);
        let manifests = &work.spec.workload.manifests;
        let left = START.saturating_sub(self.started.elapsed());
        let lists = |manifest| self.watches.state(&kind_of(manifest)) == WatchState::Listing;
        if !left.is_zero() && manifests.iter().any(lists) {
            self.state.lock().waiting.insert(key);
            return SyncResult::Later(left);
        }
        let generation = work.metadata.generation;
        self.state
            .lock()
            .works
            .entry(key.clone())
            .or_insert_with(|| Known {
                adopted: generation,
                settled: Vec::new(),
            });
        let mut synced = Vec::new();
        for (ordinal, manifest) in manifests.iter().enumerate() {
            let one = OfWork {
                work,
                key: &key,
                ordinal,
                manifest,
            };
            synced.push(self.sync_one(writes, one).await);
        }
        let mut state = self.state.lock();
        if synced.iter().any(Synced::waits) {
            state.waiting.insert(key.clone());
        }
        let first = state.works.get(&key).and_then(|known| known.adopted);
        SyncResult::Done {
            manifests: synced,
            adopted: first.is_some() && first == generation,
        }
    }

    async fn sync_one(&self, writes: &WriteMode, one: OfWork<'_>) -> Synced {
        let OfWork { work, manifest, .. } = one;
        let kind = kind_of(manifest);
        let key = key_of(manifest);
        let complete = self.watches.state(&kind) == WatchState::Complete;
        let cached = complete.then(|| self.watches.get(&kind, &key).map(|object| object.value()));
        if work.is_suspended() {
            let object = cached.map_or(ObservedObject::Unknown, |object| {
                ObservedObject::of(work, object)
            });
            return self.look(one, (&kind, &key), object).await;
        }
        if let Some(Some(object)) = &cached
            && self.is_settled(one, object)
        {
            let object = ObservedObject::of(work, cached.flatten());
            return Synced {
                error: None,
                object,
                written: false,
            };
        }
        let known = cached.as_ref().and_then(Option::as_ref);
        match self.bring(writes, one, (&kind, &key), known).await {
            Ok((object, written)) => Synced {
                error: None,
                object: ObservedObject::of(work, object),
                written,
            },
            Err(error) => Synced {
                object: match &error {
                    MemberError::Refused(_) | MemberError::NotServed(_) => ObservedObject::Absent,
                    _ => cached.map_or(ObservedObject::Unknown, |object| {
                        ObservedObject::of(work, object)
                    }),
                },
                error: Some(error),
                written: false,
            },
        }
    }

    /// Looks at the object of a suspended Work. If its application was not reported, it is told by what the
    /// object has.
    async fn look(
        &self,
        one: OfWork<'_>,
        place: (&GroupVersionKind, &Key),
        object: ObservedObject,
    ) -> Synced {
        let settled = match &object {
            ObservedObject::Present(object) if !is_delivered(one.work) => {
                self.find_settled(one, place, object).await
            }
            _ => Ok(None),
        };
        match settled {
            Ok(settled) => Synced {
                error: None,
                object: settled.map_or(object, ObservedObject::Settled),
                written: false,
            },
            Err(error) => Synced {
                error: Some(error),
                object,
                written: false,
            },
        }
    }

    /// Returns the object if a sync would find nothing to apply. Only a live look can tell: a field that has
    /// left the manifest shows in the managed fields, which the cache lacks.
    async fn find_settled(
        &self,
        one: OfWork<'_>,
        (kind, key): (&GroupVersionKind, &Key),
        cached: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let is_settled =
            |object: &Value| plan(one.work, one.manifest, Some(object)) == ApplyPlan::Unchanged;
        if !is_settled(cached) {
            return Ok(None);
        }
        let place = self.objects.place(kind, key).await?;
        let object = self.objects.get(&place).await?;
        Ok(object.filter(is_settled))
    }

    /// Returns `true` if the object in the cache needs nothing.
    fn is_settled(&self, one: OfWork<'_>, object: &Value) -> bool {
        let record = self.state.lock().record(one);
        let applied_before = match record {
            Some(before) if before.manifest != one.hash() => {
                // The edit may have taken a field out, which only the managed fields show.
                return false;
            }
            Some(before) if before.object == Settled::of(object) => return true,
            Some(_) => true,
            None => is_applied(one.work),
        };
        let unchanged =
            applied_before && plan(one.work, one.manifest, Some(object)) == ApplyPlan::Unchanged;
        if unchanged {
            self.state.lock().settle(one, object);
        }
        unchanged
    }

    /// Plans the write of a new manifest without a live look at the object, which `cached` shows as we
    /// have left it.
    fn reapply(&self, one: OfWork<'_>, cached: Option<&Value>) -> Option<ApplyPlan> {
        let (record, cached) = (self.state.lock().record(one)?, cached?);
        let is_as_left = record.is_ours && record.object == Settled::of(cached);
        is_as_left.then(|| reapply(one.work, one.manifest, cached))?
    }

    /// Writes what the object lacks. Returns the object, and if it was written. Unless [`Self::reapply`]
    /// shows that there is no need to, it is read live.
    async fn bring(
        &self,
        writes: &WriteMode,
        one: OfWork<'_>,
        (kind, key): (&GroupVersionKind, &Key),
        cached: Option<&Value>,
    ) -> Result<(Option<Value>, bool), MemberError> {
        if kind.kind.is_empty() || kind.version.is_empty() {
            return Err(MemberError::Manifest("apiVersion and kind"));
        }
        if key.name.is_empty() {
            return Err(MemberError::Manifest("name"));
        }
        let place = self.objects.place(kind, key).await?;
        let mut reapplied = self.reapply(one, cached);
        let mut again = true;
        loop {
            let (object, plan) = if let Some(reapply) = reapplied.take() {
                (cached.cloned(), reapply)
            } else {
                let object = self.objects.get(&place).await?;
                let plan = plan(one.work, one.manifest, object.as_ref());
                (object, plan)
            };
            let written = match plan {
                ApplyPlan::Unchanged => Ok(None),
                ApplyPlan::Refuse { message } => return Err(MemberError::Refused(message)),
                ApplyPlan::Create { body } => self.create(writes, &place, &body).await,
                ApplyPlan::Apply { body, take_over } => {
                    self.apply(writes, &place, &body, take_over, object.as_ref())
                        .await
                }
            };
            match written {
                Ok(written) => {
                    let is_written = written.is_some();
                    if is_written && let Some(known) = self.state.lock().works.get_mut(one.key) {
                        known.adopted = None;
                    }
                    let object = written.or(object);
                    if let Some(object) = &object {
                        self.state.lock().settle(one, object);
                    }
                    return Ok((object, is_written));
                }
                // Another was faster: its object is to be looked at first.
                Err(error) if error.is_conflict() && again => again = false,
                Err(error) => {
                    if error.is_missing() {
                        self.objects.forget(kind);
                    }
                    return Err(error);
                }
            }
        }
    }

    async fn create(
        &self,
        writes: &WriteMode,
        place: &Place,
        body: &Value,
    ) -> Result<Option<Value>, MemberError> {
        let call = self.objects.apply(place, body, false);
        match writes
            .write("member_create", call)
            .await
            .map_err(MemberError::from)
        {
            Err(error) if error.is_about_duplicates() => {
                let call = self.objects.create(place, body);
                Ok(writes.write("member_create", call).await?)
            }
            result => result,
        }
    }

    async fn apply(
        &self,
        writes: &WriteMode,
        place: &Place,
        body: &Value,
        take_over: Option<JsonPatch>,
        object: Option<&Value>,
    ) -> Result<Option<Value>, MemberError> {
        if let Some(patch) = take_over {
            let call = self.objects.json_patch(place, patch);
            writes.write("member_managed_fields", call).await?;
        }
        let call = self.objects.apply(place, body, true);
        match writes
            .write("member_apply", call)
            .await
            .map_err(MemberError::from)
        {
            Err(error) if error.is_about_duplicates() => {
                // The managed fields are another version now: without it, the last write wins.
                let mut body = replacement(body, object.unwrap_or(&Value::Null));
                if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
                    let current = self.objects.get(place).await?.unwrap_or_default();
                    let version = current.pointer("/metadata/resourceVersion");
                    metadata.insert("resourceVersion".to_owned(), version.cloned().into());
                }
                let call = self.objects.replace(place, &body);
                Ok(writes.write("member_apply", call).await?)
            }
            result => result,
        }
    }

    /// Deletes or releases the objects of a Work that is being deleted.
    ///
    /// # Errors
    /// Fails at the first object that could not be given up.
    pub async fn give_up(&self, writes: &WriteMode, work: &Work) -> Result<(), MemberError> {
        for manifest in &work.spec.workload.manifests {
            let (kind, key) = (kind_of(manifest), key_of(manifest));
            let place = match self.objects.place(&kind, &key).await {
                Ok(place) => place,
                // What cannot exist was never applied.
                Err(MemberError::NotServed(_) | MemberError::Manifest(_)) => continue,
                Err(error) => return Err(error),
            };
            // The cache is behind at worst: then the uid is that of a former object.
            let cached = self.watches.get(&kind, &key).map(|object| object.value());
            if let Deletion::Delete { uid } = deletion(work, cached.as_ref()) {
                match self.delete(writes, &place, &uid).await {
                    Ok(true) => continue,
                    Err(error) if !error.is_conflict() => return Err(error),
                    Ok(false) | Err(_) => {}
                }
            }
            let object = self.objects.get(&place).await?;
            match deletion(work, object.as_ref()) {
                Deletion::Nothing => {}
                Deletion::Delete { uid } => {
                    self.delete(writes, &place, &uid).await?;
                }
                Deletion::Release { patch } => {
                    let call = self.objects.merge(&place, &patch);
                    let released = writes.write("member_release", call).await;
                    is_done(released.map(drop))?;
                }
            }
        }
        self.forget(&Key::of(work));
        Ok(())
    }

    /// Deletes the object with the uid. Returns `false` if there is no such object.
    async fn delete(
        &self,
        writes: &WriteMode,
        place: &Place,
        uid: &str,
    ) -> Result<bool, MemberError> {
        let call = self.objects.delete(place, uid);
        is_done(writes.write("member_delete", call).await.map(drop))
    }
}

/// Returns `false` if the object of a write went before it.
fn is_done(written: Result<(), WriteError>) -> Result<bool, MemberError> {
    match written.map_err(MemberError::from) {
        Ok(()) => Ok(true),
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns `true` if the Work was applied as it is now, or by Karmada, which does not note the generation.
fn is_applied(work: &Work) -> bool {
    work.condition(APPLIED).is_some_and(|applied| {
        applied.status == TRUE
            && (applied.observed_generation.is_none()
                || applied.observed_generation == work.metadata.generation)
    })
}

fn text<'a>(manifest: &'a Value, pointer: &str) -> &'a str {
    let value = manifest.pointer(pointer).and_then(Value::as_str);
    value.unwrap_or_default()
}

/// Returns the kind of a manifest.
fn kind_of(manifest: &Value) -> GroupVersionKind {
    GroupVersionKind::new(text(manifest, "/apiVersion"), text(manifest, "/kind"))
}

/// Returns the key of a manifest's object.
fn key_of(manifest: &Value) -> Key {
    Key::new(
        text(manifest, "/metadata/namespace"),
        text(manifest, "/metadata/name"),
    )
}
