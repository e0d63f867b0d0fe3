//! The connection to an API server.
//!
//! A stack that replaces kube's default client:
//! - HTTP/2 with pings, which detect a silent connection within 15 s,
//! - a timeout of every response,
//! - backoff after a watch that ends at once,
//! - a new list where the API's versions went back,
//! - no retries hidden from the caller,
//! - names looked up by hickory-resolver, and the server's last known addresses while DNS fails,
//! - a token file that is reread by monotonic time,
//! - a kubeconfig that is reread when it or a file that it names changes.

mod addresses;
mod claims;
mod error;
mod expiry;
mod proxy;
mod renewal;
mod requests;
mod resolver;
mod restored;
mod selected;
mod server;
mod short_watches;
mod source;
mod token;

use std::env;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rustls::pki_types::ServerName;
use tower::Service;
use tower::timeout::TimeoutLayer;
use tower::util::{MapRequestLayer, option_layer};

pub use self::addresses::Addresses;
pub use self::claims::Claims;
pub use self::error::ClientError;
pub use self::expiry::Validity;
pub(crate) use self::expiry::{CREDENTIALS, of_token};
pub(crate) use self::renewal::Renewal;
pub(crate) use self::requests::REQUESTS;
pub(crate) use self::restored::REWINDS;
pub use self::server::Server;
pub use self::source::Source;

use self::requests::CountRequests;
use self::restored::EndRewoundWatches;
use self::selected::cluster_of;
use self::short_watches::FailShortWatches;
use self::token::TokenFile;
use crate::error::BoxError;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_LIMIT: Duration = Duration::from_secs(5);
/// The timeout of a response's head. A watch sends its head at once and may then be silent for
/// minutes, so its body has no timeout.
const RESPONSE_LIMIT: Duration = Duration::from_secs(30);

/// The names of APIs in metrics that are not named by who connects: that of a program which has no metrics, that of the
/// cluster in which a program is a pod, and those of all members of a fleet.
const UNNAMED: &str = "";
const MEMBER: &str = "member";
const MEMBERS: &str = "members";

/// Creates a client. No request is sent, but an `exec` plugin of the kubeconfig runs.
pub async fn connect(source: &Source, user_agent: &str) -> Result<Client, ClientError> {
    let addresses = Addresses::by_system();
    let is_pod = source.is_pod();
    let (client, _) = connect_by(source, is_pod, user_agent, &addresses, UNNAMED).await?;
    Ok(client)
}

/// Creates a client that looks the server's name up in `addresses`, and returns its credentials too.
/// Only with `is_pod` are they those of the pod's service account. Metrics name the API `api`.
async fn connect_by(
    source: &Source,
    is_pod: bool,
    user_agent: &str,
    addresses: &Addresses,
    api: &'static str,
) -> Result<(Client, AuthInfo), ClientError> {
    let config = load(source, is_pod).await?;
    let auth = config.auth_info.clone();
    let host = config.cluster_url.host().unwrap_or_default();
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let addresses = if source.addresses.is_empty() {
        if !is_address {
            addresses.keep(host);
        }
        addresses.clone()
    } else if is_address {
        return Err(ClientError::NoHostName(host.to_owned()));
    } else {
        Addresses::fixed(&source.addresses)
    };
    Ok((reach(config, addresses, user_agent, api)?, auth))
}

/// Creates a client of the API server of the cluster in which this process is a pod.
pub fn connect_as_pod(user_agent: &str) -> Result<Client, ClientError> {
    let config = Config::incluster().map_err(ClientError::ServiceAccount)?;
    reach(config, Addresses::by_system(), user_agent, MEMBER)
}

/// Creates a client of the member that `config` names, whose name is looked up in `addresses`.
///
/// # Errors
/// Fails if the credentials of `config` are invalid.
pub fn connect_to_member(
    config: Config,
    addresses: &Addresses,
    user_agent: &str,
) -> Result<Client, ClientError> {
    reach(config, addresses.clone(), user_agent, MEMBERS)
}

fn reach(
    config: Config,
    addresses: Addresses,
    user_agent: &str,
    api: &'static str,
) -> Result<Client, ClientError> {
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        // A watch without events is idle: without pings a dead connection would look like silence.
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_LIMIT)
        .http2_keep_alive_while_idle(true)
        .build(connector(&config, addresses)?);
    with_service(CountRequests::new(http, api), config, user_agent)
}

/// Creates a client like that of [`connect`] on top of `service` in place of a socket.
///
/// # Errors
/// Fails if the credentials of `config` are invalid.
pub fn with_service<S, B>(
    service: S,
    mut config: Config,
    user_agent: &str,
) -> Result<Client, ClientError>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: std::error::Error + Send + Sync + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let user_agent = HeaderValue::from_str(&format!("{user_agent}/{}", env!("CARGO_PKG_VERSION")))
        .map_err(|_| ClientError::UserAgent(user_agent.to_owned()))?;
    config.headers.push((header::USER_AGENT, user_agent));
    let token = TokenFile::take(&mut config.auth_info)?;
    let token = token.map(|token| MapRequestLayer::new(move |request| token.authorize(request)));

    let stack = tower::ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(option_layer(token))
        .layer(option_layer(
            config.auth_layer().map_err(ClientError::Credentials)?,
        ))
        .layer(
            config
                .extra_headers_layer()
                .map_err(ClientError::Credentials)?,
        )
        .layer(TimeoutLayer::new(RESPONSE_LIMIT))
        .map_err(BoxError::from)
        .service(service);
    let stack = EndRewoundWatches::new(FailShortWatches::new(stack));
    Ok(ClientBuilder::new(stack, config.default_namespace).build())
}

async fn load(source: &Source, is_pod: bool) -> Result<Config, ClientError> {
    if is_pod {
        // The server's address is the cluster's own, which no proxy leads to.
        return Config::infer().await.map_err(ClientError::Missing);
    }
    let options = KubeConfigOptions {
        context: source.context.clone(),
        ..KubeConfigOptions::default()
    };
    let (file, origin) = source.read()?;
    let own_proxy = proxy_of(&file, source.context.as_ref());
    let mut config = Config::from_custom_kubeconfig(file, &options)
        .await
        .map_err(|source| ClientError::Unusable { origin, source })?;
    if own_proxy {
        return Err(ClientError::Proxy);
    }
    let variable = |name: &str| env::var(name).ok();
    if let Some(variable) = proxy::asked_for(&config.cluster_url, variable) {
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        return Err(ClientError::EnvironmentProxy { variable, host });
    }
    // kube takes it from the environment without regard to `NO_PROXY`.
    config.proxy_url = None;
    Ok(config)
}

/// Returns `true` if the kubeconfig itself names a proxy for the cluster of the context.
fn proxy_of(file: &Kubeconfig, context: Option<&String>) -> bool {
    let context = context.or(file.current_context.as_ref());
    let cluster = context.and_then(|context| cluster_of(file, context));
    let proxy = cluster.and_then(|cluster| cluster.proxy_url.as_ref());
    proxy.is_some_and(|proxy| !proxy.is_empty())
}

/// Creates the connector of such a client: to servers by TLS with the authorities and the certificate of `config`, or to
/// others in plaintext.
///
/// # Errors
/// Fails if the credentials of `config` are invalid.
pub fn connector(
    config: &Config,
    addresses: Addresses,
) -> Result<HttpsConnector<HttpConnector<Addresses>>, ClientError> {
    let mut http = HttpConnector::new_with_resolver(addresses);
    // The HTTPS connector wraps this one, which must accept its scheme.
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_LIMIT));
    let tls = config
        .rustls_client_config()
        .map_err(ClientError::Credentials)?;
    let builder = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http();
    let builder = match &config.tls_server_name {
        None => builder.enable_all_versions(),
        Some(name) => {
            let name = ServerName::try_from(name.clone())
                .map_err(|_| ClientError::ServerName(name.clone()))?;
            builder
                .with_server_name_resolver(FixedServerNameResolver::new(name))
                .enable_all_versions()
        }
    };
    Ok(builder.wrap_connector(http))
}
