//! The objects that users, and Karmada itself, create in the Karmada API.

use std::fmt::Debug;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::{Cluster, MultiClusterIngress, Remedy, ResourceBinding, execution_namespace};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::apis::Apis;
use crate::sample_remedy::SampleRemedy;

/// The namespace of the user's objects.
pub(crate) const NAMESPACE: &str = "shop";
/// The Service behind the ingress.
const SERVICE: &str = "web";

/// The definitions of Karmada's kinds.
const KINDS: [&str; 4] = [
    include_str!("../../../tests/crds/remedy.karmada.io_remedies.yaml"),
    include_str!("../../../tests/crds/networking.karmada.io_multiclusteringresses.yaml"),
    include_str!("../../../manifests/fleet/cluster.karmada.io_clusters.yaml"),
    include_str!("../../../manifests/fleet/work.karmada.io_resourcebindings.yaml"),
];
/// The manifests that a user of Karmada applies for our controllers.
const MANIFESTS: [&str; 3] = [
    include_str!("../../../manifests/karmada/remedy-controller.yaml"),
    include_str!("../../../manifests/karmada/ingress-controller.yaml"),
    include_str!("../../../manifests/karmada/ingressclass.yaml"),
];
const GATEWAY_MANIFEST: &str = include_str!("../../../manifests/gateway/ingress-controller.yaml");
/// The manifest that a user applies for the agents of `member1`.
const AGENT_MANIFEST: &str = include_str!("../../../manifests/karmada/agent.yaml");
const INGRESS: &str = include_str!("../../../manifests/samples/multiclusteringress.yaml");

/// Creates everything in both APIs: the members, each with the address of its pod, the Service in all
/// of them, and the ingress.
pub(crate) async fn create_everything(apis: &Apis, members: &[(String, SocketAddr)]) -> Result<()> {
    for kind in KINDS {
        apis.install(kind)?;
    }
    let karmada = apis.karmada()?;
    create_namespace(&karmada, "karmada-system").await?;
    for manifest in MANIFESTS {
        create_all(&karmada, manifest).await?;
    }
    let gateway = apis.gateway()?;
    create_namespace(&gateway, "karmada-rs").await?;
    create_all(&gateway, GATEWAY_MANIFEST).await?;
    create_namespace(&karmada, NAMESPACE).await?;
    for (name, _) in members {
        join(&karmada, name).await?;
    }
    place(&karmada, members).await?;
    let ingress: MultiClusterIngress = serde_saphyr::from_str(INGRESS)?;
    create(&Api::namespaced(karmada, NAMESPACE), &ingress).await
}

/// Creates a sample Remedy.
pub(crate) async fn create_remedy(client: Client, name: &str) -> Result<()> {
    let Some(sample) = SampleRemedy::named(name) else {
        let names = SampleRemedy::ALL.map(SampleRemedy::name).join(" and ");
        bail!("no such remedy {name:?}; the samples are {names}");
    };
    let remedy: Remedy = serde_saphyr::from_str(sample.manifest())?;
    create(&Api::all(client), &remedy).await
}

/// Deletes a Remedy, a sample or any other.
pub(crate) async fn delete_remedy(client: Client, name: &str) -> Result<()> {
    let remedies: Api<Remedy> = Api::all(client);
    let name = SampleRemedy::named(name).map_or(name, |sample| sample.object());
    in_one_line(remedies.delete(name, &DeleteParams::default()).await)
}

/// Creates the Cluster of a member, its namespace and the rights of its agents, as when it joins.
async fn join(client: &Client, name: &str) -> Result<()> {
    let clusters: Api<Cluster> = Api::all(client.clone());
    let cluster: Cluster = object(name, json!({ "spec": {} }))?;
    create(&clusters, &cluster).await?;
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "ClusterReady",
        "message": "cluster is healthy and ready to accept workloads",
        "lastTransitionTime": Timestamp::from_second(Timestamp::now().as_second())?.to_string(),
    });
    let status = Patch::Merge(json!({ "status": { "conditions": [ready] } }));
    clusters
        .patch_status(name, &PatchParams::default(), &status)
        .await?;
    create_namespace(client, &execution_namespace(name)).await?;
    create_all(client, &AGENT_MANIFEST.replace("member1", name)).await
}

/// Creates the Service in all members: its template, its binding, and the `EndpointSlices` that
/// Karmada collects.
async fn place(client: &Client, members: &[(String, SocketAddr)]) -> Result<()> {
    let port = json!({ "name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP" });
    let service: Service = object(SERVICE, json!({ "spec": { "ports": [port] } }))?;
    create(&Api::namespaced(client.clone(), NAMESPACE), &service).await?;

    let clusters: Vec<Value> = (members.iter())
        .map(|(name, _)| json!({ "name": name }))
        .collect();
    let resource =
        json!({ "apiVersion": "v1", "kind": "Service", "namespace": NAMESPACE, "name": SERVICE });
    let binding: ResourceBinding = object(
        &format!("{SERVICE}-service"),
        json!({ "spec": { "resource": resource, "clusters": clusters } }),
    )?;
    create(&Api::namespaced(client.clone(), NAMESPACE), &binding).await?;

    for (name, pod) in members {
        let slice: EndpointSlice = object(
            &format!("imported-{name}-{SERVICE}"),
            json!({
                "metadata": {
                    "labels": {
                        "kubernetes.io/service-name": format!("derived-{SERVICE}"),
                        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
                    },
                    "annotations": { "work.karmada.io/namespace": execution_namespace(name) },
                },
                "addressType": "IPv4",
                "endpoints": [{ "addresses": [pod.ip()], "conditions": { "ready": true } }],
                "ports": [{ "name": "http", "port": pod.port(), "protocol": "TCP" }],
            }),
        )?;
        create(&Api::namespaced(client.clone(), NAMESPACE), &slice).await?;
    }
    Ok(())
}

async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace: Namespace = object(name, json!({}))?;
    create(&Api::all(client.clone()), &namespace).await
}

fn object<K>(name: &str, mut object: Value) -> Result<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    object["metadata"]["name"] = name.into();
    Ok(serde_json::from_value(object)?)
}

async fn create<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + serde::Serialize,
{
    in_one_line(api.create(&PostParams::default(), object).await)
}

/// Reduces an error to the API server's message, for a reader of the page.
fn in_one_line<T>(result: kube::Result<T>) -> Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => bail!("{}", status.message),
        Err(error) => Err(error.into()),
    }
}

/// Creates every object of a manifest, in its order.
async fn create_all(client: &Client, manifest: &str) -> Result<()> {
    let objects: Vec<DynamicObject> = serde_saphyr::from_multiple(manifest)?;
    for object in objects {
        let types = object.types.as_ref().context("a manifest has no kind")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        api.create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("cannot create {} {}", types.kind, object.name_any()))?;
    }
    Ok(())
}
