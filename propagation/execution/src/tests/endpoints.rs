//! The collection of endpoints.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::ServiceExport;
use karmada_api::names::collected_slice;

use super::*;

/// The controller that writes the slices of a member's own pods.
const OF_MEMBER: &str = "endpointslice-controller.k8s.io";
pub(super) const COLLECTING: &[&str] = &["--collect-endpoints"];

const WITHOUT_MARKS: &str = "exists without the marks of those that this program collects";

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";

/// Returns the name of the collected copy of a slice of `m1`.
fn copied(name: &str) -> String {
    collected_slice("m1", name, "IPv4")
}

fn slices(client: Client) -> Api<EndpointSlice> {
    Api::namespaced(client, "shop")
}

pub(super) fn of_member(member: &ServedApi) -> Api<EndpointSlice> {
    slices(Client::new(member.server.service(), "default"))
}

/// Writes a slice of a Service in a member, as `manager` would.
async fn write(member: &ServedApi, service: &str, name: &str, manager: &str, address: &str) {
    let labels = json!({ "kubernetes.io/service-name": service,
        "endpointslice.kubernetes.io/managed-by": manager });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": name, "labels": labels },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address], "conditions": { "ready": true }, "nodeName": "n1" }],
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    });
    let parameters = PatchParams::apply(manager).force();
    let patch = Patch::Apply(slice);
    of_member(member)
        .patch(name, &parameters, &patch)
        .await
        .unwrap();
}

/// A fleet with the member `m1`, into which a Work brings the Service `web`.
async fn fleet() -> (Stage, ServedApi) {
    let (stage, member) = (Stage::new().await, member(|_| true).await);
    stage.api.create_namespace("shop").await;
    stage.join("m1", member.address()).await;
    stage.bring("web").await;
    (stage, member)
}

/// The same with a program that has collected one slice of `web`.
async fn collecting() -> (Stage, ServedApi, Program) {
    let (stage, member) = fleet().await;
    write(&member, "web", "web-1", OF_MEMBER, "10.0.0.1").await;
    stage.export("web").await;
    let program = stage.start(COLLECTING);
    stage.has("web-1", "10.0.0.1").await;
    (stage, member, program)
}

impl Stage {
    /// Creates a Work that brings a Service to `m1`.
    async fn bring(&self, name: &str) {
        let annotations = json!({ "work.karmada.io/namespace": "karmada-es-m1",
            "work.karmada.io/name": name });
        let service = json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": name, "namespace": "shop",
                "labels": { "karmada.io/managed": "true" }, "annotations": annotations },
            "spec": { "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }] } });
        let work = json!({ "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
            "metadata": { "name": name, "namespace": "karmada-es-m1",
                "finalizers": ["karmada.io/execution-controller"] },
            "spec": { "workload": { "manifests": [service] } } });
        self.api.create(&work).await;
    }

    async fn export(&self, name: &str) {
        let export = json!({ "apiVersion": ServiceExport::API_VERSION, "kind": ServiceExport::KIND,
            "metadata": { "name": name, "namespace": "shop" } });
        self.api.create(&export).await;
    }

    async fn withdraw(&self, name: &str) {
        let exports: Api<ServiceExport> = Api::namespaced(self.api.user(), "shop");
        exports
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    fn collected(&self) -> Api<EndpointSlice> {
        slices(self.api.user())
    }

    /// Waits until the collected copy of a slice of `m1` has this address.
    async fn has(&self, name: &str, address: &str) -> EndpointSlice {
        let name = copied(name);
        let copy = until(self.collected(), &name, |slice| {
            let endpoints = slice.and_then(|slice| slice.endpoints.as_ref());
            endpoints.is_some_and(|endpoints| endpoints[0].addresses == [address])
        });
        copy.await.unwrap()
    }

    async fn has_no(&self, name: &str) {
        until(self.collected(), &copied(name), |slice| slice.is_none()).await;
    }

    async fn names(&self) -> Vec<String> {
        let all = self.collected().list(&ListParams::default()).await.unwrap();
        let names = all
            .items
            .into_iter()
            .map(|slice| slice.metadata.name.unwrap());
        names.collect()
    }

    /// Waits for an Event about an export.
    pub(super) async fn noted(&self, reason: &str, text: &str) {
        let noted = async {
            loop {
                let events = self.api.events().await;
                let mut notes = events
                    .iter()
                    .filter(|event| event.reason.as_deref() == Some(reason));
                if notes.any(|event| event.note.as_ref().is_some_and(|note| note.contains(text))) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), noted).await.unwrap();
    }
}

/// The endpoints of an exported Service come in Karmada's form, and change and go with those in the member. Those that
/// were imported there are not collected again, nor those of Services that nobody exports.
#[tokio::test]
async fn exported_service_is_collected() {
    let (stage, member) = fleet().await;
    stage.bring("db").await;
    write(&member, "web", "web-1", OF_MEMBER, "10.0.0.1").await;
    write(&member, "db", "db-1", OF_MEMBER, "10.0.0.3").await;
    let imported = "endpointslice-controller.karmada.io";
    write(&member, "web", "imported", imported, "10.0.0.9").await;
    stage.export("web").await;
    let program = stage.start(COLLECTING);
    let copy = stage.has("web-1", "10.0.0.1").await;
    let labels = copy.metadata.labels.unwrap();
    assert_eq!(labels["kubernetes.io/service-name"], "derived-web");
    assert_eq!(labels["endpointslice.kubernetes.io/managed-by"], imported);
    let annotations = copy.metadata.annotations.unwrap();
    assert_eq!(annotations["work.karmada.io/namespace"], "karmada-es-m1");

    write(&member, "web", "web-2", OF_MEMBER, "10.0.0.2").await;
    stage.has("web-2", "10.0.0.2").await;
    write(&member, "web", "web-1", OF_MEMBER, "10.0.0.4").await;
    stage.has("web-1", "10.0.0.4").await;
    of_member(&member)
        .delete("web-1", &DeleteParams::default())
        .await
        .unwrap();
    stage.has_no("web-1").await;
    assert_eq!(stage.names().await, [copied("web-2")]);
    stage.export("db").await;
    stage.has("db-1", "10.0.0.3").await;
    counts(&program, r#"collected_endpoint_slices{member="m1"} 2"#).await;
}

/// The next process writes only the slices that have changed meanwhile.
#[tokio::test]
async fn restart_writes_nothing() {
    let (stage, member, program) = collecting().await;
    stage.condition("m1", "web", APPLIED, TRUE).await;
    drop(program);
    stage.api.writes();
    write(&member, "web", "web-2", OF_MEMBER, "10.0.0.2").await;
    let _program = stage.start(COLLECTING);
    stage.has("web-2", "10.0.0.2").await;
    assert_eq!(stage.api.writes(), [format!("POST {SLICES}")]);
}

/// A member that is not reached keeps the endpoints collected last, by the next process too, until their export goes.
#[tokio::test]
async fn unreached_member_keeps_endpoints() {
    let (stage, mut member, program) = collecting().await;
    stage.condition("m1", "web", APPLIED, TRUE).await;
    drop(program);
    member.stop().await;
    let _program = stage.start(COLLECTING);
    stage.condition("m1", "web", APPLIED, FALSE).await;
    assert_eq!(stage.names().await, [copied("web-1")]);
    stage.withdraw("web").await;
    stage.has_no("web-1").await;
    stage.export("web").await;
    member.restart();
    stage.has("web-1", "10.0.0.1").await;
}

/// The endpoints go with the export, with the Service, and with the cluster.
#[tokio::test]
async fn endpoints_go_with_cause() {
    let (stage, member) = fleet().await;
    stage.bring("db").await;
    for (service, name) in [("web", "web-1"), ("db", "db-1")] {
        write(&member, service, name, OF_MEMBER, "10.0.0.1").await;
        stage.export(service).await;
    }
    let _program = stage.start(COLLECTING);
    stage.has("web-1", "10.0.0.1").await;
    stage.has("db-1", "10.0.0.1").await;
    stage.withdraw("web").await;
    stage.has_no("web-1").await;
    stage.export("web").await;
    stage.has("web-1", "10.0.0.1").await;
    let parameters = DeleteParams::default();
    stage.works("m1").delete("web", &parameters).await.unwrap();
    stage.has_no("web-1").await;
    assert_eq!(stage.names().await, [copied("db-1")]);
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let clusters = stage.clusters();
    clusters
        .patch("m1", &PatchParams::default(), &patch)
        .await
        .unwrap();
    clusters.delete("m1", &parameters).await.unwrap();
    stage.has_no("db-1").await;
    assert!(of_member(&member).get_opt("db-1").await.unwrap().is_some());
}

/// Slices that a Karmada collects are left to it, with an Event; ours are back when it is gone.
#[tokio::test]
async fn other_collector_is_left_alone() {
    let (stage, member) = fleet().await;
    write(&member, "web", "web-1", OF_MEMBER, "10.0.0.1").await;
    let theirs = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": "imported-m1-web-1", "namespace": "shop", "labels": {
            "kubernetes.io/service-name": "derived-web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io" },
            "annotations": { "work.karmada.io/namespace": "karmada-es-m1" } },
        "addressType": "IPv4", "endpoints": [{ "addresses": ["10.0.0.1"] }], "ports": [],
    });
    stage.api.create(&theirs).await;
    stage.export("web").await;
    let _program = stage.start(COLLECTING);
    stage
        .noted(
            "EndpointsNotOurs",
            "another program collects the endpoints of shop/web in cluster m1",
        )
        .await;
    assert_eq!(stage.names().await, ["imported-m1-web-1"]);
    let parameters = DeleteParams::default();
    stage
        .collected()
        .delete("imported-m1-web-1", &parameters)
        .await
        .unwrap();
    stage.has("web-1", "10.0.0.1").await;
    stage.api.create(&theirs).await;
    stage.has_no("web-1").await;
    let mut writes = stage.api.writes();
    writes.retain(|call| call.contains(SLICES));
    assert_eq!(
        writes,
        [
            format!("POST {SLICES}"),
            format!("DELETE {SLICES}/{}", copied("web-1"))
        ]
    );
}

/// A slice of a user that has the name of a copy is not taken over, and an Event says so. The Service's other slices
/// change and go nevertheless.
#[tokio::test]
async fn taken_name_is_told() {
    let (stage, member) = fleet().await;
    write(&member, "web", "web-1", OF_MEMBER, "10.0.0.1").await;
    let users = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": copied("web-1"), "namespace": "shop" },
        "addressType": "IPv4", "endpoints": [], "ports": [] });
    stage.api.create(&users).await;
    stage.export("web").await;
    write(&member, "web", "web-2", OF_MEMBER, "10.0.0.2").await;
    let _program = stage.start(COLLECTING);
    stage.noted("CollectEndpointsFailed", WITHOUT_MARKS).await;
    stage.has("web-2", "10.0.0.2").await;
    write(&member, "web", "web-2", OF_MEMBER, "10.0.0.3").await;
    stage.has("web-2", "10.0.0.3").await;
    let parameters = DeleteParams::default();
    of_member(&member)
        .delete("web-2", &parameters)
        .await
        .unwrap();
    stage.has_no("web-2").await;
    assert!(
        stage
            .collected()
            .get(&copied("web-1"))
            .await
            .unwrap()
            .metadata
            .labels
            .is_none()
    );
}

/// A copy from which a user has taken the mark of its cluster is known no more: an Event says so, and it comes again
/// once it is deleted.
#[tokio::test]
async fn unmarked_copy_is_told() {
    let (stage, _member, _program) = collecting().await;
    let unmarked = Patch::Merge(json!({ "metadata": { "annotations": null } }));
    let collected = stage.collected();
    collected
        .patch(&copied("web-1"), &PatchParams::default(), &unmarked)
        .await
        .unwrap();
    stage.noted("CollectEndpointsFailed", WITHOUT_MARKS).await;
    let parameters = DeleteParams::default();
    collected
        .delete(&copied("web-1"), &parameters)
        .await
        .unwrap();
    stage.has("web-1", "10.0.0.1").await;
}

/// A member whose account may not list slices is named in an Event, and collected once it may.
#[tokio::test]
async fn missing_right_is_told() {
    let (stage, member) = fleet().await;
    write(&member, "web", "web-1", OF_MEMBER, "10.0.0.1").await;
    let refused = Fault::Forbidden
        .verbs([Verb::List, Verb::Watch])
        .kind("endpointslices");
    member.server.faults().inject(refused.client(NAME));
    stage.export("web").await;
    let _program = stage.start(COLLECTING);
    stage
        .noted(
            "CollectEndpointsFailed",
            "the account in cluster m1 may not list EndpointSlices",
        )
        .await;
    stage.condition("m1", "web", APPLIED, TRUE).await;
    assert!(stage.names().await.is_empty());
    member.server.faults().clear();
    stage.has("web-1", "10.0.0.1").await;
}

/// Without the flag nothing is collected, and with `--observe-only` nothing is written.
#[tokio::test]
async fn nothing_is_collected_unasked() {
    let (stage, member) = fleet().await;
    write(&member, "web", "web-1", OF_MEMBER, "10.0.0.1").await;
    stage.export("web").await;
    let program = stage.start(&[]);
    stage.condition("m1", "web", APPLIED, TRUE).await;
    drop(program);
    let reads = stage.api.reads();
    assert!(
        !reads
            .iter()
            .any(|path| path.contains("serviceexports") || path.contains("endpointslices")),
        "{reads:?}"
    );
    let program = stage.start(&["--collect-endpoints", "--observe-only"]);
    counts(&program, r#"would_write_total{target="endpoint_slice"} 1"#).await;
    assert!(stage.names().await.is_empty());
}
