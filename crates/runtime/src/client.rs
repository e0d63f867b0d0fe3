//! The connection to an API server.
//!
//! Our own stack in place of kube's: HTTP/2 with pings, so that a silent connection is noticed in
//! 15 s; a limit on the wait for every answer; a pause after a watch that ends at once; no retries
//! hidden from the caller; the server's last good addresses, for when DNS is dead; and a token's file
//! read again in time, whatever the system's clock says.

mod addresses;
mod token;
mod watches;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rustls::pki_types::ServerName;
use tower::Service;
use tower::timeout::TimeoutLayer;
use tower::util::{MapRequestLayer, option_layer};

use self::addresses::Addresses;
use self::token::TokenFile;
use self::watches::Watches;
use crate::error::BoxError;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_LIMIT: Duration = Duration::from_secs(5);
/// Until the head of an answer; a watch sends its head at once and may then be quiet for minutes.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Where the address and the credentials come from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// A kubeconfig file. Without it `$KUBECONFIG`, `~/.kube/config`, or the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// A context in it. Without it the current one.
    pub context: Option<String>,
    /// Where the server is, in place of what DNS says. Its certificate must name what the kubeconfig does.
    pub addresses: Vec<IpAddr>,
}

/// Why there is no client. Every case is for the user to mend.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file named cannot be read, or is no kubeconfig.
    #[error("cannot read kubeconfig {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: kube::config::KubeconfigError,
    },
    /// The kubeconfig does not say how to reach a cluster: an unknown context, a missing file.
    #[error("cannot use kubeconfig {origin}")]
    Unusable {
        /// The file, or where it was looked for.
        origin: String,
        /// What was wrong.
        source: kube::config::KubeconfigError,
    },
    /// No file was named and none was found.
    #[error("no kubeconfig: name one with --kubeconfig")]
    Missing(#[source] kube::config::InferConfigError),
    /// The file asks for a proxy.
    #[error(
        "the kubeconfig's proxy-url is not supported: remove it, or name a server that is reached directly"
    )]
    Proxy,
    /// Addresses are given for a server that the file names by its address.
    #[error(
        "the kubeconfig names the server by its address {0}: leave out the other addresses, or have it name the server by its host name"
    )]
    NoHostName(String),
    /// There is no service account to use, or it cannot be read.
    #[error("cannot use the pod's service account")]
    ServiceAccount(#[source] kube::config::InClusterError),
    /// Certificates or credentials in the file cannot be used.
    #[error("cannot use the credentials of the kubeconfig")]
    Credentials(#[source] kube::Error),
    /// The file that the token is in cannot be read.
    #[error("cannot read the token file {}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: std::io::Error,
    },
    /// The server name to verify is no DNS name or address.
    #[error("cannot use tls-server-name {0:?} of the kubeconfig: it is no DNS name or address")]
    ServerName(String),
    /// The name the client goes by cannot be sent.
    #[error("cannot use {0:?} as user agent")]
    UserAgent(String),
}

/// Makes a client; nothing is sent yet, but an `exec` plugin of the kubeconfig is run.
pub async fn connect(source: &Source, user_agent: &str) -> Result<Client, Error> {
    let config = load(source).await?;
    if config.proxy_url.is_some() {
        return Err(Error::Proxy);
    }
    reach(config, &source.addresses, user_agent)
}

/// Makes a client of the API of the cluster that this process is a pod of.
pub fn connect_as_pod(user_agent: &str) -> Result<Client, Error> {
    let config = Config::incluster().map_err(Error::ServiceAccount)?;
    reach(config, &[], user_agent)
}

fn reach(config: Config, addresses: &[IpAddr], user_agent: &str) -> Result<Client, Error> {
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_LIMIT)
        .http2_keep_alive_while_idle(true)
        .build(connector(&config, addresses)?);
    over(http, config, user_agent)
}

/// Makes a client whose requests `service` answers, as those of [`connect`] go to a socket.
///
/// # Errors
/// When the credentials of `config` cannot be used.
pub fn over<S, B>(service: S, mut config: Config, user_agent: &str) -> Result<Client, Error>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: std::error::Error + Send + Sync + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let user_agent = HeaderValue::from_str(&format!("{user_agent}/{}", env!("CARGO_PKG_VERSION")))
        .map_err(|_| Error::UserAgent(user_agent.to_owned()))?;
    config.headers.push((header::USER_AGENT, user_agent));
    let token = TokenFile::take(&mut config.auth_info)?;
    let token = token.map(|token| MapRequestLayer::new(move |request| token.authorize(request)));

    let stack = tower::ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(option_layer(token))
        .layer(option_layer(
            config.auth_layer().map_err(Error::Credentials)?,
        ))
        .layer(config.extra_headers_layer().map_err(Error::Credentials)?)
        .layer(TimeoutLayer::new(ANSWER_LIMIT))
        .map_err(BoxError::from)
        .service(service);
    Ok(ClientBuilder::new(Watches::of(stack), config.default_namespace).build())
}

async fn load(source: &Source) -> Result<Config, Error> {
    let options = KubeConfigOptions {
        context: source.context.clone(),
        ..KubeConfigOptions::default()
    };
    if let Some(path) = &source.kubeconfig {
        let file = Kubeconfig::read_from(path).map_err(|source| Error::Unreadable {
            path: path.clone(),
            source,
        })?;
        return Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|source| Error::Unusable {
                origin: path.display().to_string(),
                source,
            });
    }
    if source.context.is_some() {
        return Config::from_kubeconfig(&options)
            .await
            .map_err(|source| Error::Unusable {
                origin: "($KUBECONFIG or ~/.kube/config)".to_owned(),
                source,
            });
    }
    Config::infer().await.map_err(Error::Missing)
}

fn connector(
    config: &Config,
    addresses: &[IpAddr],
) -> Result<HttpsConnector<HttpConnector<Addresses>>, Error> {
    let addresses = if addresses.is_empty() {
        Addresses::looked_up()
    } else {
        let host = config.cluster_url.host().unwrap_or_default();
        if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return Err(Error::NoHostName(host.to_owned()));
        }
        Addresses::fixed(addresses)
    };
    let mut http = HttpConnector::new_with_resolver(addresses);
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_LIMIT));
    let tls = config.rustls_client_config().map_err(Error::Credentials)?;
    let builder = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http();
    let builder = match &config.tls_server_name {
        None => builder.enable_all_versions(),
        Some(name) => {
            let name =
                ServerName::try_from(name.clone()).map_err(|_| Error::ServerName(name.clone()))?;
            builder
                .with_server_name_resolver(FixedServerNameResolver::new(name))
                .enable_all_versions()
        }
    };
    Ok(builder.wrap_connector(http))
}
