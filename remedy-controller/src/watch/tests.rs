use karmada_api::condition::DNS_READY;
use serde_json::{Value, from_value, json};

use super::*;

fn cluster(name: &str, version: u32, dns: Option<&str>, actions: &[&str]) -> Guarded<Cluster> {
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
    Guarded::Good(cluster.unwrap())
}

fn remedy(name: &str, version: u32, clusters: &[&str]) -> Guarded<Remedy> {
    let remedy = from_value(json!({
        "apiVersion": "remedy.karmada.io/v1alpha1",
        "kind": "Remedy",
        "metadata": { "name": name, "resourceVersion": version.to_string() },
        "spec": { "clusterAffinity": { "clusterNames": clusters }, "actions": ["A"] },
    }));
    Guarded::Good(remedy.unwrap())
}

fn unreadable<K: kube::Resource>(object: &Guarded<K>) -> Guarded<K> {
    let metadata = Box::new(object.metadata().clone());
    let error = "unknown operator".to_owned();
    Guarded::Bad { metadata, error }
}

fn keys(names: &[&str]) -> Vec<Key> {
    names
        .iter()
        .map(|&name| Key::cluster_scoped(name))
        .collect()
}

/// Three clusters without conditions.
fn known() -> Known {
    let mut known = Known::default();
    for name in ["m1", "m2", "m3"] {
        let woken = known.observe_cluster(Event::Apply(cluster(name, 1, None, &[])));
        assert_eq!(woken, keys(&[name]), "a new cluster is woken");
    }
    known
}

#[test]
fn a_change_that_decides_nothing_wakes_nobody() {
    let mut known = known();
    assert_eq!(
        known.observe_cluster(Event::Apply(cluster("m1", 2, None, &[]))),
        keys(&[])
    );
    let gone = Event::Delete(cluster("m1", 3, None, &[]));
    assert_eq!(known.observe_cluster(gone), keys(&[]));
}

#[test]
fn a_condition_and_the_echo_of_our_own_write_wake_the_cluster() {
    let mut known = known();
    let failed = Event::Apply(cluster("m1", 2, Some("False"), &[]));
    assert_eq!(known.observe_cluster(failed), keys(&["m1"]));
    // karmada#7776: what was decided before this showed must be decided again.
    let echo = Event::Apply(cluster("m1", 3, Some("False"), &["A"]));
    assert_eq!(known.observe_cluster(echo), keys(&["m1"]));
}

/// A watch that lists anew may show neither our write nor that another writer undid it.
#[test]
fn a_cluster_that_was_to_be_written_is_woken_by_whatever_is_told_of_it() {
    let index = Index::new(Queue::default());
    *index.known.lock() = known();
    let key = Key::cluster_scoped("m1");
    let told = |version| {
        let event = Event::Apply(cluster("m1", version, None, &[]));
        index.known.lock().observe_cluster(event)
    };
    index.decided(&key, true);
    assert_eq!(told(2), keys(&["m1"]));
    assert_eq!(told(3), keys(&["m1"]));
    index.decided(&key, false);
    assert_eq!(told(4), keys(&[]));
}

#[test]
fn a_remedy_wakes_the_clusters_of_its_old_scope_and_of_its_new_one() {
    let mut known = known();
    assert_eq!(
        known.observe_remedy(Event::Apply(remedy("r", 1, &["m1"]))),
        keys(&["m1"])
    );
    assert_eq!(
        known.observe_remedy(Event::Apply(remedy("r", 2, &["m2"]))),
        keys(&["m1", "m2"])
    );
    assert_eq!(
        known.observe_remedy(Event::Delete(remedy("r", 3, &["m2"]))),
        keys(&["m2"])
    );
}

#[test]
fn a_remedy_for_every_cluster_wakes_every_cluster() {
    let mut known = known();
    let all = keys(&["m1", "m2", "m3"]);
    assert_eq!(known.observe_remedy(Event::Apply(remedy("r", 1, &[]))), all);
    assert_eq!(
        known.observe_remedy(Event::Apply(remedy("r", 2, &["m1"]))),
        all
    );
}

#[test]
fn a_remedy_with_the_same_spec_wakes_nobody() {
    let mut known = known();
    known.observe_remedy(Event::Apply(remedy("r", 1, &["m1"])));
    assert_eq!(
        known.observe_remedy(Event::Apply(remedy("r", 2, &["m1"]))),
        keys(&[])
    );
}

#[test]
fn every_cluster_is_woken_when_a_remedy_that_could_never_be_read_can_be_or_is_gone() {
    let all = keys(&["m1", "m2", "m3"]);
    let mut known = known();
    let unread = unreadable(&remedy("r", 1, &["m1"]));
    assert_eq!(
        known.observe_remedy(Event::Apply(unread.clone())),
        keys(&[])
    );
    assert!(!known.view(&all[0]).unwrap().complete);
    assert_eq!(
        known.observe_remedy(Event::Apply(remedy("r", 2, &["m1"]))),
        all
    );
    assert!(known.view(&all[0]).unwrap().complete);
    known.observe_remedy(Event::Delete(remedy("r", 3, &["m1"])));
    known.observe_remedy(Event::Apply(unread.clone()));
    assert_eq!(known.observe_remedy(Event::Delete(unread)), all);
}

#[test]
fn a_view_has_the_remedies_that_cover_the_cluster() {
    let mut known = known();
    known.observe_remedy(Event::Apply(remedy("all", 1, &[])));
    known.observe_remedy(Event::Apply(remedy("one", 1, &["m1"])));
    let names = |known: &mut Known, cluster: &str| -> Vec<_> {
        let view = known.view(&Key::cluster_scoped(cluster)).unwrap();
        view.remedies
            .iter()
            .map(|remedy| remedy.metadata.name.clone().unwrap())
            .collect()
    };
    assert_eq!(names(&mut known, "m1"), ["all", "one"]);
    assert_eq!(names(&mut known, "m2"), ["all"]);
    assert!(known.view(&Key::cluster_scoped("m9")).is_none());
}

#[test]
fn a_changed_condition_of_ours_is_told_of_once() {
    let mut known = known();
    let key = Key::cluster_scoped("m1");
    for (version, status) in [(2, "True"), (3, "True"), (4, "False")] {
        known.observe_cluster(Event::Apply(cluster("m1", version, Some(status), &[])));
    }
    let told = known.view(&key).unwrap().changed;
    assert_eq!(
        told.iter().map(|c| c.status.as_str()).collect::<Vec<_>>(),
        ["False"]
    );
    assert!(known.view(&key).unwrap().changed.is_empty());
}

#[test]
fn what_changed_under_another_leader_is_not_told_of() {
    let index = Index::new(Queue::default());
    index.observe(|known| known.observe_cluster(Event::Apply(cluster("m1", 1, None, &[]))));
    let failed = Event::Apply(cluster("m1", 2, Some("False"), &[]));
    index.observe(|known| known.observe_cluster(failed));
    assert_eq!(index.begin(), keys(&["m1"]));
    assert!(
        index
            .view(&Key::cluster_scoped("m1"))
            .unwrap()
            .changed
            .is_empty()
    );
}
