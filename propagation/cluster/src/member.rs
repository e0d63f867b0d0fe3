//! A member's API, as far as the state of its cluster is read from it.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use karmada_api::ClusterView;
use karmada_api::cluster_view::ClusterViewSpec;
use karmada_runtime::error::{BoxError, Chain};
use karmada_runtime::members::MemberAccess;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use propagation_rules::cluster::{Capacity, NodeAddresses, Probe, ServedKinds, served};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::usage::{NodeAddressType, Usage};

/// The longest that a response may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The size of the largest response that is read. A discovery document has a few hundred KiB.
const MAX_BODY: usize = 16 << 20;
/// The forms of discovery that are read: Kubernetes 1.30 and 1.27 have the one or the other.
const DISCOVERY: HeaderValue = HeaderValue::from_static(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
);
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The groups with a name, and the one without.
const DOCUMENTS: [&str; 2] = ["/apis", "/api"];

/// A connection to a member. Dropped, it ends its watches.
pub(crate) struct Member {
    client: Client,
    /// The access that it was made with; `None` if the program runs in the member.
    pub(crate) access: Option<MemberAccess>,
    spec: ClusterViewSpec,
    usage: Arc<Usage>,
    discovery: [Mutex<Option<Document>>; 2],
    _ends: DropGuard,
}

/// A document of discovery as it was read last.
#[derive(Clone)]
struct Document {
    version: Option<HeaderValue>,
    served: Vec<ServedKinds>,
}

/// A response.
struct Answer {
    status: StatusCode,
    version: Option<HeaderValue>,
    body: Vec<u8>,
}

impl Member {
    /// Returns the connection, and the watches that keep its nodes and pods known, which the caller has to run.
    pub(crate) fn new(
        client: Client,
        access: Option<MemberAccess>,
        cluster: &ClusterView,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (usage, ended) = (Arc::new(Usage::default()), CancellationToken::new());
        let member = Self {
            client: client.clone(),
            access,
            spec: cluster.spec.clone(),
            usage: Arc::clone(&usage),
            discovery: Default::default(),
            _ends: ended.clone().drop_guard(),
        };
        let watches = async move {
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = usage.watch(client) => {}
            }
        };
        (member, watches)
    }

    /// Returns `true` if the cluster is still reached in this way.
    pub(crate) fn is_of(&self, cluster: &ClusterView) -> bool {
        self.spec.has_same_access(&cluster.spec)
    }

    /// Asks for the health.
    pub(crate) async fn health(&self) -> Probe {
        let mut answer = self.get("/readyz", JSON, None).await;
        // A server that is no kube-apiserver may have the older one only.
        if matches!(&answer, Ok(answer) if answer.status == StatusCode::NOT_FOUND) {
            answer = self.get("/healthz", JSON, None).await;
        }
        match answer {
            Ok(answer) if answer.status == StatusCode::OK => Probe::Healthy,
            Ok(answer) => Probe::Unhealthy(answer.status.to_string()),
            Err(error) => Probe::Unreachable(Chain(&*error).to_string()),
        }
    }

    /// Asks for the version of Kubernetes.
    pub(crate) async fn version(&self) -> Option<String> {
        let answer = self.get("/version", JSON, None).await.ok()?;
        let version: Value = serde_json::from_slice(&answer.body).ok()?;
        Some(version.get("gitVersion")?.as_str()?.to_owned())
    }

    /// Asks for the kinds that the member serves. The error is a text for the cluster's condition.
    pub(crate) async fn served(&self) -> Result<Vec<ServedKinds>, String> {
        let mut all = Vec::new();
        for (path, known) in DOCUMENTS.into_iter().zip(&self.discovery) {
            let document = self.document(path, known).await;
            let document = document.map_err(|error| format!("GET {path}: {error}"))?;
            all.extend(document);
        }
        Ok(all)
    }

    async fn document(
        &self,
        path: &'static str,
        known: &Mutex<Option<Document>>,
    ) -> Result<Vec<ServedKinds>, String> {
        let before = known.lock().clone();
        let version = before.as_ref().and_then(|before| before.version.clone());
        let answer = self.get(path, DISCOVERY, version).await;
        let answer = answer.map_err(|error| Chain(&*error).to_string())?;
        match (answer.status, before) {
            (StatusCode::NOT_MODIFIED, Some(before)) => return Ok(before.served),
            (StatusCode::OK, _) => {}
            (status, _) => return Err(status.to_string()),
        }
        let document: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let served = document.as_ref().and_then(served).ok_or(
            "the response is no aggregated discovery, which Kubernetes has since version 1.27",
        )?;
        *known.lock() = Some(Document {
            version: answer.version,
            served: served.clone(),
        });
        Ok(served)
    }

    /// Returns the capacity, once all nodes and pods are known.
    pub(crate) fn capacity(&self, cluster: &ClusterView) -> Option<Capacity> {
        self.usage.capacity(&cluster.spec.resource_models)
    }

    /// Returns the nodes with their addresses of a type, once all nodes are known.
    pub(crate) fn nodes(&self, type_: NodeAddressType) -> Option<Vec<NodeAddresses>> {
        self.usage.nodes(type_)
    }

    async fn get(
        &self,
        path: &'static str,
        accept: HeaderValue,
        unless: Option<HeaderValue>,
    ) -> Result<Answer, BoxError> {
        let mut request = Request::get(path).header(ACCEPT, accept);
        if let Some(version) = unless {
            request = request.header(IF_NONE_MATCH, version);
        }
        let request = request.body(Body::empty())?;
        let asking = async {
            let (head, body) = self.client.send(request).await?.into_parts();
            let body = Limited::new(body, MAX_BODY).collect().await?.to_bytes();
            Ok(Answer {
                status: head.status,
                version: head.headers.get(ETAG).cloned(),
                body: body.into(),
            })
        };
        let answer = timeout(LIMIT, asking).await;
        answer.unwrap_or_else(|_| Err(format!("no answer within {LIMIT:?}").into()))
    }
}
