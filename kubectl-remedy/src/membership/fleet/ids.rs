//! The ids of Clusters, each the uid of the namespace `kube-system` of a member, as `karmadactl join` has it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use karmada_api::Cluster;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;

use crate::error::Error;
use crate::lists::list_each;
use crate::requests::refused;

/// The names of the Clusters, by their ids.
#[derive(Debug)]
pub(super) struct Ids(Mutex<BTreeMap<String, String>>);

impl Ids {
    /// Reads those of the fleet.
    pub(super) async fn read(client: &Client) -> Result<Self, Error> {
        let kind = ApiResource::erase::<Cluster>(&());
        let clusters: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let mut ids = BTreeMap::new();
        let read = list_each(&clusters, ListParams::default(), |cluster| {
            let id = cluster.data["spec"]["id"].as_str();
            if let Some(id) = id.filter(|id| !id.is_empty()) {
                ids.insert(id.to_owned(), cluster.name_any());
            }
        });
        read.await
            .map_err(|source| refused("list clusters", source))?;
        Ok(Self(Mutex::new(ids)))
    }

    /// Returns the id of a member for `cluster`.
    ///
    /// # Errors
    /// Fails if another Cluster is that member: the objects of both would meet there.
    pub(super) async fn claim(&self, cluster: &str, member: &Client) -> Result<String, Error> {
        let namespaces: Api<Namespace> = Api::all(member.clone());
        let system = namespaces.get("kube-system").await;
        let system = system.map_err(|source| refused("get its namespace kube-system", source))?;
        let id = system.uid().unwrap_or_default();
        let mut ids = self.0.lock();
        let known = ids.entry(id.clone()).or_insert_with(|| cluster.to_owned());
        if known != cluster {
            return Err(Error::Unusable(format!(
                "its context leads to the member that is the cluster {known} already"
            )));
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use embedded_apiserver::ApiServer;
    use kube::Resource;
    use kube::api::PostParams;
    use serde_json::{Value, from_value, json};

    use super::*;

    /// A member joins under one name: a second one would have the objects of both.
    #[tokio::test]
    async fn member_has_one_name() {
        let fleet = ApiServer::new();
        for definition in karmada_api::crd::fleet().unwrap() {
            fleet.install(&definition).unwrap();
        }
        let (fleet, member) = (Client::new(fleet.service(), "default"), ApiServer::new());
        let member = Client::new(member.service(), "default");
        let namespaces: Api<Namespace> = Api::all(member.clone());
        let system = Namespace {
            metadata: kube::core::ObjectMeta {
                name: Some("kube-system".to_owned()),
                ..Default::default()
            },
            ..Namespace::default()
        };
        // Some servers have it from the beginning.
        drop(namespaces.create(&PostParams::default(), &system).await);

        let ids = Ids::read(&fleet).await.unwrap();
        let id = ids.claim("m1", &member).await.unwrap();
        assert_eq!(ids.claim("m1", &member).await.unwrap(), id);
        assert!(ids.claim("m2", &member).await.is_err());

        let create = async |name: &str, spec: Value| {
            let cluster = json!({ "apiVersion": Cluster::api_version(&()), "kind": "Cluster",
                "metadata": { "name": name }, "spec": spec });
            let cluster: DynamicObject = from_value(cluster).unwrap();
            let kind = ApiResource::erase::<Cluster>(&());
            let clusters: Api<DynamicObject> = Api::all_with(fleet.clone(), &kind);
            clusters
                .create(&PostParams::default(), &cluster)
                .await
                .unwrap();
        };
        create("m1", json!({ "syncMode": "Push", "id": id })).await;
        create("by-hand", json!({ "syncMode": "Push" })).await;
        let ids = Ids::read(&fleet).await.unwrap();
        let refused = ids.claim("m2", &member).await.unwrap_err().to_string();
        assert!(refused.contains("the cluster m1"), "{refused}");
    }
}
