//! One HTTP request, to this machine.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

/// A longer answer is none.
const LONGEST: usize = 64 * 1024;

/// Asks servers on this machine, over connections it keeps.
#[derive(Clone, Debug)]
pub(crate) struct Getter {
    client: Client<HttpConnector, Empty<&'static [u8]>>,
    user_agent: &'static str,
    limit: Duration,
}

impl Getter {
    /// One that goes by a name and gives up after `limit`.
    pub(crate) fn new(user_agent: &'static str, limit: Duration) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            user_agent,
            limit,
        }
    }

    /// The answer to GET.
    pub(crate) async fn get(&self, server: SocketAddr, path: &str) -> Result<(StatusCode, String)> {
        let request = Request::get(format!("http://{server}{path}"))
            .header(http::header::USER_AGENT, self.user_agent)
            .body(Empty::new())?;
        let exchange = async {
            let answer = self.client.request(request).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LONGEST).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("incomplete answer: {error}"))?;
            Ok((
                status,
                String::from_utf8_lossy(&body.to_bytes()).into_owned(),
            ))
        };
        timeout(self.limit, exchange)
            .await
            .context("no answer in time")?
    }
}
