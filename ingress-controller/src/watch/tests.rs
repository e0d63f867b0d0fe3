mod routes;
mod wire;

use karmada_api::remedy::EXPIRES_AT;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use parking_lot::MutexGuard;
use proptest::prelude::*;
use serde_json::json;
use traffic::ingress::{
    Cached, ClusterFacts, Decision, Facts, service_clusters, service_locations, services,
};

use super::*;
use crate::fixtures::{
    applied, binding, class, cluster, deleted, ingress, invalid, key, object, slice, template,
};
use crate::index::Backends;

/// Each shows an event and returns the ingresses that it wakes.
macro_rules! observers {
    ($($observe:ident($rows:ident: $kind:ty);)*) => {
        impl SharedIndex {
            $(
                pub(crate) fn $observe(&self, event: Event<Decoded<$kind>>) -> Vec<Key> {
                    self.$rows().observe(event);
                    self.queues.status.take_all()
                }
            )*
        }
    };
}

observers! {
    observe_ingress(ingresses: MultiClusterIngress);
    observe_class(classes: IngressClass);
    observe_cluster(clusters: Cluster);
    observe_binding(bindings: ResourceBinding);
    observe_template(templates: Service);
    observe_secret(secrets: Secret);
    observe_slice(slices: EndpointSlice);
    observe_nodes(node_slices: EndpointSlice);
    observe_remedy(remedies: Remedy);
    observe_export(exports: ServiceExport);
    observe_policy(policies: PropagationPolicy);
    observe_route(http_routes: karmada_api::gateway_api::HttpRoute);
    observe_gateway(gateways: karmada_api::gateway_api::Gateway);
    observe_gateway_class(gateway_classes: karmada_api::gateway_api::GatewayClass);
}

impl SharedIndex {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock()
    }

    /// Returns the Services whose exports were woken.
    pub(crate) fn take_concerned(&self) -> BTreeSet<Key> {
        self.queues.exports.take_all().into_iter().collect()
    }

    fn is_blocked_manually(&self, cluster: &str) -> bool {
        self.lock().is_blocked_manually(cluster)
    }

    fn of_backends(backends: Option<Backends>) -> Self {
        Self::new(Queues::new(1), backends)
    }

    fn with_exports() -> Self {
        Self::of_backends(Some(Backends {
            exports: true,
            ..Backends::default()
        }))
    }
}

/// `a` names Service s in m1 and m2; `b` names t in m2; `c` names neither.
fn index() -> SharedIndex {
    let index = SharedIndex::of_backends(Some(Backends::default()));
    index.observe_ingress(applied(ingress("a", &["s"])));
    index.observe_ingress(applied(ingress("b", &["t"])));
    index.observe_ingress(applied(ingress("c", &["u"])));
    index.observe_binding(applied(binding("s", &["m1", "m2"])));
    index.observe_binding(applied(binding("t", &["m2"])));
    for name in ["m1", "m2", "m3"] {
        index.observe_cluster(applied(cluster(name, &[])));
    }
    index
}

#[track_caller]
fn assert_woken(woken: Vec<Key>, expected: &[&str]) {
    let woken: BTreeSet<Key> = woken.into_iter().collect();
    assert_eq!(woken, expected.iter().map(|name| key(name)).collect());
}

/// A cluster that flips wakes the ingresses located there and no other.
#[test]
fn flip_wakes_located_ingresses() {
    let index = index();
    assert_woken(index.observe_cluster(blocked("m1")), &["a"]);
    assert_woken(index.observe_cluster(blocked("m2")), &["a", "b"]);
    assert_woken(index.observe_cluster(blocked("m3")), &[]);
    assert_woken(
        index.observe_cluster(deleted(cluster("m2", &[]))),
        &["a", "b"],
    );
}

fn blocked(name: &str) -> Event<Decoded<Cluster>> {
    applied(cluster(name, &["TrafficControl"]))
}

fn placement(version: &str, service: &str, cluster: &str) -> Placement {
    let selected =
        json!({ "version": "v1", "kind": "Service", "namespace": "ns", "name": service });
    object(json!({
        "metadata": { "name": "p", "resourceVersion": version },
        "status": { "selectedResources": [selected], "observedResourceIndex": version,
            "placementStatuses": [{ "clusterName": cluster }] },
    }))
}

/// On a hub a placement wakes the ingresses of the Services that it brings, or has brought, if it brings them elsewhere.
#[test]
fn placement_wakes_its_ingresses() {
    let index = SharedIndex::of_backends(None).on(ClusterKind::MemberCluster);
    index.observe_ingress(applied(ingress("a", &["s"])));
    index.observe_ingress(applied(ingress("b", &["t"])));
    let observe = |event| {
        index.placements(Scope::Cluster).observe(event);
        index.queues.status.take_all()
    };
    let located = |service: &str| -> Option<Vec<String>> {
        let index = index.lock();
        match service_clusters("ns", service, &*index) {
            Cached::Present(located) => Some(located.into_iter().map(str::to_owned).collect()),
            Cached::Absent | Cached::Unread => None,
        }
    };
    assert_woken(observe(applied(placement("1", "s", "m1"))), &["a"]);
    assert_eq!(index.lock().located_in("m1"), [key("a")]);
    assert_eq!(located("s"), Some(vec!["m1".to_owned()]));
    assert_woken(observe(applied(placement("2", "s", "m1"))), &[]);
    assert_woken(observe(applied(placement("3", "t", "m1"))), &["a", "b"]);
    assert_eq!(index.lock().located_in("m1"), [key("b")]);
    assert_eq!(located("s"), None);
}

/// A cluster that changes otherwise wakes nothing.
#[test]
fn irrelevant_change_wakes_nothing() {
    let index = index();
    let mut beat = cluster("m1", &["Cordon"]);
    beat.metadata.resource_version = Some("9".to_owned());
    assert_woken(index.observe_cluster(applied(beat)), &[]);
}

fn version(version: &str, services: &[&str]) -> MultiClusterIngress {
    let mut ingress = ingress("a", services);
    ingress.metadata.resource_version = Some(version.to_owned());
    ingress
}

/// An ingress is indexed again only when it refers to something else.
/// Most events of an ingress are echoes of status writes, which change nothing that it refers to.
#[test]
fn index_follows_references() {
    let index = SharedIndex::with_exports();
    index.observe_binding(applied(binding("t", &["m1"])));
    index.observe_ingress(applied(version("1", &["s"])));
    // Emptied behind the back of the cache.
    index
        .lock()
        .ingresses
        .observe(deleted(version("1", &["s"])));
    index.lock().index_ingress(&key("a"));
    index
        .lock()
        .ingresses
        .observe(applied(version("1", &["s"])));
    index.take_concerned();

    let again = index.observe_ingress(applied(version("2", &["s"])));
    assert_woken(again, &["a"]);
    assert_eq!(index.lock().naming(&key("s")), []);
    assert_eq!(index.lock().of_class("ours"), []);
    assert_eq!(index.take_concerned(), BTreeSet::new());

    index.observe_ingress(applied(version("3", &["s", "t"])));
    assert_eq!(index.lock().naming(&key("s")), [key("a")]);
    assert_eq!(index.lock().of_class("ours"), [key("a")]);
    assert_eq!(index.lock().located_in("m1"), [key("a")]);
    assert_eq!(index.take_concerned(), ["s", "t"].map(key).into());
}

/// A cluster is looked up by where services are now.
#[test]
fn lookup_follows_locations() {
    let index = index();
    assert_woken(
        index.observe_binding(applied(binding("s", &["m3"]))),
        &["a"],
    );
    assert_woken(index.observe_cluster(blocked("m1")), &[]);
    assert_woken(index.observe_cluster(blocked("m3")), &["a"]);
    let mut other_service = ingress("a", &["t"]);
    other_service.metadata.resource_version = Some("6".to_owned());
    assert_woken(index.observe_ingress(applied(other_service)), &["a"]);
    assert_woken(index.observe_cluster(blocked("m2")), &["a", "b"]);
    assert_woken(index.observe_ingress(deleted(ingress("b", &["t"]))), &["b"]);
    assert_woken(index.observe_cluster(deleted(cluster("m2", &[]))), &["a"]);
}

/// A blocked cluster that begins to leave wakes those located there.
#[test]
fn leaving_cluster_wakes_ingresses() {
    let index = index();
    index.observe_cluster(blocked("m1"));
    let mut leaving = cluster("m1", &["TrafficControl"]);
    leaving.metadata.deletion_timestamp = Some(object(json!("2026-01-01T00:00:00Z")));
    assert_woken(index.observe_cluster(applied(leaving)), &["a"]);
}

/// Returns a Remedy for `m1` that blocks traffic.
fn remedy(spec: &serde_json::Value) -> Remedy {
    let mut all = json!({
        "clusterAffinity": { "clusterNames": ["m1"] },
        "actions": ["TrafficControl"],
    });
    all.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    object(json!({ "metadata": { "name": "r" }, "spec": all }))
}

/// A person's decision wakes those located in a blocked cluster it covers.
#[test]
fn decision_wakes_blocked_ingresses() {
    let index = index();
    assert_woken(index.observe_remedy(applied(remedy(&json!({})))), &[]);
    assert!(index.is_blocked_manually("m1") && !index.is_blocked_manually("m2"));
    index.observe_cluster(blocked("m1"));
    let conditional = remedy(&json!({ "decisionMatches": [{}] }));
    assert_woken(index.observe_remedy(applied(conditional)), &["a"]);
    assert!(!index.is_blocked_manually("m1"));
    assert_woken(index.observe_remedy(applied(remedy(&json!({})))), &["a"]);
    let gone = deleted(remedy(&json!({})));
    assert_woken(index.observe_remedy(gone), &["a"]);
    assert!(!index.is_blocked_manually("m1"));
}

fn until(version: &str, end: &str) -> Event<Decoded<Remedy>> {
    let mut window = remedy(&json!({}));
    window.metadata.resource_version = Some(version.to_owned());
    window.metadata.annotations = Some([(EXPIRES_AT.to_owned(), end.to_owned())].into());
    applied(window)
}

/// A person's decision that expires wakes those located in a blocked cluster it covers.
#[test]
fn expired_decision_wakes_ingresses() {
    let index = index();
    index.observe_cluster(blocked("m1"));
    let [eight, nine] = ["2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z"];
    let [before, end] = ["2026-11-20T07:59:59Z", eight].map(|time| time.parse().unwrap());
    assert_woken(index.observe_remedy(until("1", eight)), &["a"]);
    assert_eq!(index.lock().decided.next_expiry(), Some(end));
    assert_woken(index.lock().expire(before), &[]);
    assert!(index.is_blocked_manually("m1"));
    assert_woken(index.lock().expire(end), &["a"]);
    assert!(!index.is_blocked_manually("m1"));
    assert_woken(index.observe_remedy(until("2", eight)), &[]);
    assert!(
        !index.is_blocked_manually("m1"),
        "only its status has changed"
    );
    assert_woken(index.observe_remedy(until("3", nine)), &["a"]);
    assert!(index.is_blocked_manually("m1"));
    index.observe_remedy(deleted(remedy(&json!({}))));
    assert_eq!(index.lock().decided.next_expiry(), None);
}

/// A remedy that never decoded may be a person's decision.
#[test]
fn unread_remedy_may_decide() {
    let index = index();
    index.observe_remedy(invalid(&remedy(&json!({}))));
    assert!(index.is_blocked_manually("m1") && index.is_blocked_manually("m2"));
    index.observe_remedy(deleted(remedy(&json!({}))));
    assert!(!index.is_blocked_manually("m1"));
}

/// A binding wakes only when its service is placed elsewhere.
#[test]
fn moved_service_wakes_ingresses() {
    let index = index();
    let mut status_only = binding("t", &["m2"]);
    status_only.metadata.resource_version = Some("9".to_owned());
    assert_woken(index.observe_binding(applied(status_only)), &[]);
    let mut other_group = binding("t", &["m2"]);
    other_group.spec.resource.api_version = "serving.knative.dev/v1".to_owned();
    assert_woken(index.observe_binding(applied(other_group)), &["b"]);
    assert_eq!(index.lock().bindings.iter().count(), 1, "it is not cached");
    assert_woken(index.observe_binding(deleted(binding("s", &[]))), &["a"]);
}

/// A class wakes those that name it and those that name none.
#[test]
fn class_wakes_named_and_nameless() {
    let index = index();
    let mut classless = ingress("d", &[]);
    classless.spec.ingress.ingress_class_name = None;
    index.observe_ingress(applied(classless));
    assert_woken(index.observe_class(applied(class("other", "x/y"))), &["d"]);
    let ours = applied(class("ours", "x/y"));
    assert_woken(index.observe_class(ours), &["a", "b", "c", "d"]);
}

/// A template wakes only when its ports change.
#[test]
fn changed_ports_wake_ingresses() {
    let index = index();
    assert_woken(index.observe_template(applied(template("s", 80))), &["a"]);
    let mut labelled = template("s", 80);
    labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    assert_woken(index.observe_template(applied(labelled)), &[]);
    assert_woken(index.observe_template(applied(template("s", 81))), &["a"]);
    assert_woken(index.observe_template(deleted(template("s", 81))), &["a"]);
    assert_woken(index.observe_template(applied(template("x", 80))), &[]);
}

/// Endpoints wake the ingresses of their service when they change.
#[test]
fn changed_endpoints_wake_ingresses() {
    let index = index();
    assert_woken(
        index.observe_slice(applied(slice("s", "m1", "10.0.0.1"))),
        &["a"],
    );
    let mut same = slice("s", "m1", "10.0.0.1");
    same.metadata.resource_version = Some("9".to_owned());
    assert_woken(index.observe_slice(applied(same)), &[]);
    let mut moved = slice("t", "m1", "10.0.0.1");
    moved.metadata.name = Some("m1-s".to_owned());
    assert_woken(index.observe_slice(applied(moved.clone())), &["a", "b"]);
    assert_eq!(index.lock().slices("ns", "t").len(), 1);
    assert_eq!(index.lock().slices("ns", "s").len(), 0);
    assert_woken(index.observe_slice(deleted(moved)), &["b"]);
    assert_eq!(index.lock().slices("ns", "t").len(), 0);
}

/// On a hub, a slice that tells of another Service than before serves the former no more.
#[test]
fn slice_changes_its_service() {
    let index = SharedIndex::of_backends(None).on(ClusterKind::MemberCluster);
    index.observe_ingress(applied(ingress("a", &["s"])));
    let tell = |namespace: &str| {
        let mut told = slice("s", "m1", "10.0.0.1");
        told.metadata.namespace = Some("fleet-member-m1".to_owned());
        let told_of = "networking.karmada-rs.io/service-namespace".to_owned();
        let annotations = told.metadata.annotations.get_or_insert_default();
        annotations.insert(told_of, namespace.to_owned());
        told.metadata.resource_version = Some(namespace.to_owned());
        collect_from_hub(&mut told.metadata);
        index.observe_slice(applied(told))
    };
    assert_woken(tell("ns"), &["a"]);
    assert_eq!(index.lock().slices("ns", "s").len(), 1);
    assert_woken(tell("other"), &["a"]);
    assert_eq!(index.lock().slices("ns", "s").len(), 0);
}

fn nodes(cluster: &str, address: &str) -> Event<Decoded<EndpointSlice>> {
    let namespace = format!("karmada-es-{cluster}");
    applied(object(json!({
        "metadata": { "name": "karmada-rs-nodes-ipv4-0", "namespace": namespace },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address], "nodeName": "n1" }],
    })))
}

/// Nodes wake the ingresses in their cluster that have a Service with node ports, when they change.
#[test]
fn changed_nodes_wake_ingresses() {
    let index = index();
    assert_woken(index.observe_nodes(nodes("m2", "10.0.0.1")), &[]);
    let mut template = template("t", 80);
    template.spec.as_mut().unwrap().type_ = Some("NodePort".to_owned());
    assert_woken(index.observe_template(applied(template)), &["b"]);
    assert_woken(index.observe_nodes(nodes("m2", "10.0.0.1")), &[]);
    assert_woken(index.observe_nodes(nodes("m2", "10.0.0.2")), &["b"]);
    assert_woken(index.observe_nodes(nodes("m1", "10.0.0.1")), &[]);
    let counts = ["m2", "m3"].map(|name| index.lock().nodes(name).map(|slices| slices.len()));
    assert_eq!(counts, [Cached::Present(1), Cached::Absent]);
}

/// Without a load balancer templates are unknown and there are no endpoints.
#[test]
fn no_provider_no_endpoints() {
    let index = Index::new(None);
    assert_eq!(index.template("ns", "s"), Cached::Unread);
    assert_eq!(index.slices("ns", "s").len(), 0);
}

/// An object that never decoded is unread until it does or is gone.
#[test]
fn never_decoded_is_unread() {
    let index = index();
    let new = cluster("m9", &[]);
    let woken = index.observe_cluster(invalid(&new));
    assert_woken(woken, &["a", "b", "c"]);
    assert_eq!(index.lock().cluster("m9"), Cached::Unread);
    let woken = index.observe_cluster(deleted(new));
    assert_woken(woken, &["a", "b", "c"]);
    assert_eq!(index.lock().cluster("m9"), Cached::Absent);
}

/// An unread ingress is woken when it is gone.
#[test]
fn gone_unread_ingress_wakes() {
    let index = index();
    let bad: MultiClusterIngress = object(json!({
        "metadata": { "name": "bad", "namespace": "ns" },
        "spec": {},
    }));
    let all = ["a", "b", "c", "bad"];
    assert_woken(index.observe_ingress(invalid(&bad)), &all);
    assert!(matches!(index.lock().ingress(&key("bad")), Cached::Unread));
    assert!(index.lock().keys().any(|found| *found == key("bad")));
    assert_woken(index.observe_ingress(deleted(bad)), &all);
    assert!(matches!(index.lock().ingress(&key("bad")), Cached::Absent));
}

/// A service with an invalid binding stays located according to the status.
#[test]
fn invalid_binding_keeps_location() {
    let index = index();
    let mut located = ingress("d", &["v"]);
    located.status = Some(object(json!({
        "serviceLocations": [{ "name": "v", "clusters": ["m3"] }],
    })));
    index.observe_ingress(applied(located));
    index.observe_binding(invalid(&binding("v", &[])));
    assert_woken(index.observe_cluster(blocked("m3")), &["d"]);
}

#[derive(Clone, Debug)]
enum Change {
    Ingress(u8, Vec<String>),
    NoIngress(u8),
    Binding(String, Vec<String>),
    NoBinding(String),
}

fn change() -> impl Strategy<Value = Change> {
    let services = proptest::collection::vec("[s-u]", 0..3);
    let clusters = proptest::collection::vec("m[1-3]", 0..3);
    prop_oneof![
        (0..3_u8, services).prop_map(|(name, services)| Change::Ingress(name, services)),
        (0..3_u8).prop_map(Change::NoIngress),
        ("[s-u]", clusters).prop_map(|(service, clusters)| Change::Binding(service, clusters)),
        "[s-u]".prop_map(Change::NoBinding),
    ]
}

fn names(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

impl SharedIndex {
    fn change(&self, change: &Change, version: usize) {
        let version = Some(version.to_string());
        match change {
            Change::Ingress(name, services) => {
                let mut ingress = ingress(&format!("i{name}"), &names(services));
                ingress.metadata.resource_version = version;
                self.observe_ingress(applied(ingress));
            }
            Change::NoIngress(name) => {
                self.observe_ingress(deleted(ingress(&format!("i{name}"), &[])));
            }
            Change::Binding(service, clusters) => {
                let mut binding = binding(service, &names(clusters));
                binding.metadata.resource_version = version;
                self.observe_binding(applied(binding));
            }
            Change::NoBinding(service) => {
                self.observe_binding(deleted(binding(service, &[])));
            }
        }
    }

    /// The ingresses located in `cluster`, found without an index.
    fn searched(&self, cluster: &str) -> BTreeSet<Key> {
        let index = self.lock();
        let located = |ingress: &MultiClusterIngress| {
            let locations = service_locations("ns", &ingress.spec.ingress, &[], &*index);
            let mut clusters = locations
                .into_iter()
                .flat_map(|l| l.clusters.unwrap_or_default());
            clusters.any(|found| found == cluster)
        };
        let all = index.ingresses.iter();
        let found = all.filter(|(_, ingress)| located(ingress));
        found.map(|(key, _)| key.clone()).collect()
    }
}

proptest! {
    /// Whatever came before a cluster wakes exactly the ingresses located there.
    #[test]
    fn cluster_wakes_exactly_located(
        changes in proptest::collection::vec(change(), 0..24)
    ) {
        let index = SharedIndex::of_backends(None);
        for (version, change) in changes.iter().enumerate() {
            index.change(change, version);
        }
        for name in ["m1", "m2", "m3"] {
            let woken = index.observe_cluster(blocked(name));
            let woken: BTreeSet<Key> = woken.into_iter().collect();
            prop_assert_eq!(woken, index.searched(name));
        }
    }
}

/// Something unread that comes or goes concerns every export.
#[test]
fn unread_objects_concern_every_export() {
    let index = SharedIndex::with_exports();
    index.observe_ingress(applied(ingress("a", &["s"])));
    index.observe_ingress(applied(ingress("b", &["t"])));
    index.take_concerned();
    let all: BTreeSet<Key> = ["s", "t"].map(key).into();
    let (x, y) = (ingress("x", &["s"]), ingress("y", &["s"]));
    index.observe_ingress(invalid(&x));
    assert_eq!(index.take_concerned(), all);
    // The one list shows that x is gone, and that y is there.
    let (a, b) = (ingress("a", &["s"]), ingress("b", &["t"]));
    for event in [Event::Init, listed(invalid(&y))] {
        index.observe_ingress(event);
    }
    for event in [a, b].map(|known| listed(applied(known))) {
        index.observe_ingress(event);
    }
    index.take_concerned();
    index.observe_ingress(Event::InitDone);
    assert_eq!(index.take_concerned(), all);
    index.observe_ingress(deleted(y));
    assert_eq!(index.take_concerned(), all);

    let (export, policy) = (ServiceExport::default(), PropagationPolicy::default());
    index.observe_export(invalid(&export));
    assert_eq!(index.take_concerned(), all);
    index.observe_export(deleted(export));
    assert_eq!(index.take_concerned(), all);
    index.observe_policy(invalid(&policy));
    index.take_concerned();
    index.observe_policy(deleted(policy));
    assert_eq!(index.take_concerned(), all);
}

fn listed<K>(event: Event<Decoded<K>>) -> Event<Decoded<K>> {
    match event {
        Event::Apply(object) => Event::InitApply(object),
        other => other,
    }
}

fn secret(name: &str, key: &str) -> Secret {
    object(json!({
        "metadata": { "name": name, "namespace": "ns" },
        "data": { "tls.key": key },
    }))
}

/// A Secret wakes the ingresses whose TLS names it, and only with other data.
#[test]
fn secret_wakes_who_names_it() {
    let index = SharedIndex::of_backends(Some(Backends {
        secrets: true,
        ..Backends::default()
    }));
    let mut with_tls = ingress("a", &["s"]);
    with_tls.spec.ingress.tls = object(json!([{ "secretName": "cert" }]));
    index.observe_ingress(applied(with_tls));
    index.observe_ingress(applied(ingress("b", &["s"])));
    assert_woken(
        index.observe_secret(applied(secret("cert", "YQ=="))),
        &["a"],
    );
    assert_woken(index.observe_secret(applied(secret("cert", "YQ=="))), &[]);
    assert_woken(index.observe_secret(applied(secret("other", "YQ=="))), &[]);
    assert!(matches!(
        index.lock().secret("ns", "cert"),
        Cached::Present(_)
    ));
    assert_woken(
        index.observe_secret(deleted(secret("cert", "YQ=="))),
        &["a"],
    );
    assert_eq!(index.lock().secret("ns", "cert"), Cached::Absent);
}
