//! Connections by TLS, on top of those of `transport`.

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use kube::Config;
use kube::client::ConfigExt;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::error::ClientError;
use super::transport::Transport;

/// The versions of HTTP that a server may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    Any,
    Http1,
}

/// Creates the connector of such a client on top of `transport`: to servers by TLS with the authorities and the certificate of
/// `config`, or to others in plaintext.
///
/// # Errors
/// Fails if the credentials of `config` are invalid.
pub fn connector(
    config: &Config,
    transport: Transport,
) -> Result<HttpsConnector<Transport>, ClientError> {
    connector_of(config, tls_of(config)?, transport, Versions::Any)
}

/// Returns the TLS configuration of `config`. It may be large, so connectors to one server share its parts.
pub(super) fn tls_of(config: &Config) -> Result<ClientConfig, ClientError> {
    config
        .rustls_client_config()
        .map_err(ClientError::Credentials)
}

/// Creates a connector like [`connector`] whose servers choose from `versions`.
pub(super) fn connector_of(
    config: &Config,
    tls: ClientConfig,
    transport: Transport,
    versions: Versions,
) -> Result<HttpsConnector<Transport>, ClientError> {
    let mut builder = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone())
            .map_err(|_| ClientError::ServerName(name.clone()))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(match versions {
        Versions::Any => builder.enable_all_versions().wrap_connector(transport),
        Versions::Http1 => builder.enable_http1().wrap_connector(transport),
    })
}
