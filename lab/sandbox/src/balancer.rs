//! A client-side load balancer (tower's) for each website. That of the shop is over all that the ingress controller
//! published in the gateway cluster: the endpoints of the Services that its Ingresses route to. That of the store is
//! over the endpoints of its Services in all members.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use kube::runtime::reflector;
use kube::{Api, Client};
use tower::BoxError;
use tower::balance::p2c::Balance;
use tower::discover::Change;
use tower::load::{CompleteOnResponse, PendingRequests};
use tower::util::BoxService;

use crate::get::Getter;
use crate::network::{Network, Pod};
use crate::objects::NAMESPACE;
use crate::site::Site;
use crate::update::{Request, Update, UpdateSender};
use crate::watch::follow;

/// A request without a response for that long has failed.
const RESPONSE_WITHIN: Duration = Duration::from_secs(1);
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// An upstream of the balancer; it returns `true` if it served the request.
type Endpoint = PendingRequests<BoxService<(), bool, BoxError>>;
type Changes = stream::BoxStream<'static, Result<Change<SocketAddr, Endpoint>, Infallible>>;

/// A balancer that sends each request to one of the published endpoints.
pub(crate) type Balancer = Balance<Changes, ()>;

/// Creates a balancer without endpoints, which then follows the gateway's API.
pub(crate) fn of_shop(gateway: &Client, network: Network, updates: UpdateSender) -> Balancer {
    start(Site::Shop, published(gateway), network, updates)
}

/// Creates a balancer without endpoints, which then follows the APIs of the members.
pub(crate) fn of_store(
    members: &BTreeMap<String, Client>,
    network: Network,
    updates: UpdateSender,
) -> Balancer {
    start(Site::Store, placed(members), network, updates)
}

fn start(
    site: Site,
    endpoints: impl Stream<Item = BTreeSet<SocketAddr>> + Send + 'static,
    network: Network,
    updates: UpdateSender,
) -> Balancer {
    let getter = Getter::new("sandbox", RESPONSE_WITHIN);
    let mut known = BTreeSet::new();
    let changes = endpoints.flat_map(move |now| {
        let gone = known
            .difference(&now)
            .map(|address| Change::Remove(*address));
        let come = now.difference(&known).filter_map(|address| {
            let pod = network.get(address)?.clone();
            let endpoint = endpoint(site, pod, getter.clone(), updates.clone());
            Some(Change::Insert(*address, endpoint))
        });
        let changes: Vec<_> = gone.chain(come).map(Ok).collect();
        known = now;
        stream::iter(changes)
    });
    Balance::new(changes.boxed())
}

/// Streams the published endpoints whenever they may have changed.
fn published(gateway: &Client) -> impl Stream<Item = BTreeSet<SocketAddr>> + Send + use<> {
    let (ingresses, ingress_events) =
        follow(Api::<Ingress>::namespaced(gateway.clone(), NAMESPACE));
    let (slices, slice_events) =
        follow(Api::<EndpointSlice>::namespaced(gateway.clone(), NAMESPACE));
    stream::select(ingress_events, slice_events)
        .map(move |()| endpoints(&ingresses.state(), &slices.state()))
}

/// Streams the endpoints in the members whenever they may have changed.
fn placed(
    members: &BTreeMap<String, Client>,
) -> impl Stream<Item = BTreeSet<SocketAddr>> + Send + use<> {
    let members = members.values().map(|member| {
        let slices = Api::<EndpointSlice>::namespaced(member.clone(), Site::Store.namespace());
        let (slices, changes) = follow(slices);
        (slices, changes.boxed())
    });
    let (slices, changes): (Vec<_>, Vec<_>) = members.unzip();
    stream::select_all(changes).map(move |()| {
        let slices = slices.iter().flat_map(reflector::Store::state);
        slices
            .flat_map(|slice| addresses(&slice).collect::<Vec<_>>())
            .collect()
    })
}

/// Returns the endpoints of the Services that the ingresses route to. Each Service here has one port.
fn endpoints(ingresses: &[Arc<Ingress>], slices: &[Arc<EndpointSlice>]) -> BTreeSet<SocketAddr> {
    let services: BTreeSet<&str> = ingresses
        .iter()
        .flat_map(|ingress| services(ingress))
        .collect();
    (slices.iter())
        .filter(|slice| service(slice).is_some_and(|service| services.contains(service)))
        .flat_map(|slice| addresses(slice))
        .collect()
}

fn service(slice: &EndpointSlice) -> Option<&str> {
    let labels = slice.metadata.labels.as_ref()?;
    labels.get(SERVICE_LABEL).map(String::as_str)
}

fn services(ingress: &Ingress) -> impl Iterator<Item = &str> {
    let spec = ingress.spec.iter();
    let rules = spec.flat_map(|spec| spec.rules.iter().flatten());
    let paths = rules.flat_map(|rule| rule.http.iter().flat_map(|http| &http.paths));
    paths.filter_map(|path| Some(path.backend.service.as_ref()?.name.as_str()))
}

fn addresses(slice: &EndpointSlice) -> impl Iterator<Item = SocketAddr> {
    let port = slice.ports.iter().flatten().find_map(|port| port.port);
    let port = port.and_then(|port| u16::try_from(port).ok());
    let endpoints = slice.endpoints.iter().flatten().filter(|endpoint| {
        let conditions = endpoint.conditions.as_ref();
        // An endpoint without the condition counts as ready (discovery.k8s.io/v1).
        conditions.and_then(|conditions| conditions.ready) != Some(false)
    });
    let ips = endpoints.flat_map(|endpoint| &endpoint.addresses);
    ips.filter_map(move |ip| Some(SocketAddr::new(ip.parse().ok()?, port?)))
}

fn endpoint(site: Site, pod: Pod, getter: Getter, updates: UpdateSender) -> Endpoint {
    let service = tower::service_fn(move |()| {
        let (pod, getter, updates) = (pod.clone(), getter.clone(), updates.clone());
        async move {
            let cluster = pod.cluster;
            let sent = Request::Sent {
                cluster: cluster.clone(),
            };
            updates.send(Update::Request(site, sent));
            let response = getter.get(pod.socket, "/").await;
            // Another member's response would mean that the addresses are mixed up.
            let ok = response.is_ok_and(|(status, body)| {
                status.is_success() && body.split_whitespace().next() == Some(&cluster)
            });
            let responded = Request::Responded { cluster, ok };
            updates.send(Update::Request(site, responded));
            Ok::<_, BoxError>(ok)
        }
    });
    PendingRequests::new(BoxService::new(service), CompleteOnResponse::default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
    fn slice(service: &str, endpoints: Value) -> Arc<EndpointSlice> {
        let slice = json!({
            "metadata": { "labels": { SERVICE_LABEL: service } },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [{ "name": "http", "port": 8080 }],
        });
        Arc::new(serde_json::from_value(slice).unwrap())
    }

    fn ingress(service: &str) -> Arc<Ingress> {
        let backend = json!({ "service": { "name": service, "port": { "number": 80 } } });
        let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
        let spec = json!({ "rules": [{ "http": { "paths": [path] } }] });
        Arc::new(serde_json::from_value(json!({ "spec": spec })).unwrap())
    }

    /// Only ready endpoints of the ingress's service are served.
    #[test]
    fn only_ready_endpoints_are_served() {
        let slices = [
            slice("shop-web", json!([{ "addresses": ["10.244.1.10"] }])),
            slice(
                "shop-web",
                json!([
                    { "addresses": ["10.244.2.10"], "conditions": { "ready": true } },
                    { "addresses": ["10.244.2.11"], "conditions": { "ready": false } },
                ]),
            ),
            slice("other", json!([{ "addresses": ["10.244.3.10"] }])),
        ];
        let expected: BTreeSet<SocketAddr> = ["10.244.1.10:8080", "10.244.2.10:8080"]
            .map(|address| address.parse().unwrap())
            .into();
        assert_eq!(endpoints(&[ingress("shop-web")], &slices), expected);
        assert_eq!(endpoints(&[], &slices), BTreeSet::new());
    }
}
