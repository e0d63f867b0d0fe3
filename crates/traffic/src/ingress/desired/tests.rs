use karmada_api::names::WORK_NAMESPACE;
use proptest::prelude::*;

use super::super::fixtures::{
    Fixture, binding, blocked, cluster, deleting, ingress, location, slice, template,
};
use super::*;

fn desired(fixture: &Fixture, services: &[&str]) -> Desired {
    let spec = ingress("i", services, None).spec.ingress;
    Desired::new(
        Key::new("ns", "i"),
        &spec,
        &MultiClusterIngressStatus::default(),
        BackendAddresses::Endpoints,
        fixture,
    )
}

fn admissions(desired: &Desired, service: &str) -> Vec<(String, Admission, usize)> {
    let backend = desired.backend(service).unwrap();
    let clusters = backend.clusters.iter();
    clusters
        .map(|c| (c.cluster.clone(), c.admission, c.slices.len()))
        .collect()
}

/// Each cluster is admitted or excluded for one reason.
#[test]
fn each_cluster_has_one_admission() {
    let fixture = Fixture::default()
        .with_cluster(cluster("open"))
        .with_cluster(cluster("elsewhere"))
        .with_cluster(blocked("blocked"))
        .with_cluster(deleting(blocked("blocked-leaving")))
        .with_cluster(deleting(cluster("leaving")))
        .with_binding(
            "s",
            binding(
                "s",
                &["open", "blocked", "blocked-leaving", "leaving", "unknown"],
            ),
        )
        .with_slices(&[
            slice("s", "open", "x", &["10.0.0.1"]),
            slice("s", "open", "y", &["10.0.0.2"]),
            slice("s", "elsewhere", "x", &["10.0.0.3"]),
            slice("s", "unknown", "x", &["10.0.0.4"]),
            slice("other", "open", "x", &["10.0.0.5"]),
        ]);
    let expected = [
        ("blocked", Admission::Blocked, 0),
        ("blocked-leaving", Admission::Blocked, 0),
        ("elsewhere", Admission::NotLocated, 1),
        ("leaving", Admission::ClusterDeleting, 0),
        ("open", Admission::Admitted, 2),
        ("unknown", Admission::ClusterMissing, 1),
    ];
    let expected = expected.map(|(c, a, n)| (c.to_owned(), a, n));
    assert_eq!(admissions(&desired(&fixture, &["s"]), "s"), expected);
}

/// A service without a binding is located nowhere.
#[test]
fn unbound_service_is_nowhere() {
    let fixture = Fixture::default()
        .with_cluster(cluster("m1"))
        .with_slices(&[slice("s", "m1", "x", &["10.0.0.1"])]);
    let excluded = Admission::NotLocated;
    assert_eq!(
        admissions(&desired(&fixture, &["s"]), "s"),
        [("m1".to_owned(), excluded, 1)]
    );
}

/// An unreadable binding or cluster excludes no further cluster.
#[test]
fn unreadable_objects_exclude_nothing() {
    let fixture = Fixture {
        unread_bindings: ["s".to_owned()].into(),
        unread_clusters: ["m2".to_owned(), "m3".to_owned()].into(),
        ..Fixture::default()
    };
    let fixture = fixture
        .with_cluster(cluster("m1"))
        .with_cluster(blocked("m4"))
        .with_cluster(cluster("m5"))
        .with_slices(&["m1", "m2", "m3", "m4"].map(|m| slice("s", m, "x", &["10.0.0.1"])));
    let spec = ingress("i", &["s"], None).spec.ingress;
    let status = MultiClusterIngressStatus {
        traffic_block_clusters: Some(vec!["m3".to_owned()]),
        service_locations: Some(vec![location("s", &["m1", "m5"])]),
        ..MultiClusterIngressStatus::default()
    };
    let desired = Desired::new(
        Key::new("ns", "i"),
        &spec,
        &status,
        BackendAddresses::Endpoints,
        &fixture,
    );
    let blocked = Admission::Blocked;
    let expected = [
        ("m1", Admission::Admitted, 1),
        ("m2", Admission::Admitted, 1),
        ("m3", blocked, 1),
        ("m4", blocked, 1),
        ("m5", Admission::Admitted, 0),
    ];
    let expected = expected.map(|(c, a, n)| (c.to_owned(), a, n));
    assert_eq!(admissions(&desired, "s"), expected);
}

/// A slice that is not of a member cluster is left out.
#[test]
fn foreign_slice_is_left_out() {
    let mut stray = slice("s", "m1", "x", &["10.0.0.1"]);
    let annotations = stray.metadata.annotations.as_mut().unwrap();
    annotations.insert(WORK_NAMESPACE.into(), "default".into());
    let mut bare = slice("s", "m1", "y", &["10.0.0.1"]);
    bare.metadata.annotations = None;
    let fixture = Fixture::default()
        .with_cluster(cluster("m1"))
        .with_slices(&[stray, bare]);
    assert_eq!(admissions(&desired(&fixture, &["s"]), "s"), []);
}

/// The only port of a Service is served while members know it by another name, and of several each by its own.
#[test]
fn renamed_port_is_served() {
    let mut two = slice("s", "m1", "y", &["10.0.0.2"]);
    let ports = two.ports.as_mut().unwrap();
    ports.push(ports[0].clone());
    let fixture = Fixture::default().with_cluster(cluster("m1"));
    let fixture = fixture.with_slices(&[slice("s", "m1", "x", &["10.0.0.1"]), two]);
    for (ports, expected) in [
        (&[("http", 80)][..], ["http", "web web"]),
        (&[("", 80)], ["", "web web"]),
        (&[("http", 80), ("metrics", 81)], ["web", "web web"]),
        (&[], ["web", "web web"]),
    ] {
        let fixture = fixture.clone().with_template(template("s", ports));
        let desired = desired(&fixture, &["s"]);
        let slices = desired.backends[0].clusters[0].slices.iter();
        let names = slices.map(|slice| {
            let ports = slice.ports.iter().flatten();
            let names: Vec<String> = ports.filter_map(|port| port.name.clone()).collect();
            names.join(" ")
        });
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}

/// Annotations are passed on but those of kubectl Karmada and ourselves.
#[test]
fn user_annotations_are_passed_on() {
    let kept = [
        "nginx.ingress.kubernetes.io/rewrite-target",
        "example.com/notkarmada.io",
        "notkarmada.io/a",
        "plain",
    ];
    let dropped = [
        "kubectl.kubernetes.io/last-applied-configuration",
        "kubernetes.io/ingress.class",
        "networking.karmada-rs.io/when-all-blocked",
        "propagationpolicy.karmada.io/name",
        "karmada.io/a",
    ];
    let all = kept.iter().chain(&dropped);
    let metadata = ObjectMeta {
        annotations: Some(all.map(|&key| (key.to_owned(), "v".to_owned())).collect()),
        ..ObjectMeta::default()
    };
    let expected = kept.map(|key| (key.to_owned(), "v".to_owned()));
    assert_eq!(passed_on(&metadata), expected.into());
}

/// The routes keep everything but the class.
#[test]
fn routes_lose_only_class() {
    let mut spec = ingress("i", &["s"], Some("d")).spec.ingress;
    spec.ingress_class_name = Some("ours".into());
    let desired = Desired::new(
        Key::new("ns", "i"),
        &spec,
        &MultiClusterIngressStatus::default(),
        BackendAddresses::Endpoints,
        &Fixture::default(),
    );
    assert_eq!(desired.routes.ingress_class_name, None);
    assert_eq!(desired.routes.rules, spec.rules);
    assert_eq!(desired.routes.default_backend, spec.default_backend);
}

proptest! {
    /// The order of slices and rules does not matter.
    #[test]
    fn slice_order_does_not_matter(
        slices in proptest::collection::btree_set(("m[1-4]", "[x-z]"), 0..8),
        services in proptest::collection::vec("[r-t]", 0..5),
    ) {
        let made: Vec<_> = slices
            .iter()
            .map(|(cluster, name)| slice("s", cluster, name, &["10.0.0.1"]))
            .collect();
        let names: Vec<&str> = services.iter().map(String::as_str).collect();
        let fixture = Fixture::default()
            .with_cluster(cluster("m1"))
            .with_cluster(blocked("m2"))
            .with_binding("s", binding("s", &["m1", "m2", "m3"]));
        let one = desired(&fixture.clone().with_slices(&made), &names);
        let (mut made, mut names) = (made, names);
        made.reverse();
        names.reverse();
        let other = desired(&fixture.with_slices(&made), &names);
        prop_assert_eq!(one.backends, other.backends);
    }
}
