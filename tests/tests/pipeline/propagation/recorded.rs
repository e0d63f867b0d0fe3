//! Our programs write to the letter the objects that a whole Karmada writes for one propagation.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{core::v1::Service, rbac::v1::ClusterRole};
use karmada_api::{ClusterResourceBinding, OverridePolicy, names};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, TypeMeta},
};
use pipeline_tests::{
    api::create,
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, PropagationPrograms, namespaced},
    wait::until,
};
use serde_json::{Value, json};

use super::{
    IMAGE, WEB, deployments, is_applied_everywhere, is_fully_applied, maps, suspend, work_has,
};

/// Reads an object that was recorded on a whole Karmada.
macro_rules! recorded {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../propagation/rules/src/fixtures/",
            $name,
            ".json"
        )))
    };
}

pub(super) use recorded;

/// The part of a recorded template that its user wrote.
pub(super) fn written(mut template: Value) -> Value {
    let metadata = &template["metadata"];
    let applied = "kubectl.kubernetes.io/last-applied-configuration";
    let mut labels = metadata["labels"].clone();
    if let Some(labels) = labels.as_object_mut() {
        labels.retain(|key, _| !key.contains("karmada.io"));
    }
    template["metadata"] = json!({
        "name": metadata["name"],
        "labels": labels,
        "annotations": { applied: metadata["annotations"][applied] },
    });
    if let Some(spec) = template["spec"].as_object_mut() {
        spec.retain(|key, _| !key.starts_with("clusterIP"));
    }
    template
}

/// The IDs of a recording with those that stand for them here.
#[derive(Default)]
pub(super) struct Ids(pub(super) BTreeMap<String, String>);

impl Ids {
    /// Pairs the random values of two objects: UUIDs, and the generation that the template had.
    fn pair(&mut self, recorded: &Value, ours: &Value) {
        match (recorded, ours) {
            (Value::Object(recorded), Value::Object(ours)) => {
                for (key, value) in recorded {
                    self.pair(value, ours.get(key).unwrap_or(&Value::Null));
                }
            }
            (Value::Array(recorded), Value::Array(ours)) => {
                recorded
                    .iter()
                    .zip(ours)
                    .for_each(|(recorded, ours)| self.pair(recorded, ours));
            }
            (Value::String(recorded), Value::String(ours)) if is_id(recorded) && is_id(ours) => {
                self.0.insert(recorded.clone(), ours.clone());
            }
            _ => {}
        }
    }

    /// Returns a recorded object as text, with the IDs of here.
    pub(super) fn translated(&self, recorded: &Value) -> String {
        let mut text = recorded.to_string();
        for (theirs, ours) in &self.0 {
            text = text.replace(theirs, ours);
        }
        text
    }

    /// Fails unless the objects are equal to the letter, apart from the IDs.
    fn ensure_same(&mut self, recorded: &Value, ours: &Value) -> Result<()> {
        self.pair(recorded, ours);
        let (expected, ours) = (self.translated(recorded), ours.to_string());
        ensure!(expected == ours, "recorded:\n{expected}\nours:\n{ours}");
        Ok(())
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

/// The part of a Work or binding that does not depend on the time, in one order.
pub(super) fn comparable(mut object: Value) -> Value {
    let metadata = object["metadata"].take();
    let mut annotations = metadata["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.retain(|key, _| !key.starts_with("karmada-rs.io/"));
        for (key, text) in annotations {
            // JSON, whose keys Karmada writes in another order.
            if key.starts_with("policy.karmada.io/applied-") {
                *text = serde_json::from_str(text.as_str().unwrap_or_default()).unwrap_or_default();
            }
        }
    }
    let mut spec = object["spec"].take();
    for (pointer, key) in [
        ("/resource", "resourceVersion"),
        ("/replicaRequirements", "namespace"),
    ] {
        if let Some(Value::Object(part)) = spec.pointer_mut(pointer) {
            part.remove(key);
        }
    }
    // The claim may have come before or after the first Work.
    let generation =
        "/workload/manifests/0/metadata/annotations/resourcetemplate.karmada.io~1generation";
    if let Some(generation) = spec.pointer_mut(generation) {
        *generation = "some".into();
    }
    json!({
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": metadata["labels"],
            "annotations": annotations,
            "finalizers": metadata["finalizers"],
            "ownerReferences": metadata["ownerReferences"],
        },
        "spec": spec,
    })
}

/// Returns the API of an object, and its name.
pub(super) fn api_of(client: Client, object: &Value) -> Result<(Api<DynamicObject>, &str)> {
    let types: TypeMeta = serde_json::from_value(object.clone())?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().context("no name")?;
    let api = match metadata["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    Ok((api, name))
}

/// Reads the object that a recorded one stands for.
pub(super) async fn get(client: Client, recorded: &Value) -> Result<Value> {
    let (api, name) = api_of(client, recorded)?;
    let object = api.get(name).await.with_context(|| format!("no {name}"))?;
    Ok(serde_json::to_value(object)?)
}

/// Starts a fleet in which the recorded templates and policies are propagated.
async fn propagated(server: ApiKind) -> Result<(PropagationFleet, PropagationPrograms)> {
    let fleet = PropagationFleet::start(server, 3).await?;
    let client = fleet.karmada.client();
    let spec = |policy: Value| policy["spec"].clone();
    let overrides: Api<OverridePolicy> = namespaced(client.clone());
    let rules = spec(recorded!("overridepolicy")?);
    create(
        &overrides,
        json!({ "metadata": { "name": WEB }, "spec": rules }),
    )
    .await?;
    fleet
        .create_policy(WEB, spec(recorded!("propagationpolicy")?))
        .await?;
    let policy = spec(recorded!("clusterpropagationpolicy")?);
    fleet.create_cluster_policy("reader", policy).await?;
    let programs = fleet.run().await?;
    let map = written(recorded!("template-configmap")?);
    create(&maps(&fleet.karmada), map).await?;
    let templates = deployments(&fleet.karmada);
    create(&templates, written(recorded!("template-deployment")?)).await?;
    let services: Api<Service> = namespaced(client.clone());
    create(&services, written(recorded!("template-service")?)).await?;
    let cluster_roles: Api<ClusterRole> = Api::all(client.clone());
    create(&cluster_roles, written(recorded!("template-clusterrole")?)).await?;

    is_fully_applied(&fleet, &names::binding("Deployment", WEB)).await?;
    is_fully_applied(&fleet, &names::binding("Service", WEB)).await?;
    let attached = names::binding("ConfigMap", "web-settings");
    until(&fleet.bindings(), &attached, "fully applied", |binding| {
        let status = binding.and_then(|binding| binding.status.as_ref());
        let conditions = status.and_then(|status| status.conditions.as_deref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition.type_ == "FullyApplied" && condition.status == "True")
    })
    .await?;
    let bindings: Api<ClusterResourceBinding> = Api::all(client);
    until(
        &bindings,
        "shop.reader-clusterrole",
        "fully applied",
        |binding| binding.is_some_and(|binding| is_applied_everywhere(binding.status.as_ref())),
    )
    .await?;
    Ok((fleet, programs))
}

/// Case P14: names, labels, annotations and manifests are those that Karmada writes, also while paused.
async fn objects_equal_karmadas(server: ApiKind) -> Result<()> {
    let (fleet, _programs) = propagated(server).await?;
    let works = [
        recorded!("works-member1")?,
        recorded!("works-member2")?,
        recorded!("works-member3")?,
    ];
    let works = works.iter().filter_map(Value::as_array).flatten();
    let bindings = [
        recorded!("resourcebinding-web-deployment")?,
        recorded!("resourcebinding-web-service")?,
        recorded!("resourcebinding-web-settings-configmap")?,
        recorded!("clusterresourcebinding")?,
    ];
    let mut ids = Ids::default();
    for recorded in bindings.iter().chain(works) {
        let ours = get(fleet.karmada.client(), recorded).await?;
        ids.ensure_same(&comparable(recorded.clone()), &comparable(ours))?;
    }

    suspend(
        &fleet,
        json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } }),
    )
    .await?;
    let image =
        json!([{ "op": "replace", "path": IMAGE, "value": "registry.example.com/shop/web:1.5.0" }]);
    let image = Patch::Json::<()>(serde_json::from_value(image)?);
    let templates = deployments(&fleet.karmada);
    templates
        .patch(WEB, &PatchParams::default(), &image)
        .await?;
    work_has(
        &fleet,
        Member(2),
        "Dispatching",
        "False",
        "mirror.example.com/shop/web:1.5.0",
    )
    .await?;
    for recorded in [
        recorded!("paused-resourcebinding")?,
        recorded!("paused-work")?,
    ] {
        let ours = get(fleet.karmada.client(), &recorded).await?;
        ids.ensure_same(&comparable(recorded), &comparable(ours))?;
    }
    Ok(())
}

on_both!(long: objects_equal_karmadas);
