//! Objects as a real Karmada serves them, with any one value changed.

use kube::Resource;
use lab_parts::mutations::mutations;
use serde::de::DeserializeOwned;
use serde_json::Value;
use traffic::ingress::{Serve, StatusPatch};

use super::*;
use crate::fixtures::CONTROLLER;

const INGRESS: &str = include_str!("../../../../tests/fixtures/multiclusteringress.json");
const BINDING: &str = include_str!("../../../../tests/fixtures/resourcebinding.json");
const CLUSTER: &str = include_str!("../../../../tests/fixtures/cluster.json");
/// The values that name an object, and those that contain them.
const IDENTITY: [&str; 4] = ["", "/metadata", "/metadata/name", "/metadata/namespace"];

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The fixture with a second rule, so that there is a rest to decide from.
fn ingress_fixture() -> Value {
    let mut ingress = parse(INGRESS);
    let mut second = ingress["spec"]["rules"][0].clone();
    second["host"] = json!("h1.example.com");
    ingress["spec"]["rules"]
        .as_array_mut()
        .unwrap()
        .push(second);
    ingress
}

/// The fixture with every other way in which a Service comes to be in a cluster.
fn binding_fixture() -> Value {
    let mut binding = parse(BINDING);
    binding["spec"]["requiredBy"] =
        json!([{ "namespace": "bench", "name": "x", "clusters": [{ "name": "c2" }] }]);
    binding["status"] = json!({ "aggregatedStatus": [{ "clusterName": "c3", "applied": true, "health": "Healthy" }] });
    binding
}

/// The fixture as the object of another cluster, without most of its many elements of the same shape.
fn cluster_fixture(name: &str) -> Value {
    let mut cluster = parse(CLUSTER);
    cluster["metadata"]["name"] = json!(name);
    for list in ["/status/apiEnablements", "/spec/resourceModels"] {
        let list = cluster.pointer_mut(list).and_then(Value::as_array_mut);
        list.unwrap().truncate(2);
    }
    cluster
}

/// Decodes an object as it arrives.
fn arrive<K: Resource + DeserializeOwned>(object: &Value) -> Event<Decoded<K>> {
    Event::Apply(serde_json::from_str(&object.to_string()).unwrap())
}

fn index_with_class() -> SharedIndex {
    let index = SharedIndex::of_backends(None);
    index.observe_class(applied(class("fake", CONTROLLER)));
    index
}

fn decision(index: &SharedIndex) -> Decision {
    let key = Key::new("bench", "m00000");
    let index = index.lock();
    index.decide(&key, &CONTROLLER.parse().unwrap()).1
}

/// Returns the locations of Service `s0` and the blocked clusters as they should be, or `None` if the
/// ingress is not served.
fn served(index: &SharedIndex) -> Option<(Vec<String>, Vec<String>)> {
    let Decision::Serve(serve) = decision(index) else {
        return None;
    };
    let Serve { status, .. } = *serve;
    let index = index.lock();
    let seen = index.ingress(&Key::new("bench", "m00000"));
    let status = if let Some(status) = status {
        status
    } else {
        let Cached::Present(ingress) = seen else {
            return None;
        };
        let status = ingress.status.clone().unwrap_or_default();
        StatusPatch {
            service_locations: status.service_locations,
            traffic_block_clusters: status.traffic_block_clusters,
        }
    };
    let locations = status.service_locations.into_iter().flatten();
    let clusters = locations.flat_map(|location| location.clusters.unwrap_or_default());
    let blocked = status.traffic_block_clusters.unwrap_or_default();
    Some((clusters.collect(), blocked))
}

/// An ingress is served whatever any one value is.
#[test]
fn any_ingress_value_is_served() {
    for mutation in mutations(&ingress_fixture()) {
        let path = mutation.path.as_str();
        // Without these nothing is left that names the object, its class or its Services.
        let decisive = ["/spec", "/spec/rules", "/spec/ingressClassName", "/status"];
        if IDENTITY.contains(&path) || decisive.contains(&path) {
            continue;
        }
        let index = index_with_class();
        index.observe_binding(arrive(&parse(BINDING)));
        index.observe_cluster(arrive(&cluster_fixture("c00000")));
        index.observe_ingress(arrive(&mutation.object));
        let all = ["c00000", "c00001"].map(ToOwned::to_owned).to_vec();
        let blocked = vec!["c00000".to_owned()];
        assert_eq!(
            served(&index),
            Some((all, blocked)),
            "{path} {}",
            mutation.object
        );
    }
}

/// An unreadable field of an ingress or a binding takes nothing away.
#[test]
fn unreadable_values_remove_nothing() {
    let all = ["c00000", "c00001", "c2", "c3"];
    for mutation in mutations(&ingress_fixture()).iter().filter(|m| m.mistyped) {
        // The class may have changed, and is the ingress's own.
        if mutation.path == "/spec/ingressClassName" {
            continue;
        }
        let index = index_with_class();
        index.observe_binding(arrive(&binding_fixture()));
        index.observe_ingress(arrive(&ingress_fixture()));
        index.observe_ingress(arrive(&mutation.object));
        let (located, _) = served(&index).unwrap_or_else(|| panic!("{} is let go", mutation.path));
        assert_eq!(located, all, "{}", mutation.path);
    }
    for mutation in mutations(&binding_fixture()).iter().filter(|m| m.mistyped) {
        let index = index_with_class();
        index.observe_binding(arrive(&binding_fixture()));
        index.observe_ingress(arrive(&ingress_fixture()));
        index.observe_binding(arrive(&mutation.object));
        let (located, _) = served(&index).unwrap();
        // Of a list, the element that cannot be read is as if it were absent.
        let lost = all
            .iter()
            .filter(|one| !located.iter().any(|there| there == *one));
        let parts = [
            "/spec/clusters/",
            "/spec/requiredBy/",
            "/status/aggregatedStatus/",
        ];
        let element = parts.iter().any(|part| mutation.path.starts_with(part));
        assert!(
            lost.count() <= usize::from(element),
            "{}: {located:?}",
            mutation.path
        );
    }
}

/// A binding locates its service whatever any other value is.
#[test]
fn any_binding_value_locates() {
    for mutation in mutations(&parse(BINDING)) {
        let path = mutation.path.as_str();
        let decisive = IDENTITY.contains(&path)
            || path == "/spec"
            || path.starts_with("/spec/resource")
            || path.starts_with("/spec/clusters");
        // The Service's namespace is the binding's own.
        if decisive && path != "/spec/resource/namespace" {
            continue;
        }
        let index = index_with_class();
        index.observe_ingress(arrive(&parse(INGRESS)));
        index.observe_binding(arrive(&mutation.object));
        let (located, _) = served(&index).unwrap();
        assert_eq!(located, ["c00000", "c00001"], "{path}");
    }
}

/// A cluster is blocked whatever any value but its actions is.
#[test]
fn any_cluster_value_blocks() {
    for mutation in mutations(&cluster_fixture("c00000")) {
        let path = mutation.path.as_str();
        let decisive = [
            "/status",
            "/status/remedyActions",
            "/status/remedyActions/0",
        ];
        let decides = IDENTITY.contains(&path) || decisive.contains(&path);
        // A decisive value that is null or absent lifts the block; one of a wrong type must not.
        if decides && !mutation.mistyped {
            continue;
        }
        let index = index_with_class();
        index.observe_binding(arrive(&parse(BINDING)));
        index.observe_ingress(arrive(&ingress_fixture()));
        if decides {
            index.observe_cluster(arrive(&cluster_fixture("c00000")));
        }
        index.observe_cluster(arrive(&mutation.object));
        let (_, blocked) = served(&index).unwrap();
        assert_eq!(blocked, ["c00000"], "{path}");
    }
}

/// Actions that cannot be read keep the last ones and are counted.
#[test]
fn unclear_actions_keep_last() {
    let index = index_with_class();
    index.observe_binding(arrive(&parse(BINDING)));
    index.observe_ingress(arrive(&ingress_fixture()));
    let with = |actions: Value| {
        let mut cluster = cluster_fixture("c00000");
        cluster["status"]["remedyActions"] = actions;
        arrive::<Cluster>(&cluster)
    };
    index.observe_cluster(with(json!(["TrafficControl"])));
    for odd in [json!(7), json!([7]), json!(["Cordon", 7])] {
        index.observe_cluster(with(odd));
        assert_eq!(served(&index).unwrap().1, ["c00000"]);
        assert_eq!(index.lock().clusters.undecoded().stale, 1);
    }
    let mut lifted = cluster_fixture("c00000");
    lifted["status"]["remedyActions"] = Value::Null;
    lifted["metadata"]["resourceVersion"] = json!("99999");
    let woken = index.observe_cluster(arrive(&lifted));
    assert_eq!(woken, [Key::new("bench", "m00000")]);
    assert_eq!(served(&index).unwrap().1, [""; 0]);
    assert_eq!(index.lock().clusters.undecoded().stale, 0);
}

/// An unreadable ingress that is being deleted is let go.
#[test]
fn deleting_unreadable_is_let_go() {
    let mut ingress = ingress_fixture();
    ingress["metadata"]["finalizers"] = json!([CONTROLLER]);
    let mut deleting = ingress.clone();
    deleting["metadata"]["deletionTimestamp"] = json!("2026-11-22T08:00:00Z");
    deleting["metadata"]["resourceVersion"] = json!("99999");
    deleting["spec"] = json!(7);
    for read_once in [true, false] {
        let index = index_with_class();
        if read_once {
            index.observe_ingress(arrive(&ingress));
        }
        let woken = index.observe_ingress(arrive(&deleting));
        assert!(woken.contains(&Key::new("bench", "m00000")));
        let Decision::Release(release) = decision(&index) else {
            panic!("{read_once}: it is kept");
        };
        assert!(release.clears_status);
        assert_eq!(release.finalizers, Some(vec![]));
    }
}
