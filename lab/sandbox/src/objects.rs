//! The objects that users, and Karmada itself, create in the Karmada API.

use std::fmt::Debug;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use karmada_api::names::TOKEN_INSECURE;
use karmada_api::{ClusterView, MultiClusterIngress, Remedy, execution_namespace};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::apis::Apis;
use crate::site::Site;

/// The namespace of the user's objects.
pub(crate) const NAMESPACE: &str = Site::Shop.namespace();
/// The Deployment behind the ingress, its Service, and the policy that takes it to the members.
pub(crate) const WEB: &str = "web";
/// The namespace of the Secrets with which members are reached.
const SECRETS: &str = "karmada-cluster";

/// The definitions of Karmada's kinds.
const KINDS: [&str; 13] = [
    include_str!("../../../manifests/fleet/remedy.karmada.io_remedies.yaml"),
    include_str!("../../../manifests/fleet/networking.karmada.io_multiclusteringresses.yaml"),
    include_str!("../../../manifests/fleet/apps.karmada.io_workloadrebalancers.yaml"),
    include_str!("../../../manifests/fleet/cluster.karmada.io_clusters.yaml"),
    include_str!(
        "../../../manifests/fleet/config.karmada.io_resourceinterpretercustomizations.yaml"
    ),
    include_str!(
        "../../../manifests/fleet/config.karmada.io_resourceinterpreterwebhookconfigurations.yaml"
    ),
    include_str!("../../../manifests/fleet/policy.karmada.io_clusteroverridepolicies.yaml"),
    include_str!("../../../manifests/fleet/policy.karmada.io_clusterpropagationpolicies.yaml"),
    include_str!("../../../manifests/fleet/policy.karmada.io_overridepolicies.yaml"),
    include_str!("../../../manifests/fleet/policy.karmada.io_propagationpolicies.yaml"),
    include_str!("../../../manifests/fleet/work.karmada.io_clusterresourcebindings.yaml"),
    include_str!("../../../manifests/fleet/work.karmada.io_resourcebindings.yaml"),
    include_str!("../../../manifests/fleet/work.karmada.io_works.yaml"),
];
/// The manifests that a user of Karmada applies for our controllers.
const MANIFESTS: [&str; 8] = [
    include_str!("../../../manifests/karmada/gateway-agent.yaml"),
    include_str!("../../../manifests/karmada/remedy-controller.yaml"),
    include_str!("../../../manifests/karmada/ingress-controller.yaml"),
    include_str!("../../../manifests/karmada/ingressclass.yaml"),
    include_str!("../../../manifests/propagation/propagation-controller.yaml"),
    include_str!("../../../manifests/propagation/workloads.yaml"),
    include_str!("../../../manifests/propagation/scheduler.yaml"),
    include_str!("../../../manifests/propagation/execution-controller.yaml"),
];
const GATEWAY_MANIFEST: &str = include_str!("../../../manifests/gateway/ingress-controller.yaml");
/// The manifest that a user applies for the agents of `member1`.
const AGENT_MANIFEST: &str = include_str!("../../../manifests/karmada/agent.yaml");
/// The Deployment, its Service, and their policies.
pub(crate) const WORKLOAD: &str = include_str!("../../../manifests/samples/shop/web.yaml");
const INGRESS: &str = include_str!("../../../manifests/samples/multiclusteringress.yaml");

/// Sets Karmada up, as a user has it: the rights of our programs, the members, the workload with its
/// policies, and the ingress.
pub(crate) async fn create_everything(apis: &Apis) -> Result<()> {
    for kind in KINDS {
        apis.install(kind)?;
    }
    let karmada = apis.karmada()?;
    for namespace in ["karmada-system", SECRETS, NAMESPACE] {
        create_namespace(&karmada, namespace).await?;
    }
    for manifest in MANIFESTS {
        create_all(&karmada, manifest).await?;
    }
    let gateway = apis.gateway()?;
    create_namespace(&gateway, "karmada-rs").await?;
    create_all(&gateway, GATEWAY_MANIFEST).await?;
    for (name, api) in apis.endpoints() {
        join(&karmada, name, &format!("http://{api}")).await?;
    }
    create_all(&karmada, WORKLOAD).await?;
    let ingress: MultiClusterIngress = serde_saphyr::from_str(INGRESS)?;
    create(&Api::namespaced(karmada, NAMESPACE), &ingress).await
}

/// Creates a Remedy.
pub(crate) async fn create_remedy(client: Client, remedy: &Remedy) -> Result<()> {
    create(&Api::all(client), remedy).await
}

/// Checks that a Remedy can be created.
pub(crate) async fn check_remedy(client: Client, remedy: &Remedy) -> Result<()> {
    let remedies: Api<Remedy> = Api::all(client);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    in_one_line(remedies.create(&dry_run, remedy).await)
}

/// Deletes a Remedy.
pub(crate) async fn delete_remedy(client: Client, name: &str) -> Result<()> {
    let remedies: Api<Remedy> = Api::all(client);
    in_one_line(remedies.delete(name, &DeleteParams::default()).await)
}

/// Creates the Cluster of a member, the Secret with its credentials, its namespace and the rights of its
/// agents, as when it joins.
async fn join(client: &Client, name: &str, endpoint: &str) -> Result<()> {
    // Its API asks for no credentials, but our programs know no member without.
    let mut secret: Secret = object(name, json!({ "stringData": { "token": "none" } }))?;
    secret.metadata.annotations = Some([(TOKEN_INSECURE.to_owned(), "true".to_owned())].into());
    create(&Api::namespaced(client.clone(), SECRETS), &secret).await?;
    let access = json!({ "syncMode": "Push", "apiEndpoint": endpoint,
        "secretRef": { "namespace": SECRETS, "name": name } });
    let cluster: ClusterView = object(name, json!({ "spec": access }))?;
    create(&Api::all(client.clone()), &cluster).await?;
    create_namespace(client, &execution_namespace(name)).await?;
    create_all(client, &AGENT_MANIFEST.replace("member1", name)).await
}

/// Creates a namespace.
pub(crate) async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace: Namespace = object(name, json!({}))?;
    create(&Api::all(client.clone()), &namespace).await
}

/// Returns an object of a kind by its name, with its other fields.
pub(crate) fn object<K>(name: &str, mut object: Value) -> Result<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    object["metadata"]["name"] = name.into();
    Ok(serde_json::from_value(object)?)
}

/// Creates an object.
pub(crate) async fn create<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + serde::Serialize,
{
    in_one_line(api.create(&PostParams::default(), object).await)
}

/// Reduces an error to the API server's message, for a reader of the page.
pub(crate) fn in_one_line<T>(result: kube::Result<T>) -> Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => bail!("{}", status.message),
        Err(error) => Err(error.into()),
    }
}

/// Creates every object of a manifest, in its order.
pub(crate) async fn create_all(client: &Client, manifest: &str) -> Result<()> {
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
