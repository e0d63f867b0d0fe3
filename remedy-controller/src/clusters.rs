//! The clusters of a fleet in its API. They are read as `Cluster`s, whichever kind stands for them there.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use karmada_api::Cluster;
use karmada_runtime::program::Program;
use karmada_runtime::wakes::Watch;
use karmada_runtime::watch::Decoded;
use kube::api::{DynamicObject, ListParams, ObjectList};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use objects::write::{ObjectRef, Plan, Write};
use serde_json::Value;
use traffic::ClusterKind;
use traffic::remedy::{ActionChange, StoredCluster, cluster_of, member_change, member_write};

/// The clusters of a fleet in its API.
#[derive(Clone)]
pub(crate) struct Clusters {
    pub(crate) kind: ClusterKind,
    pub(crate) client: Client,
}

impl Clusters {
    /// Watches them, and has every change wake as the `rows` say.
    pub(crate) fn watch(&self, program: &mut Program, rows: Watch<impl Send + 'static, Cluster>) {
        let (kind, resource) = (self.kind, self.kind.resource());
        let all = Api::all_with(self.client.clone(), &resource);
        rows.start_as(
            program,
            "clusters",
            (all, &resource),
            Config::default(),
            move |stored: Decoded<_>| stored.map(|stored| cluster_of(kind, stored)),
        );
    }

    /// Lists a page of them.
    pub(crate) async fn list(
        &self,
        page: &ListParams,
    ) -> kube::Result<ObjectList<Decoded<Cluster>>> {
        let resource = self.kind.resource();
        let all = Api::<Decoded<StoredCluster>>::all_with(self.client.clone(), &resource);
        let list = all.list(page).await?;
        let items = list.items.into_iter();
        Ok(ObjectList {
            types: list.types,
            metadata: list.metadata,
            items: items
                .map(|stored| stored.map(|stored| cluster_of(self.kind, stored)))
                .collect(),
        })
    }

    /// Returns the object that Events about a cluster refer to.
    pub(crate) fn reference(&self, cluster: &Cluster) -> ObjectReference {
        let object = ObjectRef::of(cluster, &());
        let resource = self.kind.resource();
        ObjectRef { resource, ..object }.reference()
    }

    /// Returns the cluster `name` as it is now with its conditions, both raw: those of others go back as the server stores
    /// them.
    pub(crate) async fn conditions(
        &self,
        name: &str,
    ) -> kube::Result<Option<(ObjectRef, Vec<Value>)>> {
        let resource = self.kind.resource();
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let Some(found) = all.get_opt(name).await? else {
            return Ok(None);
        };
        let conditions = found.data["status"]["conditions"].as_array();
        let conditions = conditions.cloned().unwrap_or_default();
        Ok(Some((ObjectRef::of(&found, &resource), conditions)))
    }

    /// Returns the write that is planned for the cluster `name`, and the changes that it makes.
    pub(crate) async fn write(
        &self,
        name: &str,
        plan: Plan<ActionChange>,
        time: Timestamp,
    ) -> kube::Result<Option<(Write, Vec<ActionChange>)>> {
        if self.kind == ClusterKind::Cluster {
            let write = plan.writes.into_iter().next();
            return Ok(write.map(|write| (write, plan.events)));
        }
        // Of one that requires no more than it has, nothing is read.
        let Some(change) = member_change(plan.events) else {
            return Ok(None);
        };
        let Some((object, conditions)) = self.conditions(name).await? else {
            return Ok(None);
        };
        let write = member_write(object, &conditions, &change, time);
        Ok(Some((write, vec![change])))
    }
}

#[cfg(test)]
mod tests;
