//! The namespace of this project in a member, which the agent, a gateway and the account of a fleet share.

use serde_json::{Value, json};

/// Its name.
pub(crate) const NAMESPACE: &str = "karmada-rs";

/// Returns it. It stays when one of them leaves: others may use it.
pub(crate) fn namespace() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
        },
    })
}
