//! The objects of a cluster's agents in the Karmada API: an account with its rights, and the Secret with which its tokens end.

use karmada_api::condition::REPORTER_LEASE;
use karmada_api::execution_namespace;
use serde_json::{Value, json};

use crate::error::Error;
use crate::manifest;
use crate::token::Account;

/// The account, in the namespace of the cluster.
pub(super) const ACCOUNT: &str = "cluster-health-agent";

/// The name of its role for the Cluster, which every way of joining makes, up to that of the cluster.
pub(crate) const ROLE: &str = "karmada-rs:cluster-health-agent:";

/// The Secret beside it.
const SECRET: &str = "cluster-health-agent-token";

/// The manifest of a cluster called `member1`, which docs/install.md applies by hand.
const MANIFEST: &str = include_str!("../../../../manifests/karmada/agent.yaml");

/// Returns the account of the agents of `cluster` and its rights; the account is the first.
pub(super) fn objects(cluster: &str) -> Result<Vec<Value>, Error> {
    manifest::shipped(&MANIFEST.replace("member1", cluster))
}

/// Returns that account, for its tokens.
pub(super) fn account(cluster: &str) -> Account {
    Account {
        namespace: execution_namespace(cluster),
        name: ACCOUNT.to_owned(),
        secret: SECRET.to_owned(),
    }
}

/// Returns the empty Secret with which the tokens of that account end.
pub(super) fn secret(cluster: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": SECRET, "namespace": execution_namespace(cluster) },
        "type": "Opaque",
    })
}

/// Returns the lease of the agents of `cluster`, to delete it.
pub(super) fn lease(cluster: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": REPORTER_LEASE, "namespace": execution_namespace(cluster) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every object is of the cluster, and none of another.
    #[test]
    fn objects_are_of_their_cluster() {
        let found = objects("m-7").unwrap();
        let kinds: Vec<&str> = found.iter().filter_map(|o| o["kind"].as_str()).collect();
        let expected = [
            "ServiceAccount",
            "ClusterRole",
            "ClusterRoleBinding",
            "Role",
            "RoleBinding",
        ];
        assert_eq!(kinds, expected);
        assert_eq!(found[0]["metadata"]["name"], ACCOUNT);
        for object in found {
            let text = object.to_string();
            assert!(text.contains("m-7") && !text.contains("member1"), "{text}");
        }
    }
}
