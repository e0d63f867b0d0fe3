//! The work of the controller `clusterrole-aggregation` of kube-controller-manager. Most tests start none: it takes as long
//! as they do.

use anyhow::{Context, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use objects::selector;
use serde_json::json;

/// The field manager of the controller, which takes over where it runs, too.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Gives each aggregated ClusterRole the rules of those that it selects, in the order of their names.
pub async fn aggregate(client: &Client) -> Result<()> {
    let api: Api<ClusterRole> = Api::all(client.clone());
    let all = api.list(&ListParams::default()).await?.items;
    for role in &all {
        let Some(rules) = aggregated(role, &all) else {
            continue;
        };
        let name = role.name_any();
        let patch = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": name }, "rules": rules });
        let parameters = PatchParams::apply(MANAGER).force();
        api.patch(&name, &parameters, &Patch::Apply(&patch))
            .await
            .with_context(|| format!("cannot aggregate ClusterRole {name}"))?;
    }
    Ok(())
}

/// Returns the rules that `role` has by those it selects, if it selects any.
fn aggregated(role: &ClusterRole, all: &[ClusterRole]) -> Option<Vec<PolicyRule>> {
    let selectors = role
        .aggregation_rule
        .as_ref()?
        .cluster_role_selectors
        .as_ref()?;
    let mut rules = Vec::new();
    for one in selectors {
        let selected = all.iter().filter(|other| {
            other.name_any() != role.name_any() && selector::selects(one, &other.metadata)
        });
        for rule in selected.flat_map(|other| other.rules.iter().flatten()) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}
