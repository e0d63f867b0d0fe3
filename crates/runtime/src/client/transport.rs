//! The connections to a server: its own, or those that a proxy leads on.

use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service;

use super::addresses::Addresses;
use super::proxy::Proxy;
use crate::error::BoxError;

/// The time to a connection with an address.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The idle time after which a server is asked for a sign of life.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
/// The time from one of these questions to the next.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// The number of questions without an answer by which a connection is dead.
const KEEPALIVE_RETRIES: u32 = 2;
/// The time to one that a proxy leads on, which connects, too.
const TUNNEL_LIMIT: Duration = Duration::from_secs(15);

/// Connects to servers, or to the proxy in front of them.
#[derive(Clone, Debug)]
pub enum Transport {
    /// To servers.
    Direct(HttpConnector<Addresses>),
    /// To the proxy with this host and port, which looks up the server's name itself.
    Proxied(String, Box<Tunnel<HttpConnector<Addresses>>>),
}

impl Transport {
    /// Creates the connections to a server, or to the proxy in front of it, whose names are looked up in `addresses`.
    pub fn new(addresses: Addresses, proxy: Option<&Proxy>) -> Self {
        let mut http = HttpConnector::new_with_resolver(addresses);
        // The HTTPS connector wraps this one, which must accept its scheme.
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT_LIMIT));
        // HTTP/2 has pings of its own; a watch over HTTP/1.1 would wait for a dead server until its five minutes end.
        http.set_keepalive(Some(KEEPALIVE_AFTER));
        http.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
        http.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
        let Some(proxy) = proxy else {
            return Self::Direct(http);
        };
        let host = proxy.url().authority().map(ToString::to_string);
        let tunnel = Tunnel::new(proxy.url().clone(), http).with_headers(proxy.headers().clone());
        Self::Proxied(host.unwrap_or_default(), Box::new(tunnel))
    }
}

impl Service<Uri> for Transport {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(http) => http.poll_ready(context).map_err(BoxError::from),
            Self::Proxied(_, tunnel) => tunnel.poll_ready(context).map_err(BoxError::from),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Direct(http) => http
                .call(server)
                .map(|led| led.map_err(BoxError::from))
                .boxed(),
            Self::Proxied(proxy, tunnel) => {
                let proxy = proxy.clone();
                let name = server.host().unwrap_or_default().to_owned();
                let led = timeout(TUNNEL_LIMIT, tunnel.call(with_port(server)));
                async move {
                    let led = led.await.map_err(BoxError::from);
                    let led = led.and_then(|led| led.map_err(BoxError::from));
                    led.map_err(|source| {
                        BoxError::from(ProxyError {
                            proxy,
                            server: name,
                            source,
                        })
                    })
                }
                .boxed()
            }
        }
    }
}

/// Returns the address with the port of its scheme: a proxy is asked for that of HTTPS otherwise.
fn with_port(server: Uri) -> Uri {
    let mut parts = server.into_parts();
    let is_http = parts.scheme.as_ref() == Some(&Scheme::HTTP);
    if let Some(authority) = &parts.authority
        && is_http
        && authority.port().is_none()
        && let Ok(authority) = format!("{authority}:80").parse()
    {
        parts.authority = Some(authority);
    }
    Uri::from_parts(parts).unwrap_or_default()
}

/// A proxy leads nowhere.
#[derive(Debug, thiserror::Error)]
#[error("the proxy {proxy} does not lead to {server}")]
struct ProxyError {
    proxy: String,
    server: String,
    source: BoxError,
}

#[cfg(test)]
mod tests {
    use lab_parts::connect_proxy::{Answer, ConnectProxy};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::error::Chain;

    async fn connect(proxy: &ConnectProxy) -> Result<TokioIo<TcpStream>, BoxError> {
        let url = format!("http://user:secret@{}", proxy.address());
        let proxy = Proxy::parse(&url, "a test").unwrap();
        let mut transport = Transport::new(Addresses::by_system(), Some(&proxy));
        let server = "https://karmada.invalid:5443/apis".parse().unwrap();
        transport.call(server).await
    }

    /// A proxy gets the server's name, which is not looked up here, and leads there.
    #[tokio::test]
    async fn proxy_leads_to_server() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = ConnectProxy::start(Answer::Leads(server.local_addr().unwrap()));
        let proxy = proxy.await.unwrap();
        let mut led = connect(&proxy).await.unwrap().into_inner();
        let (mut reached, _) = server.accept().await.unwrap();
        led.write_all(b"hello").await.unwrap();
        let mut heard = [0; 5];
        reached.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, *b"hello");
        let asked = proxy.asked();
        let [asked] = asked.as_slice() else {
            panic!("{asked:?}");
        };
        assert!(
            asked.starts_with("CONNECT karmada.invalid:5443 HTTP/1.1\r\n"),
            "{asked}"
        );
        assert!(
            asked.contains("proxy-authorization: Basic dXNlcjpzZWNyZXQ="),
            "{asked}"
        );
    }

    /// A proxy would lead to the port of HTTPS where none is named.
    #[test]
    fn plain_scheme_has_port() {
        for (server, asked) in [
            (
                "http://member.example/apis",
                "http://member.example:80/apis",
            ),
            ("http://[fd00::1]", "http://[fd00::1]:80/"),
            ("http://member.example:8080/", "http://member.example:8080/"),
            ("https://member.example/", "https://member.example/"),
        ] {
            assert_eq!(with_port(server.parse().unwrap()), asked);
        }
    }

    /// A proxy that refuses is named, and the server as well.
    #[tokio::test]
    async fn refusing_proxy_is_named() {
        let proxy = ConnectProxy::start(Answer::Refuses(407)).await.unwrap();
        let error = connect(&proxy).await.unwrap_err();
        let expected = format!(
            "the proxy {} does not lead to karmada.invalid: tunnel error: proxy authorization required",
            proxy.address()
        );
        assert_eq!(Chain(&*error).to_string(), expected);
    }
}
