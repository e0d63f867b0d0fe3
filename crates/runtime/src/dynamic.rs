//! Watches of kinds that are known only at run time, each started and stopped on its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use kube::discovery::{Scope, pinned_kind};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::write::{ObjectRef, Write};
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::cache::{Cache, Transition};
use crate::error::{Chain, LastError};
use crate::untyped::Untyped;
use crate::watch::{
    Decoded, WatchLog, attempts, decoded, is_forbidden, is_refused_list, kept, raw,
};

/// The pause before a kind that the API did not serve, or about which it did not answer, is looked up
/// again. Long, because a kind is often named before its definition is installed, and for good.
const LOOKUP_AGAIN: Duration = Duration::from_secs(10);
/// The time after which nobody waits any longer for a list that the API answers with errors, as one whose conversion
/// webhook is gone.
const FAILS_FOR_LONG: Duration = Duration::from_secs(30);

/// The watches of one API; clones share them.
#[derive(Clone)]
pub struct DynamicWatches {
    client: Client,
    shared: Arc<Shared>,
}

struct Shared {
    kinds: Mutex<BTreeMap<GroupVersionKind, Watched>>,
    wanted: watch::Sender<BTreeSet<GroupVersionKind>>,
}

/// A kind that is watched.
struct Watched {
    state: WatchState,
    served: Option<ServedKind>,
    objects: Cache<Untyped>,
    stop: CancellationToken,
}

/// The state of the watch of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// Nobody wants the kind.
    Off,
    /// The first list is not complete yet.
    Listing,
    /// The API does not serve the kind.
    NotServed,
    /// The API lets nobody of our name list the kind; it is tried again.
    Forbidden,
    /// The API has answered each list with an error for long; it is tried again.
    Failing,
    /// Every object has been listed.
    Complete,
}

/// A kind as the API serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// Its names.
    pub resource: ApiResource,
    /// True if its objects have a namespace.
    pub namespaced: bool,
}

/// The objects of a kind that are watched.
#[derive(Clone, Debug)]
pub struct Selected {
    /// Those that the API sends.
    pub sent: Config,
    /// Returns `true` for those of them that are kept. The others do not exist for the watches.
    pub keeps: fn(&ObjectMeta) -> bool,
    /// True if each is kept with its labels, annotations and owners at hand. Without them it takes half the memory.
    pub labels_at_hand: bool,
}

impl From<Config> for Selected {
    fn from(sent: Config) -> Self {
        Self {
            sent,
            keeps: |_| true,
            labels_at_hand: true,
        }
    }
}

/// A change that the watches saw.
#[derive(Debug)]
pub enum DynamicEvent {
    /// Objects of the kind changed.
    Changed(Vec<Transition<Untyped>>),
    /// An object that is not kept has changed to this, or is gone.
    Unkept(Key, Option<Box<Untyped>>),
    /// Every object of the kind has been listed, for the first time or anew.
    Listed,
    /// The API does not serve the kind.
    NotServed,
    /// The API does not let us list the kind.
    Forbidden,
    /// The API has answered each list of the kind with an error for long.
    Failing,
}

impl DynamicWatches {
    /// Creates the watches of an API, and the future that runs them: it ends only when dropped. `select`
    /// returns which objects of a kind are watched. Each event is passed to `observe` after the objects have
    /// changed, in the order of each kind's events.
    pub fn new<S: Into<Selected>>(
        client: Client,
        select: impl Fn(&ServedKind) -> S + Send + Sync + 'static,
        observe: impl Fn(&GroupVersionKind, DynamicEvent) + Send + Sync + 'static,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let watches = Self {
            client,
            shared: Arc::new(Shared {
                kinds: Mutex::default(),
                wanted: watch::Sender::new(BTreeSet::new()),
            }),
        };
        let running = watches.clone().run(
            Arc::new(move |kind: &ServedKind| select(kind).into()),
            Arc::new(observe),
        );
        (watches, running)
    }

    /// Watches these kinds from now on, and no others. The objects of a kind that is no longer wanted are
    /// forgotten.
    pub fn want(&self, kinds: BTreeSet<GroupVersionKind>) {
        self.shared.wanted.send_if_modified(|wanted| {
            let changed = *wanted != kinds;
            *wanted = kinds;
            changed
        });
    }

    /// Returns the last valid version of an object.
    pub fn get(&self, kind: &GroupVersionKind, key: &Key) -> Option<Arc<Untyped>> {
        let kinds = self.shared.kinds.lock();
        kinds.get(kind)?.objects.get(key).map(Arc::clone)
    }

    /// Takes in an object as a write has made it, which is `stored` now, and returns the change, which is not passed to
    /// whoever observes the others.
    pub fn written(
        &self,
        kind: &GroupVersionKind,
        write: &Write,
        stored: &ObjectRef,
    ) -> Option<Transition<Untyped>> {
        let mut kinds = self.shared.kinds.lock();
        let objects = &mut kinds.get_mut(kind)?.objects;
        objects.written_as(write, stored, |known| known.written(write, stored))
    }

    /// Passes every object of a kind to `visit`, which must not ask the watches for more.
    pub fn each(&self, kind: &GroupVersionKind, mut visit: impl FnMut(&Key, &Untyped)) {
        let kinds = self.shared.kinds.lock();
        for (key, object) in kinds
            .get(kind)
            .iter()
            .flat_map(|watched| watched.objects.iter())
        {
            visit(key, object);
        }
    }

    /// Returns every object of a kind with its key.
    pub fn objects(&self, kind: &GroupVersionKind) -> Vec<(Key, Arc<Untyped>)> {
        let kinds = self.shared.kinds.lock();
        let objects = kinds
            .get(kind)
            .into_iter()
            .flat_map(|watched| watched.objects.iter());
        objects
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect()
    }

    /// Returns the state of the watch of a kind.
    pub fn state(&self, kind: &GroupVersionKind) -> WatchState {
        let kinds = self.shared.kinds.lock();
        kinds
            .get(kind)
            .map_or(WatchState::Off, |watched| watched.state)
    }

    /// Returns the kind as the API serves it, once that is known.
    pub fn served(&self, kind: &GroupVersionKind) -> Option<ServedKind> {
        let kinds = self.shared.kinds.lock();
        kinds.get(kind)?.served.clone()
    }

    async fn run(self, select: Arc<Selector>, observe: Arc<Observer>) {
        let mut wanted = self.shared.wanted.subscribe();
        let mut watches = FuturesUnordered::<BoxFuture<'static, ()>>::new();
        loop {
            let kinds = wanted.borrow_and_update().clone();
            for kind in self.shared.replace(&kinds) {
                let watch = Watch {
                    client: self.client.clone(),
                    shared: Arc::clone(&self.shared),
                    select: Arc::clone(&select),
                    observe: Arc::clone(&observe),
                    kind,
                };
                watches.push(Box::pin(watch.run()));
            }
            loop {
                tokio::select! {
                    biased;
                    // The sender lives in `self`.
                    _ = wanted.changed() => break,
                    Some(()) = watches.next() => {}
                }
            }
        }
    }
}

type Selector = dyn Fn(&ServedKind) -> Selected + Send + Sync;
type Observer = dyn Fn(&GroupVersionKind, DynamicEvent) + Send + Sync;

impl Shared {
    /// Stops the watches of kinds that are not among `wanted`, and returns the kinds that are new.
    fn replace(&self, wanted: &BTreeSet<GroupVersionKind>) -> Vec<GroupVersionKind> {
        let mut kinds = self.kinds.lock();
        kinds.retain(|kind, watched| {
            let keep = wanted.contains(kind);
            if !keep {
                watched.stop.cancel();
            }
            keep
        });
        let mut new = Vec::new();
        for kind in wanted {
            kinds.entry(kind.clone()).or_insert_with(|| {
                new.push(kind.clone());
                Watched {
                    state: WatchState::Listing,
                    served: None,
                    objects: Cache::default(),
                    stop: CancellationToken::new(),
                }
            });
        }
        new
    }
}

/// The watch of one kind.
struct Watch {
    client: Client,
    shared: Arc<Shared>,
    select: Arc<Selector>,
    observe: Arc<Observer>,
    kind: GroupVersionKind,
}

impl Watch {
    async fn run(self) {
        let stop = {
            let kinds = self.shared.kinds.lock();
            let Some(watched) = kinds.get(&self.kind) else {
                return;
            };
            watched.stop.clone()
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.watch(&stop) => {}
        }
    }

    async fn watch(&self, stop: &CancellationToken) {
        let served = self.look_up(stop).await;
        let mut log = WatchLog::new(&self.kind.kind);
        let objects: Api<Decoded<Untyped>> = Api::all_with(self.client.clone(), &served.resource);
        let Selected {
            sent,
            keeps,
            labels_at_hand,
        } = (self.select)(&served);
        let mut attempts = attempts(raw(objects), sent);
        let mut failing_since = None;
        while let Some(result) = attempts.next().await {
            match &result {
                Err(error) if is_forbidden(error) => {
                    self.block(stop, WatchState::Forbidden, DynamicEvent::Forbidden);
                }
                Err(error) if is_refused_list(error) => {
                    let since = failing_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= FAILS_FOR_LONG {
                        self.block(stop, WatchState::Failing, DynamicEvent::Failing);
                    }
                }
                _ => {}
            }
            let Some(event) = log.filter(result).map(decoded) else {
                continue;
            };
            let unkept = unkept(&event, keeps);
            let Some(mut event) = kept(event, keeps) else {
                continue;
            };
            if let Event::InitApply(Decoded::Valid(object)) | Event::Apply(Decoded::Valid(object)) =
                &mut event
            {
                object.name_kind(&self.kind);
                if !labels_at_hand {
                    object.drop_labels();
                }
            }
            let listed = matches!(event, Event::InitDone);
            let mut transitions = Vec::new();
            self.change(stop, |watched| {
                transitions = watched.objects.observe(event);
                if listed {
                    watched.state = WatchState::Complete;
                }
            });
            if !transitions.is_empty() {
                (self.observe)(&self.kind, DynamicEvent::Changed(transitions));
            } else if let Some((key, object)) = unkept {
                (self.observe)(&self.kind, DynamicEvent::Unkept(key, object));
            }
            if listed {
                (self.observe)(&self.kind, DynamicEvent::Listed);
            }
        }
    }

    /// Notes that the kind cannot be listed, unless its objects are known from earlier.
    fn block(&self, stop: &CancellationToken, state: WatchState, event: DynamicEvent) {
        let mut is_news = false;
        self.change(stop, |watched| {
            is_news = ![WatchState::Complete, state].contains(&watched.state);
            if is_news {
                watched.state = state;
            }
        });
        if is_news {
            (self.observe)(&self.kind, event);
        }
    }

    /// Asks the API for the names and the scope of the kind until it serves it.
    async fn look_up(&self, stop: &CancellationToken) -> ServedKind {
        let GroupVersionKind {
            group,
            version,
            kind,
        } = &self.kind;
        let kind = kube::core::GroupVersionKind::gvk(group, version, kind);
        let mut last_error = LastError::default();
        loop {
            match pinned_kind(&self.client, &kind).await {
                Ok((resource, capabilities)) => {
                    let namespaced = capabilities.scope == Scope::Namespaced;
                    let served = ServedKind {
                        resource,
                        namespaced,
                    };
                    self.change(stop, |watched| {
                        watched.served = Some(served.clone());
                        watched.state = WatchState::Listing;
                    });
                    return served;
                }
                Err(error) if is_not_served(&error) => {
                    self.change(stop, |watched| watched.state = WatchState::NotServed);
                    (self.observe)(&self.kind, DynamicEvent::NotServed);
                }
                Err(error) => {
                    let error = Chain(&error).to_string();
                    if last_error.replace(&error) {
                        tracing::warn!(kind = %self.kind, error, "Cannot look up a kind, will retry");
                    }
                }
            }
            sleep(LOOKUP_AGAIN).await;
        }
    }

    /// Changes the state of the kind, unless it was stopped meanwhile and may be watched anew.
    fn change(&self, stop: &CancellationToken, change: impl FnOnce(&mut Watched)) {
        let mut kinds = self.shared.kinds.lock();
        if let Some(watched) = kinds.get_mut(&self.kind)
            && !stop.is_cancelled()
        {
            change(watched);
        }
    }
}

/// Returns the object of an event that is not kept, as it is now. Those of a list are told of by its end.
fn unkept(
    event: &Event<Decoded<Untyped>>,
    keeps: fn(&ObjectMeta) -> bool,
) -> Option<(Key, Option<Box<Untyped>>)> {
    let (Event::Apply(object) | Event::Delete(object)) = event else {
        return None;
    };
    if keeps(object.meta()) {
        return None;
    }
    let now = match event {
        Event::Apply(Decoded::Valid(object)) => Some(Box::new(object.clone())),
        _ => None,
    };
    Some((Key::of(object), now))
}

/// Returns `true` if the API answered that it has no such group, version or kind.
fn is_not_served(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 404,
        kube::Error::Discovery(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
