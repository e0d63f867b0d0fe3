//! The wait for those who carry something out: a watch of the objects, whatever their number.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use futures::stream::select_all;
use futures::{Stream, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Error as WatchError, Event, watcher};
use kube::{Api, Client, Resource};
use objects::Key;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::requests::refused;

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal<K> {
    /// The object is as this says.
    Is(fn(&K) -> bool),
    /// The object is gone.
    Gone,
}

/// The objects that a watch is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Watched {
    All,
    /// Those of this name, in all namespaces: a right to the name is enough.
    Named(&'static str),
}

/// Objects that are waited for, each as it was seen last.
#[derive(Debug)]
pub(crate) struct Waiting<K> {
    goal: Goal<K>,
    left: BTreeMap<Key, Option<K>>,
    /// Those that the list in progress has shown, of each watch.
    listed: BTreeMap<Watched, BTreeSet<Key>>,
}

impl<K> Waiting<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    /// Begins to wait for these objects.
    pub(crate) fn new(goal: Goal<K>, objects: impl IntoIterator<Item = Key>) -> Self {
        Self {
            goal,
            left: objects.into_iter().map(|key| (key, None)).collect(),
            listed: BTreeMap::new(),
        }
    }

    /// Waits until nothing is left, and tells `reached` of each object on the way. Returns those that are left after `limit`.
    pub(crate) async fn run(
        mut self,
        watches: &[Watched],
        limit: Duration,
        client: &Client,
        mut reached: impl FnMut(&Key),
    ) -> Result<BTreeMap<Key, Option<K>>, Error> {
        if self.left.is_empty() {
            return Ok(self.left);
        }
        let streams = watches.iter().map(|watched| watch::<K>(*watched, client));
        let mut events = select_all(streams.map(StreamExt::boxed));
        let watching = async {
            while !self.left.is_empty()
                && let Some((watched, event)) = events.next().await
            {
                match event {
                    Ok(event) => self.note(watched, event).iter().for_each(&mut reached),
                    Err(error) => give_up::<K>(error)?,
                }
            }
            Ok::<_, Error>(())
        };
        // Whatever is left at the end is told of by the caller.
        tokio::time::timeout(limit, watching)
            .await
            .unwrap_or(Ok(()))?;
        Ok(self.left)
    }

    /// Notes an event of a watch, and returns those that have reached the goal.
    fn note(&mut self, watched: Watched, event: Event<K>) -> Vec<Key> {
        match event {
            Event::Init => {
                self.listed.insert(watched, BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                let listed = self.listed.entry(watched).or_default();
                listed.insert(Key::of(&object));
                self.seen(object)
            }
            Event::Apply(object) => self.seen(object),
            Event::InitDone => {
                let listed = self.listed.remove(&watched).unwrap_or_default();
                let absent = self.left.keys().filter(|key| {
                    let is_watched = match watched {
                        Watched::All => true,
                        Watched::Named(name) => key.name == name,
                    };
                    is_watched && !listed.contains(*key)
                });
                let absent: Vec<Key> = absent.cloned().collect();
                self.absent(absent)
            }
            Event::Delete(object) => self.absent(vec![Key::of(&object)]),
        }
    }

    fn seen(&mut self, object: K) -> Vec<Key> {
        let key = Key::of(&object);
        if !self.left.contains_key(&key) {
            return Vec::new();
        }
        if let Goal::Is(reached) = self.goal
            && reached(&object)
        {
            self.left.remove(&key);
            return vec![key];
        }
        self.left.insert(key, Some(object));
        Vec::new()
    }

    fn absent(&mut self, mut keys: Vec<Key>) -> Vec<Key> {
        if matches!(self.goal, Goal::Gone) {
            keys.retain(|key| self.left.remove(key).is_some());
            return keys;
        }
        for key in keys {
            self.left.entry(key).and_modify(|object| *object = None);
        }
        Vec::new()
    }
}

fn watch<K>(
    watched: Watched,
    client: &Client,
) -> impl Stream<Item = (Watched, Result<Event<K>, WatchError>)> + use<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let objects: Api<K> = Api::all(client.clone());
    let config = match watched {
        Watched::All => Config::default(),
        Watched::Named(name) => Config::default().fields(&format!("metadata.name={name}")),
    };
    let events = watcher(objects, config).default_backoff();
    events.map(move |event| (watched, event))
}

/// Fails if the watch will never show anything.
pub(crate) fn give_up<K: Resource<DynamicType = ()>>(error: WatchError) -> Result<(), Error> {
    match error {
        WatchError::InitialListFailed(source) | WatchError::WatchStartFailed(source) if matches!(&source, kube::Error::Api(status) if [401, 403, 404].contains(&status.code)) => {
            Err(refused(format!("watch {}", K::plural(&())), source))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::Work;
    use propagation_rules::execution::applied;
    use serde_json::{from_value, json};

    use super::*;

    const WATCHED: Watched = Watched::Named("w");

    fn is_applied(work: &Work) -> bool {
        applied(work).is_some()
    }

    fn work(cluster: &str, conditions: &serde_json::Value) -> Work {
        from_value(json!({
            "metadata": { "name": "w", "namespace": format!("karmada-es-{cluster}"), "generation": 1 },
            "spec": { "workload": { "manifests": [] } },
            "status": { "conditions": conditions },
        }))
        .unwrap()
    }

    fn key(cluster: &str) -> Key {
        Key::new(format!("karmada-es-{cluster}"), "w")
    }

    /// An object has reached its goal once it is as it should be, whatever another is.
    #[test]
    fn goal_is_reached() {
        let applied = json!([{ "type": "Applied", "status": "True", "observedGeneration": 1 }]);
        let mut waiting = Waiting::new(Goal::Is(is_applied), [key("m1"), key("m2")]);
        assert_eq!(waiting.note(WATCHED, Event::Init), []);
        assert_eq!(
            waiting.note(WATCHED, Event::InitApply(work("m1", &json!([])))),
            []
        );
        assert_eq!(
            waiting.note(WATCHED, Event::InitApply(work("m9", &applied))),
            []
        );
        assert_eq!(waiting.note(WATCHED, Event::InitDone), []);
        assert_eq!(
            waiting.note(WATCHED, Event::Apply(work("m1", &applied))),
            [key("m1")]
        );
        assert_eq!(waiting.left.keys().collect::<Vec<_>>(), [&key("m2")]);
    }

    /// An object is gone that a list of its watch lacks, or that is deleted.
    #[test]
    fn absent_object_is_gone() {
        let mut waiting = Waiting::<Work>::new(Goal::Gone, [key("m1"), key("m2")]);
        waiting.note(WATCHED, Event::Init);
        waiting.note(WATCHED, Event::InitApply(work("m2", &json!([]))));
        let other = Watched::Named("other");
        assert_eq!(waiting.note(other, Event::InitDone), []);
        assert_eq!(waiting.note(WATCHED, Event::InitDone), [key("m1")]);
        assert_eq!(
            waiting.note(WATCHED, Event::Delete(work("m2", &json!([])))),
            [key("m2")]
        );
        assert!(waiting.left.is_empty());
    }
}
