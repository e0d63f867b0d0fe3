mod wire;

use jiff::Timestamp;
use karmada_api::TRAFFIC_CONTROL;
use karmada_api::condition::DNS_READY;
use karmada_api::remedy::WHEN;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::runtime::watcher::Event;
use serde_json::{Value, from_value, json};
use traffic::ClusterKind;
use traffic::remedy::MaxBlocked;

use super::*;
use crate::index::Snapshot;

/// The watches, without an API.
pub(crate) struct Watched {
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) queues: Queues,
    clusters: Watch<Index, Cluster>,
    remedies: Watch<Index, Remedy, Reference>,
}

impl Watched {
    pub(crate) fn new(max_blocked: MaxBlocked, expectations: &Expectations) -> Self {
        let index = Index::new(
            ClusterKind::Cluster,
            max_blocked,
            || Timestamp::UNIX_EPOCH,
            expectations,
        );
        let (index, queues) = (Arc::new(Mutex::new(index)), Queues::default());
        Self {
            clusters: clusters(&index, &queues),
            remedies: remedies(&index, &queues, &Arc::default()),
            index,
            queues,
        }
    }

    fn unexpecting(max_blocked: MaxBlocked) -> Self {
        Self::new(max_blocked, &Expectations::default())
    }

    /// Observes a cluster, and returns the clusters that are woken.
    pub(crate) fn cluster(&mut self, event: Event<Decoded<Cluster>>) -> Vec<Key> {
        self.clusters.observe(event);
        self.queues.clusters.take_all()
    }

    /// Observes a remedy, and returns the clusters that are woken.
    pub(crate) fn remedy(&mut self, event: Event<Decoded<Remedy>>) -> Vec<Key> {
        self.remedies.observe(event);
        self.queues.clusters.take_all()
    }

    fn snapshot(&self, cluster: &str) -> Option<Snapshot> {
        let key = Key::cluster_scoped(cluster);
        self.index.lock().snapshot(&key)
    }

    fn is_over_bound(&self, cluster: &str) -> bool {
        self.snapshot(cluster).unwrap().over_bound.is_some()
    }

    fn needs_survey(&self, cluster: &str) -> bool {
        let key = Key::cluster_scoped(cluster);
        self.index.lock().needs_survey(&key)
    }
}

fn cluster(name: &str, version: u32, dns: Option<&str>, actions: &[&str]) -> Decoded<Cluster> {
    let conditions: Vec<Value> = dns
        .iter()
        .map(|status| {
            json!({ "type": DNS_READY, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2026-11-20T08:00:00Z" })
        })
        .collect();
    let cluster = from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": { "name": name, "resourceVersion": version.to_string() },
        "spec": {},
        "status": { "conditions": conditions, "remedyActions": actions },
    }));
    Decoded::Valid(cluster.unwrap())
}

/// A Remedy for these clusters, or for every cluster.
fn remedy(name: &str, version: u32, clusters: Option<&[&str]>) -> Decoded<Remedy> {
    let affinity = clusters.map(|clusters| json!({ "clusterNames": clusters }));
    let remedy = from_value(json!({
        "apiVersion": "remedy.karmada.io/v1alpha1",
        "kind": "Remedy",
        "metadata": { "name": name, "resourceVersion": version.to_string() },
        "spec": { "clusterAffinity": affinity, "actions": ["A"] },
    }));
    Decoded::Valid(remedy.unwrap())
}

fn invalid<K: Resource>(object: &Decoded<K>) -> Decoded<K> {
    let metadata = Box::new(object.metadata().clone());
    let error = "unknown operator".to_owned();
    Decoded::Invalid { metadata, error }
}

fn keys(names: &[&str]) -> Vec<Key> {
    names
        .iter()
        .map(|&name| Key::cluster_scoped(name))
        .collect()
}

/// Three clusters without conditions.
fn watched() -> Watched {
    let mut watched = Watched::unexpecting(MaxBlocked::Percent(100));
    for name in ["m1", "m2", "m3"] {
        let woken = watched.cluster(Event::Apply(cluster(name, 1, None, &[])));
        assert_eq!(woken, keys(&[name]), "a new cluster is woken");
    }
    watched
}

/// A change without influence on the decision wakes nothing.
#[test]
fn irrelevant_change_wakes_nothing() {
    let mut watched = watched();
    assert_eq!(
        watched.cluster(Event::Apply(cluster("m1", 2, None, &[]))),
        keys(&[])
    );
    let gone = Event::Delete(cluster("m1", 3, None, &[]));
    assert_eq!(watched.cluster(gone), keys(&[]));
}

/// A condition and the echo of our own write wake the cluster.
#[test]
fn own_echo_wakes_cluster() {
    let mut watched = watched();
    let failed = Event::Apply(cluster("m1", 2, Some("False"), &[]));
    assert_eq!(watched.cluster(failed), keys(&["m1"]));
    // karmada#7776: a decision from before this showed must be made again.
    let echo = Event::Apply(cluster("m1", 3, Some("False"), &["A"]));
    assert_eq!(watched.cluster(echo), keys(&["m1"]));
}

/// A remedy wakes the clusters of its old scope and of its new one.
#[test]
fn remedy_wakes_both_scopes() {
    let mut watched = watched();
    assert_eq!(
        watched.remedy(Event::Apply(remedy("r", 1, Some(&["m1"])))),
        keys(&["m1"])
    );
    assert_eq!(
        watched.remedy(Event::Apply(remedy("r", 2, Some(&["m2"])))),
        keys(&["m1", "m2"])
    );
    assert_eq!(
        watched.remedy(Event::Delete(remedy("r", 3, Some(&["m2"])))),
        keys(&["m2"])
    );
}

/// A remedy for every cluster wakes every cluster.
#[test]
fn global_remedy_wakes_every_cluster() {
    let mut watched = watched();
    let all = keys(&["m1", "m2", "m3"]);
    assert_eq!(watched.remedy(Event::Apply(remedy("r", 1, None))), all);
    assert_eq!(
        watched.remedy(Event::Apply(remedy("r", 2, Some(&["m1"])))),
        all
    );
}

/// A remedy whose last name is removed wakes the clusters it had and covers none.
/// The last name removed by a pipeline must not block a fleet.
#[test]
fn emptied_remedy_wakes_former_clusters() {
    let mut watched = watched();
    watched.remedy(Event::Apply(remedy("r", 1, Some(&["m1"]))));
    let woken = watched.remedy(Event::Apply(remedy("r", 2, Some(&[]))));
    assert_eq!(woken, keys(&["m1"]));
    assert!(watched.snapshot("m1").unwrap().remedies.is_empty());
}

fn when_annotated(version: u32, when: &str) -> Event<Decoded<Remedy>> {
    let Decoded::Valid(mut remedy) = remedy("r", version, Some(&["m1"])) else {
        unreachable!()
    };
    remedy.spec.decision_matches = Some(Vec::new());
    remedy.metadata.annotations = Some([(WHEN.to_owned(), when.to_owned())].into());
    Event::Apply(Decoded::Valid(remedy))
}

/// The annotation with conditions that must all match decides, too.
#[test]
fn changed_when_wakes_clusters() {
    let mut watched = watched();
    for (version, when, woken) in [
        (1, "Ready!=True", &["m1"][..]),
        (2, "Ready=False", &["m1"]),
        (3, "Ready=False", &[]),
        (4, "Ready", &["m1"]),
    ] {
        assert_eq!(
            watched.remedy(when_annotated(version, when)),
            keys(woken),
            "{when}"
        );
    }
}

/// A remedy with the same spec wakes nothing.
#[test]
fn same_spec_wakes_nothing() {
    let mut watched = watched();
    watched.remedy(Event::Apply(remedy("r", 1, Some(&["m1"]))));
    assert_eq!(
        watched.remedy(Event::Apply(remedy("r", 2, Some(&["m1"])))),
        keys(&[])
    );
}

/// Every cluster is woken when an unread remedy decodes or is gone.
#[test]
fn unread_remedy_wakes_every_cluster() {
    let all = keys(&["m1", "m2", "m3"]);
    let mut watched = watched();
    let unread = invalid(&remedy("r", 1, Some(&["m1"])));
    assert_eq!(watched.remedy(Event::Apply(unread.clone())), keys(&[]));
    assert!(!watched.snapshot("m1").unwrap().complete);
    assert_eq!(
        watched.remedy(Event::Apply(remedy("r", 2, Some(&["m1"])))),
        all
    );
    assert!(watched.snapshot("m1").unwrap().complete);
    watched.remedy(Event::Delete(remedy("r", 3, Some(&["m1"]))));
    watched.remedy(Event::Apply(unread.clone()));
    assert_eq!(watched.remedy(Event::Delete(unread)), all);
}

/// A snapshot has the remedies that cover the cluster.
#[test]
fn snapshot_has_covering_remedies() {
    let mut watched = watched();
    watched.remedy(Event::Apply(remedy("all", 1, None)));
    watched.remedy(Event::Apply(remedy("one", 1, Some(&["m1"]))));
    let names = |cluster: &str| -> Vec<_> {
        let remedies = watched.snapshot(cluster).unwrap().remedies.into_iter();
        let names = remedies.map(|remedy| remedy.metadata.name.clone().unwrap());
        names.collect()
    };
    assert_eq!(names("m1"), ["all", "one"]);
    assert_eq!(names("m2"), ["all"]);
    assert!(watched.snapshot("m9").is_none());
}

/// A changed condition of ours is reported once.
#[test]
fn changed_condition_is_reported_once() {
    let mut watched = watched();
    for (version, status) in [(2, "True"), (3, "True"), (4, "False")] {
        watched.cluster(Event::Apply(cluster("m1", version, Some(status), &[])));
    }
    let changed = watched.snapshot("m1").unwrap().changed;
    assert_eq!(
        changed
            .iter()
            .map(|c| c.status.as_str())
            .collect::<Vec<_>>(),
        ["False"]
    );
    assert!(watched.snapshot("m1").unwrap().changed.is_empty());
}

/// A change under another leader is not reported.
#[test]
fn foreign_terms_change_is_unreported() {
    let mut watched = watched();
    watched.cluster(Event::Apply(cluster("m1", 2, Some("False"), &[])));
    watched.index.lock().begin_term();
    assert!(watched.snapshot("m1").unwrap().changed.is_empty());
}

fn on_dns(name: &str) -> Decoded<Remedy> {
    let Decoded::Valid(mut remedy) = remedy(name, 1, None) else {
        unreachable!()
    };
    let requirement =
        json!({ "conditionType": DNS_READY, "operator": "Equal", "conditionStatus": "False" });
    remedy.spec.decision_matches =
        from_value(json!([{ "clusterConditionMatch": requirement }])).unwrap();
    remedy.spec.actions = Some(vec![TRAFFIC_CONTROL.to_owned()]);
    Decoded::Valid(remedy)
}

/// The clusters that may not be blocked although a condition requires it.
fn over_bound(watched: &Watched) -> Vec<&'static str> {
    let mut names = vec!["m1", "m2", "m3", "m4"];
    names.retain(|name| watched.is_over_bound(name));
    names
}

/// A freed place under the bound wakes the next cluster.
#[test]
fn freed_place_wakes_next() {
    let mut watched = Watched::unexpecting(MaxBlocked::Percent(50));
    for name in ["m1", "m2", "m3", "m4"] {
        watched.cluster(Event::Apply(cluster(name, 1, Some("True"), &[])));
    }
    watched.remedy(Event::Apply(on_dns("dns")));
    for name in ["m4", "m3", "m2", "m1"] {
        watched.cluster(Event::Apply(cluster(name, 2, Some("False"), &[])));
    }
    assert_eq!(over_bound(&watched), ["m1", "m2"], "others came first");
    for name in ["m4", "m3"] {
        let blocked = cluster(name, 3, Some("False"), &[TRAFFIC_CONTROL]);
        watched.cluster(Event::Apply(blocked));
    }
    let recovered = cluster("m4", 4, Some("True"), &[TRAFFIC_CONTROL]);
    let woken = watched.cluster(Event::Apply(recovered));
    assert_eq!(woken, keys(&["m4"]), "its block is still set");
    let released = cluster("m4", 5, Some("True"), &[]);
    let woken = watched.cluster(Event::Apply(released));
    assert_eq!(woken, keys(&["m4", "m1"]));
    assert_eq!(over_bound(&watched), ["m2"]);
    let index = watched.index.lock();
    assert_eq!((index.bound.limit(), index.bound.waiting()), (2, 1));
}

/// A cluster counts among all, readable or not: half of two may be blocked.
#[test]
fn unreadable_cluster_raises_bound() {
    let mut watched = Watched::unexpecting(MaxBlocked::Percent(50));
    watched.remedy(Event::Apply(on_dns("dns")));
    watched.cluster(Event::Apply(cluster("m1", 1, Some("False"), &[])));
    assert!(watched.is_over_bound("m1"));
    let unread = invalid(&cluster("m2", 1, None, &[]));
    assert_eq!(watched.cluster(Event::Apply(unread)), keys(&["m1"]));
    assert!(!watched.is_over_bound("m1"));
}

/// A new term keeps the blocks that are set and admits the others by name.
#[test]
fn new_term_keeps_blocks() {
    let mut watched = Watched::unexpecting(MaxBlocked::Count(2));
    watched.remedy(Event::Apply(on_dns("dns")));
    for name in ["m3", "m2", "m1", "m4"] {
        watched.cluster(Event::Apply(cluster(name, 1, Some("False"), &[])));
    }
    assert_eq!(over_bound(&watched), ["m1", "m4"]);
    let blocked = cluster("m4", 2, Some("False"), &[TRAFFIC_CONTROL]);
    watched.cluster(Event::Apply(blocked));
    watched.index.lock().begin_term();
    let all = ["m1", "m2", "m3"];
    assert_eq!(over_bound(&watched), all, "what others blocked is unknown");
    assert!(watched.needs_survey("m1"));
    watched.index.lock().surveyed(Vec::new());
    assert_eq!(over_bound(&watched), ["m2", "m3"]);
    assert!(!watched.needs_survey("m2"));
}

/// All blocks that a read shows count before another is set.
#[test]
fn survey_counts_all_first() {
    let mut watched = Watched::unexpecting(MaxBlocked::Count(2));
    watched.remedy(Event::Apply(on_dns("dns")));
    let names = ["m1", "m2", "m3"];
    for name in names {
        watched.cluster(Event::Apply(cluster(name, 1, Some("True"), &[])));
    }
    watched.index.lock().begin_term();
    for name in names {
        watched.cluster(Event::Apply(cluster(name, 2, Some("False"), &[])));
    }
    let blocked = ["m2", "m3"].map(|name| {
        let Decoded::Valid(blocked) = cluster(name, 3, Some("False"), &[TRAFFIC_CONTROL]) else {
            unreachable!()
        };
        blocked
    });
    watched.index.lock().surveyed(blocked.into());
    let mut over = names.to_vec();
    over.retain(|name| watched.is_over_bound(name));
    assert_eq!(over, ["m1"]);
}

/// A bound that spares no cluster needs no survey.
#[test]
fn full_bound_needs_no_survey() {
    let mut watched = Watched::unexpecting(MaxBlocked::Percent(100));
    watched.remedy(Event::Apply(on_dns("dns")));
    for name in ["m1", "m2", "m3", "m4"] {
        watched.cluster(Event::Apply(cluster(name, 1, Some("False"), &[])));
    }
    watched.index.lock().begin_term();
    assert_eq!(over_bound(&watched), [""; 0]);
    assert!(!watched.needs_survey("m1"));
}
