//! HTTP GET requests to servers on this machine.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

/// The most bytes of a response: everything requested here is far shorter.
const LONGEST: usize = 64 * 1024;

/// An HTTP client, which keeps its connections.
#[derive(Clone, Debug)]
pub(crate) struct Getter {
    client: Client<HttpConnector, Empty<&'static [u8]>>,
    user_agent: &'static str,
    limit: Duration,
}

impl Getter {
    /// Creates a client with a user agent, and with a limit on each request.
    pub(crate) fn new(user_agent: &'static str, limit: Duration) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            user_agent,
            limit,
        }
    }

    /// Returns the status and the body of the response.
    pub(crate) async fn get(&self, server: SocketAddr, path: &str) -> Result<(StatusCode, String)> {
        let request = Request::get(format!("http://{server}{path}"))
            .header(http::header::USER_AGENT, self.user_agent)
            .body(Empty::new())?;
        let exchange = async {
            let response = self.client.request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), LONGEST).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("incomplete response: {error}"))?;
            Ok((
                status,
                String::from_utf8_lossy(&body.to_bytes()).into_owned(),
            ))
        };
        timeout(self.limit, exchange)
            .await
            .context("no response in time")?
    }
}
