//! The Karmada API and the member's, in memory, with counts of their requests.

use std::net::Ipv4Addr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use bytes::Bytes;
use embedded_apiserver::ApiServer;
use http_body_util::BodyExt;
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::condition::DNS_READY;
use karmada_api::{Cluster, execution_namespace};
use karmada_runtime::client::{self, Source};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use lab_parts::kubeconfig::{self, Access};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::Service;

use super::addresses::{LISTENING, PODS, name, pod_ip};
use super::figures::Figures;
use crate::harness::access::{Access as _, USER_AGENT};
use crate::harness::connection::nowhere;

/// The cluster of the agents.
pub const CLUSTER: &str = "member1";
/// The namespace and the name of the agents' Service.
pub(super) const SERVICE: (&str, &str) = ("karmada-rs", "cluster-health-agent");
/// The default `--max-endpoints-per-slice` of kube-controller-manager.
const ENDPOINTS_PER_SLICE: usize = 100;

/// Both APIs, which stop when dropped.
pub struct Apis {
    /// The Karmada API.
    pub karmada: Counted,
    /// The API of the member.
    pub member: Counted,
    clusters: Api<Cluster>,
    leases: Api<Lease>,
    _folder: TempDir,
}

/// An API server that counts its requests.
pub struct Counted {
    pub(super) kubeconfig: PathBuf,
    /// The connection that the agents of this process share.
    pub(super) agents: Client,
    figures: Arc<Mutex<Figures>>,
    /// The server itself: the simulation's own requests to it are not counted.
    server: ApiServer,
    _serving: JoinSet<()>,
}

impl Apis {
    /// Starts both APIs: the member's lists the agents of `nodes` nodes, and Karmada's has the cluster,
    /// without a verdict.
    pub async fn start(nodes: u16, port: u16) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let karmada = Counted::start(folder.path(), "karmada").await?;
        let member = Counted::start(folder.path(), "member").await?;
        let namespace = execution_namespace(CLUSTER);
        karmada.server.create_namespace(&namespace).await?;
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": CLUSTER }, "spec": { "syncMode": "Push" },
        });
        let clusters = "/apis/cluster.karmada.io/v1alpha1/clusters";
        karmada.server.create(clusters, &cluster).await?;
        member.server.create_namespace(SERVICE.0).await?;
        let client = client::with_service(karmada.server.service(), nowhere(), USER_AGENT)?;
        let apis = Self {
            karmada,
            member,
            clusters: Api::all(client.clone()),
            leases: Api::namespaced(client, &namespace),
            _folder: folder,
        };
        apis.list(0..nodes, port).await?;
        Ok(apis)
    }

    /// Creates the EndpointSlices that list the agents of `nodes`.
    pub async fn list(&self, nodes: Range<u16>, port: u16) -> Result<()> {
        let (namespace, service) = SERVICE;
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
        let all: Vec<u16> = nodes.collect();
        for nodes in all.chunks(ENDPOINTS_PER_SLICE) {
            let endpoints = nodes.iter().map(|node| {
                json!({
                    "addresses": [pod_ip(*node)],
                    "nodeName": name(*node),
                    "targetRef": { "kind": "Pod", "namespace": namespace, "name": format!("{service}-{node}"), "uid": format!("00000000-0000-4000-8000-{node:012}") },
                    "conditions": { "ready": true, "serving": true, "terminating": false },
                })
            });
            let slice = json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {
                    "name": format!("{service}-{}", nodes[0]),
                    "labels": { "kubernetes.io/service-name": service },
                },
                "addressType": "IPv4",
                "ports": [{ "name": "admin", "port": port, "protocol": "TCP" }],
                "endpoints": endpoints.collect::<Vec<_>>(),
            });
            self.member.server.create(&path, &slice).await?;
        }
        Ok(())
    }

    /// Waits until the verdict is `True`, or `False` unless DNS `works`.
    pub(super) async fn verdict(&self, works: bool, limit: Duration) -> Result<()> {
        let status = if works { "True" } else { "False" };
        let is = |cluster: Option<&Cluster>| {
            let condition = cluster.and_then(|cluster| cluster.condition(DNS_READY));
            condition.is_some_and(|condition| condition.status == status)
        };
        let waiting = await_condition(self.clusters.clone(), CLUSTER, is);
        timeout(limit, waiting)
            .await
            .with_context(|| format!("the verdict is not {status} after {limit:?}"))??;
        Ok(())
    }

    /// Returns the holder of the agents' lease, or an empty string.
    pub(super) async fn holder(&self) -> Result<String> {
        let lease = self.leases.get_opt(cluster_health_agent::NAME).await?;
        let holder = lease.and_then(|lease| lease.spec?.holder_identity);
        Ok(holder.unwrap_or_default())
    }
}

impl Counted {
    async fn start(folder: &Path, name: &str) -> Result<Self> {
        let server = ApiServer::starting_at(jiff::Timestamp::now());
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../manifests/fleet/cluster.karmada.io_clusters.yaml"
        );
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        server.install(&serde_saphyr::from_str::<Value>(&text)?)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let figures = Arc::<Mutex<Figures>>::default();
        let router = counted(server.clone(), Arc::clone(&figures));
        let mut serving = JoinSet::new();
        // The server runs until the simulation drops it.
        serving.spawn(async move { drop(axum::serve(listener, router).await) });
        let kubeconfig = folder.join(format!("{name}.kubeconfig"));
        kubeconfig::write(&kubeconfig, &[&Access::open(name, address)])?;
        let source = Source {
            kubeconfig: Some(kubeconfig.clone()),
            ..Source::default()
        };
        Ok(Self {
            agents: client::connect(&source, cluster_health_agent::NAME).await?,
            kubeconfig,
            figures,
            server,
            _serving: serving,
        })
    }

    /// Returns the counts of the requests so far.
    pub fn figures(&self) -> Figures {
        self.figures.lock().clone()
    }
}

/// Serves an API, counts the agents' requests, and routes the agents to each other on loopback.
fn counted(server: ApiServer, figures: Arc<Mutex<Figures>>) -> Router {
    Router::new().fallback(move |request: Request<Body>| {
        let mut service = server.service();
        let figures = Arc::clone(&figures);
        async move {
            let (parts, body) = request.into_parts();
            figures.lock().count(&parts);
            match service.call(Request::from_parts(parts, body)).await {
                Ok(response) => response.map(|body| {
                    // A frame is a whole response or a whole line of a watch, so no address is split.
                    Body::new(body.map_frame(|frame| frame.map_data(|text| routed(&text))))
                }),
                Err(_) => StatusCode::BAD_GATEWAY.into_response(),
            }
        }
    })
}

/// Replaces the agents' pod IPs in a body with the addresses on which they listen.
fn routed(text: &[u8]) -> Bytes {
    let text = String::from_utf8_lossy(text);
    text.replace(PODS, LISTENING).into()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use kube::api::ListParams;

    use super::*;
    use crate::agents::addresses::address;

    #[tokio::test]
    async fn agents_are_found_where_they_listen() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let apis = Apis::start(2, 7).await.unwrap();
        let slices: Api<EndpointSlice> = Api::all(apis.member.agents.clone());
        let found = slices.list(&ListParams::default()).await.unwrap();
        let endpoints = found.items.into_iter().filter_map(|slice| slice.endpoints);
        let addresses: Vec<String> = endpoints.flatten().flat_map(|one| one.addresses).collect();
        let listening = [0, 1].map(|node| address(node, 7).ip().to_string());
        assert_eq!(addresses, listening);
    }
}
