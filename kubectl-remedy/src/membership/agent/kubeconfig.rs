//! The kubeconfig with which the agents of a member reach the Karmada API.

use karmada_runtime::client::Source;
use kube::config::Cluster;
use serde_json::{Value, json};

use super::rights::ACCOUNT;
use crate::address::unreachable;
use crate::args::join::JoinArgs;
use crate::error::Error;

/// The name of the cluster and of the context in it.
const KARMADA: &str = "karmada";

/// The address of the Karmada API, and how it is known there.
#[derive(Debug)]
pub(super) struct Address {
    /// The flags, where given.
    server: Option<String>,
    tls_server_name: Option<String>,
    /// That of the connection of this command.
    own: Cluster,
}

impl Address {
    /// Reads that of the connection, and the flags that replace it.
    pub(super) fn of(args: &JoinArgs, source: &Source) -> Result<Self, Error> {
        Ok(Self {
            server: args.server.clone(),
            tls_server_name: args.tls_server_name.clone(),
            own: source.cluster()?,
        })
    }

    /// Returns the kubeconfig of a member, whose token is in the file `token` beside it. The rest is as in
    /// `present`, the kubeconfig that it has, where no flag is given.
    ///
    /// # Errors
    /// Fails if only the server of the connection is known, and no member can reach that.
    pub(super) fn kubeconfig(&self, present: Option<&str>) -> Result<String, Error> {
        let present: Value = present
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let present = &present["clusters"][0]["cluster"];
        let server = self.server.as_deref();
        let server = match server.or_else(|| present["server"].as_str()) {
            Some(server) => server.to_owned(),
            None => reachable(self.own.server.as_deref().unwrap_or_default())?,
        };
        let mut cluster = json!({ "server": server });
        let name = self.tls_server_name.as_deref();
        let name = name.or_else(|| present["tls-server-name"].as_str());
        for (field, value) in [
            (
                "tls-server-name",
                name.or(self.own.tls_server_name.as_deref())
                    .map(Value::from),
            ),
            (
                "certificate-authority-data",
                self.own.certificate_authority_data.clone().map(Value::from),
            ),
            (
                "insecure-skip-tls-verify",
                self.own.insecure_skip_tls_verify.map(Value::from),
            ),
        ] {
            if let Some(value) = value {
                cluster[field] = value;
            }
        }
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": KARMADA,
            "contexts": [{ "name": KARMADA, "context": { "cluster": KARMADA, "user": ACCOUNT } }],
            "clusters": [{ "name": KARMADA, "cluster": cluster }],
            "users": [{ "name": ACCOUNT, "user": { "tokenFile": "token" } }],
        });
        Ok(kubeconfig.to_string())
    }
}

/// Returns the server of a kubeconfig, unless members cannot reach it.
pub(crate) fn reachable(server: &str) -> Result<String, Error> {
    match unreachable(server) {
        None => Ok(server.to_owned()),
        Some(why) => Err(Error::Unusable(format!(
            "members cannot reach the Karmada API at {server}: {why}; give --server an address that they reach, such as https://203.0.113.7:5443, and --tls-server-name if its certificate lacks that"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(server: &str, own: &str) -> Address {
        Address {
            server: (!server.is_empty()).then(|| server.to_owned()),
            tls_server_name: None,
            own: Cluster {
                server: Some(own.to_owned()),
                certificate_authority_data: Some("Q0E=".to_owned()),
                ..Cluster::default()
            },
        }
    }

    fn cluster(kubeconfig: &str) -> Value {
        let kubeconfig: Value = serde_json::from_str(kubeconfig).unwrap();
        kubeconfig["clusters"][0]["cluster"].clone()
    }

    /// An address that only the host or this machine reaches is refused with the flag to give.
    #[test]
    fn unreachable_server_is_refused() {
        for server in [
            "https://karmada-apiserver.karmada-system.svc:5443",
            "https://karmada-apiserver.karmada-system.svc.cluster.local.:5443",
            "https://127.0.0.1:5443",
            "https://[::1]:5443",
            "https://localhost",
            "",
        ] {
            let error = address("", server)
                .kubeconfig(None)
                .unwrap_err()
                .to_string();
            assert!(error.contains("give --server"), "{server}: {error}");
            assert_eq!(error.lines().count(), 1);
            address("https://203.0.113.7:5443", server)
                .kubeconfig(None)
                .unwrap();
        }
        let reached = address("", "https://karmada.example:5443")
            .kubeconfig(None)
            .unwrap();
        let expected = json!({ "server": "https://karmada.example:5443",
            "certificate-authority-data": "Q0E=" });
        assert_eq!(cluster(&reached), expected);
    }

    /// The address of a member stays until a flag says otherwise, but its certificates do not.
    #[test]
    fn known_address_is_kept() {
        let present = json!({ "clusters": [{ "cluster": { "server": "https://203.0.113.7",
            "tls-server-name": "karmada", "certificate-authority-data": "b2xk" } }] });
        let present = present.to_string();
        let kept = address("", "https://127.0.0.1")
            .kubeconfig(Some(&present))
            .unwrap();
        let expected = json!({ "server": "https://203.0.113.7", "tls-server-name": "karmada",
            "certificate-authority-data": "Q0E=" });
        assert_eq!(cluster(&kept), expected);
        let other = address("https://203.0.113.8", "")
            .kubeconfig(Some(&present))
            .unwrap();
        assert_eq!(cluster(&other)["server"], "https://203.0.113.8");
    }
}
