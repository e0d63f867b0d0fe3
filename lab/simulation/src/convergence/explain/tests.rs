//! A writer that is right, and then wrong in one way at a time, which the judge finds.

use std::time::Duration;

use embedded_apiserver::Fault;
use kube::Client;
use serde_json::json;

use super::*;
use crate::convergence::apis::{Apis, LEASES, lease};
use crate::convergence::fleet::Controllers;
use crate::convergence::program::CONTROLLER;
use crate::convergence::step::{Change, Class, RemedyShape};
use crate::harness::access::Access;
use crate::harness::oracle::Oracle;
use crate::harness::value::items;
use crate::harness::{Connections, Process, Record};

const M0: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/m0/status";
const SERVICE: &str = "i0-web-0123456789";
const SLICE: &str = "i0-web-9876543210";

/// A process that sends whatever a test tells it to.
struct Writer {
    fleet: Controllers,
    record: Record<Role>,
    oracle: Oracle<Role>,
    program: Role,
    clients: [Client; 2],
}

impl Writer {
    /// Creates a fleet without programs, with `m0` and `m1` healthy, the Services `web` and `api`, and the
    /// ingress `i0` with our class.
    async fn new(program: Role) -> Self {
        let record = Record::default();
        let apis = Apis::embedded().unwrap();
        let process = Process {
            program,
            replica: 0,
            life: 0,
        };
        let connections = Connections::new(process, record.clone());
        let client = async |side| apis.client(side, &connections).await.unwrap();
        let clients = [client(Side::Karmada).await, client(Side::Gateway).await];
        let fleet = Controllers::on(apis, record.clone()).await.unwrap();
        Self {
            fleet,
            record,
            oracle: Oracle::default(),
            program,
            clients,
        }
    }

    /// Creates a writer that has listed everything and holds the lease.
    async fn leading(program: Role) -> Self {
        let writer = Self::new(program).await;
        writer.list().await;
        writer.lead().await;
        // Lists count for the instant in which they arrive.
        writer.later().await;
        writer
    }

    async fn later(&self) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    async fn apply(&mut self, change: Change) {
        self.fleet.change(&change).await.unwrap();
    }

    async fn list(&self) {
        for kind in Kind::ALL {
            self.read(kind).await;
        }
    }

    async fn read(&self, kind: Kind) {
        self.send(Method::GET, kind.side(), &kind.collection(), Value::Null)
            .await;
    }

    fn lease(&self) -> String {
        lease(self.program)
    }

    async fn lead(&self) {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": self.program.name() }, "spec": { "holderIdentity": "writer" },
        });
        self.send(Method::POST, Side::Karmada, LEASES, lease).await;
    }

    async fn send(&self, method: Method, side: Side, path: &str, body: Value) -> Value {
        send(&self.clients[side as usize], method, path, body).await
    }

    /// Sends a write and returns the property that it violates.
    async fn write(
        &mut self,
        method: Method,
        side: Side,
        path: &str,
        body: Value,
    ) -> Option<String> {
        assert_eq!(self.judge(), None, "before the write");
        self.send(method, side, path, body).await;
        self.judge()
    }

    async fn create(&mut self, kind: Kind, object: Value) -> Option<String> {
        self.write(Method::POST, kind.side(), &kind.collection(), object)
            .await
    }

    async fn patch(&mut self, kind: Kind, name: &str, body: Value) -> Option<String> {
        self.write(Method::PATCH, kind.side(), &kind.path(name), body)
            .await
    }

    async fn set_actions(&mut self, actions: Value) -> Option<String> {
        let body = json!({ "status": { "remedyActions": actions } });
        self.write(Method::PATCH, Side::Karmada, M0, body).await
    }

    fn judge(&mut self) -> Option<String> {
        let entries = self.record.since(self.oracle.position());
        self.oracle.read(&entries)
    }

    /// Returns the version of an object that a write must name.
    async fn version(&self, kind: Kind, name: &str) -> Value {
        let found = self.fleet.apis.object(kind, name).await.unwrap().unwrap();
        found["metadata"]["resourceVersion"].clone()
    }

    /// Creates everything that serves `i0` from `m0`, as it must be.
    async fn serve(&mut self) {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
        });
        let violated = self
            .write(Method::POST, Side::Gateway, NAMESPACES, namespace)
            .await;
        assert_eq!(violated, None);
        for (kind, object) in [
            (Kind::GatewayService, service()),
            (Kind::GatewaySlice, slice()),
            (Kind::GatewayIngress, ingress()),
        ] {
            assert_eq!(self.create(kind, object).await, None);
        }
        self.later().await;
    }
}

async fn send(client: &Client, method: Method, path: &str, body: Value) -> Value {
    let sent = Access::send(client, method, path, &body).await;
    sent.unwrap().1
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": SERVICE, "annotations": { "karmada-rs.io/multi-cluster-ingress": "i0" },
        },
        "spec": { "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }] },
    })
}

fn slice() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": SLICE,
            "labels": { "karmada-rs.io/cluster": "m0", "kubernetes.io/service-name": SERVICE },
            "annotations": {
                "karmada-rs.io/multi-cluster-ingress": "i0",
                "karmada-rs.io/collected-endpoint-slice": "imported-m0-web",
            },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.0"] }],
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    })
}

fn ingress() -> Value {
    let backend = json!({ "service": { "name": SERVICE, "port": { "number": 80 } } });
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {
            "name": "i0", "annotations": { "karmada-rs.io/multi-cluster-ingress": "i0" },
        },
        "spec": { "rules": [{ "host": "i0.example.com", "http": { "paths": [path] } }] },
    })
}

/// Returns a JSON patch that depends on a version.
fn patch(version: &Value, steps: &[Value]) -> Value {
    let guard = json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": version });
    std::iter::once(&guard).chain(steps).cloned().collect()
}

/// Returns the options of a deletion that depends on a version.
fn at(version: &Value) -> Value {
    json!({ "preconditions": { "resourceVersion": version } })
}

fn remedy() -> Change {
    Change::PutRemedy {
        remedy: 0,
        spec: RemedyShape::AT_ONCE,
    }
}

#[track_caller]
fn violates(violated: Option<String>, why: &str) {
    let violated = violated.expect("the write is explained");
    assert!(violated.contains(why), "not {why:?}: {violated}");
}

#[tokio::test(start_paused = true)]
async fn what_a_remedy_wants_may_be_written_and_nothing_else() {
    let mut writer = Writer::leading(Role::Remedy).await;
    violates(
        writer.set_actions(json!(["TrafficControl"])).await,
        "only these",
    );
    let mut writer = Writer::leading(Role::Remedy).await;
    writer.apply(remedy()).await;
    writer.read(Kind::Remedy).await;
    assert_eq!(writer.set_actions(json!(["TrafficControl"])).await, None);
    writer.later().await;
    violates(writer.set_actions(Value::Null).await, "only these");
    for (path, body) in [
        (M0, json!({ "status": { "conditions": [] } })),
        (
            M0.strip_suffix("/status").unwrap(),
            json!({ "metadata": { "labels": { "a": "b" } } }),
        ),
    ] {
        let violated = writer.write(Method::PATCH, Side::Karmada, path, body).await;
        assert!(violated.is_some(), "{path}");
    }
    assert_eq!(writer.oracle.judged()["cluster actions"], 3);
    assert_eq!(writer.oracle.judged()["others"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_remedy_clears_nothing() {
    let mut writer = Writer::new(Role::Remedy).await;
    writer.apply(remedy()).await;
    writer
        .apply(Change::Corrupt {
            corrupted: crate::convergence::Corrupted::Remedy,
            nth: 0,
        })
        .await;
    let set = json!({ "status": { "remedyActions": ["Cordon"] } });
    let karmada = writer.fleet.apis.access(Side::Karmada);
    karmada.patch(M0, &set).await.unwrap();
    writer.list().await;
    writer.lead().await;
    writer.later().await;
    assert_eq!(writer.set_actions(json!(["Cordon"])).await, None);
    violates(
        writer.set_actions(json!(["TrafficControl"])).await,
        "only these",
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_may_be_written_before_everything_is_listed() {
    let mut writer = Writer::new(Role::Remedy).await;
    writer.apply(remedy()).await;
    writer.lead().await;
    writer.read(Kind::Cluster).await;
    let violated = writer.set_actions(json!(["TrafficControl"])).await;
    violates(violated, "has not listed");
    writer.read(Kind::Remedy).await;
    assert_eq!(writer.set_actions(json!(["TrafficControl"])).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_expires_is_given_back_or_stolen_ends_the_right_to_write() {
    let none = Value::Null;
    let mut writer = Writer::new(Role::Remedy).await;
    writer.list().await;
    violates(writer.set_actions(none.clone()).await, "does not hold");
    writer.lead().await;
    tokio::time::sleep(Duration::from_secs(14)).await;
    assert_eq!(writer.set_actions(none.clone()).await, None);
    writer.later().await;
    violates(writer.set_actions(none.clone()).await, "has expired");

    let mut writer = Writer::leading(Role::Remedy).await;
    let free = json!({ "spec": { "holderIdentity": null } });
    writer
        .send(Method::PATCH, Side::Karmada, &writer.lease(), free)
        .await;
    violates(writer.set_actions(none.clone()).await, "does not hold");

    let mut writer = Writer::leading(Role::Remedy).await;
    let program = writer.program;
    writer
        .send(Method::GET, Side::Karmada, &writer.lease(), Value::Null)
        .await;
    assert_eq!(writer.set_actions(none.clone()).await, None);
    writer.apply(Change::StealLease { program }).await;
    assert_eq!(writer.set_actions(none.clone()).await, None);
    writer
        .send(Method::GET, Side::Karmada, &writer.lease(), Value::Null)
        .await;
    violates(writer.set_actions(none).await, "does not hold");
}

#[tokio::test(start_paused = true)]
async fn unreceived_objects_are_not_written() {
    let kind = Kind::Remedy;
    let status = format!("{}/status", kind.path("r0"));
    let mut writer = Writer::leading(Role::Remedy).await;
    writer.apply(remedy()).await;
    let empty = json!({ "status": {} });
    let violated = writer.write(Method::PATCH, Side::Karmada, &status, empty);
    violates(violated.await, "never received the object");
    writer.read(kind).await;
    let foreign = json!({ "metadata": { "uid": "another" }, "status": {} });
    let violated = writer.write(Method::PATCH, Side::Karmada, &status, foreign);
    violates(violated.await, "never received uid another");
}

/// A list has shown a newer version before the first attempt.
#[tokio::test(start_paused = true)]
async fn known_conflicts_are_not_repeated() {
    let kind = Kind::MultiClusterIngress;
    let mut writer = Writer::leading(Role::Ingress).await;
    let version = writer.version(kind, "i0").await;
    let ours = json!([CONTROLLER]);
    let add = json!({ "op": "add", "path": "/metadata/finalizers", "value": ours });
    let stale = patch(&version, &[add]);
    let put = Change::PutIngress {
        ingress: 0,
        class: Class::Named(0),
        backends: crate::convergence::Backends::Both,
    };
    writer.apply(put).await;
    writer.read(kind).await;
    writer.later().await;
    let path = kind.path("i0");
    let violated = writer.write(Method::PATCH, Side::Karmada, &path, stale.clone());
    assert_eq!(violated.await, None);
    let violated = writer.write(Method::PATCH, Side::Karmada, &path, stale);
    violates(violated.await, "repeats a conflict");
}

/// A list, and a write about another cluster, take as long as they like.
#[tokio::test(start_paused = true)]
async fn a_decision_does_not_stay_open_because_of_other_requests() {
    let other = M0.replace("m0", "m1");
    let none = json!({ "status": { "remedyActions": ["TrafficControl"] } });
    let lists = Kind::Cluster.collection();
    for (method, path, body) in [
        (Method::GET, lists.as_str(), Value::Null),
        (Method::PATCH, other.as_str(), none),
    ] {
        let mut writer = Writer::leading(Role::Remedy).await;
        writer.apply(remedy()).await;
        writer.read(Kind::Remedy).await;
        let slow = Fault::Slow(Duration::from_secs(9))
            .kind("clusters")
            .times(1);
        let karmada = writer.fleet.apis.embedded_server(Side::Karmada);
        karmada.unwrap().faults().inject(slow);
        let client = writer.clients[0].clone();
        let path = path.to_owned();
        let slow = tokio::spawn(async move { send(&client, method, &path, body).await });
        writer.later().await;
        writer.apply(Change::DeleteRemedy { remedy: 0 }).await;
        writer.read(Kind::Remedy).await;
        writer.later().await;
        let violated = writer.set_actions(json!(["TrafficControl"])).await;
        violates(violated, "only these");
        slow.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_serves_an_ingress_may_be_created() {
    let mut writer = Writer::leading(Role::Ingress).await;
    writer.serve().await;
    let judged = writer.oracle.judged();
    assert_eq!(judged.values().sum::<u64>(), 4, "{judged:?}");
}

/// A field of an object at the gateway, a value that nothing explains, and the violation.
type Unexplained = (&'static str, Value, &'static str);

fn unexplained_in_a_slice() -> [Unexplained; 6] {
    [
        (
            "/endpoints/0/addresses/0",
            json!("10.9.9.9"),
            "never collected",
        ),
        ("/ports/0/port", json!(1), "never collected"),
        (
            "/metadata/annotations/karmada-rs.io~1collected-endpoint-slice",
            json!("imported-m1-web"),
            "never collected",
        ),
        (
            "/metadata/annotations/karmada-rs.io~1multi-cluster-ingress",
            json!("i1"),
            "is ours to serve",
        ),
        (
            "/metadata/labels/karmada-rs.io~1cluster",
            json!("m2"),
            "known as admitted",
        ),
        (
            "/metadata/labels/kubernetes.io~1service-name",
            json!("i0-api-0123456789"),
            "names \"api\"",
        ),
    ]
}

fn unexplained_in_a_service() -> [Unexplained; 2] {
    [
        ("/spec/ports/0/port", json!(81), "has the ports"),
        ("/metadata/name", json!("i0-api-0"), "names \"api\""),
    ]
}

fn unexplained_in_an_ingress() -> [Unexplained; 2] {
    [
        (
            "/spec/rules/0/host",
            json!("other.example.com"),
            "has these routes",
        ),
        ("/metadata/name", json!("other"), "has these routes"),
    ]
}

#[tokio::test(start_paused = true)]
async fn objects_at_the_gateway_that_nothing_explains_are_found() {
    for (kind, object, unexplained) in [
        (Kind::GatewaySlice, slice(), &unexplained_in_a_slice()[..]),
        (
            Kind::GatewayService,
            service(),
            &unexplained_in_a_service()[..],
        ),
        (
            Kind::GatewayIngress,
            ingress(),
            &unexplained_in_an_ingress()[..],
        ),
    ] {
        for (field, value, why) in unexplained {
            let mut writer = Writer::leading(Role::Ingress).await;
            let mut object = object.clone();
            *object.pointer_mut(field).unwrap() = value.clone();
            violates(writer.create(kind, object).await, why);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_slice_needs_a_location_an_admitted_cluster_and_a_served_ingress() {
    for (change, kind, why) in [
        (
            Change::Bind {
                service: 0,
                to: 0b10,
                applied: 0,
            },
            Kind::Binding,
            "located in m0",
        ),
        (
            Change::Unbind { service: 0 },
            Kind::Binding,
            "located in m0",
        ),
        (
            Change::Leave { cluster: 0 },
            Kind::Cluster,
            "known as admitted",
        ),
        (
            Change::Template {
                service: 0,
                ports: None,
            },
            Kind::Service,
            "never had ports",
        ),
        (
            Change::DeleteClass { class: 0 },
            Kind::IngressClass,
            "is ours to serve",
        ),
    ] {
        let mut writer = Writer::leading(Role::Ingress).await;
        writer.apply(change).await;
        writer.read(kind).await;
        writer.later().await;
        violates(writer.create(Kind::GatewaySlice, slice()).await, why);
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_is_judged_on_the_version_that_it_names() {
    let kind = Kind::GatewaySlice;
    let mut writer = Writer::leading(Role::Ingress).await;
    writer.serve().await;
    let version = writer.version(kind, SLICE).await;
    let add = |address: &str| {
        let endpoint = json!({ "addresses": [address] });
        json!({ "op": "add", "path": "/endpoints/-", "value": endpoint })
    };
    let merge = json!({ "endpoints": [] });
    violates(writer.patch(kind, SLICE, merge).await, "does not depend");
    let blind = json!([add("10.9.9.9")]);
    violates(writer.patch(kind, SLICE, blind).await, "does not depend");
    let unknown = patch(&json!("1"), &[add("10.9.9.9")]);
    violates(writer.patch(kind, SLICE, unknown).await, "never received");
    let foreign = patch(&version, &[add("10.9.9.9")]);
    violates(writer.patch(kind, SLICE, foreign).await, "never collected");

    let mut writer = Writer::leading(Role::Ingress).await;
    writer.serve().await;
    // Two endpoints, and another port.
    writer
        .apply(Change::Collect {
            service: 0,
            cluster: 0,
            endpoints: Some(1),
        })
        .await;
    writer.read(Kind::EndpointSlice).await;
    writer.later().await;
    let port = json!({ "op": "replace", "path": "/ports/0/port", "value": 8081 });
    let version = writer.version(kind, SLICE).await;
    let right = patch(&version, &[add("10.0.0.1"), port]);
    assert_eq!(writer.patch(kind, SLICE, right).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_still_serves_an_ingress_must_not_be_deleted() {
    for (kind, name, undone) in [
        (Kind::GatewaySlice, SLICE, Change::Unbind { service: 0 }),
        (
            Kind::GatewayService,
            SERVICE,
            Change::Template {
                service: 0,
                ports: None,
            },
        ),
        (
            Kind::GatewayIngress,
            "i0",
            Change::PutIngress {
                ingress: 0,
                class: Class::None,
                backends: crate::convergence::Backends::Rule(0),
            },
        ),
    ] {
        let mut writer = Writer::leading(Role::Ingress).await;
        writer.serve().await;
        let (path, version) = (kind.path(name), writer.version(kind, name).await);
        let mut without = Writer::leading(Role::Ingress).await;
        without.serve().await;
        let blind = without.write(Method::DELETE, Side::Gateway, &path, Value::Null);
        violates(blind.await, "does not depend");
        let deleted = writer.write(Method::DELETE, Side::Gateway, &path, at(&version));
        violates(deleted.await, "nothing explains");

        let mut writer = Writer::leading(Role::Ingress).await;
        writer.serve().await;
        let version = writer.version(kind, name).await;
        writer.apply(undone).await;
        writer.list().await;
        writer.later().await;
        let deleted = writer.write(Method::DELETE, Side::Gateway, &path, at(&version));
        assert_eq!(deleted.await, None, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_status_of_an_ingress_follows_from_facts() {
    let kind = Kind::MultiClusterIngress;
    let status = format!("{}/status", kind.path("i0"));
    let mut writer = Writer::leading(Role::Ingress).await;
    let located = json!([{ "name": "web", "clusters": ["m0", "m1"] }]);
    for (body, why) in [
        (
            json!({ "serviceLocations": located, "trafficBlockClusters": null }),
            None,
        ),
        (
            json!({ "serviceLocations": located, "trafficBlockClusters": ["m0"] }),
            Some("no versions"),
        ),
        (
            json!({ "serviceLocations": [{ "name": "web", "clusters": ["m0"] }], "trafficBlockClusters": null }),
            Some("no versions"),
        ),
        (
            json!({ "serviceLocations": null, "trafficBlockClusters": null }),
            Some("no versions"),
        ),
        (json!({ "loadBalancer": null }), None),
        (
            json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.9" }] } }),
            Some("never showed"),
        ),
        (json!({ "conditions": [] }), Some("may write")),
    ] {
        let body = json!({ "status": body });
        let violated = writer
            .write(Method::PATCH, Side::Karmada, &status, body.clone())
            .await;
        match why {
            None => assert_eq!(violated, None, "{body}"),
            Some(why) => violates(violated, why),
        }
        writer.later().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_finalizers_of_an_ingress_follow_from_facts() {
    let kind = Kind::MultiClusterIngress;
    let mut writer = Writer::leading(Role::Ingress).await;
    let finalizers =
        |list: Value| json!({ "op": "add", "path": "/metadata/finalizers", "value": list });
    writer.read(kind).await;
    let version = writer.version(kind, "i0").await;
    let foreign = patch(&version, &[finalizers(json!(["example.com/hold"]))]);
    violates(writer.patch(kind, "i0", foreign).await, "explains");
    let spec = json!({ "op": "remove", "path": "/spec/rules" });
    let both = patch(&version, &[finalizers(json!([CONTROLLER])), spec]);
    violates(writer.patch(kind, "i0", both).await, "more than finalizers");
    // That write was stored.
    writer.read(kind).await;
    let version = writer.version(kind, "i0").await;
    let removed = patch(&version, &[finalizers(json!([]))]);
    violates(writer.patch(kind, "i0", removed).await, "explains");
    writer.apply(Change::DeleteClass { class: 0 }).await;
    writer.list().await;
    writer.later().await;
    let version = writer.version(kind, "i0").await;
    let found = writer.fleet.apis.object(kind, "i0").await.unwrap().unwrap();
    let theirs = items(&found, "/metadata/finalizers").filter(|f| **f != CONTROLLER);
    let released = patch(&version, &[finalizers(theirs.cloned().collect())]);
    assert_eq!(writer.patch(kind, "i0", released).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_no_rule_covers_is_found() {
    let mut writer = Writer::leading(Role::Ingress).await;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let maps = "/api/v1/namespaces/shop/configmaps";
    for (method, side, path, body) in [
        (Method::POST, Side::Karmada, maps, map),
        (
            Method::DELETE,
            Side::Karmada,
            M0.strip_suffix("/status").unwrap(),
            Value::Null,
        ),
        (
            Method::DELETE,
            Side::Gateway,
            "/api/v1/namespaces/shop/services",
            Value::Null,
        ),
        (
            Method::POST,
            Side::Gateway,
            NAMESPACES,
            json!({ "metadata": { "name": "other" } }),
        ),
        (
            Method::PATCH,
            Side::Karmada,
            M0,
            json!({ "status": { "remedyActions": null } }),
        ),
    ] {
        violates(writer.write(method, side, path, body).await, "no rule");
    }
}
