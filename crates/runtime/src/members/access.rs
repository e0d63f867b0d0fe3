//! The way to the API of a member cluster.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use karmada_api::ClusterView;
use karmada_api::cluster_view::{PULL, PUSH};
use karmada_api::names::{TOKEN_ENDPOINT, TOKEN_INSECURE};
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use objects::Metadata;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::json;

use crate::client::{self, Addresses, ClientError, Proxy, Validity};

/// The keys of the Secret.
const TOKEN: &str = "token";
const CA_BUNDLE: &str = "caBundle";

/// The address and the credentials of a member's API.
#[derive(Clone, PartialEq, Eq)]
pub struct MemberAccess {
    endpoint: String,
    token: String,
    ca_bundle: Vec<u8>,
    /// True if anybody may pose as the member.
    insecure: bool,
    proxy: Option<Proxy>,
}

/// Creates the client of a member's API from the access to it and the Secret that grants it.
pub type Connect = Box<dyn Fn(&MemberAccess, &Secret) -> Result<Client, AccessError> + Send + Sync>;

/// The way to the members that a program serves.
pub enum Way {
    /// To those of mode Push, by the Secrets that their Clusters name and the client reads.
    Secrets(Client, Connect),
    /// To the one of mode Pull in which the program runs, by this client of it.
    Own(Client),
}

impl Way {
    /// Returns the mode of the clusters that are served.
    pub fn sync_mode(&self) -> &'static str {
        match self {
            Self::Secrets(..) => PUSH,
            Self::Own(_) => PULL,
        }
    }
}

/// Returns the connector to members over the network.
pub fn over_network(addresses: Addresses, user_agent: &'static str) -> Connect {
    Box::new(move |access, secret| access.client(secret, &addresses, user_agent))
}

/// Errors of a `Cluster` or its Secret that keep us from its API; all for the user to correct.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// No Secret is named.
    #[error("the Cluster names no secretRef")]
    NoSecret,
    /// The Secret has no usable token.
    #[error("the Secret {0} has no `token`")]
    NoToken(String),
    /// The token of the Secret is none.
    #[error(
        "the `token` of the Secret {0} is none: it may have no spaces, line breaks or characters beyond ASCII"
    )]
    Token(String),
    /// The certificates cannot be read.
    #[error("the `caBundle` of the Secret {0} holds no certificates in PEM")]
    CaBundle(String),
    /// The address is none.
    #[error("the Cluster's apiEndpoint {0:?} is no URL")]
    Endpoint(String),
    /// The address is another than that of the token.
    #[error(
        "the Cluster's apiEndpoint is {endpoint}, and the token in the Secret {secret} is for {recorded}: it is not sent elsewhere unless the Secret's annotation {TOKEN_ENDPOINT} says so"
    )]
    Moved {
        /// The Secret.
        secret: String,
        /// The address for which the token was stored.
        recorded: String,
        /// The address of the Cluster.
        endpoint: String,
    },
    /// The certificate of the server is no longer to be verified.
    #[error(
        "the Cluster has insecureSkipTLSVerification, and the Secret {0} no annotation {TOKEN_INSECURE}: anybody could get the token in it"
    )]
    Unverified(String),
    /// The token would be sent in plaintext.
    #[error(
        "the Cluster's apiEndpoint {0} does not begin with https://: anybody could read the token that is sent there"
    )]
    Plaintext(String),
    /// The credentials cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Errors of reading the access to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The user has to correct the cluster or its Secret.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The Secret does not exist.
    #[error("the Secret {0}/{1} with the cluster's credentials does not exist")]
    NoSecret(String, String),
    /// The Secret could not be read.
    #[error("cannot read the Secret with the cluster's credentials")]
    Unread(#[source] kube::Error),
}

impl MemberAccess {
    /// Reads the Secret of `cluster` through `client`, and returns it with the access that it grants.
    ///
    /// # Errors
    /// Fails if the cluster or its Secret grants none, or the Secret cannot be read.
    pub async fn read(
        client: &Client,
        cluster: &ClusterView,
    ) -> Result<(Self, Secret), ConnectError> {
        let (namespace, name) = Self::secret_of(cluster)?;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let secret = secrets.get_opt(name).await.map_err(ConnectError::Unread)?;
        let secret =
            secret.ok_or_else(|| ConnectError::NoSecret(namespace.to_owned(), name.to_owned()))?;
        Ok((Self::new(cluster, &secret)?, secret))
    }

    /// Returns the namespace and the name of the Secret with the credentials of a cluster.
    ///
    /// # Errors
    /// Fails if the cluster names none.
    pub fn secret_of(cluster: &ClusterView) -> Result<(&str, &str), AccessError> {
        let secret = cluster.spec.secret_ref.as_ref();
        let secret =
            secret.filter(|secret| !secret.name.is_empty() && !secret.namespace.is_empty());
        let secret = secret.ok_or(AccessError::NoSecret)?;
        Ok((&secret.namespace, &secret.name))
    }

    /// Returns the access to `cluster` with the credentials in `secret`. A token that was stored for one address is not for
    /// another: who may change a Cluster need not be who may read its Secret.
    ///
    /// # Errors
    /// Fails if the Secret lacks a token or its token is not for this cluster, or the proxy of the cluster cannot be used.
    pub fn new(cluster: &ClusterView, secret: &Secret) -> Result<Self, AccessError> {
        require_same_way(cluster, secret)?;
        let data = secret.data.as_ref();
        let [token, ca_bundle] = [TOKEN, CA_BUNDLE].map(|key| Some(data?.get(key)?.0.clone()));
        let token = token.and_then(|token| String::from_utf8(token).ok());
        let token = token.map(|token| token.trim().to_owned());
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| AccessError::NoToken(name_of(secret)))?;
        if !client::is_token(&token) {
            return Err(AccessError::Token(name_of(secret)));
        }
        Ok(Self {
            endpoint: cluster.spec.api_endpoint.clone(),
            token,
            ca_bundle: ca_bundle.unwrap_or_default(),
            insecure: cluster.spec.insecure_skip_tls_verification,
            proxy: proxy_of(cluster)?,
        })
    }

    /// Returns the validity of the token, if it has a known end.
    pub fn validity(&self) -> Option<Validity> {
        client::of_token(&self.token)
    }

    /// Returns the bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the address of the member's API.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Creates a client of the member's API. No request is sent.
    ///
    /// # Errors
    /// Fails if the endpoint or the credentials cannot be used.
    pub fn client(
        &self,
        secret: &Secret,
        addresses: &Addresses,
        user_agent: &str,
    ) -> Result<Client, AccessError> {
        let url: Option<http::Uri> = self.endpoint.parse().ok();
        let url = url.filter(|url| url.scheme().is_some() && url.host().is_some());
        let url = url.ok_or_else(|| AccessError::Endpoint(self.endpoint.clone()))?;
        if url.scheme() != Some(&http::uri::Scheme::HTTPS) && !may_be_insecure(secret) {
            return Err(AccessError::Plaintext(self.endpoint.clone()));
        }
        let mut config = Config::new(url);
        if self.insecure {
            config.accept_invalid_certs = true;
        } else if !self.ca_bundle.is_empty() {
            let certificates = CertificateDer::pem_slice_iter(&self.ca_bundle);
            let certificates: Result<Vec<_>, _> = certificates
                .map(|der| der.map(|der| der.to_vec()))
                .collect();
            let certificates = certificates.unwrap_or_default();
            if certificates.is_empty() {
                return Err(AccessError::CaBundle(name_of(secret)));
            }
            config.root_cert = Some(certificates);
        }
        // The type of the token is of a crate that kube does not pass on.
        let auth = AuthInfo::deserialize(json!({ "token": self.token }));
        config.auth_info = auth.map_err(|_| AccessError::NoToken(name_of(secret)))?;
        let proxy = self.proxy.as_ref();
        Ok(client::connect_to_member(
            config, addresses, proxy, user_agent,
        )?)
    }
}

/// The members whose certificate is not verified, each of which is warned of once.
#[derive(Debug, Default)]
pub struct Unverified(Mutex<BTreeSet<String>>);

impl Unverified {
    /// Warns that the certificate of `cluster` is not verified, if that is so and news.
    pub fn warn(&self, cluster: &str, access: &MemberAccess) {
        if self.is_news(cluster, access) {
            tracing::warn!(
                cluster,
                "The cluster's certificate is not verified, as its insecureSkipTLSVerification asks"
            );
        }
    }

    fn is_news(&self, cluster: &str, access: &MemberAccess) -> bool {
        let mut known = self.0.lock();
        if access.insecure {
            known.insert(cluster.to_owned())
        } else {
            known.remove(cluster);
            false
        }
    }
}

/// Fails if the token in `secret` was stored for another way than that which the cluster says now. Secrets of `karmadactl join` say
/// nothing: then the certificates in them tell whether a server is the member.
fn require_same_way(cluster: &ClusterView, secret: &Secret) -> Result<(), AccessError> {
    let Some(recorded) = secret.metadata.annotation(TOKEN_ENDPOINT) else {
        return Ok(());
    };
    let endpoint = &cluster.spec.api_endpoint;
    if recorded.trim_end_matches('/') != endpoint.trim_end_matches('/') {
        return Err(AccessError::Moved {
            secret: name_of(secret),
            recorded: recorded.to_owned(),
            endpoint: endpoint.clone(),
        });
    }
    if cluster.spec.insecure_skip_tls_verification && !may_be_insecure(secret) {
        return Err(AccessError::Unverified(name_of(secret)));
    }
    Ok(())
}

/// Returns `true` if the token in `secret` may be sent to anybody who answers at its address.
fn may_be_insecure(secret: &Secret) -> bool {
    secret.metadata.annotation(TOKEN_INSECURE) == Some("true")
}

fn proxy_of(cluster: &ClusterView) -> Result<Option<Proxy>, ClientError> {
    let spec = &cluster.spec;
    let Some(url) = spec.proxy_url.as_deref().filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let proxy = Proxy::parse(url, "the Cluster's proxyURL")?;
    Ok(Some(proxy.with_headers(&spec.proxy_header)?))
}

fn name_of(secret: &Secret) -> String {
    objects::Key::of(secret).to_string()
}

impl fmt::Debug for MemberAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberAccess")
            .field("endpoint", &self.endpoint)
            .field("insecure", &self.insecure)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value};

    use super::*;

    fn cluster(spec: &Value) -> ClusterView {
        from_value(json!({ "metadata": { "name": "m1" }, "spec": spec })).unwrap()
    }

    fn secret(data: &Value) -> Secret {
        from_value(
            json!({ "metadata": { "name": "m1", "namespace": "credentials" }, "data": data }),
        )
        .unwrap()
    }

    fn error(spec: &Value, data: &Value) -> String {
        let (cluster, secret) = (cluster(spec), secret(data));
        let client = MemberAccess::secret_of(&cluster)
            .and_then(|_| MemberAccess::new(&cluster, &secret))
            .and_then(|access| access.client(&secret, &Addresses::by_system(), "test"));
        client
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    /// An access that cannot work names the field to correct.
    #[tokio::test]
    async fn unusable_access_names_its_fault() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let reference = json!({ "namespace": "credentials", "name": "m1" });
        let token = json!({ "token": "dA==" });
        let cases = [
            (
                json!({ "secretRef": reference, "proxyURL": "socks5://x" }),
                token.clone(),
                "cannot use the proxy of the Cluster's proxyURL",
            ),
            (
                json!({ "secretRef": reference, "proxyURL": "http://x", "proxyHeader": { "a b": "c" } }),
                token.clone(),
                "the header \"a b\"",
            ),
            (
                json!({ "secretRef": reference, "proxyURL": "http://x", "proxyHeader": { "a": "c" },
                    "apiEndpoint": "https://m1.example.com" }),
                token.clone(),
                "",
            ),
            (json!({}), token.clone(), "secretRef"),
            (
                json!({ "secretRef": reference }),
                json!({}),
                "credentials/m1 has no `token`",
            ),
            (
                json!({ "secretRef": reference }),
                json!({ "token": "dHdvIHdvcmRz" }),
                "the `token` of the Secret credentials/m1 is none",
            ),
            (
                json!({ "secretRef": reference, "apiEndpoint": format!("https://m1/{}", "a".repeat(2048)) }),
                token.clone(),
                "longer than 2048 characters",
            ),
            (
                json!({ "secretRef": reference, "apiEndpoint": "m1" }),
                token.clone(),
                "apiEndpoint",
            ),
            (
                json!({ "secretRef": reference, "apiEndpoint": "https://m1.example.com" }),
                json!({ "token": "dA==", "caBundle": "bm9uZQ==" }),
                "caBundle",
            ),
            (
                json!({ "secretRef": reference, "apiEndpoint": "https://m1.example.com",
                "insecureSkipTLSVerification": true }),
                token,
                "",
            ),
        ];
        for (spec, data, text) in cases {
            let error = error(&spec, &data);
            assert!(
                error.contains(text) && error.is_empty() == text.is_empty(),
                "{spec}: {error}"
            );
        }
    }

    /// Who may write a Cluster, but not read its Secret, has no token sent to a server of his own: neither to another address nor
    /// in plaintext, nor to who has no certificate of the member's.
    #[tokio::test]
    async fn token_stays_with_its_endpoint() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let access = |annotations: Value, endpoint: &str, insecure: bool| {
            let cluster = cluster(&json!({ "apiEndpoint": endpoint,
                "insecureSkipTLSVerification": insecure }));
            let mut secret = secret(&json!({ "token": "dA==" }));
            secret.metadata.annotations = from_value(annotations).unwrap();
            let client = MemberAccess::new(&cluster, &secret)
                .and_then(|access| access.client(&secret, &Addresses::by_system(), "test"));
            client
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        let (own, other, plain) = ("https://m1:6443", "https://m2:6443", "http://m1:6443");
        let stored = json!({ TOKEN_ENDPOINT: own });
        assert_eq!(access(stored.clone(), own, false), "");
        assert_eq!(access(stored.clone(), "https://m1:6443/", false), "");
        assert_eq!(
            access(stored.clone(), other, false),
            "the Cluster's apiEndpoint is https://m2:6443, and the token in the Secret credentials/m1 is for https://m1:6443: it is not sent elsewhere unless the Secret's annotation karmada-rs.io/api-endpoint says so"
        );
        assert!(access(stored.clone(), plain, false).contains("is not sent elsewhere"));
        assert!(access(stored, own, true).contains("insecureSkipTLSVerification"));
        let insecure = json!({ TOKEN_ENDPOINT: own, TOKEN_INSECURE: "true" });
        assert_eq!(access(insecure, own, true), "");
        // A Secret of karmadactl's says nothing.
        let told = access(Value::Null, plain, false);
        assert!(told.contains("does not begin with https://"), "{told}");
        assert_eq!(access(Value::Null, other, true), "");
        assert_eq!(access(json!({ TOKEN_INSECURE: "true" }), plain, false), "");
    }

    /// A program connects to a member anew with each change of its credentials. Once the certificate has
    /// been verified, one that is not is news again.
    #[test]
    fn unverified_clusters_are_reported_once() {
        let secret = secret(&json!({ "token": "dA==" }));
        let [insecure, verified] = [true, false].map(|is_insecure| {
            let spec = json!({ "insecureSkipTLSVerification": is_insecure });
            MemberAccess::new(&cluster(&spec), &secret).unwrap()
        });
        let unverified = Unverified::default();
        assert!(unverified.is_news("m1", &insecure));
        assert!(!unverified.is_news("m1", &insecure));
        assert!(unverified.is_news("m2", &insecure));
        assert!(!unverified.is_news("m1", &verified));
        assert!(unverified.is_news("m1", &insecure));
    }

    #[test]
    fn a_token_is_not_shown() {
        let access = MemberAccess::new(
            &cluster(&json!({})),
            &secret(&json!({ "token": "c2VjcmV0" })),
        );
        assert!(!format!("{access:?}").contains("secret"));
    }
}
