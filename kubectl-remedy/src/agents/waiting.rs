//! The wait for those who carry Works out: a watch of all of one name, whatever their number.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::stream::select_all;
use futures::{Stream, StreamExt};
use karmada_api::cluster_view::PULL;
use karmada_api::condition::TRUE;
use karmada_api::work::APPLIED;
use karmada_api::{ClusterView, Work};
use karmada_rules::execution::applied;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Error as WatchError, Event, watcher};
use kube::{Api, Client};
use objects::Key;
use objects::condition::find;

use super::requests::refused;
use crate::error::Error;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// The member has the manifests of the Work.
    Applied,
    /// The Work is gone, and what it brought.
    Gone,
}

/// Works that are waited for, each as it was seen last.
#[derive(Debug)]
pub(super) struct Waiting {
    goal: Goal,
    left: BTreeMap<Key, Option<Work>>,
    /// Those of each name that the list in progress has shown.
    listed: BTreeMap<&'static str, BTreeSet<Key>>,
}

impl Waiting {
    /// Begins to wait for these Works.
    pub(super) fn new(goal: Goal, works: impl IntoIterator<Item = Key>) -> Self {
        Self {
            goal,
            left: works.into_iter().map(|key| (key, None)).collect(),
            listed: BTreeMap::new(),
        }
    }

    /// Waits until nothing is left, and tells `reached` of each Work on the way. Returns those that are left after `limit`.
    pub(super) async fn run(
        mut self,
        names: &[&'static str],
        limit: Duration,
        client: &Client,
        mut reached: impl FnMut(&Key),
    ) -> Result<BTreeMap<Key, Option<Work>>, Error> {
        if self.left.is_empty() {
            return Ok(self.left);
        }
        let watches = names.iter().map(|name| watch(name, client));
        let mut events = select_all(watches.map(StreamExt::boxed));
        let watching = async {
            while !self.left.is_empty()
                && let Some((name, event)) = events.next().await
            {
                match event {
                    Ok(event) => self.note(name, event).iter().for_each(&mut reached),
                    Err(error) => give_up(error)?,
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

    /// Notes what the watch of the Works called `name` shows, and returns those that have reached the goal.
    fn note(&mut self, name: &'static str, event: Event<Work>) -> Vec<Key> {
        match event {
            Event::Init => {
                self.listed.insert(name, BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(work) => {
                self.listed.entry(name).or_default().insert(Key::of(&work));
                self.seen(work)
            }
            Event::Apply(work) => self.seen(work),
            Event::InitDone => {
                let listed = self.listed.remove(name).unwrap_or_default();
                let absent = self.left.keys();
                let absent = absent.filter(|key| key.name == name && !listed.contains(*key));
                let absent: Vec<Key> = absent.cloned().collect();
                self.absent(absent)
            }
            Event::Delete(work) => self.absent(vec![Key::of(&work)]),
        }
    }

    fn seen(&mut self, work: Work) -> Vec<Key> {
        let key = Key::of(&work);
        if !self.left.contains_key(&key) {
            return Vec::new();
        }
        if self.goal == Goal::Applied && applied(&work).is_some() {
            self.left.remove(&key);
            return vec![key];
        }
        self.left.insert(key, Some(work));
        Vec::new()
    }

    fn absent(&mut self, keys: Vec<Key>) -> Vec<Key> {
        if self.goal == Goal::Gone {
            let mut keys = keys;
            keys.retain(|key| self.left.remove(key).is_some());
            return keys;
        }
        for key in keys {
            self.left.entry(key).and_modify(|work| *work = None);
        }
        Vec::new()
    }
}

fn watch(
    name: &'static str,
    client: &Client,
) -> impl Stream<Item = (&'static str, Result<Event<Work>, WatchError>)> + use<> {
    let works: Api<Work> = Api::all(client.clone());
    // A right to these names is enough.
    let named = Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher(works, named).default_backoff();
    events.map(move |event| (name, event))
}

/// Fails if the watch will never show anything.
fn give_up(error: WatchError) -> Result<(), Error> {
    match error {
        WatchError::InitialListFailed(source) | WatchError::WatchStartFailed(source) if matches!(&source, kube::Error::Api(status) if [401, 403, 404].contains(&status.code)) => {
            Err(refused("watch works", source))
        }
        _ => Ok(()),
    }
}

/// Tells why a Work has not reached its goal in time, and what to look at.
pub(super) fn explain(goal: Goal, work: Option<&Work>, cluster: Option<&ClusterView>) -> String {
    let late = match goal {
        Goal::Applied => "its Work is not applied",
        Goal::Gone => "its Work is not gone",
    };
    let failed = work.and_then(|work| work.condition(APPLIED));
    if let Some(failed) = failed.filter(|failed| failed.status != TRUE) {
        return format!("{late}: {}", failed.message);
    }
    if work.is_some_and(Work::is_suspended) {
        return format!("{late}: its spec.suspendDispatching is true");
    }
    let ready = cluster.and_then(|cluster| find(&cluster.status.conditions, "Ready"));
    if let Some(ready) = ready.filter(|ready| ready.status != TRUE) {
        let (reason, message) = (&ready.reason, &ready.message);
        return format!("{late}, because the cluster is not ready: {reason}: {message}");
    }
    let pulls = cluster.is_some_and(|cluster| cluster.spec.sync_mode == PULL);
    let look = if pulls {
        "the cluster is of mode Pull, and nobody in it carries Works out: look at its karmada-agent, or at our execution-controller there (docs/pull.md)"
    } else {
        "nobody carries Works out: look at karmada-controller-manager (its controller `execution`), or at our execution-controller and its lease karmada-system/execution-controller"
    };
    format!("{late}; {look}")
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

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

    /// A Work is applied once its condition says so, whoever else's is.
    #[test]
    fn applied_work_reaches_goal() {
        let applied = json!([{ "type": "Applied", "status": "True", "observedGeneration": 1 }]);
        let mut waiting = Waiting::new(Goal::Applied, [key("m1"), key("m2")]);
        assert_eq!(waiting.note("w", Event::Init), []);
        assert_eq!(
            waiting.note("w", Event::InitApply(work("m1", &json!([])))),
            []
        );
        assert_eq!(
            waiting.note("w", Event::InitApply(work("m9", &applied))),
            []
        );
        assert_eq!(waiting.note("w", Event::InitDone), []);
        assert_eq!(
            waiting.note("w", Event::Apply(work("m1", &applied))),
            [key("m1")]
        );
        assert_eq!(waiting.left.keys().collect::<Vec<_>>(), [&key("m2")]);
    }

    /// A Work is gone that a list lacks, or that is deleted.
    #[test]
    fn absent_work_is_gone() {
        let mut waiting = Waiting::new(Goal::Gone, [key("m1"), key("m2")]);
        waiting.note("w", Event::Init);
        waiting.note("w", Event::InitApply(work("m2", &json!([]))));
        assert_eq!(waiting.note("w", Event::InitDone), [key("m1")]);
        assert_eq!(
            waiting.note("w", Event::Delete(work("m2", &json!([])))),
            [key("m2")]
        );
        assert!(waiting.left.is_empty());
    }

    /// Whoever waits in vain learns where to look.
    #[test]
    fn late_work_is_explained() {
        let cluster = |mode: &str, ready: &str| -> ClusterView {
            let ready = json!({ "type": "Ready", "status": ready, "reason": "R", "message": "m" });
            from_value(
                json!({ "metadata": { "name": "m1" }, "spec": { "syncMode": mode },
                "status": { "conditions": [ready] } }),
            )
            .unwrap()
        };
        let failed = json!([{ "type": "Applied", "status": "False", "message": "no such kind" }]);
        let (failed, silent) = (work("m1", &failed), work("m1", &json!([])));
        let (push, pull) = (cluster("Push", "True"), cluster("Pull", "True"));
        let dead = cluster("Push", "False");
        for (work, cluster, part) in [
            (Some(&failed), &push, "not applied: no such kind"),
            (Some(&silent), &push, "karmada-controller-manager"),
            (Some(&silent), &pull, "mode Pull"),
            (None, &dead, "not ready: R: m"),
        ] {
            let text = explain(Goal::Applied, work, Some(cluster));
            assert!(text.contains(part), "{text}");
        }
    }
}
