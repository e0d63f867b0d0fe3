//! A fleet as a Karmada left it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use karmada_api::{ClusterView, names};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    propagation::PropagationFleet,
};
use serde_json::{Value, json};

use super::super::recorded::{Ids, api_of, comparable, get, recorded, written};

/// The writer of everything that Karmada makes.
const KARMADA: &str = "karmada-controller-manager";

/// A fleet as a Karmada left it.
pub(super) struct Left {
    pub(super) fleet: PropagationFleet,
    ids: Ids,
    /// The recorded objects of the control plane.
    objects: Vec<Value>,
    /// The objects in the members.
    copies: Vec<(Member, Value)>,
}

/// Reads the recorded Works of each member.
fn works() -> Result<[Vec<Value>; 3]> {
    let works = [
        recorded!("works-member1")?,
        recorded!("works-member2")?,
        recorded!("works-member3")?,
    ];
    Ok(works.map(|works| works.as_array().cloned().unwrap_or_default()))
}

impl Left {
    /// Makes the fleet: the user's objects, those that Karmada made of them, and the copies in the members.
    pub(super) async fn by_a_karmada(server: ApiKind) -> Result<Self> {
        let fleet = PropagationFleet::start(server, 3).await?;
        let mut left = Self {
            fleet,
            ids: Ids::default(),
            objects: Vec::new(),
            copies: Vec::new(),
        };
        left.know_owners().await?;
        for policy in [
            recorded!("overridepolicy")?,
            recorded!("propagationpolicy")?,
            recorded!("clusterpropagationpolicy")?,
        ] {
            left.restore(policy).await?;
        }
        for template in [
            recorded!("template-deployment")?,
            recorded!("template-configmap")?,
            recorded!("template-service")?,
            recorded!("template-clusterrole")?,
        ] {
            left.restore_template(template).await?;
        }
        for binding in [
            recorded!("resourcebinding-web-deployment")?,
            recorded!("resourcebinding-web-service")?,
            recorded!("resourcebinding-web-settings-configmap")?,
            recorded!("clusterresourcebinding")?,
        ] {
            left.restore(binding).await?;
        }
        for (member, works) in left.fleet.members().zip(works()?) {
            for work in works {
                left.dispatch(member, &work).await?;
                left.restore(work).await?;
            }
        }
        Ok(left)
    }

    /// Learns the IDs of the objects that the fleet has already.
    async fn know_owners(&mut self) -> Result<()> {
        let client = self.fleet.karmada.client();
        let namespace = Api::<Namespace>::all(client.clone()).get(NAMESPACE).await?;
        let mut known = BTreeMap::from([(NAMESPACE.to_owned(), namespace.metadata.uid)]);
        let clusters: Api<ClusterView> = Api::all(client);
        for member in self.fleet.members() {
            let cluster = clusters.get(&member.name()).await?;
            known.insert(member.name(), cluster.metadata.uid);
        }
        for work in works()?.iter().flatten() {
            let owner = &work["metadata"]["ownerReferences"][0];
            let uid = owner["name"].as_str().and_then(|name| known.get(name));
            if let (Some(theirs), Some(Some(ours))) = (owner["uid"].as_str(), uid) {
                self.ids.0.insert(theirs.to_owned(), ours.clone());
            }
        }
        Ok(())
    }

    /// Creates a recorded object with its status.
    async fn restore(&mut self, recorded: Value) -> Result<()> {
        let mut object: Value = serde_json::from_str(&self.ids.translated(&recorded))?;
        let status = object
            .as_object_mut()
            .and_then(|fields| fields.remove("status"));
        let created = create(self.fleet.karmada.client(), &object).await?;
        self.note(&recorded, &created);
        if let Some(status) = status {
            self.report(&created, status).await?;
        }
        self.objects.push(recorded);
        Ok(())
    }

    /// Creates a template as its user does, and claims it, which counts as a change of a Deployment.
    async fn restore_template(&mut self, recorded: Value) -> Result<()> {
        let mut template = written(recorded.clone());
        template["metadata"]["namespace"] = recorded["metadata"]["namespace"].clone();
        let created = create(self.fleet.karmada.client(), &template).await?;
        self.note(&recorded, &created);
        let (api, name) = api_of(self.fleet.karmada.client(), &recorded)?;
        let metadata = &recorded["metadata"];
        let claim = json!({ "metadata": {
            "labels": metadata["labels"], "annotations": metadata["annotations"],
        } });
        let claimed = api.patch(name, &as_karmada(), &Patch::Merge(claim)).await?;
        if recorded["status"].is_object() {
            self.report(&claimed, recorded["status"].clone()).await?;
        }
        self.objects.push(recorded);
        Ok(())
    }

    fn note(&mut self, recorded: &Value, created: &DynamicObject) {
        let theirs = recorded["metadata"]["uid"].as_str();
        if let (Some(theirs), Some(ours)) = (theirs, created.uid()) {
            self.ids.0.insert(theirs.to_owned(), ours);
        }
    }

    async fn report(&self, object: &DynamicObject, mut status: Value) -> Result<()> {
        for observed in ["observedGeneration", "schedulerObservedGeneration"] {
            if status[observed].is_number() {
                status[observed] = json!(object.metadata.generation);
            }
        }
        let object = serde_json::to_value(object)?;
        let (api, name) = api_of(self.fleet.karmada.client(), &object)?;
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(name, &as_karmada(), &patch).await?;
        Ok(())
    }

    /// Creates the objects of a recorded Work in a member.
    async fn dispatch(&mut self, member: Member, work: &Value) -> Result<()> {
        let manifests = work["spec"]["workload"]["manifests"].as_array();
        for manifest in manifests.into_iter().flatten() {
            let copy = serde_json::from_str(&self.ids.translated(manifest))?;
            create(self.fleet.member(member).client(), &copy).await?;
            self.copies.push((member, copy));
        }
        Ok(())
    }

    /// Returns the recorded objects of the control plane for which `is` returns `true`.
    pub(super) fn recorded(&self, is: fn(&Value) -> bool) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| is(object))
    }

    /// Checks that of each object `part` is the same as before.
    pub(super) async fn ensure_same(
        &self,
        before: &[Value],
        part: fn(&Value) -> Value,
    ) -> Result<()> {
        for (before, now) in before.iter().zip(self.now().await?) {
            let (before, now) = (part(before), part(&now));
            ensure!(before == now, "before:\n{before}\nnow:\n{now}");
        }
        Ok(())
    }

    /// Reads all objects, those of the control plane first.
    pub(super) async fn now(&self) -> Result<Vec<Value>> {
        let mut objects = Vec::new();
        for recorded in &self.objects {
            objects.push(get(self.fleet.karmada.client(), recorded).await?);
        }
        for (member, copy) in &self.copies {
            objects.push(get(self.fleet.member(*member).client(), copy).await?);
        }
        Ok(objects)
    }
}

fn as_karmada() -> PatchParams {
    PatchParams {
        field_manager: Some(KARMADA.to_owned()),
        ..PatchParams::default()
    }
}

/// Creates an object of others without the fields that only the server may set.
async fn create(client: Client, object: &Value) -> Result<DynamicObject> {
    let (api, name) = api_of(client, object)?;
    let mut object: DynamicObject = serde_json::from_value(object.clone())?;
    let metadata = &mut object.metadata;
    metadata.uid = None;
    metadata.resource_version = None;
    metadata.managed_fields = None;
    let parameters = PostParams {
        field_manager: Some(KARMADA.to_owned()),
        ..PostParams::default()
    };
    let created = api.create(&parameters, &object).await;
    created.with_context(|| format!("cannot create {name}"))
}

/// Returns `true` for a binding of either scope.
pub(super) fn is_binding(object: &Value) -> bool {
    let kind = object["kind"].as_str();
    kind.is_some_and(|kind| kind.ends_with("ResourceBinding"))
}

/// Returns an object without the record of the policy that its binding follows.
pub(super) fn without_record(object: &Value) -> Value {
    let mut object = object.clone();
    if is_binding(&object)
        && let Some(metadata) = object["metadata"].as_object_mut()
    {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(names::ACTIVATED);
        }
    }
    object
}

/// Returns the labels, annotations, finalizers and owners by which Karmada knows its objects.
pub(super) fn marks(object: &Value) -> Value {
    let mut marks = comparable(object.clone())["metadata"].take();
    if let Some(annotations) = marks["annotations"].as_object_mut() {
        annotations.remove("resourcetemplate.karmada.io/generation");
    }
    marks
}

/// Returns `true` for a binding of a policy. One without follows those that need its template.
pub(super) fn is_scheduled(object: &Value) -> bool {
    is_binding(object) && object["spec"]["placement"].is_object()
}
