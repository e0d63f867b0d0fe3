//! Where a webhook is.

use k8s_openapi::api::core::v1::Service;
use serde_json::Value;

use crate::customization::fields::text;

const HTTPS: u16 = 443;

/// The address of a webhook. A Service comes before a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// It is behind a Service.
    Service(ServiceReference),
    /// It has a URL.
    Url(String),
}

/// A Service, with the path and port behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    path: String,
    port: u16,
}

impl Address {
    /// Reads the `clientConfig` of a webhook.
    pub(super) fn read(config: &Value) -> Option<Self> {
        if let Some(service) = config.get("service").filter(|service| service.is_object()) {
            let port = service.get("port").and_then(Value::as_u64);
            return Some(Self::Service(ServiceReference {
                namespace: text(service, "namespace").to_owned(),
                name: text(service, "name").to_owned(),
                path: text(service, "path").to_owned(),
                port: port.map_or(HTTPS, |port| u16::try_from(port).unwrap_or_default()),
            }));
        }
        let url = config.get("url").and_then(Value::as_str)?;
        Some(Self::Url(url.to_owned()))
    }
}

impl ServiceReference {
    /// Returns the name by which the server is verified.
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }

    /// Returns the URL of the webhook.
    pub fn url(&self) -> String {
        let path = self.path.trim_start_matches('/');
        format!("https://{}:{}/{path}", self.server_name(), self.port)
    }

    /// Returns the host to which the Service leads: an IP address or a name. One that the API of the fleet does not
    /// have is in the cluster of whoever asks, under its usual name.
    ///
    /// # Errors
    /// Fails if it leads nowhere.
    pub fn host(&self, service: Option<&Service>) -> Result<String, String> {
        let Some(service) = service else {
            return Ok(self.server_name());
        };
        let spec = service.spec.clone().unwrap_or_default();
        if spec.type_.as_deref() == Some("ExternalName") {
            let host = spec.external_name.filter(|name| !name.is_empty());
            return host.ok_or_else(|| format!("service {:?} has no externalName", self.name));
        }
        let ip = spec.cluster_ip.unwrap_or_default();
        if ip.is_empty() || ip == "None" {
            return Err(format!("cannot route to service with ClusterIP {ip:?}"));
        }
        let mut ports = spec.ports.iter().flatten();
        if !ports.any(|port| port.port == i32::from(self.port)) {
            let (port, name) = (self.port, &self.name);
            return Err(format!("no service port {port} found for service {name:?}"));
        }
        Ok(ip)
    }
}
