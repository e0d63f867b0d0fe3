use karmada_runtime::members::MemberQueues;
use karmada_runtime::metrics::Registry;
use serde_json::{from_value, json};

use super::*;
use crate::arrivals::Arrivals;
use crate::index::Works;

/// Returns an object that cannot be read, as a watch sees it.
fn unreadable<K>(namespace: &str, labels: &serde_json::Value) -> Decoded<K> {
    let metadata = json!({ "namespace": namespace, "name": "unreadable", "labels": labels });
    Decoded::Invalid {
        metadata: from_value(metadata).unwrap(),
        error: "no such field".to_owned(),
    }
}

/// Returns an index in which a Work brings `shop/web` to `m1`.
fn shared() -> (Works, SharedEndpoints) {
    let works = Works::new(
        MemberQueues::default(),
        Arrivals::register(&mut Registry::default()),
    );
    let endpoints = SharedEndpoints::new(&works.index);
    let web = BTreeSet::from([Origin::new("m1", Key::new("shop", "web"))]);
    let work = Key::new("karmada-es-m1", "web");
    endpoints.index.lock().dispatched.replace(&work, web);
    (works, endpoints)
}

/// Endpoints that wait for a slice of the member that cannot be read are looked at again when that is gone.
#[test]
fn gone_unread_slice_wakes() {
    let (_, endpoints) = shared();
    endpoints.connect("m1");
    let labels = json!({ "kubernetes.io/service-name": "web" });
    let slice: Decoded<EndpointSlice> = unreadable("shop", &labels);
    for (event, woken) in [(Event::Apply(slice.clone()), 0), (Event::Delete(slice), 1)] {
        endpoints.observe_member("m1", &Selection::default(), event);
        assert_eq!(endpoints.queue.len(), woken);
    }
}

/// A Work that cannot be read may bring any Service: when it is gone, its cluster is told.
#[test]
fn gone_unread_work_wakes() {
    let (works, endpoints) = shared();
    let work = || unreadable("karmada-es-m1", &json!({}));
    let rows = Watch::new(&works.index, |index| &mut index.works);
    let mut rows = endpoints.add_rows(rows);
    rows.observe(Event::Apply(work()));
    assert!(endpoints.queue.is_empty());
    rows.observe(Event::Delete(work()));
    assert_eq!(endpoints.queue.len(), 1);
}

/// While an export cannot be read, its collected slices are kept: when it is gone, all is looked at again.
#[test]
fn gone_unread_export_wakes() {
    let (_, endpoints) = shared();
    let export = || unreadable("shop", &json!({}));
    let readable = json!({ "metadata": { "namespace": "shop", "name": "web" } });
    let readable = Decoded::Valid(from_value(readable).unwrap());
    let mut rows = endpoints.export_rows();
    rows.observe(Event::Apply(readable));
    assert_eq!(endpoints.queue.take_all().len(), 1);
    rows.observe(Event::Apply(export()));
    assert!(endpoints.queue.is_empty());
    rows.observe(Event::Delete(export()));
    assert_eq!(endpoints.queue.len(), 1);
}
