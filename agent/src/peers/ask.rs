//! One question to one agent, over HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use karmada_runtime::error::Chain;
use tokio::time::timeout;

use super::observation::Observation;
use super::roster::Ask;
use super::{Own, PATH};

/// The longest a question may take.
pub(super) const LIMIT: Duration = Duration::from_secs(1);
/// The longest answer.
const LARGEST: usize = 64 * 1024;
/// An answer is some 300 bytes. There is a buffer for each agent.
const BUFFER: usize = 2048;
/// Longer than usual periods, so that connections are kept from one round to the next.
const IDLE: Duration = Duration::from_mins(2);
const LONGEST_NAME: usize = 253;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// None came in time.
    TimedOut,
    /// Nobody is there, or the connection was lost.
    Failed(String),
    /// What came is not what an agent says.
    Unusable(String),
    /// It is the agent of this other cluster.
    OtherCluster(String),
}

impl Unanswered {
    /// The outcome in one word, as metrics name it.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::Failed(_) => "failed",
            Self::Unusable(_) => "unusable",
            Self::OtherCluster(_) => "other_cluster",
        }
    }
}

/// Asks agents, and keeps the connections to them.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    http: HttpClient<HttpConnector, Empty<Bytes>>,
    cluster: String,
    /// Who asks, as part of a query.
    leader: String,
}

impl Asker {
    /// An asker for the leader that `own` is.
    pub(super) fn new(own: &Own) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(LIMIT));
        let http = HttpClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(1)
            .http1_read_buf_exact_size(BUFFER)
            .build(connector);
        let leader = form_urlencoded::Serializer::new(String::new())
            .append_pair("cluster", &own.cluster)
            .append_pair("leader", &own.node)
            .finish();
        Self {
            http,
            cluster: own.cluster.clone(),
            leader,
        }
    }

    /// Asks, and checks that it is an agent of our cluster that answers.
    pub(super) async fn ask(&self, ask: &Ask) -> Result<Observation, Unanswered> {
        let body = match timeout(LIMIT, self.get(ask)).await {
            Ok(body) => body?,
            Err(_) => return Err(Unanswered::TimedOut),
        };
        let observation: Observation = serde_json::from_slice(&body)
            .map_err(|error| Unanswered::Unusable(error.to_string()))?;
        self.checked(observation)
    }

    fn checked(&self, observation: Observation) -> Result<Observation, Unanswered> {
        if observation.cluster != self.cluster {
            let other = observation.cluster.chars().take(LONGEST_NAME).collect();
            return Err(Unanswered::OtherCluster(other));
        }
        let node = &observation.node;
        let odd = |c: char| c.is_control() || c.is_whitespace();
        if node.is_empty() || node.len() > LONGEST_NAME || node.contains(odd) {
            return Err(Unanswered::Unusable("it names no node".to_owned()));
        }
        Ok(observation)
    }

    async fn get(&self, ask: &Ask) -> Result<Bytes, Unanswered> {
        let Ask {
            address, standby, ..
        } = ask;
        let uri = format!("http://{address}{PATH}?{}&standby={standby}", self.leader);
        let request = Request::get(uri)
            .body(Empty::new())
            .map_err(|error| Unanswered::Failed(error.to_string()))?;
        let answer = self
            .http
            .request(request)
            .await
            .map_err(|error| failed(&error))?;
        let status = answer.status();
        if status != StatusCode::OK {
            return Err(Unanswered::Unusable(format!("it answers {status}")));
        }
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        match body {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) => Err(Unanswered::Unusable(Chain(&*error).to_string())),
        }
    }
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Unanswered {
    Unanswered::Failed(Chain(error).to_string())
}
