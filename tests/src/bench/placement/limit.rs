//! The limit: a bare client's same writes.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use fleet_api::{
    AppliedWork, Binding, Placement, PolicySnapshot, ResourceSnapshot, Work,
    names::PARENT_PLACEMENT,
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::objects::untyped;
use crate::api::{merge, merge_status};
use crate::bench::requests::{bare, create, delete};

/// A write of the metadata alone, as long as that of a finalizer, which would keep the objects of the limit.
fn mark() -> Value {
    json!({ "metadata": { "annotations": { "kubernetes-fleet.io/work-cleanup": "" } } })
}

/// The objects that the programs made of one placement.
pub(super) struct Chain {
    placement: Value,
    policy: Value,
    snapshot: Value,
    /// Each binding with its Work.
    bindings: Vec<(Value, Value)>,
}

/// Returns the chain of each placement.
pub(super) async fn chains(hub: &Client) -> Result<Vec<Chain>> {
    let mut policies = by_placement::<PolicySnapshot>(hub).await?;
    let mut snapshots = by_placement::<ResourceSnapshot>(hub).await?;
    let mut bindings = by_placement::<Binding>(hub).await?;
    let mut works = by_placement::<Work>(hub).await?;
    let placements = untyped::<Placement>(hub.clone(), "");
    let mut chains = Vec::new();
    for placement in placements.list(&ListParams::default()).await?.items {
        let name = placement.name_any();
        let of = |all: &mut BTreeMap<String, Vec<Value>>| all.remove(&name).unwrap_or_default();
        let works: BTreeMap<_, _> = of(&mut works)
            .into_iter()
            .map(|work| (namespace(&work), work))
            .collect();
        let bindings = of(&mut bindings).into_iter().map(|binding| {
            let target = binding["spec"]["targetCluster"]
                .as_str()
                .unwrap_or_default();
            let work = works.get(&format!("fleet-member-{target}"));
            Some((without_finalizers(&binding), without_finalizers(work?)))
        });
        chains.push(Chain {
            bindings: bindings
                .collect::<Option<_>>()
                .context("a binding without a Work")?,
            policy: of(&mut policies).pop().context("no policy")?,
            snapshot: of(&mut snapshots).pop().context("no snapshot")?,
            placement: without_finalizers(&serde_json::to_value(&placement)?),
        });
    }
    Ok(chains)
}

async fn by_placement<K: Resource<DynamicType: Default>>(
    hub: &Client,
) -> Result<BTreeMap<String, Vec<Value>>> {
    let objects = untyped::<K>(hub.clone(), "");
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for object in objects.list(&ListParams::default()).await?.items {
        let placement = object.labels().get(PARENT_PLACEMENT).cloned();
        let object = serde_json::to_value(&object)?;
        found
            .entry(placement.unwrap_or_default())
            .or_default()
            .push(object);
    }
    Ok(found)
}

fn without_finalizers(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["finalizers"] = json!([]);
    object
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn namespace(object: &Value) -> String {
    let namespace = object["metadata"]["namespace"].as_str();
    namespace.unwrap_or_default().to_owned()
}

/// Returns an object to be created anew, without owners, which are others by then.
fn anew(object: &Value) -> Value {
    let mut object = bare(object);
    object["metadata"]["ownerReferences"] = json!([]);
    object
}

impl Chain {
    /// Makes the writes of the controller: from the placement to its Works, and back.
    pub(super) async fn create(&self, hub: &Client) -> Result<()> {
        let placements = untyped::<Placement>(hub.clone(), "");
        let policies = untyped::<PolicySnapshot>(hub.clone(), "");
        let snapshots = untyped::<ResourceSnapshot>(hub.clone(), "");
        let bindings = untyped::<Binding>(hub.clone(), "");
        create(&placements, &anew(&self.placement)).await?;
        merge(&placements, name(&self.placement), &mark()).await?;
        create(&policies, &anew(&self.policy)).await?;
        create(&snapshots, &anew(&self.snapshot)).await?;
        for (binding, _) in &self.bindings {
            let mut scheduled = anew(binding);
            scheduled["spec"]["state"] = "Scheduled".into();
            scheduled["spec"]["resourceSnapshotName"] = "".into();
            create(&bindings, &scheduled).await?;
        }
        merge_status(&policies, name(&self.policy), &self.policy["status"]).await?;
        for (binding, work) in &self.bindings {
            let name = name(binding);
            let mut bound = mark();
            bound["spec"] = binding["spec"].clone();
            merge(&bindings, name, &bound).await?;
            let started = json!({ "conditions": [binding["status"]["conditions"][0]] });
            merge_status(&bindings, name, &started).await?;
            let works = untyped::<Work>(hub.clone(), &namespace(work));
            create(&works, &anew(work)).await?;
            merge_status(&bindings, name, &binding["status"]).await?;
        }
        let status = &self.placement["status"];
        merge_status(&placements, name(&self.placement), status).await
    }

    /// Makes the writes of the agent of one member, and those of the controller that follow.
    pub(super) async fn apply(&self, hub: &Client, nth: usize, member: &Client) -> Result<()> {
        let (binding, work) = self.bindings.get(nth).context("no such binding")?;
        let works = untyped::<Work>(hub.clone(), &namespace(work));
        let status = &work["status"];
        merge(&works, name(work), &mark()).await?;
        let announced = json!({ "manifestConditions": status["manifestConditions"] });
        merge_status(&works, name(work), &announced).await?;
        let owners = untyped::<AppliedWork>(member.clone(), "");
        let owner = json!({
            "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "AppliedWork",
            "metadata": { "name": name(work) },
            "spec": { "workName": name(work), "workNamespace": namespace(work) },
        });
        create(&owners, &owner).await?;
        for manifest in self.manifests(nth) {
            apply(member, manifest).await?;
        }
        let applied = json!({ "appliedResources": [] });
        merge_status(&owners, name(work), &applied).await?;
        merge_status(&works, name(work), status).await?;
        let bindings = untyped::<Binding>(hub.clone(), "");
        merge_status(&bindings, name(binding), &binding["status"]).await
    }

    /// Makes the writes that an edit of a map takes until it is in all members: those of the controller on the hub, and then
    /// for each member at the same time those of both programs.
    pub(super) async fn edit(
        &self,
        hub: &Client,
        members: &[Client],
        map: &str,
        edit: &str,
    ) -> Result<()> {
        let placement = name(&self.placement);
        let edited = json!({ "data": { "edit": edit } });
        let marked = json!({ "metadata": { "annotations": { "bench": edit } } });
        merge(&untyped::<ConfigMap>(hub.clone(), placement), map, &edited).await?;
        let snapshots = untyped::<ResourceSnapshot>(hub.clone(), "");
        let mut snapshot = anew(&self.snapshot);
        snapshot["metadata"]["name"] = json!(self.edited());
        snapshot["metadata"]["labels"] = json!({});
        create(&snapshots, &snapshot).await?;
        let bringing = self.bindings.iter().zip(members);
        let bringing = bringing.map(async |((binding, work), member)| {
            let bindings = untyped::<Binding>(hub.clone(), "");
            merge(&bindings, name(binding), &marked).await?;
            let mut started = json!({ "conditions": binding["status"]["conditions"] });
            started["conditions"][0]["message"] = json!(edit);
            merge_status(&bindings, name(binding), &started).await?;
            let works = untyped::<Work>(hub.clone(), &namespace(work));
            let mut written = marked.clone();
            written["spec"] = work["spec"].clone();
            merge(&works, name(work), &written).await?;
            let copies = untyped::<ConfigMap>(member.clone(), placement);
            merge(&copies, map, &edited).await
        });
        try_join_all(bringing).await.map(drop)
    }

    /// Deletes the snapshot of an edit.
    pub(super) async fn forget_edit(&self, hub: &Client) -> Result<()> {
        let snapshots = untyped::<ResourceSnapshot>(hub.clone(), "");
        delete(&snapshots, &self.edited()).await
    }

    /// Returns the name of the snapshot of an edit.
    fn edited(&self) -> String {
        format!("{}-edited", name(&self.placement))
    }

    /// Deletes the objects in a member, and then the Work.
    pub(super) async fn withdraw(&self, hub: &Client, nth: usize, member: &Client) -> Result<()> {
        let (_, work) = self.bindings.get(nth).context("no such binding")?;
        let works = untyped::<Work>(hub.clone(), &namespace(work));
        for manifest in self.manifests(nth).rev() {
            delete(&placed(member, manifest), name(manifest)).await?;
        }
        let owners = untyped::<AppliedWork>(member.clone(), "");
        delete(&owners, name(work)).await?;
        merge(&works, name(work), &mark()).await
    }

    /// Deletes the objects on the hub.
    pub(super) async fn delete(&self, hub: &Client) -> Result<()> {
        let bindings = untyped::<Binding>(hub.clone(), "");
        for (binding, work) in &self.bindings {
            let works = untyped::<Work>(hub.clone(), &namespace(work));
            delete(&works, name(work)).await?;
            merge(&bindings, name(binding), &mark()).await?;
            delete(&bindings, name(binding)).await?;
        }
        let snapshots = untyped::<ResourceSnapshot>(hub.clone(), "");
        delete(&snapshots, name(&self.snapshot)).await?;
        let policies = untyped::<PolicySnapshot>(hub.clone(), "");
        delete(&policies, name(&self.policy)).await?;
        let placements = untyped::<Placement>(hub.clone(), "");
        delete(&placements, name(&self.placement)).await
    }

    fn manifests(&self, nth: usize) -> impl DoubleEndedIterator<Item = &Value> {
        let work = self.bindings.get(nth).map(|(_, work)| work);
        let manifests = work.and_then(|work| work["spec"]["workload"]["manifests"].as_array());
        manifests.into_iter().flatten()
    }
}

fn placed(member: &Client, manifest: &Value) -> Api<DynamicObject> {
    match manifest["kind"].as_str() {
        Some("Namespace") => untyped::<Namespace>(member.clone(), ""),
        _ => untyped::<ConfigMap>(member.clone(), &namespace(manifest)),
    }
}

async fn apply(member: &Client, manifest: &Value) -> Result<()> {
    let parameters = PatchParams::apply("placement-agent").force();
    let patch = Patch::Apply(manifest);
    let objects = placed(member, manifest);
    objects.patch(name(manifest), &parameters, &patch).await?;
    Ok(())
}
