use k8s_openapi::api::networking::v1::{IngressLoadBalancerIngress, IngressLoadBalancerStatus};
use proptest::prelude::*;

use super::super::fixtures::{
    Fixture, binding, blocked, class, cluster, default_class, ingress, location, slice, some_time,
};
use super::*;

const OURS: &str = "karmada-rs.io/ingress-controller";

fn fixture() -> Fixture {
    let fixture = Fixture {
        classes: vec![class("ours", OURS), class("other", "example.com/other")],
        unread_classes: ["unread".to_owned()].into(),
        ..Fixture::default()
    };
    fixture
        .with_cluster(cluster("m1"))
        .with_cluster(blocked("m2"))
        .with_binding("s", binding("s", &["m1", "m2"]))
        .with_slices(&[slice("s", "m1", "x", &["10.0.0.1"])])
}

fn of_class(class: &str, finalizers: &[&str]) -> MultiClusterIngress {
    let mut ingress = ingress("i", &["s"], None);
    ingress.spec.ingress.ingress_class_name = Some(class.to_owned());
    let finalizers: Vec<String> = finalizers.iter().map(|&f| f.to_owned()).collect();
    ingress.metadata.finalizers = Some(finalizers).filter(|f| !f.is_empty());
    ingress
}

fn deleting(mut ingress: MultiClusterIngress) -> MultiClusterIngress {
    ingress.metadata.deletion_timestamp = Some(some_time());
    ingress
}

fn converged() -> MultiClusterIngressStatus {
    MultiClusterIngressStatus {
        load_balancer: Some(IngressLoadBalancerStatus {
            ingress: Some(vec![IngressLoadBalancerIngress::default()]),
        }),
        traffic_block_clusters: Some(vec!["m2".to_owned()]),
        service_locations: Some(vec![location("s", &["m1", "m2"])]),
    }
}

fn decided(ingress: &MultiClusterIngress, fixture: &Fixture) -> Decision {
    let controller = OURS.parse().unwrap();
    let key = Key::new("ns", "i");
    decide(&key, Cached::Present(ingress), fixture, &controller)
}

#[track_caller]
fn served(ingress: &MultiClusterIngress) -> Serve {
    match decided(ingress, &fixture()) {
        Decision::Serve(serve) => *serve,
        other => panic!("not served: {other:?}"),
    }
}

#[track_caller]
fn released(ingress: &MultiClusterIngress) -> Release {
    match decided(ingress, &fixture()) {
        Decision::Release(release) => release,
        other => panic!("not released: {other:?}"),
    }
}

/// An ingress of ours gets our finalizer its locations and its blocked clusters.
#[test]
fn own_ingress_is_served() {
    let serve = served(&of_class("ours", &["x"]));
    let finalizers = vec!["x".to_owned(), OURS.to_owned()];
    assert_eq!(serve.finalizers, Some(finalizers));
    let patch = StatusPatch {
        service_locations: Some(vec![location("s", &["m1", "m2"])]),
        traffic_block_clusters: Some(vec!["m2".to_owned()]),
    };
    assert_eq!(serve.status, Some(patch));
    assert_eq!(serve.change.blocked, ["m2"]);
    let settings = Settings::new(OURS.parse().unwrap());
    let ingress = of_class("ours", &["x"]);
    let (key, nothing) = (Key::new("ns", "i"), BTreeSet::new());
    let desired = desired(&key, &ingress, &nothing, &fixture(), &settings);
    assert_eq!(desired.backends.len(), 1);
}

/// An annotation for addresses that cannot be had is told, and changes nothing.
#[test]
fn impossible_addresses_are_told() {
    use BackendAddresses::{Endpoints, Ingresses, LoadBalancers};

    for (possible, flag, chosen, effective, told) in [
        (
            PossibleAddresses::All,
            Endpoints,
            Ingresses,
            Ingresses,
            None,
        ),
        (
            PossibleAddresses::Endpoints,
            Endpoints,
            Ingresses,
            Endpoints,
            Some("must be endpoints"),
        ),
        (
            PossibleAddresses::Reported,
            LoadBalancers,
            Endpoints,
            LoadBalancers,
            Some("must be load-balancers or ingresses"),
        ),
    ] {
        let settings = Settings {
            backend_addresses: flag,
            possible_addresses: possible,
            ..Settings::new(OURS.parse().unwrap())
        };
        let mut ingress = of_class("ours", &[]);
        let annotation = (BACKEND_ADDRESSES_ANNOTATION.to_owned(), chosen.to_string());
        ingress.metadata.annotations = Some([annotation].into());
        let (key, nothing) = (Key::new("ns", "i"), BTreeSet::new());
        let desired = desired(&key, &ingress, &nothing, &fixture(), &settings);
        let invalid = desired.invalid_annotations.first();
        let allowed = invalid.map(|invalid| invalid.allowed.to_string());
        assert_eq!((desired.addresses, allowed.as_deref()), (effective, told));
        assert_eq!(backend_addresses(&ingress, &settings), effective);
    }
}

/// An up to date ingress is unchanged.
#[test]
fn current_ingress_is_unchanged() {
    let mut ingress = of_class("ours", &[OURS]);
    ingress.status = Some(converged());
    let serve = served(&ingress);
    assert_eq!(serve.finalizers, None);
    assert_eq!(serve.status, None);
    assert_eq!(serve.change, BlockChange::default());
}

/// An ingress of another class is released and loses only our fields.
#[test]
fn foreign_class_releases_ours() {
    let moved = of_class("other", &["x", OURS, KARMADA_INGRESS_FINALIZER]);
    let release = released(&moved);
    assert!(release.clears_status, "the cache may be stale");
    let kept = vec!["x".to_owned(), KARMADA_INGRESS_FINALIZER.to_owned()];
    assert_eq!(release.finalizers, Some(kept));
}

/// An ingress of another class that never was ours keeps its status.
#[test]
fn foreign_ingress_keeps_status() {
    let mut foreign = of_class("other", &[KARMADA_INGRESS_FINALIZER]);
    foreign.status = Some(converged());
    assert_eq!(released(&foreign), Release::default());
    assert_eq!(released(&deleting(foreign)), Release::default());
}

/// A deleted ingress of ours loses Karmada's finalizer too.
#[test]
fn deletion_removes_karmadas_finalizer() {
    let ingress = deleting(of_class("ours", &[KARMADA_INGRESS_FINALIZER, "x", OURS]));
    let release = released(&ingress);
    assert_eq!(release.finalizers, Some(vec!["x".to_owned()]));
    let never_served = deleting(of_class("ours", &[KARMADA_INGRESS_FINALIZER]));
    assert_eq!(released(&never_served).finalizers, Some(Vec::new()));
}

/// A deleted ingress is released and an unreadable one is left.
#[test]
fn unreadable_ingress_is_left() {
    let controller = OURS.parse().unwrap();
    let key = Key::new("ns", "i");
    let gone = decide(&key, Cached::Absent, &fixture(), &controller);
    assert_eq!(gone, Decision::Release(Release::default()));
    let unread = decide(&key, Cached::Unread, &fixture(), &controller);
    assert_eq!(unread, Decision::Leave);
}

/// An ingress without its class is served only if it was.
#[test]
fn gone_class_keeps_serving() {
    let served_before = of_class("gone", &[OURS]);
    assert!(matches!(
        decided(&served_before, &fixture()),
        Decision::Serve(_)
    ));
    assert_eq!(released(&of_class("gone", &["x"])), Release::default());
    let deleted = deleting(of_class("gone", &[OURS, KARMADA_INGRESS_FINALIZER]));
    assert_eq!(released(&deleted).finalizers, Some(Vec::new()));
}

/// A second default class releases nothing that is served.
#[test]
fn second_default_releases_nothing() {
    let mut served_before = of_class("ours", &[OURS]);
    served_before.spec.ingress.ingress_class_name = None;
    let mut fixture = fixture();
    fixture.unread_classes.clear();
    fixture.classes = vec![
        default_class("a", OURS),
        default_class("b", "example.com/other"),
    ];
    assert!(matches!(
        decided(&served_before, &fixture),
        Decision::Serve(_)
    ));
    fixture.classes.remove(0);
    assert!(matches!(
        decided(&served_before, &fixture),
        Decision::Release(_)
    ));
}

/// An ingress with an unreadable class is served only if it was.
#[test]
fn unreadable_class_keeps_serving() {
    let new = of_class("unread", &[]);
    assert_eq!(decided(&new, &fixture()), Decision::Leave);
    let served_before = of_class("unread", &[OURS]);
    assert!(matches!(
        decided(&served_before, &fixture()),
        Decision::Serve(_)
    ));
    let deleted = deleting(of_class("unread", &[OURS, KARMADA_INGRESS_FINALIZER]));
    let kept = vec![KARMADA_INGRESS_FINALIZER.to_owned()];
    assert_eq!(released(&deleted).finalizers, Some(kept));
}

proptest! {
    #[test]
    fn deciding_twice_changes_nothing(
        class in "(ours|other|unread|gone)",
        finalizers in proptest::collection::btree_set(
            proptest::sample::select(vec!["x", OURS, KARMADA_INGRESS_FINALIZER]), 0..3),
        is_deleting in any::<bool>(),
        was_blocked in proptest::collection::vec("m[1-3]", 0..3),
    ) {
        let finalizers: Vec<&str> = finalizers.into_iter().collect();
        let mut ingress = of_class(&class, &finalizers);
        if is_deleting {
            ingress = deleting(ingress);
        }
        ingress.status = Some(MultiClusterIngressStatus {
            traffic_block_clusters: Some(was_blocked),
            ..converged()
        });
        let (status, finalizers) = match decided(&ingress, &fixture()) {
            Decision::Leave => (None, None),
            Decision::Release(Release { clears_status, finalizers }) => {
                let cleared = Some(StatusPatch::default());
                (if clears_status { cleared } else { None }, finalizers)
            }
            Decision::Serve(serve) => (serve.status, serve.finalizers),
        };
        if let Some(patch) = status {
            let status = ingress.status.as_mut().unwrap();
            status.service_locations = patch.service_locations;
            status.traffic_block_clusters = patch.traffic_block_clusters;
        }
        if let Some(finalizers) = finalizers {
            ingress.metadata.finalizers = Some(finalizers);
        }
        match decided(&ingress, &fixture()) {
            Decision::Leave => {}
            Decision::Release(release) => prop_assert_eq!(release, Release::default()),
            Decision::Serve(serve) => {
                prop_assert_eq!(serve.status, None);
                prop_assert_eq!(serve.finalizers, None);
            }
        }
    }
}
