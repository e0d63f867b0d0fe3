//! Other programs that take back what ours write, scripted: a Karmada whose controllers an upgrade has started again, and
//! an operator in a member.

use std::{convert::Infallible, fmt::Debug};

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::{ResourceBinding, Work, names};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::PropagationFleet,
    wait::{until, until_event},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{WEB, deployed, deployments, is_fully_applied};

/// A program that has something else in one object.
pub(crate) struct Rival {
    pub(crate) manager: &'static str,
    pub(crate) name: String,
    pub(crate) theirs: Value,
}

impl Rival {
    /// Undoes each of our writes, after which the object is as `is_ours` says.
    async fn undo_each<K>(&self, api: &Api<K>, is_ours: impl Fn(&K) -> bool) -> Result<Infallible>
    where
        K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let parameters = PatchParams {
            field_manager: Some(self.manager.to_owned()),
            ..PatchParams::default()
        };
        let theirs = Patch::Merge(&self.theirs);
        loop {
            let is = |object: Option<&K>| object.is_some_and(&is_ours);
            until(api, &self.name, "ours", is).await?;
            api.patch(&self.name, &parameters, &theirs).await?;
        }
    }

    /// Undoes each of our writes until an Event about an object names the rival; then ours lasts.
    pub(crate) async fn is_named_and_outlasted<K>(
        &self,
        fleet: &PropagationFleet,
        api: &Api<K>,
        is_ours: impl Fn(&K) -> bool,
        (reason, kind, name): (&str, &str, &str),
    ) -> Result<()>
    where
        K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let named = format!("{reason} {} undoes every write to", self.manager);
        let client = fleet.karmada.client();
        tokio::select! {
            undone = self.undo_each(api, &is_ours) => match undone? {},
            told = until_event(&client, kind, name, &named) => told?,
        }
        let is = |object: Option<&K>| object.is_some_and(&is_ours);
        until(api, &self.name, "ours", is).await?;
        Ok(())
    }
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

/// Each of our programs meets its rival, pauses, names it and has the last word; the metric tells of it.
async fn rivals_are_named_and_outlasted(server: ApiKind) -> Result<()> {
    let members = [Member(1), Member(2)];
    let (fleet, programs) = deployed(server, &members).await?;
    let binding = names::binding("Deployment", WEB);
    let work = PropagationFleet::work_name("Deployment", WEB);
    is_fully_applied(&fleet, &binding).await?;

    let copies = deployments(fleet.member(Member(1)));
    let operator = Rival {
        manager: "operator",
        name: WEB.to_owned(),
        theirs: json!({ "spec": { "replicas": 7 } }),
    };
    let about = ("MemberObjectContested", "Work", work.as_str());
    let is_ours = |copy: &Deployment| replicas(copy) == Some(2);
    operator
        .is_named_and_outlasted(&fleet, &copies, is_ours, about)
        .await?;

    let controllers = |name: &str, theirs| Rival {
        manager: "karmada-controller-manager",
        name: name.to_owned(),
        theirs,
    };
    let rival = controllers(&work, json!({ "spec": { "suspendDispatching": true } }));
    let about = ("WorkContested", "ResourceBinding", binding.as_str());
    let is_ours = |work: &Work| work.spec.suspend_dispatching == Some(false);
    rival
        .is_named_and_outlasted(&fleet, &fleet.works(Member(1)), is_ours, about)
        .await?;

    let theirs = json!([{ "name": Member(1).name(), "replicas": 9 }]);
    let scheduler = Rival {
        manager: "karmada-scheduler",
        name: binding.clone(),
        theirs: json!({ "spec": { "clusters": theirs } }),
    };
    let about = ("BindingContested", "ResourceBinding", binding.as_str());
    let is_ours = |binding: &ResourceBinding| {
        let clusters = binding.spec.clusters.iter().flatten();
        let replicas: i32 = clusters.filter_map(|target| target.replicas).sum();
        replicas == 4
    };
    scheduler
        .is_named_and_outlasted(&fleet, &fleet.bindings(), is_ours, about)
        .await?;

    let rival = controllers(&binding, json!({ "spec": { "replicas": 9 } }));
    let about = ("BindingContested", "Deployment", WEB);
    let is_ours = |binding: &ResourceBinding| binding.spec.replicas == Some(4);
    rival
        .is_named_and_outlasted(&fleet, &fleet.bindings(), is_ours, about)
        .await?;

    for member in members {
        let copies = deployments(fleet.member(member));
        let has_share = |copy: Option<&Deployment>| copy.and_then(replicas) == Some(2);
        until(&copies, WEB, "its share", has_share).await?;
    }
    for (program, name) in programs.all() {
        let metric = format!("karmada_{name}_contested_writes_total");
        ensure!(program.metric(&metric).await? >= 1.0, "{metric}");
    }
    Ok(())
}

on_both!(long: rivals_are_named_and_outlasted);
