//! The rights that a test gives to a user.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::{api::create, manifests};

/// Gives a user these rights in a whole API, once.
pub async fn grant(client: &Client, user: &str, rules: &Value) -> Result<()> {
    let cluster_roles: Api<ClusterRole> = Api::all(client.clone());
    let role = json!({ "metadata": { "name": user }, "rules": rules });
    create(&cluster_roles, role).await?;
    bind(client, user, user).await
}

/// Gives a user the rights in a file below `manifests/`, whose ClusterRole is called like it.
pub async fn grant_file(client: &Client, user: &str, file: &str) -> Result<()> {
    manifests::apply(client, &format!("{file}.yaml")).await?;
    let name = file.rsplit('/').next().unwrap_or(file);
    bind(client, user, &format!("karmada-rs:{name}")).await
}

async fn bind(client: &Client, user: &str, role: &str) -> Result<()> {
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let group = "rbac.authorization.k8s.io";
    let binding = json!({ "metadata": { "name": format!("{user}:{role}") },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": role },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }] });
    create(&bindings, binding).await
}
