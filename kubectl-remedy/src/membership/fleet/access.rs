//! The objects of a fleet about a member: the Secret with the credentials, and the Cluster that names it.

use karmada_api::names::{TOKEN_ENDPOINT, TOKEN_INSECURE};
use karmada_api::{Cluster, ClusterView};
use kube::Resource;
use kube::config::Cluster as Connection;
use serde_json::{Value, json};

use super::account;
use crate::address::unreachable;
use crate::args::join::JoinArgs;
use crate::error::Error;
use crate::secret::{decoded, encoded};

/// The namespace of the credentials (`karmadactl join --cluster-namespace` has the same default).
pub(super) const NAMESPACE: &str = "karmada-cluster";

/// The address of a member's API, and the way to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    endpoint: String,
    ca_bundle: String,
    insecure: bool,
    proxy_url: Option<String>,
}

impl Address {
    /// Reads it from the connection to the member. The endpoint that no flag says is the `present` one.
    ///
    /// # Errors
    /// Fails if only this machine reaches the member in this way, it is not https, or a Cluster cannot say it.
    pub(super) fn of(
        connection: Connection,
        args: &JoinArgs,
        present: Option<&str>,
    ) -> Result<Self, Error> {
        let server = connection.server.unwrap_or_default();
        let endpoint = match args.server.as_deref().or(present) {
            Some(endpoint) => endpoint.to_owned(),
            None => match (unreachable(&server), connection.tls_server_name) {
                (Some(why), _) => {
                    return Err(Error::Unusable(format!(
                        "the fleet cannot reach the member at {server}: {why}; give --server an address that the fleet's programs reach, such as https://203.0.113.8:6443"
                    )));
                }
                (None, Some(name)) => {
                    return Err(Error::Unusable(format!(
                        "its context knows {server} by the tls-server-name {name}, which a Cluster cannot say; give --server a URL with a host that the certificate has"
                    )));
                }
                (None, None) => server,
            },
        };
        if !endpoint.to_ascii_lowercase().starts_with("https://") {
            return Err(Error::Unusable(format!(
                "{endpoint} does not begin with https://: anybody could read the token that is sent there; give --server"
            )));
        }
        let bundle = connection.certificate_authority_data.unwrap_or_default();
        Ok(Self {
            endpoint,
            ca_bundle: decoded(&bundle.into()).unwrap_or_default(),
            insecure: connection.insecure_skip_tls_verify.unwrap_or_default(),
            proxy_url: connection.proxy_url,
        })
    }
}

/// Returns the endpoint that a member has: the one for which its `secret` was stored, or else that of its `cluster`, which others may
/// have changed.
pub(super) fn endpoint<'a>(
    secret: Option<&'a Value>,
    cluster: Option<&'a Value>,
) -> Option<&'a str> {
    let stored =
        secret.and_then(|secret| secret["metadata"]["annotations"][TOKEN_ENDPOINT].as_str());
    stored
        .or_else(|| cluster?["spec"]["apiEndpoint"].as_str())
        .filter(|endpoint| !endpoint.is_empty())
}

/// Returns the Secret with the credentials for `cluster`, which are for this address.
pub(super) fn secret(cluster: &str, address: &Address, token: &str) -> Value {
    let mut secret = secret_name(cluster);
    secret["metadata"]["annotations"] = json!({ TOKEN_ENDPOINT: address.endpoint });
    if address.insecure {
        secret["metadata"]["annotations"][TOKEN_INSECURE] = "true".into();
    }
    secret["type"] = "Opaque".into();
    secret["data"] = json!({ "token": encoded(token), "caBundle": encoded(&address.ca_bundle) });
    secret
}

/// Returns that Secret without its contents, to read or delete it.
pub(super) fn secret_name(cluster: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": cluster, "namespace": NAMESPACE },
    })
}

/// Returns the token in a Secret.
pub(super) fn token(secret: &Value) -> Option<String> {
    decoded(&secret["data"]["token"])
}

/// Returns the Cluster of the member whose namespace `kube-system` has this uid.
pub(super) fn cluster(name: &str, address: Address, id: &str) -> Value {
    let mut cluster = cluster_name(name);
    cluster["spec"] = json!({
        "syncMode": "Push",
        "id": id,
        "apiEndpoint": address.endpoint,
        "secretRef": { "namespace": NAMESPACE, "name": name },
    });
    if address.insecure {
        cluster["spec"]["insecureSkipTLSVerification"] = true.into();
    }
    if let Some(url) = address.proxy_url {
        cluster["spec"]["proxyURL"] = url.into();
    }
    cluster
}

/// Returns that Cluster without its contents, to read or delete it.
pub(super) fn cluster_name(name: &str) -> Value {
    json!({
        "apiVersion": Cluster::api_version(&()), "kind": Cluster::kind(&()),
        "metadata": { "name": name },
    })
}

/// Refuses a Cluster that is none of `join --fleet`, by the Secret that it names and the `token` in that. `karmadactl join` gives Secrets
/// the same names, and their tokens are of another account.
pub(super) fn require_ours(
    name: &str,
    cluster: &ClusterView,
    token: Option<&str>,
) -> Result<(), Error> {
    let secret = cluster.spec.secret_ref.as_ref();
    let is_ours = secret.is_some_and(|secret| secret.namespace == NAMESPACE && secret.name == name);
    if is_ours && token.is_none_or(account::has_issued) {
        return Ok(());
    }
    Err(Error::Unusable(format!(
        "its Cluster does not name a Secret {NAMESPACE}/{name} with a token of karmada-rs/fleet: it has joined in another way, and leaves in that"
    )))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::from_value;

    use super::*;
    use crate::fixtures::jwt;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: JoinArgs,
    }

    fn args(flags: &[&str]) -> JoinArgs {
        Flags::parse_from([&["join", "m1", "--fleet"], flags].concat()).args
    }

    fn connection(server: &str) -> Connection {
        Connection {
            server: Some(server.to_owned()),
            certificate_authority_data: Some("Q0E=".to_owned()),
            ..Connection::default()
        }
    }

    /// An address that the fleet cannot reach, or a Cluster not say, is refused with the flag to give.
    #[test]
    fn unusable_address_is_refused() {
        let mut by_name = connection("https://203.0.113.8:6443");
        by_name.tls_server_name = Some("kubernetes".to_owned());
        for connection in [
            connection("https://127.0.0.1:6443"),
            connection("https://kubernetes.default.svc"),
            by_name,
        ] {
            let server = connection.server.clone().unwrap();
            let error = Address::of(connection.clone(), &args(&[]), None);
            let error = error.unwrap_err().to_string();
            assert!(error.contains("give --server"), "{server}: {error}");
            let given = args(&["--server", "https://203.0.113.9"]);
            let address = Address::of(connection, &given, None).unwrap();
            assert_eq!(address.endpoint, "https://203.0.113.9");
        }
    }

    /// A Cluster is as the kubeconfig, and keeps the address that it has.
    #[test]
    fn cluster_is_as_kubeconfig() {
        let mut proxied = connection("https://203.0.113.8:6443");
        proxied.proxy_url = Some("http://proxy:3128".to_owned());
        proxied.insecure_skip_tls_verify = Some(true);
        let address = Address::of(proxied, &args(&[]), None).unwrap();
        let secret = secret("m1", &address, "t");
        assert_eq!(token(&secret).as_deref(), Some("t"));
        assert_eq!(secret["data"]["caBundle"], "Q0E=");
        let expected = json!({
            "syncMode": "Push", "id": "u", "apiEndpoint": "https://203.0.113.8:6443",
            "secretRef": { "namespace": "karmada-cluster", "name": "m1" },
            "insecureSkipTLSVerification": true, "proxyURL": "http://proxy:3128",
        });
        let written = cluster("m1", address, "u");
        assert_eq!(written["spec"], expected);
        let present = endpoint(None, Some(&written));
        let again = Address::of(connection("https://127.0.0.1"), &args(&[]), present);
        assert_eq!(again.unwrap().endpoint, "https://203.0.113.8:6443");
    }

    fn address(flags: &[&str], present: Option<&str>) -> Result<Address, Error> {
        let connection = connection("https://203.0.113.8:6443");
        Address::of(connection, &args(flags), present)
    }

    /// The Secret says where its token belongs. A Cluster that somebody has changed is put right by it, and a member that has moved
    /// by a flag.
    #[test]
    fn token_is_stored_for_its_endpoint() {
        let stored = secret("m1", &address(&[], None).unwrap(), "t");
        let annotations = &stored["metadata"]["annotations"];
        assert_eq!(
            *annotations,
            json!({ "karmada-rs.io/api-endpoint": "https://203.0.113.8:6443" })
        );
        let changed = json!({ "spec": { "apiEndpoint": "https://203.0.113.66" } });
        let present = endpoint(Some(&stored), Some(&changed));
        assert_eq!(present, Some("https://203.0.113.8:6443"));
        let moved = address(&["--server", "https://203.0.113.9"], present).unwrap();
        assert_eq!(moved.endpoint, "https://203.0.113.9");
        let error = address(&["--server", "http://203.0.113.9"], None).unwrap_err();
        assert!(error.to_string().contains("https://"), "{error}");
    }

    /// A Cluster of somebody else is left to him, such as one of `karmadactl join`, whose Secret has the same name.
    #[test]
    fn others_cluster_is_refused() {
        let is_refused = |spec: Value, account: Option<&str>| {
            let cluster = json!({ "metadata": { "name": "m1" }, "spec": spec });
            let cluster: ClusterView = from_value(cluster).unwrap();
            let subject = account.map(|account| format!("system:serviceaccount:{account}"));
            let token = subject.map(|subject| jwt(&json!({ "sub": subject })));
            require_ours("m1", &cluster, token.as_deref()).is_err()
        };
        let named = json!({ "secretRef": { "namespace": "karmada-cluster", "name": "m1" } });
        assert!(!is_refused(named.clone(), Some("karmada-rs:fleet")));
        assert!(!is_refused(named.clone(), None));
        assert!(is_refused(named, Some("karmada-cluster:karmada-m1")));
        for spec in [
            json!({ "syncMode": "Pull" }),
            json!({ "secretRef": { "namespace": "karmada-cluster", "name": "m2" } }),
        ] {
            assert!(is_refused(spec, None));
        }
    }
}
