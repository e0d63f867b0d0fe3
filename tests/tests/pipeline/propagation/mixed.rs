//! A fleet of hundreds of objects of mixed kinds, as a Karmada left it.

use anyhow::Result;
use karmada_api::{ResourceBinding, ResourceInterpreterCustomization, Work, names};
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams},
};
use pipeline_tests::{
    api::{create, merge},
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::{PropagationFleet, PropagationPrograms},
    wait::until,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{has_condition, would_write_nothing};

/// The objects of each kind.
const OF_EACH: usize = 100;

/// The group, version, kind and plural of each: Kubernetes' own, one of another project, and one that scripts interpret.
const KINDS: [[&str; 4]; 5] = [
    ["apps", "v1", "Deployment", "deployments"],
    ["", "v1", "ConfigMap", "configmaps"],
    ["", "v1", "Service", "services"],
    ["argoproj.io", "v1alpha1", "Rollout", "rollouts"],
    ["example.com", "v1", "Shirt", "shirts"],
];

/// Whether a kind is none of Kubernetes' own.
fn is_defined(group: &str) -> bool {
    group.contains('.')
}

fn resource([group, version, kind, plural]: [&str; 4]) -> ApiResource {
    let kind = GroupVersionKind::gvk(group, version, kind);
    ApiResource::from_gvk_with_plural(&kind, plural)
}

fn api(api: &ControlPlane, kind: [&str; 4]) -> Api<DynamicObject> {
    Api::namespaced_with(api.client(), NAMESPACE, &resource(kind))
}

fn object(kind: [&str; 4], name: &str) -> Value {
    let resource = resource(kind);
    let pod = json!({
        "metadata": { "labels": { "app": name } },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    });
    let workload = json!({
        "replicas": 2,
        "selector": { "matchLabels": { "app": name } },
        "template": pod,
    });
    let port = json!({ "name": "http", "port": 80 });
    let content = match &*resource.kind {
        "ConfigMap" => json!({ "data": { "a": "1" } }),
        "Service" => json!({ "spec": { "selector": { "app": name }, "ports": [port] } }),
        "Shirt" => json!({ "spec": { "replicas": 3 } }),
        _ => json!({ "spec": workload }),
    };
    let mut object = json!({ "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": { "name": name } });
    if let (Some(object), Value::Object(content)) = (object.as_object_mut(), content) {
        object.extend(content);
    }
    object
}

/// Defines the kinds that Kubernetes has not, in the control plane and the member.
async fn define(fleet: &PropagationFleet) -> Result<()> {
    let member = fleet.member(Member(1));
    for [group, version, kind, plural] in KINDS.into_iter().filter(|[group, ..]| is_defined(group))
    {
        let mut definition = crds::definition(group, kind, plural, &json!({}))?;
        let of_version = &mut definition.data["spec"]["versions"][0];
        of_version["name"] = json!(version);
        of_version["schema"]["openAPIV3Schema"] =
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        for api in [&fleet.karmada, member] {
            crds::apply(&api.client(), std::slice::from_ref(&definition)).await?;
        }
        fleet.allow(&format!("{group}/{plural}")).await?;
    }
    let served = KINDS.map(|kind| (resource(kind).api_version, kind[2], kind[3]));
    let served = served.iter();
    let served = served.map(|(version, kind, plural)| (version.as_str(), *kind, *plural));
    fleet.enable(Member(1), served).await
}

/// Creates the objects, a policy for all of them, and the customization of one kind.
async fn write(fleet: &PropagationFleet) -> Result<()> {
    let customizations: Api<ResourceInterpreterCustomization> = Api::all(fleet.karmada.client());
    let script = |source: &str| json!({ "luaScript": source });
    let spec = json!({
        "target": { "apiVersion": "example.com/v1", "kind": "Shirt" },
        "customizations": {
            "replicaResource":
                script("function GetReplicas(obj) return obj.spec.replicas end"),
            "retention": script("function Retain(desired, observed)
                desired.spec.size = observed.spec.size
                return desired
            end"),
            "statusReflection": script("function ReflectStatus(obj)
                return { seen = obj.spec.replicas, at = os.date('!%Y-%m-%dT%H:%M:%SZ') }
            end"),
        },
    });
    let customization = json!({ "metadata": { "name": "shirts" }, "spec": spec });
    create(&customizations, customization).await?;
    let selectors = KINDS.map(|kind| {
        let resource = resource(kind);
        json!({ "apiVersion": resource.api_version, "kind": resource.kind, "namespace": NAMESPACE,
            "labelSelector": {} })
    });
    let policy = json!({ "resourceSelectors": selectors, "placement": {} });
    fleet.create_cluster_policy("mixed", policy).await?;
    for kind in KINDS {
        let api = api(&fleet.karmada, kind);
        for number in 0..OF_EACH {
            let object = object(kind, &format!("mixed-{number}"));
            let object: DynamicObject = serde_json::from_value(object)?;
            api.create(&PostParams::default(), &object).await?;
        }
    }
    Ok(())
}

async fn are_applied(fleet: &PropagationFleet) -> Result<()> {
    for [_, _, kind, _] in KINDS {
        for number in 0..OF_EACH {
            let work = names::work(kind, NAMESPACE, &format!("mixed-{number}"));
            until(&fleet.works(Member(1)), &work, "applied", |work| {
                work.is_some_and(|work| has_condition(work, "Applied", "True"))
            })
            .await?;
        }
    }
    Ok(())
}

/// Takes our annotations away from objects. A Karmada has none of them.
async fn forget_us<K>(api: &Api<K>) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    for object in api.list(&ListParams::default()).await? {
        let annotations = object.annotations().keys();
        let ours = annotations.filter(|key| key.starts_with("karmada-rs.io/"));
        let gone: serde_json::Map<_, _> = ours.map(|key| (key.clone(), Value::Null)).collect();
        let patch = json!({ "metadata": { "annotations": gone } });
        merge(api, &object.name_any(), &patch).await?;
    }
    Ok(())
}

/// Case I85: the objects that a Karmada left are taken over, of kinds of other projects and those that scripts interpret, too. Who
/// observes sees no difference, and then each binding gets the record of its policy, and nothing else is written.
async fn takeover_writes_nothing_else(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    define(&fleet).await?;
    write(&fleet).await?;
    let programs = fleet.run().await?;
    are_applied(&fleet).await?;
    programs.settled().await?;
    programs.stop().await?;
    forget_us(&fleet.bindings()).await?;
    forget_us::<Work>(&fleet.works(Member(1))).await?;

    let looks_at_all = async |programs: &PropagationPrograms| {
        let all = f64::from(u32::try_from(KINDS.len() * OF_EACH)?);
        for (program, name) in programs.all() {
            let reconciles = format!("karmada_{name}_reconciles_total");
            program
                .until_metric(&reconciles, |count| count >= all)
                .await?;
        }
        programs.rest().await
    };
    let observers = fleet.run_with(&["--observe-only"]).await?;
    looks_at_all(&observers).await?;
    would_write_nothing(&observers).await?;
    observers.stop().await?;

    let karmada = fleet.karmada.successful_writes().await?;
    let member = fleet.member(Member(1)).successful_writes().await?;
    let programs = fleet.run().await?;
    looks_at_all(&programs).await?;
    let bindings = ResourceBinding::plural(&());
    let mut written = fleet.karmada.successful_writes().await?.since(&karmada);
    written.0.retain(|write, count| {
        let is_record = write.resource == bindings && write.subresource.is_empty();
        !(is_record && *count <= (KINDS.len() * OF_EACH) as u64)
    });
    assert_eq!(written.to_string(), "no writes");
    let written = fleet.member(Member(1)).successful_writes().await?;
    assert_eq!(written.since(&member).to_string(), "no writes");
    programs.stop().await
}

on_both!(long: takeover_writes_nothing_else);
