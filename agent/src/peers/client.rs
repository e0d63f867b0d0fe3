//! The client for other agents' vote documents, over HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use karmada_runtime::client::Addresses;
use karmada_runtime::error::Chain;
use tokio::time::timeout;

use super::roster::PeerRequest;
use super::vote_document::VoteDocument;
use super::{Identity, OBSERVATION_PATH};

/// The deadline of a request, connection included.
const LIMIT: Duration = Duration::from_secs(1);
/// The largest response body read of an agent that votes on its own cluster, in bytes.
pub(super) const LARGEST: usize = 64 * 1024;
/// The largest of one that votes on others: on ten thousand members, which may all be out of its reach at once.
pub(super) const LARGEST_ON_OTHERS: usize = 4 * 1024 * 1024;
/// A response has some 300 bytes. The leader holds a buffer of this size for every agent.
const BUFFER: usize = 2048;
/// Longer than usual periods, so that a connection survives from one round to the next, and shorter than
/// an agent keeps one without a request: it must not close one that is about to be used.
const IDLE: Duration = Duration::from_secs(20);
/// The longest host name (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 253;

/// The reason why a peer returned no vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PeerError {
    /// No response came in time.
    TimedOut,
    /// Nothing listens at the address, or the connection was lost.
    Failed(String),
    /// The response is not an agent's vote document.
    Unusable(String),
    /// The agent belongs to this other cluster.
    OtherCluster(String),
}

impl PeerError {
    /// Returns the outcome in one word, as metrics name it.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::Failed(_) => "failed",
            Self::Unusable(_) => "unusable",
            Self::OtherCluster(_) => "other_cluster",
        }
    }
}

/// A client for other agents that keeps its connections. Its clones share them.
#[derive(Clone, Debug)]
pub(super) struct PeerClient {
    http: HttpClient<HttpConnector<Addresses>, Empty<Bytes>>,
    cluster: String,
    /// The part of a request's query string that names this leader.
    leader: String,
    /// The largest response body read, in bytes.
    largest: usize,
}

impl PeerClient {
    /// Creates a client whose requests name `own` as the leader, which takes the addresses of names from `addresses`, and reads
    /// responses up to the `largest`.
    pub(super) fn new(own: &Identity, addresses: Addresses, largest: usize) -> Self {
        let mut connector = HttpConnector::new_with_resolver(addresses);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(LIMIT));
        let http = HttpClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            // An agent gets one request at a time.
            .pool_max_idle_per_host(1)
            .http1_read_buf_exact_size(BUFFER)
            .build(connector);
        let leader = form_urlencoded::Serializer::new(String::new())
            .append_pair("cluster", &own.cluster)
            .append_pair("agent", &own.id.to_string())
            .finish();
        Self {
            http,
            cluster: own.cluster.clone(),
            leader,
            largest,
        }
    }

    /// Requests a peer's vote document and checks that the peer is an agent of this cluster.
    pub(super) async fn fetch(&self, request: &PeerRequest) -> Result<VoteDocument, PeerError> {
        let body = match timeout(LIMIT, self.get(request)).await {
            Ok(body) => body?,
            Err(_) => return Err(PeerError::TimedOut),
        };
        let document: VoteDocument = serde_json::from_slice(&body)
            .map_err(|error| PeerError::Unusable(error.to_string()))?;
        self.checked(document)
    }

    /// A pod may get the address of another that is gone, and a flag may name any server: nothing in
    /// the document is trusted before it is checked.
    fn checked(&self, document: VoteDocument) -> Result<VoteDocument, PeerError> {
        if document.cluster != self.cluster {
            // Cut, since it goes to the log.
            let other = document.cluster.chars().take(LONGEST_NAME).collect();
            return Err(PeerError::OtherCluster(other));
        }
        let node = &document.node;
        let is_odd = node.contains(|c: char| c.is_control() || c.is_whitespace());
        if node.is_empty() || node.len() > LONGEST_NAME || is_odd {
            return Err(PeerError::Unusable("it names no node".to_owned()));
        }
        Ok(document)
    }

    async fn get(&self, request: &PeerRequest) -> Result<Bytes, PeerError> {
        let PeerRequest {
            address, standby, ..
        } = request;
        let uri = format!(
            "http://{address}{OBSERVATION_PATH}?{}&standby={standby}",
            self.leader
        );
        let request = Request::get(uri)
            .body(Empty::new())
            .map_err(|error| PeerError::Failed(error.to_string()))?;
        let response = self
            .http
            .request(request)
            .await
            .map_err(|error| PeerError::Failed(Chain(&error).to_string()))?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(PeerError::Unusable(format!("its status is {status}")));
        }
        // A listed address may belong to any server, also one whose response never ends.
        let body = Limited::new(response.into_body(), self.largest);
        let body = body.collect().await;
        match body {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) => Err(PeerError::Unusable(Chain(&*error).to_string())),
        }
    }
}
