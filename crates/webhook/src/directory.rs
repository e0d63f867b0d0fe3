//! Where webhooks are.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use futures::FutureExt;
use http::{HeaderValue, Uri};
use k8s_openapi::api::core::v1::Service;
use karmada_runtime::client::{self, Addresses, Transport};
use karmada_runtime::error::Chain;
use kube::api::ListParams;
use kube::{Api, Client, Config};
use propagation_rules::customization::webhook::{Address, ServiceReference, Webhook};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::connection::Connection;
use crate::error::WebhookError;

/// The time after which it is looked up anew where a Service leads.
const KNOWN_FOR: Duration = Duration::from_secs(30);

/// Connects to webhooks.
pub(crate) struct Directory {
    /// The API of the fleet.
    client: Client,
    addresses: Addresses,
    user_agent: HeaderValue,
}

impl Directory {
    pub(crate) fn new(client: Client, addresses: Addresses, program: &'static str) -> Self {
        Self {
            client,
            addresses,
            user_agent: HeaderValue::from_static(program),
        }
    }

    /// Creates a connection to a webhook. Its server is not asked yet.
    pub(crate) async fn connect(&self, webhook: &Webhook) -> Result<Connection, WebhookError> {
        let (url, addresses) = match webhook.address().map_err(WebhookError::Invalid)? {
            Address::Url(url) => (url.clone(), self.addresses.clone()),
            Address::Service(reference) => (reference.url(), self.behind(reference).await?),
        };
        let url = format!("{url}?timeout={}s", webhook.timeout.as_secs());
        let parsed = url.parse::<Uri>();
        let url = parsed.map_err(|_| WebhookError::Invalid(format!("{url} is no URL")))?;
        let mut config = Config::new(url.clone());
        config.root_cert = authorities(webhook)?;
        let connector = client::connector(&config, Transport::new(addresses, None));
        let connector = connector.map_err(|error| invalid("cannot use its authorities", &error))?;
        let user_agent = self.user_agent.clone();
        Ok(Connection::new(connector, url, user_agent, KNOWN_FOR))
    }

    /// Returns the addresses to which a Service leads, whatever name they are looked up by.
    async fn behind(&self, reference: &ServiceReference) -> Result<Addresses, WebhookError> {
        let ServiceReference {
            namespace, name, ..
        } = reference;
        let services: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        // An agent of Karmada's may list Services, and not get one.
        let by_name = ListParams::default().fields(&format!("metadata.name={name}"));
        let found = services.list(&by_name).await.map_err(|error| {
            let what = format!("cannot read Service {namespace}/{name}");
            invalid(&what, &error)
        })?;
        let host = reference.host(found.items.first());
        let host = host.map_err(WebhookError::Invalid)?;
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(Addresses::by(move |_| async move { Ok(vec![ip]) }.boxed()));
        }
        let names = self.addresses.clone();
        Ok(Addresses::by(move |_| {
            let (names, host) = (names.clone(), host.clone());
            async move {
                if names.refresh(&host).await {
                    return Ok(names.known(&host));
                }
                Err(io::Error::other(format!("cannot resolve {host}")))
            }
            .boxed()
        }))
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").finish_non_exhaustive()
    }
}

/// Returns the authorities that verify a webhook; `None` for those of the system.
fn authorities(webhook: &Webhook) -> Result<Option<Vec<Vec<u8>>>, WebhookError> {
    let bundle = webhook.authorities().map_err(WebhookError::Invalid)?;
    let Some(bundle) = bundle else {
        return Ok(None);
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bundle)
        .map(|one| one.map(|one| one.to_vec()))
        .collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(Some(found)),
        _ => Err(WebhookError::Invalid(
            "caBundle holds no certificates in PEM".to_owned(),
        )),
    }
}

fn invalid(what: &str, error: &(dyn std::error::Error + 'static)) -> WebhookError {
    WebhookError::Invalid(format!("{what}: {}", Chain(error)))
}
