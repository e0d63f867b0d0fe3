//! The connection to an API server.
//!
//! A stack that replaces kube's default client:
//! - connections by purpose, so that no lease, request or watch waits for another,
//! - HTTP/2 with pings, which detect a silent connection within 15 s,
//! - a timeout of every response,
//! - backoff after a watch that ends at once,
//! - a new list where the API's versions went back,
//! - no retries hidden from the caller,
//! - names looked up by hickory-resolver, and the server's last known addresses while DNS fails,
//! - a token file that is reread by monotonic time,
//! - a kubeconfig that is read as kubectl reads it, and reread when it or a file that it names changes,
//! - a command for credentials that runs once,
//! - a proxy on the way, which looks up the server's name itself.

mod addresses;
mod claims;
mod connections;
mod error;
mod exec;
mod expiry;
pub mod kubeconfig;
mod patience;
mod proxy;
mod renewal;
mod requests;
mod resolver;
mod restored;
#[cfg(test)]
mod secrecy;
mod selected;
mod server;
mod short_watches;
mod source;
mod tls;
mod token;
mod transport;

use std::env;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use jiff::Timestamp;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{AuthInfo, Kubeconfig};
use kube::{Client, Config};
use tower::Service;
use tower::layer::layer_fn;
use tower::timeout::TimeoutLayer;
use tower::util::option_layer;

pub use self::addresses::Addresses;
pub use self::claims::Claims;
pub(crate) use self::connections::CONNECTIONS;
pub use self::error::ClientError;
pub use self::expiry::Validity;
pub(crate) use self::expiry::of_token;
pub use self::patience::patient;
pub use self::proxy::Proxy;
pub(crate) use self::renewal::{CredentialMetrics, Renewal};
pub(crate) use self::requests::REQUESTS;
pub(crate) use self::restored::REWINDS;
pub use self::server::Server;
pub use self::source::Source;
pub use self::tls::connector;
pub use self::token::SentToken;
pub(crate) use self::token::is_token;
pub use self::transport::Transport;

use self::connections::Connections;
use self::exec::ExecPlugin;
use self::requests::CountRequests;
use self::restored::EndRewoundWatches;
use self::selected::{cluster_of, inline_token};
use self::short_watches::FailShortWatches;
use self::token::{Authorize, TokenFile};
use crate::error::BoxError;

/// The timeout of a response's head. A watch sends its head at once and may then be silent for
/// minutes, so its body has no timeout.
const RESPONSE_LIMIT: Duration = Duration::from_secs(30);

/// The longest URL of a server. The paths of requests follow it, and together they have to be a URL.
const LONGEST_URL: usize = 2048;

/// The names of APIs in metrics that are not named by who connects: that of a program which has no metrics, that of the
/// cluster in which a program is a pod, and those of all members of a fleet.
const UNNAMED: &str = "";
const MEMBER: &str = "member";
const MEMBERS: &str = "members";

/// Creates a client for a command, which [waits](patient) where the API asks for it. No request is sent, but an `exec` plugin
/// of the kubeconfig runs.
pub async fn connect(source: &Source, user_agent: &str) -> Result<Client, ClientError> {
    let addresses = Addresses::by_system();
    let is_pod = source.is_pod();
    let (client, ..) = connect_by(source, is_pod, user_agent, &addresses, UNNAMED).await?;
    Ok(patient(client))
}

/// Creates a client that looks the server's name up in `addresses`, and returns its credentials too, and the end of a
/// certificate that a command gave. Only with `is_pod` are they those of the pod's service account. Metrics name the API `api`.
async fn connect_by(
    source: &Source,
    is_pod: bool,
    user_agent: &str,
    addresses: &Addresses,
    api: &'static str,
) -> Result<(Client, AuthInfo, Option<Timestamp>), ClientError> {
    let (mut config, proxy) = load(source, is_pod).await?;
    let auth = config.auth_info.clone();
    let plugin = ExecPlugin::take(&mut config.auth_info).await?;
    let end = plugin.as_ref().and_then(|plugin| plugin.certificate_end);
    if let Some(proxy) = &proxy
        && !source.addresses.is_empty()
    {
        return Err(ClientError::ProxiedAddresses(proxy.origin().to_owned()));
    }
    let first = proxy.as_ref().map_or(&config.cluster_url, Proxy::url);
    let host = first.host().unwrap_or_default();
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
    let way = (addresses, proxy.as_ref());
    let client = reach(config, way, plugin, user_agent, api)?;
    Ok((client, auth, end))
}

/// Creates a client of the API server of the cluster in which this process is a pod.
pub fn connect_as_pod(user_agent: &str) -> Result<Client, ClientError> {
    let config = Config::incluster().map_err(ClientError::ServiceAccount)?;
    let way = (Addresses::by_system(), None);
    reach(config, way, None, user_agent, MEMBER)
}

/// Creates a client of the member that `config` names, or its proxy, whose name is looked up in `addresses`. Without a proxy of
/// its own the environment may ask for one.
///
/// # Errors
/// Fails if the credentials of `config` are invalid, or the proxy of the environment cannot be used.
pub fn connect_to_member(
    config: Config,
    addresses: &Addresses,
    proxy: Option<&Proxy>,
    user_agent: &str,
) -> Result<Client, ClientError> {
    let of_environment = match proxy {
        Some(_) => None,
        None => Proxy::asked_for(&config.cluster_url, variable)?,
    };
    let proxy = proxy.or(of_environment.as_ref());
    reach(
        config,
        (addresses.clone(), proxy),
        None,
        user_agent,
        MEMBERS,
    )
}

fn reach(
    config: Config,
    (addresses, proxy): (Addresses, Option<&Proxy>),
    plugin: Option<ExecPlugin>,
    user_agent: &str,
    api: &'static str,
) -> Result<Client, ClientError> {
    let connections = Connections::new(&config, &Transport::new(addresses, proxy), api)?;
    let service = CountRequests::new(connections, api);
    with_service(service, Access { config, plugin }, user_agent)
}

/// An API server, and how to log in there.
pub struct Access {
    config: Config,
    plugin: Option<ExecPlugin>,
}

impl From<Config> for Access {
    fn from(config: Config) -> Self {
        Self {
            config,
            plugin: None,
        }
    }
}

/// Creates a client like that of [`connect`] on top of `service` in place of a socket.
///
/// # Errors
/// Fails if the credentials of `access` are invalid.
pub fn with_service<S, B>(
    service: S,
    access: impl Into<Access>,
    user_agent: &str,
) -> Result<Client, ClientError>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: std::error::Error + Send + Sync + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let Access { mut config, plugin } = access.into();
    let user_agent = HeaderValue::from_str(&format!("{user_agent}/{}", env!("CARGO_PKG_VERSION")))
        .map_err(|_| ClientError::UserAgent(user_agent.to_owned()))?;
    config.headers.push((header::USER_AGENT, user_agent));
    let token = TokenFile::take(&mut config.auth_info)?;
    // Without this check, kube panics further down.
    if inline_token(&config.auth_info).is_some_and(|token| !is_token(&token)) {
        return Err(ClientError::Token);
    }
    if config.cluster_url.to_string().len() > LONGEST_URL {
        return Err(ClientError::LongUrl(LONGEST_URL));
    }
    let token = token.map(|token| layer_fn(move |inner| Authorize::new(inner, token.clone())));

    let stack = tower::ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(option_layer(token))
        .layer(option_layer(plugin))
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

/// Returns the server with its credentials, and the proxy on the way to it.
async fn load(source: &Source, is_pod: bool) -> Result<(Config, Option<Proxy>), ClientError> {
    if is_pod {
        // The server's address is the cluster's own, which no proxy leads to.
        let config = Config::infer().await.map_err(ClientError::Missing)?;
        return Ok((config, None));
    }
    let (file, origin) = source.read()?;
    let options = source.options(&file);
    let own_proxy = proxy_of(&file, options.context.as_ref())?;
    let config = Config::from_custom_kubeconfig(file, &options)
        .await
        .map_err(|source| ClientError::Unusable { origin, source })?;
    // Kube takes a proxy from the environment without regard to `NO_PROXY`.
    let proxy = match own_proxy {
        Some(proxy) => Some(proxy),
        None => Proxy::asked_for(&config.cluster_url, variable)?,
    };
    Ok((config, proxy))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Returns the proxy that the kubeconfig itself names for the cluster of the context.
fn proxy_of(file: &Kubeconfig, context: Option<&String>) -> Result<Option<Proxy>, ClientError> {
    let cluster = context.and_then(|context| cluster_of(file, context));
    let proxy = cluster.and_then(|cluster| cluster.proxy_url.as_ref());
    let proxy = proxy.filter(|proxy| !proxy.is_empty());
    let proxy = proxy.map(|proxy| Proxy::parse(proxy, "the kubeconfig's proxy-url"));
    proxy.transpose()
}
