use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::{Ingress, IngressSpec};
use karmada_api::MultiClusterIngressStatus;
use objects::patch::JsonPatch;
use serde_json::json;

use super::{
    Cluster, addresses, count, desired, desired_of, edits_of, fixture, gateway, key, service_name,
};
use crate::ingress::fixtures::{Fixture, binding, blocked, cluster, deleting, ingress, location};
use crate::ingress::kubernetes::{
    Clash, Existing, KubernetesPlan, blocked_slices, cutting, probed, removal, slice_origin,
};
use crate::ingress::{BackendAddresses, Desired, Settings};

/// A converged gateway is left unchanged.
#[test]
fn converged_gateway_is_unchanged() {
    let desired = desired(&fixture(), &["s", "t"]);
    assert_eq!(
        Cluster::converged(&desired).plan(&desired),
        KubernetesPlan::default()
    );
}

/// The endpoints of a blocked cluster are deleted and come back the same.
#[test]
fn blocked_endpoints_come_back() {
    let open = desired(&fixture(), &["s", "t"]);
    let before = Cluster::converged(&open);
    let mut gateway = before.clone();
    let plan = gateway.plan(&desired(
        &fixture().with_cluster(blocked("m1")),
        &["s", "t"],
    ));
    assert_eq!(plan.blocked_slices.len(), 2);
    assert_eq!(
        plan,
        KubernetesPlan {
            blocked_slices: plan.blocked_slices.clone(),
            ..KubernetesPlan::default()
        }
    );
    gateway.apply(&plan);
    assert_eq!(gateway.addresses(), addresses(&[("s", &["10.0.0.2"])]));
    gateway.apply(&gateway.plan(&open));
    assert_eq!(gateway, before);
}

/// The last endpoints of a Service, which a blocked cluster has while no other serves, go after those that take their place.
#[test]
fn successors_come_first() {
    let mut alone = fixture();
    alone.slices.remove(1);
    let settings = Settings::new("example.com/ours".parse().unwrap());
    let ingress = ingress("i", &["s", "t"], None);
    let [alone, joined] = [alone, fixture()].map(|fixture| {
        let fixture = fixture.with_cluster(blocked("m1"));
        crate::ingress::desired(&key(), &ingress, &[].into(), &fixture, &settings)
    });
    let mut gateway = Cluster::converged(&alone);
    let before = addresses(&[("s", &["10.0.0.1"]), ("t", &["10.0.0.3"])]);
    assert_eq!(gateway.addresses(), before);
    let plan = gateway.plan(&joined);
    assert_eq!((plan.successors.len(), plan.blocked_slices.len()), (1, 1));
    assert_eq!(count(&plan.writes, "EndpointSlice"), 0);
    gateway.apply(&plan);
    let after = addresses(&[("s", &["10.0.0.2"]), ("t", &["10.0.0.3"])]);
    assert_eq!(gateway.addresses(), after);
}

/// A gateway that keeps the endpoints of blocked clusters has them in slices of no Service, until the block ends.
#[test]
fn blocked_endpoints_are_kept_apart() {
    let gateway = gateway();
    let open = desired(&fixture(), &["s", "t"]);
    let before = Cluster::converged(&open);
    let mut cluster = before.clone();
    let mut converge = |desired: &Desired| {
        let existing = cluster.existing();
        let mut wanted = gateway.objects(desired);
        let blocked = blocked_slices(gateway.managed_by(), desired);
        wanted.slices.extend(blocked);
        let plan = KubernetesPlan::new(desired, wanted, &existing).unwrap();
        cluster.apply(&plan);
        cluster.clone()
    };
    let fixture = fixture().with_cluster(blocked("m1"));
    let after = converge(&desired(&fixture, &["s", "t"]));
    assert_eq!(after.addresses(), addresses(&[("s", &["10.0.0.2"])]));
    let (served, kept): (Vec<_>, Vec<_>) = after
        .slices
        .values()
        .partition(|slice| slice_origin(slice).is_some());
    assert_eq!((served.len(), kept.len()), (1, 2));
    let tried = kept.iter().filter_map(|slice| probed(slice));
    let tried: BTreeSet<_> = tried.flat_map(|(_, addresses)| addresses).collect();
    let ips: Vec<_> = tried
        .iter()
        .map(|address| address.ip().to_string())
        .collect();
    assert_eq!(ips, ["10.0.0.1", "10.0.0.3"]);
    assert_eq!(converge(&open), before);
}

/// Endpoints excluded for another reason are deleted last.
#[test]
fn unlocated_endpoints_go_last() {
    let mut gateway = Cluster::converged(&desired(&fixture(), &["s"]));
    let elsewhere = fixture().with_binding("s", binding("s", &["m2"]));
    let plan = gateway.plan(&desired(&elsewhere, &["s"]));
    assert_eq!(plan.blocked_slices, []);
    assert_eq!(count(&plan.stale_backends, "EndpointSlice"), 1);
    gateway.apply(&plan);
    assert_eq!(gateway.addresses(), addresses(&[("s", &["10.0.0.2"])]));
}

/// The endpoints of a cluster that leaves or is unknown are deleted first.
#[test]
fn leaving_endpoints_go_first() {
    let gateway = Cluster::converged(&desired(&fixture(), &["s"]));
    let mut gone = fixture();
    gone.clusters.remove("m1");
    for fixture in [gone, fixture().with_cluster(deleting(cluster("m1")))] {
        let plan = gateway.plan(&desired(&fixture, &["s"]));
        assert_eq!(plan.blocked_slices.len(), 1);
        assert_eq!(count(&plan.stale_backends, "EndpointSlice"), 0);
    }
}

/// The endpoints of an excluded cluster are deleted first for a backend no longer named too.
#[test]
fn unnamed_backends_endpoints_go_first() {
    let gateway = Cluster::converged(&desired(&fixture(), &["s", "t"]));
    let mut only_s = desired(&fixture(), &["s"]);
    only_s.excluded = ["m1".to_owned()].into();
    let plan = gateway.plan(&only_s);
    assert_eq!(plan.blocked_slices.len(), 1);
    assert_eq!(count(&plan.stale_backends, "EndpointSlice"), 0);
    let existing = Existing {
        slices: gateway.slices.values().cloned().collect(),
        ..Existing::<Ingress>::default()
    };
    let plan = removal(&existing, &only_s.excluded);
    let left = count(&plan.stale_backends, "EndpointSlice");
    assert_eq!((plan.blocked_slices.len(), left), (2, 1));
}

/// Of an ingress that is left only the endpoints to cut are deleted.
#[test]
fn left_ingress_loses_cut_endpoints() {
    let gateway = Cluster::converged(&desired(&fixture(), &["s", "t"]));
    let slices: Vec<_> = gateway.slices.values().cloned().collect();
    let cut = [(service_name("s"), ["m1".to_owned()].into())].into();
    let plan = cutting(&slices, &cut);
    let mut after = gateway.clone();
    after.apply(&plan);
    let expected = addresses(&[("s", &["10.0.0.2"]), ("t", &["10.0.0.3"])]);
    assert_eq!(after.addresses(), expected);
    assert_eq!(after.services, gateway.services);
    assert_eq!(after.ingresses, gateway.ingresses);
}

/// A backend no longer named is deleted after the ingress is updated.
#[test]
fn unnamed_backend_goes_last() {
    let mut gateway = Cluster::converged(&desired(&fixture(), &["s", "t"]));
    let only_s = desired(&fixture(), &["s"]);
    let plan = gateway.plan(&only_s);
    assert_eq!(edits_of(&plan.writes, "Ingress").len(), 1);
    let stale = ["EndpointSlice", "Service"].map(|kind| count(&plan.stale_backends, kind));
    assert_eq!(stale, [1, 1]);
    gateway.apply(&plan);
    assert_eq!(gateway, Cluster::converged(&only_s));
}

/// An ingress that routes nothing has no ingress in the gateway.
#[test]
fn routeless_ingress_is_absent() {
    let mut gateway = Cluster::converged(&desired(&fixture(), &["s"]));
    let nothing = desired_of(&fixture(), &IngressSpec::default());
    gateway.apply(&gateway.plan(&nothing));
    assert_eq!(gateway, Cluster::default());
}

/// Returns `fixture` with every binding, template and collected slice unreadable.
fn unread(fixture: Fixture) -> Fixture {
    let names: BTreeSet<String> = ["s".to_owned(), "t".to_owned()].into();
    let unread = Fixture {
        templates: BTreeMap::new(),
        unread_templates: names.clone(),
        bindings: BTreeMap::new(),
        unread_bindings: names,
        slices: Vec::new(),
        ..fixture
    };
    Fixture {
        unread_slices: ["m1-s-x", "m2-s-x", "m1-t-x"].map(str::to_owned).into(),
        ..unread
    }
}

fn desired_after(fixture: &Fixture) -> Desired {
    let spec = ingress("i", &["s", "t"], None).spec.ingress;
    let status = MultiClusterIngressStatus {
        service_locations: Some(vec![location("s", &["m1", "m2"]), location("t", &["m1"])]),
        ..MultiClusterIngressStatus::default()
    };
    Desired::new(key(), &spec, &status, BackendAddresses::Endpoints, fixture)
}

#[test]
fn objects_made_from_unreadable_ones_remain() {
    let gateway = Cluster::converged(&desired(&fixture(), &["s", "t"]));
    assert_eq!(
        gateway.plan(&desired_after(&unread(fixture()))),
        KubernetesPlan::default()
    );
}

#[test]
fn a_cluster_that_is_blocked_or_gone_loses_its_endpoints_whatever_is_unreadable() {
    let mut gateway = Cluster::converged(&desired(&fixture(), &["s", "t"]));
    let blocked = unread(fixture()).with_cluster(blocked("m1"));
    gateway.apply(&gateway.plan(&desired_after(&blocked)));
    assert_eq!(gateway.addresses(), addresses(&[("s", &["10.0.0.2"])]));
    let mut gone = blocked;
    gone.clusters.remove("m2");
    gateway.apply(&gateway.plan(&desired_after(&gone)));
    assert_eq!(gateway.addresses(), addresses(&[]));
    assert_eq!(gateway.services.len(), 2);
}

#[test]
fn an_object_of_another_ingress_is_a_clash_and_the_rest_is_still_planned() {
    let desired = desired(&fixture(), &["s"]);
    let mut gateway = Cluster::converged(&desired);
    let theirs = Arc::make_mut(gateway.ingresses.get_mut("i").unwrap());
    let annotations = theirs.metadata.annotations.as_mut().unwrap();
    annotations.insert("karmada-rs.io/multi-cluster-ingress".into(), "j".into());
    gateway.slices.clear();
    let plan = gateway.plan(&desired);
    let clashes: Vec<String> = plan.clashes.iter().map(Clash::to_string).collect();
    assert_eq!(
        clashes,
        [
            "Ingress ns/i exists in the gateway cluster and was not made for this ingress; delete or rename it"
        ]
    );
    let writes = ["EndpointSlice", "Ingress"].map(|kind| count(&plan.writes, kind));
    assert_eq!(writes, [2, 0]);
    assert!(plan.stale_routes.is_empty());
}

#[test]
fn only_drift_in_fields_we_own_is_corrected() {
    let desired = desired(&fixture(), &["s"]);
    let converged = Cluster::converged(&desired);
    let mut gateway = converged.clone();
    let service = Arc::make_mut(gateway.services.get_mut(&service_name("s")).unwrap());
    let labels = service.metadata.labels.as_mut().unwrap();
    labels.insert("team".into(), "a".into());
    service.metadata.annotations = None;
    let spec = service.spec.as_mut().unwrap();
    spec.selector = Some([("app".to_owned(), "x".to_owned())].into());
    spec.type_ = Some("NodePort".into());
    spec.ports.as_mut().unwrap()[0].node_port = Some(30080);
    spec.session_affinity = Some("ClientIP".into());
    let ingress = Arc::make_mut(gateway.ingresses.get_mut("i").unwrap());
    let spec = ingress.spec.as_mut().unwrap();
    spec.rules = None;
    spec.ingress_class_name = Some("other".into());

    let plan = gateway.plan(&desired);
    let [of_service, of_ingress] = ["Service", "Ingress"].map(|kind| -> Vec<String> {
        let edits = edits_of(&plan.writes, kind).into_iter();
        let paths = edits.flat_map(JsonPatch::paths);
        paths.map(ToString::to_string).collect()
    });
    assert_eq!(
        of_service,
        [
            "/metadata/annotations",
            "/spec/type",
            "/spec/ports",
            "/spec/selector"
        ]
    );
    assert_eq!(of_ingress, ["/spec/rules", "/spec/ingressClassName"]);

    gateway.apply(&plan);
    let put_right = Arc::make_mut(gateway.services.get_mut(&service_name("s")).unwrap());
    assert_eq!(
        put_right.metadata.labels.as_mut().unwrap().remove("team"),
        Some("a".into())
    );
    let spec = put_right.spec.as_mut().unwrap();
    assert_eq!(
        spec.session_affinity.replace("None".into()),
        Some("ClientIP".into())
    );
    assert_eq!(gateway, converged);
}

#[test]
fn a_changed_label_or_annotation_alone_is_corrected() {
    let desired = desired(&fixture(), &["t"]);
    let mut gateway = Cluster::converged(&desired);
    let slice = Arc::make_mut(gateway.slices.values_mut().next().unwrap());
    let labels = slice.metadata.labels.as_mut().unwrap();
    labels.insert("kubernetes.io/service-name".into(), "elsewhere".into());
    let plan = gateway.plan(&desired);
    let label = ["metadata", "labels", "kubernetes.io/service-name"];
    let mut edits = JsonPatch::default();
    edits.add(label, json!(service_name("t")));
    assert_eq!(edits_of(&plan.writes, "EndpointSlice"), [&edits]);
}

fn annotated(entries: &[(&str, &str)]) -> Desired {
    let mut desired = desired(&fixture(), &["s"]);
    let entries = entries.iter().map(|&(k, v)| (k.to_owned(), v.to_owned()));
    desired.annotations = entries.collect();
    desired
}

fn annotate_as_others(gateway: &mut Cluster) {
    let ingress = Arc::make_mut(gateway.ingresses.get_mut("i").unwrap());
    let annotations = ingress.metadata.annotations.get_or_insert_default();
    annotations.insert("example.com/theirs".to_owned(), "x".to_owned());
}

#[test]
fn annotations_of_the_users_ingress_come_and_go_and_those_of_others_stay() {
    let plain = Cluster::converged(&annotated(&[]));
    let mut gateway = plain.clone();
    annotate_as_others(&mut gateway);
    let rewrite = "nginx.ingress.kubernetes.io/rewrite-target";
    let two = annotated(&[(rewrite, "/$1"), ("a", "b")]);
    gateway.apply(&gateway.plan(&two));
    let mut expected = Cluster::converged(&two);
    let annotations = expected.ingresses["i"]
        .metadata
        .annotations
        .clone()
        .unwrap();
    assert_eq!(annotations[rewrite], "/$1");
    annotate_as_others(&mut expected);
    assert_eq!(gateway, expected);

    let one = annotated(&[(rewrite, "/$2")]);
    gateway.apply(&gateway.plan(&one));
    let mut expected = Cluster::converged(&one);
    annotate_as_others(&mut expected);
    assert_eq!(gateway, expected);

    gateway.apply(&gateway.plan(&annotated(&[])));
    let mut expected = plain;
    annotate_as_others(&mut expected);
    assert_eq!(gateway, expected);
}

fn desired_tls(fixture: &Fixture, secrets: &[&str]) -> Desired {
    let mut spec = ingress("i", &["s"], None).spec.ingress;
    let tls = secrets.iter();
    let tls = tls.map(|name| json!({ "hosts": ["a.example.com"], "secretName": name }));
    let tls: Vec<_> = tls.collect();
    spec.tls = serde_json::from_value(json!(tls)).unwrap();
    desired_of(fixture, &spec)
}

/// Returns the Secrets that TLS names in the gateway, and the keys in those that are there.
fn tls_of(gateway: &Cluster) -> (Vec<String>, Vec<String>) {
    let spec = gateway.ingresses["i"].spec.as_ref().unwrap();
    let names = spec.tls.iter().flatten();
    let names = names.map(|tls| tls.secret_name.clone().unwrap());
    let keys = gateway.secrets.values().map(|secret| {
        let data = secret.data.as_ref().unwrap();
        String::from_utf8(data["tls.key"].0.clone()).unwrap()
    });
    (names.collect(), keys.collect())
}

/// A Secret that TLS names is copied, follows its source, and goes with its name. No other is.
#[test]
fn secrets_follow_their_source() {
    let source = fixture()
        .with_secret("cert", "one")
        .with_secret("other", "x");
    let mut gateway = Cluster::converged(&desired_tls(&source, &["cert"]));
    let copy = gateway.secrets.keys().next().unwrap().clone();
    assert!(copy.starts_with("i-cert-"), "{copy}");
    assert_eq!(
        tls_of(&gateway),
        (vec![copy.clone()], vec!["one".to_owned()])
    );
    let secret = &gateway.secrets[&copy];
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));

    let renewed = source.clone().with_secret("cert", "two");
    let plan = gateway.plan(&desired_tls(&renewed, &["cert"]));
    let writes = ["Secret", "Ingress"].map(|kind| count(&plan.writes, kind));
    assert_eq!(writes, [1, 0]);
    gateway.apply(&plan);
    assert_eq!(
        tls_of(&gateway),
        (vec![copy.clone()], vec!["two".to_owned()])
    );

    let unread = Fixture {
        unread_secrets: ["cert".to_owned()].into(),
        ..fixture()
    };
    let plan = gateway.plan(&desired_tls(&unread, &["cert"]));
    assert_eq!(plan, KubernetesPlan::default());

    let mut gone = gateway.clone();
    gone.apply(&gone.plan(&desired_tls(&fixture(), &["cert"])));
    let by_user = (vec!["cert".to_owned()], Vec::<String>::new());
    assert_eq!(tls_of(&gone), by_user, "the user may have put it there");

    gateway.apply(&gateway.plan(&desired_tls(&renewed, &[])));
    assert_eq!(gateway.secrets.len(), 0);
}

/// Removal deletes everything created for an ingress.
#[test]
fn removal_deletes_everything() {
    let source = fixture().with_secret("cert", "one");
    let mut gateway = Cluster::converged(&desired_tls(&source, &["cert"]));
    gateway.apply(&removal(&gateway.existing(), &BTreeSet::new()));
    assert_eq!(gateway, Cluster::default());
    assert_eq!(
        removal(&Existing::<Ingress>::default(), &BTreeSet::new()),
        KubernetesPlan::default()
    );
}
