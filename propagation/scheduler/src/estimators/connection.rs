//! Where the estimator of a cluster is, and the connection to it.

use std::error::Error as _;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt;
use futures::future::select_ok;
use http::Uri;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use karmada_runtime::client::{self, Addresses, ClientError, Transport};
use karmada_runtime::panics::Panicked;
use kube::{Api, Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use super::args::EstimatorArgs;

/// Why an estimator gives no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EstimatorError {
    #[error("cannot read Service {name}")]
    Service { name: String, source: kube::Error },
    #[error("Service {name} has no port {port} with a number as its target")]
    Port { name: String, port: u16 },
    #[error("{host} is no host")]
    Host { host: String },
    #[error("cannot read {}", .path.display())]
    Authorities {
        path: PathBuf,
        source: rustls::pki_types::pem::Error,
    },
    #[error(transparent)]
    Credentials(#[from] ClientError),
    #[error("cannot connect to {host}")]
    Connect {
        host: String,
        source: tonic::transport::Error,
    },
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error(transparent)]
    Panicked(#[from] Panicked),
    #[error("it answered {}: {}", .0.code(), .0.message())]
    Answer(#[from] Box<tonic::Status>),
}

impl EstimatorError {
    /// Returns `true` if an estimator is there and refuses the question: one that it does not know yet, or whose needs it
    /// cannot read.
    pub(super) fn is_refusal(&self) -> bool {
        let Self::Answer(status) = self else {
            return false;
        };
        // Those that were not sent name their source.
        let is_sent = status.source().is_none();
        let is_busy = matches!(
            status.code(),
            Code::Cancelled | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Unavailable
        );
        is_sent && !is_busy
    }
}

impl From<tonic::Status> for EstimatorError {
    fn from(status: tonic::Status) -> Self {
        Self::Answer(Box::new(status))
    }
}

/// Connects to estimators.
pub(super) struct Connector {
    args: EstimatorArgs,
    services: Api<Service>,
    addresses: Addresses,
}

impl Connector {
    /// Creates a connector that reads by `client` where estimators are.
    pub(super) fn new(args: &EstimatorArgs, client: Client) -> Self {
        Self {
            services: Api::namespaced(client, &args.scheduler_estimator_service_namespace),
            addresses: Addresses::by_system(),
            args: args.clone(),
        }
    }

    /// Connects to the estimator of a cluster, at the first of its addresses that answers.
    pub(super) async fn connect(&self, cluster: &str) -> Result<Channel, EstimatorError> {
        let name = format!("{}-{cluster}", self.args.scheduler_estimator_service_prefix);
        let service = self.services.get_opt(&name).await;
        let service = service.map_err(|source| EstimatorError::Service {
            name: name.clone(),
            source,
        })?;
        let port = self.args.scheduler_estimator_port;
        let hosts = if let Some(external) = service.as_ref().and_then(external_name) {
            vec![(external.to_owned(), target(&name, service, port)?)]
        } else {
            // It may be in another cluster than this API's, but under the same name.
            let namespace = &self.args.scheduler_estimator_service_namespace;
            let host = format!("{name}.{namespace}.svc");
            vec![(format!("{host}.cluster.local"), port), (host, port)]
        };
        let connecting = hosts
            .iter()
            .map(|(host, port)| self.connect_to(host, *port).boxed());
        let (channel, _) = select_ok(connecting).await?;
        Ok(channel)
    }

    async fn connect_to(&self, host: &str, port: u16) -> Result<Channel, EstimatorError> {
        let scheme = if self.uses_tls() { "https" } else { "http" };
        let url = format!("{scheme}://{host}:{port}").parse::<Uri>();
        let url = url.map_err(|_| EstimatorError::Host {
            host: host.to_owned(),
        })?;
        let mut config = Config::new(url.clone());
        config.root_cert = self.authorities()?;
        // In plaintext nothing is verified, and an image without authorities of its own will do.
        config.accept_invalid_certs = config.root_cert.is_none();
        let args = &self.args;
        config.auth_info.client_certificate =
            args.scheduler_estimator_cert_file.as_deref().map(text);
        config.auth_info.client_key = args.scheduler_estimator_key_file.as_deref().map(text);
        let connector = client::connector(&config, Transport::new(self.addresses.clone(), None))?;
        let connected = Endpoint::from(url).connect_with_connector(connector).await;
        connected.map_err(|source| EstimatorError::Connect {
            host: host.to_owned(),
            source,
        })
    }

    fn uses_tls(&self) -> bool {
        self.args.insecure_skip_estimator_verify || self.args.scheduler_estimator_ca_file.is_some()
    }

    /// Reads the authorities that verify estimators; `None` if these are not verified.
    fn authorities(&self) -> Result<Option<Vec<Vec<u8>>>, EstimatorError> {
        let path = self.args.scheduler_estimator_ca_file.as_ref();
        let Some(path) = path.filter(|_| !self.args.insecure_skip_estimator_verify) else {
            return Ok(None);
        };
        let read = CertificateDer::pem_file_iter(path)
            .and_then(|found| found.map(|one| Ok(one?.to_vec())).collect());
        read.map(Some)
            .map_err(|source| EstimatorError::Authorities {
                path: path.clone(),
                source,
            })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the host outside of the cluster that the Service stands for.
fn external_name(service: &Service) -> Option<&str> {
    let spec = service.spec.as_ref()?;
    let is_external = spec.type_.as_deref() == Some("ExternalName");
    spec.external_name.as_deref().filter(|_| is_external)
}

/// Returns the port to which the Service leads.
fn target(name: &str, service: Option<Service>, port: u16) -> Result<u16, EstimatorError> {
    let ports = service.and_then(|service| service.spec?.ports);
    let mut ports = ports.into_iter().flatten();
    let found = ports.find(|one| one.port == i32::from(port));
    let target = match found.and_then(|one| one.target_port) {
        Some(IntOrString::Int(target)) => u16::try_from(target).ok(),
        _ => None,
    };
    target.ok_or_else(|| EstimatorError::Port {
        name: name.to_owned(),
        port,
    })
}
