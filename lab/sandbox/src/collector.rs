//! The collection of the members' `EndpointSlice`s, in place of Karmada's: each is copied into the Karmada
//! API under a name of its own, and deleted with the original.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use futures::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::execution_namespace;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::objects::NAMESPACE;
use crate::watch::follow;

const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// Collects the slices of a member, and never returns.
pub(crate) async fn run(cluster: String, member: Client, karmada: Client) {
    let originals: Api<EndpointSlice> = Api::namespaced(member, NAMESPACE);
    let copies: Api<EndpointSlice> = Api::namespaced(karmada, NAMESPACE);
    let (slices, changes) = follow(originals);
    let mut changes = std::pin::pin!(changes);
    let mut collected = BTreeMap::new();
    while changes.next().await.is_some() {
        let slices = slices.state();
        let wanted = slices.iter().filter_map(|slice| copy(&cluster, slice));
        let wanted: BTreeMap<String, Value> = wanted.collect();
        if let Err(error) = write(&copies, &collected, &wanted).await {
            tracing::warn!(cluster, %error, "The endpoints of a member could not be collected");
        } else {
            collected = wanted;
        }
    }
}

async fn write(
    copies: &Api<EndpointSlice>,
    before: &BTreeMap<String, Value>,
    now: &BTreeMap<String, Value>,
) -> Result<()> {
    let params = PatchParams::apply("endpointslice-collector").force();
    for (name, copy) in now
        .iter()
        .filter(|(name, copy)| before.get(*name) != Some(*copy))
    {
        copies.patch(name, &params, &Patch::Apply(copy)).await?;
    }
    for name in before.keys().filter(|name| !now.contains_key(*name)) {
        copies.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Returns the name and the contents of the copy of a slice; none if it belongs to no Service.
fn copy(cluster: &str, slice: &Arc<EndpointSlice>) -> Option<(String, Value)> {
    let service = slice.labels().get(SERVICE_LABEL)?;
    let name = format!("imported-{cluster}-{}", slice.name_any());
    let copy = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "labels": {
                SERVICE_LABEL: format!("derived-{service}"),
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
            },
            "annotations": { "work.karmada.io/namespace": execution_namespace(cluster) },
        },
        "addressType": slice.address_type,
        "endpoints": slice.endpoints,
        "ports": slice.ports,
    });
    Some((name, copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy has the names by which Karmada collects.
    #[test]
    fn copy_has_karmadas_names() {
        let slice = json!({
            "metadata": { "name": "web-x1", "labels": { SERVICE_LABEL: "web" } },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": ["10.244.1.10"] }],
        });
        let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
        let (name, copy) = copy("member1", &Arc::new(slice)).unwrap();
        assert_eq!(name, "imported-member1-web-x1");
        let metadata = &copy["metadata"];
        assert_eq!(metadata["labels"][SERVICE_LABEL], "derived-web");
        let namespace = &metadata["annotations"]["work.karmada.io/namespace"];
        assert_eq!(namespace, "karmada-es-member1");
        assert_eq!(copy["endpoints"][0]["addresses"][0], "10.244.1.10");
        assert!(super::copy("member1", &Arc::default()).is_none());
    }
}
