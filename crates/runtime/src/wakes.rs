//! The table of wakes: for each kind, the keys that its changes wake.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::Key;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::cache::Transition;
use crate::program::Program;
use crate::queue::{Queue, QueueKey};
use crate::store::Store;
use crate::watch::{Decoded, events};

type StoreOf<S, K, T> = Arc<dyn Fn(&mut S) -> &mut Store<K, T> + Send + Sync>;
type Rule<S, K> = Box<dyn FnMut(&mut S, &Transition<K>) + Send>;
type KnownRule<S> = Box<dyn FnMut(&mut S, &BTreeSet<Key>) + Send>;

/// The rows of a kind: the effect of its changes on the state `S`, which has its store, and the keys that they wake. All of it
/// happens under the lock of the state, so that whoever is woken finds the whole change.
pub struct Watch<S, K, T = ()> {
    state: Arc<Mutex<S>>,
    store: StoreOf<S, K, T>,
    rules: Vec<Rule<S, K>>,
    known_rules: Vec<KnownRule<S>>,
    unread_rules: Vec<KnownRule<S>>,
}

impl<S, K, T> Watch<S, K, T> {
    /// Creates the rows of the kind in `store`.
    pub fn new(
        state: &Arc<Mutex<S>>,
        store: impl Fn(&mut S) -> &mut Store<K, T> + Send + Sync + 'static,
    ) -> Self {
        Self {
            state: Arc::clone(state),
            store: Arc::new(store),
            rules: Vec::new(),
            known_rules: Vec::new(),
            unread_rules: Vec::new(),
        }
    }

    /// Does this at each change, before the next rows.
    #[must_use]
    pub fn follows(mut self, rule: impl FnMut(&mut S, &Transition<K>) + Send + 'static) -> Self {
        self.rules.push(Box::new(rule));
        self
    }

    /// Adds these keys to `queue` at each change.
    #[must_use]
    pub fn wakes<Q, I>(
        self,
        queue: &Queue<Q>,
        mut keys: impl FnMut(&mut S, &Transition<K>) -> I + Send + 'static,
    ) -> Self
    where
        Q: QueueKey,
        I: IntoIterator<Item = Q>,
    {
        let queue = queue.clone();
        self.follows(move |state, change| queue.add_all(keys(state, change)))
    }

    /// Adds these keys to each of `queues` at each change.
    #[must_use]
    pub fn wakes_each<Q, I>(
        self,
        queues: &[Queue<Q>],
        mut keys: impl FnMut(&mut S, &Transition<K>) -> I + Send + 'static,
    ) -> Self
    where
        Q: QueueKey,
        I: IntoIterator<Item = Q>,
    {
        let queues = queues.to_vec();
        self.follows(move |state, change| {
            let keys: Vec<Q> = keys(state, change).into_iter().collect();
            for queue in &queues {
                queue.add_all(keys.iter().cloned());
            }
        })
    }

    /// Does this when less is known: these objects have appeared, and do not decode.
    #[must_use]
    pub fn follows_unread(
        mut self,
        rule: impl FnMut(&mut S, &BTreeSet<Key>) + Send + 'static,
    ) -> Self {
        self.unread_rules.push(Box::new(rule));
        self
    }

    /// Does this when more is known than by any one change: every object was listed for the first time, or these that had
    /// never decoded do, or are gone.
    #[must_use]
    pub fn follows_known(
        mut self,
        rule: impl FnMut(&mut S, &BTreeSet<Key>) + Send + 'static,
    ) -> Self {
        self.known_rules.push(Box::new(rule));
        self
    }

    /// Adds these keys to `queue` when more is known, as [`Self::follows_known`] has it.
    #[must_use]
    pub fn wakes_when_known<Q, I>(
        self,
        queue: &Queue<Q>,
        mut keys: impl FnMut(&mut S, &BTreeSet<Key>) -> I + Send + 'static,
    ) -> Self
    where
        Q: QueueKey,
        I: IntoIterator<Item = Q>,
    {
        let queue = queue.clone();
        self.follows_known(move |state, mended| queue.add_all(keys(state, mended)))
    }
}

impl<S, K: Resource + Clone + Default, T: Clone + Ord> Watch<S, K, T> {
    /// Applies an event to the state, and wakes whom it concerns.
    pub fn observe(&mut self, event: Event<Decoded<K>>) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let changes = (self.store)(state).observe(event);
        for change in &changes.objects {
            for rule in &mut self.rules {
                rule(state, change);
            }
        }
        if changes.is_first_list || !changes.mended.is_empty() {
            for rule in &mut self.known_rules {
                rule(state, &changes.mended);
            }
        }
        if !changes.unread.is_empty() {
            for rule in &mut self.unread_rules {
                rule(state, &changes.unread);
            }
        }
    }
}

impl<S, K, T> Watch<S, K, T>
where
    S: Send + 'static,
    K: Resource<DynamicType: Default> + Clone + Default + DeserializeOwned + Debug + Send + 'static,
    T: Clone + Ord + 'static,
{
    /// Watches all objects as [`Program::watch`] does. This and the others count those that do not decode.
    pub fn start(self, program: &mut Program, client: &Client, name: &'static str) {
        self.start_selected(program, client, name, Config::default());
    }

    /// Watches selected objects, else as [`Self::start`] does.
    pub fn start_selected(
        self,
        program: &mut Program,
        client: &Client,
        name: &'static str,
        selected: Config,
    ) {
        let observe = self.into_observer(program, &K::kind(&K::DynamicType::default()));
        program.watch(name, Api::all(client.clone()), selected, observe);
    }

    /// Watches selected objects as [`Program::watch_kind`] does, of each of which `read` makes one of this store.
    pub fn start_as<R>(
        self,
        program: &mut Program,
        name: &'static str,
        (api, kind): (Api<Decoded<R>>, &R::DynamicType),
        selected: Config,
        read: impl Fn(Decoded<R>) -> Decoded<K> + Send + 'static,
    ) where
        R: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let mut observe = self.into_observer(program, &R::kind(kind));
        program.watch_kind(name, (api, kind), selected, move |event| {
            observe(map(event, &read));
        });
    }

    /// Watches objects as [`Program::watch_if_served`] does.
    pub fn start_if_served(
        self,
        program: &mut Program,
        name: &'static str,
        (api, kind): (Api<Decoded<K>>, &K::DynamicType),
    ) {
        let observe = self.into_observer(program, &K::kind(kind));
        program.watch_if_served(name, (api, kind), Config::default(), observe);
    }

    /// Watches objects as [`Program::watch_elsewhere`] does.
    pub fn start_elsewhere(
        self,
        program: &mut Program,
        name: &'static str,
        api: Api<Decoded<K>>,
        selected: Config,
    ) {
        let observe = self.into_observer(program, &K::kind(&K::DynamicType::default()));
        program.watch_elsewhere(name, api, selected, observe);
    }

    /// Watches selected objects, which may not be possible: nothing waits for it.
    pub fn start_ungated(
        self,
        program: &mut Program,
        client: &Client,
        name: &'static str,
        selected: Config,
    ) {
        let following = self.follow(program, client, selected);
        program.run_until_stopped(name, following);
    }

    /// Returns a future that watches selected objects for as long as it is polled.
    pub fn follow(
        self,
        program: &mut Program,
        client: &Client,
        selected: Config,
    ) -> impl Future<Output = ()> + Send + use<S, K, T> {
        let mut observe = self.into_observer(program, &K::kind(&K::DynamicType::default()));
        let all = Api::all(client.clone());
        async move {
            let mut changes = std::pin::pin!(events(all, selected));
            while let Some(event) = changes.next().await {
                observe(event);
            }
        }
    }

    /// Returns an observer that applies the events of a watch of objects that the API has as this `kind`, and counts those that do not
    /// decode.
    pub fn into_observer(
        mut self,
        program: &mut Program,
        kind: &str,
    ) -> impl FnMut(Event<Decoded<K>>) + Send + use<S, K, T> {
        let (state, store) = (Arc::clone(&self.state), Arc::clone(&self.store));
        let kind = kind.to_owned();
        program.report_undecoded(move || {
            let undecoded = store(&mut state.lock()).undecoded();
            vec![(kind.clone(), undecoded)]
        });
        move |event| self.observe(event)
    }
}

fn map<R, K>(event: Event<R>, make: impl FnOnce(R) -> K) -> Event<K> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(make(object)),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(make(object)),
        Event::Delete(object) => Event::Delete(make(object)),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{from_value, json};

    use super::*;

    #[derive(Default)]
    struct State {
        maps: Store<ConfigMap>,
        changes: usize,
    }

    /// A rule finds the work of the rows before it, and the keys that wait for the whole are woken once that is known.
    #[test]
    fn rows_wake_in_order() {
        let (state, queue) = (Arc::<Mutex<State>>::default(), Queue::default());
        let mut watch = Watch::new(&state, |state| &mut state.maps)
            .follows(|state, _| state.changes += 1)
            .wakes(&queue, |state, change| {
                [(change.key.name.clone(), state.changes)]
            })
            .wakes_when_known(&queue, |_, mended| [("all".to_owned(), mended.len())]);
        let [a, b] = ["a", "b"].map(|name| json!({ "name": name, "resourceVersion": "1" }));
        let map = from_value(json!({ "metadata": a })).unwrap();
        let unreadable = Decoded::Invalid {
            metadata: Box::new(from_value(b).unwrap()),
            error: "no such field".to_owned(),
        };
        watch.observe(Event::Apply(Decoded::Valid(map)));
        assert_eq!(queue.take_all(), [("a".to_owned(), 1)]);
        watch.observe(Event::Apply(unreadable.clone()));
        assert!(queue.is_empty());
        watch.observe(Event::Delete(unreadable));
        assert_eq!(queue.take_all(), [("all".to_owned(), 1)]);
        watch.observe(Event::InitDone);
        assert_eq!(queue.take_all(), [("all".to_owned(), 0)]);
        watch.observe(Event::InitDone);
        assert!(queue.is_empty());
    }
}
