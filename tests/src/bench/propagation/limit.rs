//! The limit of the three programs: a bare client's same writes.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::{
    ResourceBinding, Work, execution_namespace,
    names::{APPLIED_PLACEMENT, SCHEDULED_AFFINITY},
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    runtime::watcher::Config,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    clients::{binding_name, bindings, untyped},
    objects::{Deployed, LOST, Made, is_moved, is_paused, makes_paused, template},
    stand::{Bench, Times, until_count, until_edited},
};
use crate::{
    api::{merge, merge_status},
    bench::{
        Seen, all, beside_a_watch, median,
        requests::{bare, create, delete},
    },
    fleet::{Member, NAMESPACE},
    propagation::PropagationFleet,
};

/// The manager in whose name copies are applied.
const MANAGER: &str = "karmada-rs";

/// The objects that the programs made of one template.
pub(super) struct Chain {
    name: String,
    /// The marks on the template, as a merge patch.
    claim: Value,
    binding: Value,
    /// In the order of the members.
    works: Vec<Value>,
}

/// Returns the chain of each template.
pub(super) async fn chains(fleet: &PropagationFleet, names: &[String]) -> Result<Vec<Chain>> {
    let mut templates = by_name(&untyped::<Deployment>(fleet)).await?;
    let mut bindings = by_name(&untyped::<ResourceBinding>(fleet)).await?;
    let lists = fleet
        .members()
        .map(async |member| by_name(&works(fleet, member)).await);
    let mut works = futures::future::try_join_all(lists).await?;
    let mut chains = Vec::new();
    for name in names {
        let template = templates.remove(name).context("no template")?;
        let metadata = &template["metadata"];
        let marks = json!({ "labels": metadata["labels"], "annotations": metadata["annotations"] });
        let binding = binding_name(name);
        let work = PropagationFleet::work_name("Deployment", name);
        let works = works.iter_mut().map(|works| works.remove(&work));
        chains.push(Chain {
            name: name.clone(),
            claim: json!({ "metadata": marks }),
            binding: bindings.remove(&binding).context("no binding")?,
            works: works.collect::<Option<_>>().context("no Work")?,
        });
    }
    Ok(chains)
}

async fn by_name(objects: &Api<DynamicObject>) -> Result<HashMap<String, Value>> {
    let list = objects.list(&ListParams::default()).await?;
    let named = list.items.into_iter();
    let named = named.map(|object| Ok((object.name_any(), serde_json::to_value(&object)?)));
    named.collect()
}

fn works(fleet: &PropagationFleet, member: Member) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<Work>(&());
    let namespace = execution_namespace(&member.name());
    Api::namespaced_with(fleet.karmada.client(), &namespace, &resource)
}

fn copies(fleet: &PropagationFleet, member: Member) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<Deployment>(&());
    Api::namespaced_with(fleet.member(member).client(), NAMESPACE, &resource)
}

impl Chain {
    fn targets<'a>(
        &'a self,
        fleet: &'a PropagationFleet,
    ) -> impl Iterator<Item = (&'a Value, Api<DynamicObject>, Api<DynamicObject>)> {
        let members = fleet.members();
        let targets = self.works.iter().zip(members);
        targets.map(|(work, member)| (work, works(fleet, member), copies(fleet, member)))
    }

    /// Makes the writes from the template to its copies and back.
    async fn create(&self, fleet: &PropagationFleet) -> Result<()> {
        let templates = untyped::<Deployment>(fleet);
        let bindings = untyped::<ResourceBinding>(fleet);
        let binding = binding_name(&self.name);
        create(&templates, &template(&self.name)).await?;
        let mut unscheduled = bare(&self.binding);
        let annotations = unscheduled.pointer_mut("/metadata/annotations");
        if let Some(Value::Object(annotations)) = annotations {
            annotations.retain(|key, _| ![APPLIED_PLACEMENT, SCHEDULED_AFFINITY].contains(&&**key));
        }
        unscheduled["spec"]["clusters"] = json!([]);
        tokio::try_join!(
            merge(&templates, &self.name, &self.claim),
            create(&bindings, &unscheduled),
        )?;
        let spec = json!({ "clusters": self.binding["spec"]["clusters"] });
        let marks = json!({ "annotations": self.binding["metadata"]["annotations"] });
        merge(
            &bindings,
            &binding,
            &json!({ "metadata": marks, "spec": spec }),
        )
        .await?;
        let mut status = self.binding["status"].clone();
        let reported = status["aggregatedStatus"].take();
        let conditions = status["conditions"].clone();
        status["conditions"] = json!([conditions[0]]);
        merge_status(&bindings, &binding, &status).await?;
        let dispatched = self.targets(fleet).map(async |(work, works, copies)| {
            create(&works, &bare(work)).await?;
            let manifest = &work["spec"]["workload"]["manifests"][0];
            apply(&copies, &self.name, manifest).await?;
            merge_status(&works, name(work), &work["status"]).await
        });
        futures::future::try_join_all(dispatched).await?;
        let status = json!({ "aggregatedStatus": reported, "conditions": conditions });
        merge_status(&bindings, &binding, &status).await
    }

    /// Makes the writes from the deletion of the template to the end of the last copy.
    async fn delete(&self, fleet: &PropagationFleet) -> Result<()> {
        let bindings = untyped::<ResourceBinding>(fleet);
        let binding = binding_name(&self.name);
        let none = json!({ "metadata": { "finalizers": null } });
        delete(&untyped::<Deployment>(fleet), &self.name).await?;
        delete(&bindings, &binding).await?;
        let let_go = self.targets(fleet).map(async |(work, works, copies)| {
            delete(&works, name(work)).await?;
            delete(&copies, &self.name).await?;
            merge(&works, name(work), &none).await
        });
        futures::future::try_join_all(let_go).await?;
        merge(&bindings, &binding, &none).await
    }

    /// Makes the two writes of the scheduler, to the clusters of `binding` but [`LOST`], or to all.
    async fn schedule(&self, fleet: &PropagationFleet, is_lost: bool) -> Result<()> {
        let bindings = untyped::<ResourceBinding>(fleet);
        let targets = self.binding["spec"]["clusters"].as_array();
        let targets = targets.into_iter().flatten();
        let targets = targets.filter(|target| !is_lost || target["name"] != json!(LOST.name()));
        let spec = json!({ "clusters": targets.collect::<Vec<_>>() });
        let patch = Patch::Merge(json!({ "spec": spec }));
        let name = binding_name(&self.name);
        let written = bindings
            .patch(&name, &PatchParams::default(), &patch)
            .await?;
        let status = json!({ "schedulerObservedGeneration": written.metadata.generation });
        merge_status(&bindings, &name, &status).await
    }
}

async fn apply(copies: &Api<DynamicObject>, name: &str, manifest: &Value) -> Result<()> {
    let parameters = PatchParams::apply(MANAGER);
    let manifest = Patch::Apply(manifest);
    copies.patch(name, &parameters, &manifest).await?;
    Ok(())
}

fn name(work: &Value) -> &str {
    work["metadata"]["name"].as_str().unwrap_or_default()
}

impl Bench {
    /// Measures a bare client, beside watches like those of the programs.
    pub(super) async fn limits(&mut self, chains: &[Chain]) -> Result<Times> {
        let [templates, of_bindings] = [
            untyped::<Deployment>(&self.fleet),
            untyped::<ResourceBinding>(&self.fleet),
        ];
        let client = self.fleet.karmada.client();
        let works: Api<DynamicObject> = Api::all_with(client, &ApiResource::erase::<Work>(&()));
        // Two of the programs watch bindings, and two Works.
        let work = beside_a_watch(works.clone(), Box::pin(self.work(chains)));
        let work = beside_a_watch(works, work);
        let work = beside_a_watch(of_bindings.clone(), work);
        let work = beside_a_watch(of_bindings, work);
        beside_a_watch(templates, work).await
    }

    async fn work(&mut self, chains: &[Chain]) -> Result<Times> {
        let fleet = &self.fleet;
        let count = chains.len();
        let began = Instant::now();
        let ((), there, reported) = tokio::try_join!(
            all(chains.iter().map(|chain| chain.create(fleet))),
            until_count(&mut self.copies, count),
            self.reported.until_count(count),
        )?;
        let [created, reported] = [there - began, reported - began];
        let [made, edited] = self.hops(chains).await?;

        let fleet = &self.fleet;
        let mut moved = Seen::watch(bindings(fleet), Config::default(), is_moved).await?;
        let began = Instant::now();
        let (seen, ()) = tokio::try_join!(
            moved.until_count(count),
            all(chains.iter().map(|chain| chain.schedule(fleet, true))),
        )?;
        let rescheduled = seen - began;
        all(chains.iter().map(|chain| chain.schedule(fleet, false))).await?;

        let began = Instant::now();
        let ((), gone, _) = tokio::try_join!(
            all(chains.iter().map(|chain| chain.delete(fleet))),
            until_count(&mut self.copies, 0),
            self.reported.until_count(0),
        )?;
        Ok([created, reported, edited, made, rescheduled, gone - began])
    }

    /// Returns the median times of an edit, each write of it made once a watch shows the one before: that of
    /// the template and then those of its Works, all at once, and these with those of its copies.
    async fn hops(&self, chains: &[Chain]) -> Result<[Duration; 2]> {
        let fleet = &self.fleet;
        let templates = untyped::<Deployment>(fleet);
        let deployments = ApiResource::erase::<Deployment>(&());
        let all: Api<Deployed> =
            Api::namespaced_with(fleet.karmada.client(), NAMESPACE, &deployments);
        let mut of_template = Seen::watch(all, Config::default(), is_paused).await?;
        let resource = ApiResource::erase::<Work>(&());
        let watches = fleet.members().map(|member| {
            let namespace = execution_namespace(&member.name());
            let works: Api<Made> =
                Api::namespaced_with(fleet.karmada.client(), &namespace, &resource);
            Seen::watch(works, Config::default(), makes_paused)
        });
        let mut of_works = futures::future::try_join_all(watches).await?;
        let mut of_copies = self.watch_copies(is_paused).await?;
        let by_name: HashMap<_, _> = chains.iter().map(|chain| (&chain.name, chain)).collect();
        let (mut made, mut applied) = (Vec::new(), Vec::new());
        for (template, edit) in self.edits() {
            let chain = by_name.get(template).context("no chain")?;
            let began = Instant::now();
            merge(&templates, template, &json!({ "spec": { "paused": edit } })).await?;
            of_template
                .until(|paused| paused.contains(template) == edit)
                .await?;
            let edited = |work: &Value| {
                let mut workload = work["spec"]["workload"].clone();
                workload["manifests"][0]["spec"]["paused"] = edit.into();
                workload
            };
            let writes = chain.targets(fleet).map(async |(work, works, _)| {
                let spec = json!({ "workload": edited(work) });
                merge(&works, name(work), &json!({ "spec": spec })).await
            });
            futures::future::try_join_all(writes).await?;
            let work = PropagationFleet::work_name("Deployment", template);
            let seen = until_edited(&mut of_works, &work, edit).await?;
            made.push(seen - began);
            let writes = chain.targets(fleet).map(async |(work, _, copies)| {
                apply(&copies, template, &edited(work)["manifests"][0]).await
            });
            futures::future::try_join_all(writes).await?;
            let seen = until_edited(&mut of_copies, template, edit).await?;
            applied.push(seen - began);
        }
        Ok([median(made), median(applied)])
    }
}
