//! Our programs take over the fleet of a Karmada, and give it back.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use karmada_api::{ClusterProfile, names};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::PropagationFleet,
    wait::until,
};
use serde_json::{Value, json};

use super::recorded::{Ids, api_of, comparable, get, recorded, written};
use super::{IMAGE, WEB, deployments, has_image};

/// The writer of everything that Karmada makes.
const KARMADA: &str = "karmada-controller-manager";

/// A fleet as a Karmada left it.
struct Left {
    fleet: PropagationFleet,
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
    /// Makes the fleet: what the user wrote, what Karmada made of it, and what it carried to the members.
    async fn by_a_karmada(server: ApiKind) -> Result<Self> {
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

    /// Learns the IDs of what the fleet has already.
    async fn know_owners(&mut self) -> Result<()> {
        let client = self.fleet.karmada.client();
        let namespace = Api::<Namespace>::all(client.clone()).get(NAMESPACE).await?;
        let mut known = BTreeMap::from([(NAMESPACE.to_owned(), namespace.metadata.uid)]);
        let clusters: Api<ClusterProfile> = Api::all(client);
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

    /// Creates in a member what a recorded Work carries there.
    async fn dispatch(&mut self, member: Member, work: &Value) -> Result<()> {
        let manifests = work["spec"]["workload"]["manifests"].as_array();
        for manifest in manifests.into_iter().flatten() {
            let copy = serde_json::from_str(&self.ids.translated(manifest))?;
            create(self.fleet.member(member).client(), &copy).await?;
            self.copies.push((member, copy));
        }
        Ok(())
    }

    /// Reads all objects, those of the control plane first.
    async fn now(&self) -> Result<Vec<Value>> {
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

/// Creates an object of others without what only the server may set.
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

fn is_binding(object: &Value) -> bool {
    let kind = object["kind"].as_str();
    kind.is_some_and(|kind| kind.ends_with("ResourceBinding"))
}

/// Returns an object without the record of what its binding follows.
fn without_record(mut object: Value) -> Value {
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

/// The labels, annotations, finalizers and owners by which Karmada knows its objects.
fn marks(object: &Value) -> Value {
    let mut marks = comparable(object.clone())["metadata"].take();
    if let Some(annotations) = marks["annotations"].as_object_mut() {
        annotations.remove("resourcetemplate.karmada.io/generation");
    }
    marks
}

/// Returns `true` for a binding of a policy. One without follows those that need its template.
fn is_scheduled(object: &Value) -> bool {
    is_binding(object) && object["spec"]["placement"].is_object()
}

fn would_write_lines(metrics: &str) -> String {
    let lines = metrics
        .lines()
        .filter(|line| line.contains("would_write_total{"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Checks that the programs would write nothing, and that they write nothing.
async fn observed(left: &Left) -> Result<()> {
    let before = left.fleet.karmada.successful_writes().await?;
    let observers = left.fleet.run_with(&["--observe-only"]).await?;
    let count = |is: fn(&Value) -> bool| {
        let found = left.objects.iter().filter(|object| is(object));
        u32::try_from(found.count())
    };
    let looked_at = [
        2 * count(is_binding)?,
        count(is_scheduled)?,
        count(|object| object["kind"] == "Work")?,
    ];
    for ((program, name), least) in observers.all().into_iter().zip(looked_at) {
        let reconciles = format!("karmada_{name}_reconciles_total");
        let enough = |count: f64| count >= f64::from(least);
        program.until_metric(&reconciles, enough).await?;
    }
    observers.rest().await?;
    for (program, name) in observers.all() {
        let would_write = format!("karmada_{name}_would_write_total");
        let count = program.metric(&would_write).await?;
        ensure!(
            count == 0.0,
            "{}",
            would_write_lines(&program.metrics().await?)
        );
    }
    observers.stop().await?;
    let written = left.fleet.karmada.successful_writes().await?.since(&before);
    ensure!(written.is_empty(), "{written}");
    Ok(())
}

/// Case 63, as far as our parts reach: who only observes sees no difference; the take-over writes one annotation
/// for each binding, and nothing else in the control plane or in a member; an edit travels; and at the end
/// Karmada finds every mark by which it knows its objects, and its lease.
async fn the_fleet_of_a_karmada_is_taken_over_and_given_back(server: ApiKind) -> Result<()> {
    let left = Left::by_a_karmada(server).await?;
    let before = left.now().await?;
    observed(&left).await?;

    let programs = left.fleet.run().await?;
    for recorded in left.objects.iter().filter(|it| is_scheduled(it)) {
        let (api, name) = api_of(left.fleet.karmada.client(), recorded)?;
        until(&api, name, "recorded", |binding| {
            binding.is_some_and(|it| it.annotations().contains_key(names::ACTIVATED))
        })
        .await?;
    }
    programs.rest().await?;
    for (before, now) in before.iter().zip(left.now().await?) {
        let (before, now) = (without_record(before.clone()), without_record(now));
        ensure!(before == now, "before:\n{before}\nnow:\n{now}");
    }

    let edit =
        json!([{ "op": "replace", "path": IMAGE, "value": "registry.example.com/shop/web:1.5.0" }]);
    let edit = Patch::Json::<()>(serde_json::from_value(edit)?);
    let templates = deployments(&left.fleet.karmada);
    templates.patch(WEB, &PatchParams::default(), &edit).await?;
    for (member, registry) in [(Member(1), "registry"), (Member(2), "mirror")] {
        let image = format!("{registry}.example.com/shop/web:1.5.0");
        has_image(&left.fleet, member, &image).await?;
    }
    programs.rest().await?;
    programs.stop().await?;
    for (before, now) in before.iter().zip(left.now().await?) {
        let (before, now) = (marks(before), marks(&now));
        ensure!(before == now, "before:\n{before}\nnow:\n{now}");
    }
    let leases: Api<Lease> = Api::namespaced(left.fleet.karmada.client(), "karmada-system");
    let lease = leases.get("karmada-scheduler").await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    ensure!(holder.unwrap_or_default().is_empty(), "the lease is held");
    Ok(())
}

on_both!(the_fleet_of_a_karmada_is_taken_over_and_given_back);
