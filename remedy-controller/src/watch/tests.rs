mod wire;

use karmada_api::TRAFFIC_CONTROL;
use karmada_api::condition::{DECLARED_FAILED_REASON, DNS_READY};
use karmada_api::remedy::WHEN;
use kube::Resource;
use serde_json::{Value, from_value, json};

use super::*;

/// The time at which nothing happens.
fn clock() -> Timestamp {
    Timestamp::UNIX_EPOCH
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
fn index() -> Index {
    let mut index = Index::new(ClusterKind::Cluster, MaxBlocked::Percent(100), clock);
    for name in ["m1", "m2", "m3"] {
        let woken = index.observe_cluster(Event::Apply(cluster(name, 1, None, &[])));
        assert_eq!(woken, keys(&[name]), "a new cluster is woken");
    }
    index
}

/// A change without influence on the decision wakes nothing.
#[test]
fn irrelevant_change_wakes_nothing() {
    let mut index = index();
    assert_eq!(
        index.observe_cluster(Event::Apply(cluster("m1", 2, None, &[]))),
        keys(&[])
    );
    let gone = Event::Delete(cluster("m1", 3, None, &[]));
    assert_eq!(index.observe_cluster(gone), keys(&[]));
}

/// A condition and the echo of our own write wake the cluster.
#[test]
fn own_echo_wakes_cluster() {
    let mut index = index();
    let failed = Event::Apply(cluster("m1", 2, Some("False"), &[]));
    assert_eq!(index.observe_cluster(failed), keys(&["m1"]));
    // karmada#7776: what was decided before this showed must be decided again.
    let echo = Event::Apply(cluster("m1", 3, Some("False"), &["A"]));
    assert_eq!(index.observe_cluster(echo), keys(&["m1"]));
}

/// A remedy wakes the clusters of its old scope and of its new one.
#[test]
fn remedy_wakes_both_scopes() {
    let mut index = index();
    assert_eq!(
        index.observe_remedy(Event::Apply(remedy("r", 1, Some(&["m1"])))),
        keys(&["m1"])
    );
    assert_eq!(
        index.observe_remedy(Event::Apply(remedy("r", 2, Some(&["m2"])))),
        keys(&["m1", "m2"])
    );
    assert_eq!(
        index.observe_remedy(Event::Delete(remedy("r", 3, Some(&["m2"])))),
        keys(&["m2"])
    );
}

/// A remedy for every cluster wakes every cluster.
#[test]
fn global_remedy_wakes_every_cluster() {
    let mut index = index();
    let all = keys(&["m1", "m2", "m3"]);
    assert_eq!(
        index.observe_remedy(Event::Apply(remedy("r", 1, None))),
        all
    );
    assert_eq!(
        index.observe_remedy(Event::Apply(remedy("r", 2, Some(&["m1"])))),
        all
    );
}

/// A remedy whose last name is removed wakes the clusters it had and covers none.
/// The last name removed by a pipeline must not block a fleet.
#[test]
fn emptied_remedy_wakes_former_clusters() {
    let mut index = index();
    index.observe_remedy(Event::Apply(remedy("r", 1, Some(&["m1"]))));
    let woken = index.observe_remedy(Event::Apply(remedy("r", 2, Some(&[]))));
    assert_eq!(woken, keys(&["m1"]));
    assert!(
        index
            .snapshot(&keys(&["m1"])[0])
            .unwrap()
            .remedies
            .is_empty()
    );
}

/// The annotation with conditions that must all match decides, too.
#[test]
fn changed_when_wakes_clusters() {
    let mut index = index();
    let of = |version, when: &str| {
        let Decoded::Valid(mut remedy) = remedy("r", version, Some(&["m1"])) else {
            unreachable!()
        };
        remedy.spec.decision_matches = Some(Vec::new());
        remedy.metadata.annotations = Some([(WHEN.to_owned(), when.to_owned())].into());
        Event::Apply(Decoded::Valid(remedy))
    };
    for (version, when, woken) in [
        (1, "Ready!=True", &["m1"][..]),
        (2, "Ready=False", &["m1"]),
        (3, "Ready=False", &[]),
        (4, "Ready", &["m1"]),
    ] {
        assert_eq!(
            index.observe_remedy(of(version, when)),
            keys(woken),
            "{when}"
        );
    }
}

/// A remedy with the same spec wakes nothing.
#[test]
fn same_spec_wakes_nothing() {
    let mut index = index();
    index.observe_remedy(Event::Apply(remedy("r", 1, Some(&["m1"]))));
    assert_eq!(
        index.observe_remedy(Event::Apply(remedy("r", 2, Some(&["m1"])))),
        keys(&[])
    );
}

/// Every cluster is woken when an unread remedy decodes or is gone.
#[test]
fn unread_remedy_wakes_every_cluster() {
    let all = keys(&["m1", "m2", "m3"]);
    let mut index = index();
    let unread = invalid(&remedy("r", 1, Some(&["m1"])));
    assert_eq!(
        index.observe_remedy(Event::Apply(unread.clone())),
        keys(&[])
    );
    assert!(!index.snapshot(&all[0]).unwrap().complete);
    assert_eq!(
        index.observe_remedy(Event::Apply(remedy("r", 2, Some(&["m1"])))),
        all
    );
    assert!(index.snapshot(&all[0]).unwrap().complete);
    index.observe_remedy(Event::Delete(remedy("r", 3, Some(&["m1"]))));
    index.observe_remedy(Event::Apply(unread.clone()));
    assert_eq!(index.observe_remedy(Event::Delete(unread)), all);
}

/// A snapshot has the remedies that cover the cluster.
#[test]
fn snapshot_has_covering_remedies() {
    let mut index = index();
    index.observe_remedy(Event::Apply(remedy("all", 1, None)));
    index.observe_remedy(Event::Apply(remedy("one", 1, Some(&["m1"]))));
    let names = |index: &mut Index, cluster: &str| -> Vec<_> {
        let snapshot = index.snapshot(&Key::cluster_scoped(cluster)).unwrap();
        snapshot
            .remedies
            .iter()
            .map(|remedy| remedy.metadata.name.clone().unwrap())
            .collect()
    };
    assert_eq!(names(&mut index, "m1"), ["all", "one"]);
    assert_eq!(names(&mut index, "m2"), ["all"]);
    assert!(index.snapshot(&Key::cluster_scoped("m9")).is_none());
}

/// A changed condition of ours is reported once.
#[test]
fn changed_condition_is_reported_once() {
    let mut index = index();
    let key = Key::cluster_scoped("m1");
    for (version, status) in [(2, "True"), (3, "True"), (4, "False")] {
        index.observe_cluster(Event::Apply(cluster("m1", version, Some(status), &[])));
    }
    let changed = index.snapshot(&key).unwrap().changed;
    assert_eq!(
        changed
            .iter()
            .map(|c| c.status.as_str())
            .collect::<Vec<_>>(),
        ["False"]
    );
    assert!(index.snapshot(&key).unwrap().changed.is_empty());
}

/// So is one of a signal that users declare, which its reason tells from another's of the same type.
#[test]
fn changed_declared_condition_is_reported() {
    let mut index = index();
    let key = Key::cluster_scoped("m1");
    for (version, reason) in [(2, DECLARED_FAILED_REASON), (3, "SomebodyElse")] {
        let Decoded::Valid(mut changed) = cluster("m1", version, Some("False"), &[]) else {
            unreachable!()
        };
        let status = changed.status.as_mut().unwrap();
        let condition = &mut status.conditions.as_mut().unwrap()[0];
        condition.type_ = "ImageRegistryReady".to_owned();
        condition.reason = reason.to_owned();
        index.observe_cluster(Event::Apply(Decoded::Valid(changed)));
        let reported = index.snapshot(&key).unwrap().changed.len();
        assert_eq!(reported, usize::from(reason == DECLARED_FAILED_REASON));
    }
}

/// A change under another leader is not reported.
#[test]
fn foreign_terms_change_is_unreported() {
    let shared = SharedIndex::new(
        Queue::default(),
        ClusterKind::Cluster,
        MaxBlocked::Percent(100),
        clock,
    );
    shared.observe(|index| index.observe_cluster(Event::Apply(cluster("m1", 1, None, &[]))));
    let failed = Event::Apply(cluster("m1", 2, Some("False"), &[]));
    shared.observe(|index| index.observe_cluster(failed));
    assert_eq!(shared.begin_term(), keys(&["m1"]));
    assert!(
        shared
            .snapshot(&Key::cluster_scoped("m1"))
            .unwrap()
            .changed
            .is_empty()
    );
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
fn over_bound(shared: &SharedIndex) -> Vec<&'static str> {
    let over = |name: &&str| {
        let key = Key::cluster_scoped(*name);
        shared.snapshot(&key).unwrap().over_bound.is_some()
    };
    ["m1", "m2", "m3", "m4"].into_iter().filter(over).collect()
}

/// A freed place under the bound wakes the next cluster.
#[test]
fn freed_place_wakes_next() {
    let shared = SharedIndex::new(
        Queue::default(),
        ClusterKind::Cluster,
        MaxBlocked::Percent(50),
        clock,
    );
    let observe = |event| shared.index.lock().observe_cluster(event);
    for name in ["m1", "m2", "m3", "m4"] {
        observe(Event::Apply(cluster(name, 1, Some("True"), &[])));
    }
    shared
        .index
        .lock()
        .observe_remedy(Event::Apply(on_dns("dns")));
    for name in ["m4", "m3", "m2", "m1"] {
        observe(Event::Apply(cluster(name, 2, Some("False"), &[])));
    }
    assert_eq!(over_bound(&shared), ["m1", "m2"], "others came first");
    for name in ["m4", "m3"] {
        let blocked = cluster(name, 3, Some("False"), &[TRAFFIC_CONTROL]);
        observe(Event::Apply(blocked));
    }
    let recovered = cluster("m4", 4, Some("True"), &[TRAFFIC_CONTROL]);
    let woken = observe(Event::Apply(recovered));
    assert_eq!(woken, keys(&["m4"]), "its block is still set");
    let released = cluster("m4", 5, Some("True"), &[]);
    assert_eq!(observe(Event::Apply(released)), keys(&["m4", "m1"]));
    assert_eq!(over_bound(&shared), ["m2"]);
    let bound = |index: &Index| (index.bound.limit(), index.bound.waiting());
    assert_eq!(shared.read(bound), (2, 1));
}

/// A new term keeps the blocks that are set and admits the others by name.
#[test]
fn new_term_keeps_blocks() {
    let shared = SharedIndex::new(
        Queue::default(),
        ClusterKind::Cluster,
        MaxBlocked::Count(2),
        clock,
    );
    let observe = |event| shared.index.lock().observe_cluster(event);
    shared
        .index
        .lock()
        .observe_remedy(Event::Apply(on_dns("dns")));
    for name in ["m3", "m2", "m1", "m4"] {
        observe(Event::Apply(cluster(name, 1, Some("False"), &[])));
    }
    assert_eq!(over_bound(&shared), ["m1", "m4"]);
    let blocked = cluster("m4", 2, Some("False"), &[TRAFFIC_CONTROL]);
    observe(Event::Apply(blocked));
    shared.begin_term();
    let all = ["m1", "m2", "m3"];
    assert_eq!(over_bound(&shared), all, "what others blocked is unknown");
    assert!(shared.needs_survey(&Key::cluster_scoped("m1")));
    shared.surveyed(Vec::new());
    assert_eq!(over_bound(&shared), ["m2", "m3"]);
    assert!(!shared.needs_survey(&Key::cluster_scoped("m2")));
}

/// A bound that spares no cluster needs no survey.
#[test]
fn full_bound_needs_no_survey() {
    let shared = SharedIndex::new(
        Queue::default(),
        ClusterKind::Cluster,
        MaxBlocked::Percent(100),
        clock,
    );
    shared.observe(|index| index.observe_remedy(Event::Apply(on_dns("dns"))));
    for name in ["m1", "m2", "m3", "m4"] {
        let failing = Event::Apply(cluster(name, 1, Some("False"), &[]));
        shared.observe(|index| index.observe_cluster(failing));
    }
    shared.begin_term();
    assert_eq!(over_bound(&shared), [""; 0]);
    assert!(!shared.needs_survey(&Key::cluster_scoped("m1")));
}
