//! The promises of every provider, as tests that run on each: `provider_contract!(Stage)` beside its own tests.
//!
//! A [`Stage`] is a load balancer without its provider: it starts providers, tells which endpoints a request would reach, and
//! fails on demand. A test knows nothing else of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use k8s_openapi::api::networking::v1::{IngressRule, IngressSpec};
use karmada_api::execution_namespace;
use karmada_runtime::error::BoxError;
use objects::Key;
use serde_json::json;
use traffic::ingress::{
    Admission, Backend, BackendAddresses, Cached, ClusterEndpoints, Desired, ServedClusters,
    WhenAllBlocked,
};

use super::balancer::{Ensured, LoadBalancer};

/// A load balancer with providers that are tested. All ingresses are in the namespace `ns`.
pub(super) trait Stage: Sized {
    type Provider: LoadBalancer;

    /// Returns an empty load balancer.
    async fn new() -> Self;

    /// Starts a provider, which knows the holdings of the load balancer now, and nothing else.
    async fn provider(&self) -> Self::Provider;

    /// Shows a provider all that changed in the load balancer.
    async fn catch_up(&self, provider: &Self::Provider);

    /// Returns the addresses to which a new request for `host` is sent.
    async fn served(&self, host: &str) -> BTreeSet<String>;

    /// Returns the number of changes that providers asked for since the last call.
    fn changes(&self) -> usize;

    /// Fails the next request of a provider, as an outage does.
    fn fail_once(&self);

    /// Refuses the next change of the routes of an ingress that exists.
    fn refuse_routes(&self, ingress: &Key);

    /// Adds an object of somebody else to the load balancer.
    async fn add_foreign(&self);

    /// Returns `true` if that is as it was added.
    async fn is_foreign_intact(&self) -> bool;
}

/// Runs the contract on a [`Stage`].
macro_rules! provider_contract {
    ($stage:ty: $($test:ident,)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                $crate::provider::contract::$test::<$stage>().await;
            }
        )*
    };
    ($stage:ty) => {
        $crate::provider::contract::provider_contract! { $stage:
            second_ensure_changes_nothing,
            restarted_provider_takes_over,
            two_providers_agree,
            deletion_spares_others,
            failed_ensure_is_repeated,
            failure_holds_up_no_other,
            blocked_cluster_goes_first,
            blocked_cluster_comes_back,
            cut_takes_only_that,
            empty_backends_are_served_nowhere,
            many_backends_change_little,
        }
    };
}
pub(super) use provider_contract;

/// Calls `ensure` until it succeeds, as the loop does, and returns its outcome. Between two calls the provider sees the
/// changes.
async fn ensured<S: Stage>(stage: &S, provider: &S::Provider, desired: &Desired) -> Ensured {
    let mut last = None;
    for _ in 0..5 {
        match provider.ensure(desired).await {
            Ok(ensured) => return ensured,
            Err(error) => last = Some(error),
        }
        stage.catch_up(provider).await;
    }
    panic!("it still fails: {last:?}");
}

/// Asserts that the desired state is there, and that a provider which knows it writes nothing.
async fn assert_rests<S: Stage>(stage: &S, provider: &S::Provider, desired: &Desired) {
    stage.catch_up(provider).await;
    stage.changes();
    let outcome = provider.ensure(desired).await.unwrap();
    assert_eq!(outcome.obstacles, BTreeSet::new());
    assert_eq!(stage.changes(), 0);
}

/// A desired state is written once, seen or unseen.
pub(super) async fn second_ensure_changes_nothing<S: Stage>() {
    let stage = S::new().await;
    let provider = stage.provider().await;
    let desired = two_clusters();
    ensured(&stage, &provider, &desired).await;
    assert_eq!(served(&stage).await, ["10.1.0.0", "10.2.0.0"]);
    assert!(stage.changes() > 0);
    provider.ensure(&desired).await.unwrap();
    assert_eq!(stage.changes(), 0, "before it sees its own changes");
    assert_rests(&stage, &provider, &desired).await;
}

/// A provider that starts anew knows the objects of its predecessor, changes none, and can delete them.
pub(super) async fn restarted_provider_takes_over<S: Stage>() {
    let stage = S::new().await;
    let desired = two_clusters();
    ensured(&stage, &stage.provider().await, &desired).await;
    let provider = stage.provider().await;
    assert_eq!(provider.keys(), [key("i")]);
    assert!(provider.holds(&key("i")) && !provider.holds(&key("j")));
    assert_eq!(clusters(&provider.endpoints(&key("i"))), ["m1", "m2"]);
    assert_rests(&stage, &provider, &desired).await;
    let none = BTreeSet::new();
    provider.delete(&key("i"), &none).await.unwrap();
    assert_eq!(served(&stage).await, [""; 0]);
    assert!(stage.provider().await.keys().is_empty());
}

/// Two providers at once, as two controllers are for a moment, end with one desired state and then rest.
pub(super) async fn two_providers_agree<S: Stage>() {
    let stage = S::new().await;
    let (one, other) = (stage.provider().await, stage.provider().await);
    let desired = two_clusters();
    let both = [&one, &other].map(|provider| provider.ensure(&desired));
    // Either may come too late.
    drop(join_all(both).await);
    for provider in [&one, &other] {
        stage.catch_up(provider).await;
        ensured(&stage, provider, &desired).await;
    }
    assert_eq!(served(&stage).await, ["10.1.0.0", "10.2.0.0"]);
    for provider in [&one, &other] {
        assert_rests(&stage, provider, &desired).await;
    }
}

/// A deletion removes all that belongs to its ingress, and nothing of another or of somebody else.
pub(super) async fn deletion_spares_others<S: Stage>() {
    let stage = S::new().await;
    stage.add_foreign().await;
    let provider = stage.provider().await;
    for name in ["i", "j"] {
        ensured(&stage, &provider, &desired(name, &["s"], &["m1"])).await;
    }
    let none = BTreeSet::new();
    for _ in 0..2 {
        provider.delete(&key("i"), &none).await.unwrap();
        stage.catch_up(&provider).await;
        assert_eq!(provider.keys(), [key("j")]);
    }
    assert_eq!(served(&stage).await, [""; 0]);
    let other = stage.served("s.j.example.com").await;
    assert_eq!(other, ["10.1.0.0".to_owned()].into());
    assert!(stage.is_foreign_intact().await);
}

/// A call that fails says so and leaves nothing that a later one cannot complete.
pub(super) async fn failed_ensure_is_repeated<S: Stage>() {
    let stage = S::new().await;
    let provider = stage.provider().await;
    stage.fail_once();
    let error = provider.ensure(&two_clusters()).await;
    let error: BoxError = error.unwrap_err();
    assert!(provider.is_outage(&error), "{error}");
    provider.probe().await.unwrap();
    ensured(&stage, &provider, &two_clusters()).await;
    assert_eq!(served(&stage).await, ["10.1.0.0", "10.2.0.0"]);
}

/// An ingress that is refused is an obstacle or an error of its own: another one is served.
pub(super) async fn failure_holds_up_no_other<S: Stage>() {
    let stage = S::new().await;
    let provider = stage.provider().await;
    ensured(&stage, &provider, &two_clusters()).await;
    stage.refuse_routes(&key("i"));
    let refused = desired("i", &["s", "t"], &["m1", "m2"]);
    let outcome = provider.ensure(&refused).await;
    assert!(outcome.is_err() || !outcome.unwrap().obstacles.is_empty());
    let other = desired("j", &["s"], &["m2"]);
    ensured(&stage, &provider, &other).await;
    let found = stage.served("s.j.example.com").await;
    assert_eq!(found, ["10.2.0.0".to_owned()].into());
    // The same is served.
    assert_eq!(served(&stage).await, ["10.1.0.0", "10.2.0.0"]);
}

/// A blocked, leaving or unknown cluster gets no request any more, even if the rest is refused.
pub(super) async fn blocked_cluster_goes_first<S: Stage>() {
    for admission in [
        Admission::Blocked,
        Admission::ClusterDeleting,
        Admission::ClusterMissing,
    ] {
        let stage = S::new().await;
        let provider = stage.provider().await;
        ensured(&stage, &provider, &two_clusters()).await;
        stage.refuse_routes(&key("i"));
        let mut blocked = desired("i", &["s", "t"], &["m1", "m2"]);
        admit(&mut blocked, "m1", admission);
        let outcome = provider.ensure(&blocked).await;
        assert!(outcome.is_err() || !outcome.unwrap().obstacles.is_empty());
        assert_eq!(served(&stage).await, ["10.2.0.0"], "{admission:?}");
    }
}

/// A cluster that is released is served as before.
pub(super) async fn blocked_cluster_comes_back<S: Stage>() {
    let stage = S::new().await;
    let provider = stage.provider().await;
    let mut blocked = two_clusters();
    admit(&mut blocked, "m1", Admission::Blocked);
    for _ in 0..2 {
        ensured(&stage, &provider, &two_clusters()).await;
        assert_eq!(served(&stage).await, ["10.1.0.0", "10.2.0.0"]);
        ensured(&stage, &provider, &blocked).await;
        assert_eq!(served(&stage).await, ["10.2.0.0"]);
        assert_rests(&stage, &provider, &blocked).await;
    }
}

/// Of an ingress that is left as it is, only the cut clusters go.
pub(super) async fn cut_takes_only_that<S: Stage>() {
    let stage = S::new().await;
    let provider = stage.provider().await;
    ensured(&stage, &provider, &two_clusters()).await;
    let mut cut = provider.endpoints(&key("i"));
    for clusters in cut.values_mut() {
        clusters.retain(|cluster| cluster == "m1");
    }
    provider.cut(&key("i"), &cut).await.unwrap();
    assert_eq!(served(&stage).await, ["10.2.0.0"]);
    let nothing = ServedClusters::new();
    stage.changes();
    provider.cut(&key("i"), &nothing).await.unwrap();
    assert_eq!(stage.changes(), 0);
}

/// A Service that is unknown, without clusters, or without endpoints gets no request, and the others are served.
pub(super) async fn empty_backends_are_served_nowhere<S: Stage>() {
    let stage = S::new().await;
    let provider = stage.provider().await;
    let mut desired = desired("i", &["s", "unknown", "nowhere", "empty"], &["m1"]);
    for backend in &mut desired.backends {
        match backend.service.as_str() {
            "unknown" => backend.ports = Cached::Absent,
            "nowhere" => backend.clusters.clear(),
            "empty" => backend.clusters[0].slices.clear(),
            _ => {}
        }
    }
    let outcome = ensured(&stage, &provider, &desired).await;
    assert_eq!(outcome.obstacles, BTreeSet::new());
    assert_eq!(served(&stage).await, ["10.1.0.0"]);
    for service in ["unknown", "nowhere", "empty"] {
        let host = format!("{service}.i.example.com");
        assert_eq!(stage.served(&host).await, BTreeSet::new(), "{service}");
    }
    assert_rests(&stage, &provider, &desired).await;
}

/// One cluster of many is blocked, and costs at most one change for each backend.
pub(super) async fn many_backends_change_little<S: Stage>() {
    const BACKENDS: usize = 200;
    const CLUSTERS: usize = 50;
    let services: Vec<String> = (1..=BACKENDS).map(|n| format!("s{n}")).collect();
    let clusters: Vec<String> = (1..=CLUSTERS).map(|n| format!("m{n}")).collect();
    let stage = S::new().await;
    let provider = stage.provider().await;
    let mut desired = wanted("i", &services, &clusters);
    ensured(&stage, &provider, &desired).await;
    assert_eq!(stage.served("s200.i.example.com").await.len(), CLUSTERS);
    assert_rests(&stage, &provider, &desired).await;

    admit(&mut desired, "m1", Admission::Blocked);
    ensured(&stage, &provider, &desired).await;
    assert!((1..=BACKENDS).contains(&stage.changes()));
    assert_eq!(stage.served("s200.i.example.com").await.len(), CLUSTERS - 1);
    assert_rests(&stage, &provider, &desired).await;
}

/// Returns the addresses that serve Service `s` of the ingress `i`.
async fn served(stage: &impl Stage) -> Vec<String> {
    let served = stage.served("s.i.example.com").await;
    served.into_iter().collect()
}

fn clusters(held: &ServedClusters) -> Vec<&str> {
    let mut clusters: Vec<&str> = held.values().flatten().map(String::as_str).collect();
    clusters.sort_unstable();
    clusters.dedup();
    clusters
}

pub(super) fn key(name: &str) -> Key {
    Key::new("ns", name)
}

fn two_clusters() -> Desired {
    desired("i", &["s"], &["m1", "m2"])
}

/// Returns an ingress with a host `<service>.<ingress>.example.com` for each of `services`, which run in `clusters`.
pub(super) fn desired(ingress: &str, services: &[&str], clusters: &[&str]) -> Desired {
    let [services, clusters] = [services, clusters]
        .map(|names| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() });
    wanted(ingress, &services, &clusters)
}

fn rule(ingress: &str, service: &str) -> IngressRule {
    let backend = json!({ "service": { "name": service, "port": { "number": 80 } } });
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
    let host = format!("{service}.{ingress}.example.com");
    let rule = json!({ "host": host, "http": { "paths": [path] } });
    serde_json::from_value(rule).unwrap()
}

fn wanted(ingress: &str, services: &[String], clusters: &[String]) -> Desired {
    let mut services: Vec<String> = services.to_vec();
    services.sort();
    let rules = services.iter().map(|service| rule(ingress, service));
    Desired {
        key: key(ingress),
        routes: IngressSpec {
            rules: Some(rules.collect()),
            ..IngressSpec::default()
        },
        backends: services.iter().map(|s| backend(s, clusters)).collect(),
        secrets: Vec::new(),
        unread_slices: BTreeSet::new(),
        annotations: BTreeMap::new(),
        excluded: BTreeSet::new(),
        when_all_blocked: WhenAllBlocked::FailOpen,
        addresses: BackendAddresses::Endpoints,
        invalid_annotations: Vec::new(),
        withheld: Vec::new(),
    }
}

fn backend(service: &str, clusters: &[String]) -> Backend {
    Backend {
        service: service.to_owned(),
        ports: Cached::Present(vec![ServicePort {
            port: 80,
            ..ServicePort::default()
        }]),
        clusters: clusters
            .iter()
            .map(|cluster| ClusterEndpoints {
                cluster: cluster.clone(),
                admission: Admission::Admitted,
                is_located: true,
                only_names: BTreeSet::new(),
                slices: vec![Arc::new(slice(cluster))],
            })
            .collect(),
        unusable: BTreeSet::new(),
        names: BTreeSet::new(),
        untold: BTreeSet::new(),
        node_obstacles: BTreeMap::new(),
        is_location_unread: false,
    }
}

/// Returns a slice as Karmada collects it from the cluster `m<n>`, with the address `10.<n>.0.0`.
fn slice(cluster: &str) -> EndpointSlice {
    let number = cluster.trim_start_matches('m');
    let mut slice = EndpointSlice {
        address_type: "IPv4".to_owned(),
        endpoints: Some(vec![Endpoint {
            addresses: vec![format!("10.{number}.0.0")],
            ..Endpoint::default()
        }]),
        ports: Some(vec![EndpointPort {
            name: Some(String::new()),
            port: Some(8080),
            protocol: Some("TCP".to_owned()),
            ..EndpointPort::default()
        }]),
        ..EndpointSlice::default()
    };
    slice.metadata.name = Some(format!("{cluster}-x"));
    let annotation = ("work.karmada.io/namespace", execution_namespace(cluster));
    slice.metadata.annotations = Some([annotation].map(|(k, v)| (k.to_owned(), v)).into());
    slice
}

/// Changes the admission of a cluster for every backend.
pub(super) fn admit(desired: &mut Desired, cluster: &str, admission: Admission) {
    let clusters = desired.backends.iter_mut().flat_map(|b| &mut b.clusters);
    for found in clusters.filter(|found| found.cluster == cluster) {
        found.admission = admission;
        found.is_located = admission != Admission::NotLocated;
    }
}
