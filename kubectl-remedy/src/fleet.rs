//! The objects of a Karmada API, of a fleet's or of a hub's that decide about traffic, read once.

mod facts;

use std::collections::BTreeSet;

use fleet_api::Placement;
use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use karmada_api::gateway_api::HttpRoute;
use karmada_api::{Cluster, MultiClusterIngress, Remedy, ResourceBinding};
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use kube::api::ListParams;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use objects::{Key, Scope};
use traffic::ClusterKind;
use traffic::endpoints::{COLLECTED, collect_from_hub};
use traffic::ingress::http_route::{reported_ingress, route_of};
use traffic::ingress::{
    Cached, ClusterFacts, Decision, Desired, Ownership, Settings, decide, decide_owned, desired,
};
use traffic::remedy::{Cause, Forecast, MaxBlocked, StoredCluster, cause, cluster_of, forecast};

use crate::error::Error;
use crate::lists::{if_served, is_unavailable, list, list_mapped, scoped, served};

/// The objects that decide about traffic, as the stores of the controllers hold them.
#[derive(Debug, Default)]
pub struct FleetSnapshot {
    /// The moment at which it was read.
    pub(crate) now: Timestamp,
    /// The kind that its clusters have in the API.
    pub(crate) kind: ClusterKind,
    pub(crate) clusters: Store<Cluster>,
    pub(crate) remedies: Store<Remedy>,
    /// The ingresses, and the `HTTPRoute`s that are served as such.
    pub(crate) ingresses: Store<MultiClusterIngress>,
    pub(crate) classes: Store<IngressClass>,
    pub(crate) bindings: Store<ResourceBinding>,
    /// Those of a hub, of each scope.
    pub(crate) placements: [Store<Placement>; 2],
    pub(crate) slices: Store<EndpointSlice>,
}

impl FleetSnapshot {
    /// Reads the fleet. With a namespace, only its ingresses are known.
    pub async fn read(
        client: &Client,
        namespace: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let all = ListParams::default;
        let fleet = Self::read_without_backends(client, namespace, now).await?;
        let classes = list(Api::all(client.clone()), all());
        let slices = all().labels(COLLECTED);
        if fleet.kind == ClusterKind::MemberCluster {
            // Those of all namespaces are in those of the members.
            let slices = list_mapped(Api::all(client.clone()), "endpointslices", slices, on_hub);
            let [of_cluster, in_namespaces] =
                [Scope::Cluster, Scope::Namespaced].map(|scope| placements(scope, client));
            let (classes, slices, of_cluster, in_namespaces) =
                futures::try_join!(classes, slices, of_cluster, in_namespaces)?;
            return Ok(Self {
                classes,
                slices,
                placements: [of_cluster, in_namespaces],
                ..fleet
            });
        }
        let (classes, bindings, slices) = futures::try_join!(
            classes,
            list(scoped(client, namespace), all()),
            list(scoped(client, namespace), slices),
        )?;
        Ok(Self {
            classes,
            bindings,
            slices,
            ..fleet
        })
    }

    /// Reads the clusters, the Remedies and the ingresses, and not the backends of these: there may be
    /// many more bindings than all of these.
    pub(crate) async fn read_without_backends(
        client: &Client,
        namespace: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let all = ListParams::default;
        let (kind, clusters) = clusters(client).await?;
        let remedies = list(Api::all(client.clone()), all());
        let ingresses = list(scoped(client, namespace), all());
        let (remedies, mut ingresses, routes) = futures::try_join!(
            served(kind, remedies),
            served(kind, ingresses),
            routes(client, namespace),
        )?;
        for (_, route) in routes.iter().flat_map(Store::iter) {
            if let Some(ingress) = reported_ingress(route) {
                put(&mut ingresses, ingress);
            }
        }
        Ok(Self {
            now,
            kind,
            clusters,
            remedies,
            ingresses,
            ..Self::default()
        })
    }

    /// Reads the Remedies and nothing else.
    pub(crate) async fn read_remedies(client: &Client, now: Timestamp) -> Result<Self, Error> {
        let remedies = list(Api::all(client.clone()), ListParams::default()).await?;
        Ok(Self {
            now,
            remedies,
            ..Self::default()
        })
    }

    /// Returns the cluster `name`.
    ///
    /// # Errors
    /// Fails if there is none, or it cannot be read.
    pub(crate) fn require(&self, name: &str) -> Result<&Cluster, Error> {
        match self.cluster(name) {
            Cached::Present(cluster) => Ok(cluster),
            Cached::Absent => Err(Error::Unusable(format!("there is no cluster {name}"))),
            Cached::Unread => Err(Error::Unusable(format!("cluster {name} cannot be read"))),
        }
    }

    /// Returns the remedies that act on `cluster`, by name, and why.
    pub(crate) fn acting_on(&self, cluster: &Cluster) -> Vec<(&Remedy, Cause)> {
        let remedies = self.remedies.iter();
        remedies
            .filter_map(|(_, remedy)| Some((&**remedy, cause(remedy, cluster, self.now)?)))
            .collect()
    }

    /// Returns the future of every cluster under the remedies as they are here.
    pub(crate) fn forecast(&self, max: MaxBlocked) -> Vec<Forecast> {
        let clusters = self.clusters.iter().map(|(_, cluster)| &**cluster);
        let remedies: Vec<&Remedy> = self.remedies.iter().map(|(_, remedy)| &**remedy).collect();
        let complete = self.remedies.unread().is_empty();
        forecast(clusters, &remedies, self.now, complete, max)
    }

    /// Returns the desired state of the load balancer for every ingress of the controller with `settings`.
    pub(crate) fn served(&self, settings: &Settings) -> Vec<Desired> {
        let nothing = BTreeSet::new();
        self.ingresses
            .iter()
            .filter(|(key, ingress)| self.is_served(key, ingress, settings))
            .map(|(key, ingress)| desired(key, ingress, &nothing, self, settings))
            .collect()
    }

    fn is_served(&self, key: &Key, ingress: &MultiClusterIngress, settings: &Settings) -> bool {
        let controller = &settings.controller;
        let decision = match route_of(key) {
            // Its status is that of a controller of ours.
            Some(_) => decide_owned(key, ingress, Ownership::Ours, self, controller),
            None => decide(key, Cached::Present(ingress), self, controller),
        };
        matches!(decision, Decision::Serve(_))
    }
}

/// Puts `object` into `store`, in place of the one of its name.
pub(crate) fn put<K: Resource + Clone + Default>(store: &mut Store<K>, mut object: K) {
    // The store takes one of a version that it knows for the one it has.
    object.meta_mut().resource_version = None;
    drop(store.observe(Event::Apply(Decoded::Valid(object))));
}

/// Reads the clusters, of the kind of which there are some.
async fn clusters(client: &Client) -> Result<(ClusterKind, Store<Cluster>), Error> {
    of_either(
        |kind| clusters_of(kind, client),
        |clusters: &Store<Cluster>| clusters.existing() > 0,
    )
    .await
}

/// Reads the cluster `name`, of either kind, if it exists.
pub(crate) async fn cluster(name: &str, client: &Client) -> Result<Option<Cluster>, Error> {
    let (_, cluster) = of_either(|kind| cluster_in(kind, name, client), Option::is_some).await?;
    Ok(cluster)
}

/// Returns the result of `read` for the kind of which something exists: an API may serve both.
async fn of_either<T, Reading>(
    read: impl Fn(ClusterKind) -> Reading,
    exists: impl Fn(&T) -> bool,
) -> Result<(ClusterKind, T), Error>
where
    Reading: Future<Output = Result<T, Error>>,
{
    let clusters = match read(ClusterKind::Cluster).await {
        Err(error) if !is_unavailable(&error) => return Err(error),
        Ok(clusters) if exists(&clusters) => return Ok((ClusterKind::Cluster, clusters)),
        found => found,
    };
    match read(ClusterKind::MemberCluster).await {
        Err(error) if !is_unavailable(&error) => Err(error),
        Ok(members) if clusters.is_err() || exists(&members) => {
            Ok((ClusterKind::MemberCluster, members))
        }
        _ => Ok((ClusterKind::Cluster, clusters?)),
    }
}

async fn cluster_in(
    kind: ClusterKind,
    name: &str,
    client: &Client,
) -> Result<Option<Cluster>, Error> {
    let clusters: Api<StoredCluster> = Api::all_with(client.clone(), &kind.resource());
    let found = clusters.get_opt(name).await;
    let found = found.map_err(|source| Error::request(format!("get cluster {name}"), source))?;
    Ok(found.map(|stored| cluster_of(kind, stored)))
}

async fn clusters_of(kind: ClusterKind, client: &Client) -> Result<Store<Cluster>, Error> {
    let resource = kind.resource();
    let api: Api<Decoded<StoredCluster>> = Api::all_with(client.clone(), &resource);
    let all = ListParams::default();
    let clusters = list_mapped(api, &resource.plural, all, |stored| {
        stored.map(|stored| cluster_of(kind, stored))
    });
    clusters.await
}

/// Reads the placements of a scope. The hub of an early release has none in namespaces.
async fn placements(scope: Scope, client: &Client) -> Result<Store<Placement>, Error> {
    let api = Api::all_with(client.clone(), &scope);
    let plural = Placement::plural(&scope);
    let placements = list_mapped(api, &plural, ListParams::default(), |object| object);
    served(ClusterKind::MemberCluster, placements).await
}

fn on_hub(mut slice: Decoded<EndpointSlice>) -> Decoded<EndpointSlice> {
    collect_from_hub(slice.meta_mut());
    slice
}

/// Reads the `HTTPRoute`s; `None` if the API does not have the kind.
async fn routes(
    client: &Client,
    namespace: Option<&str>,
) -> Result<Option<Store<HttpRoute>>, Error> {
    let read = list(scoped(client, namespace), ListParams::default()).await;
    if_served::<HttpRoute, _>(client, read).await
}

#[cfg(test)]
mod tests {
    use embedded_apiserver::ApiServer;
    use k8s_openapi::api::core::v1::Namespace;
    use karmada_api::TRAFFIC_CONTROL;
    use kube::api::{Patch, PatchParams, PostParams};
    use lab_parts::test_api::TestApi;
    use serde_json::{from_value, json};
    use traffic::endpoints::slice_cluster;
    use traffic::ingress::{Facts, service_clusters};

    use super::*;
    use crate::fixtures::{http_routes, hub};

    /// A route is an ingress of the fleet if its status says where it is served; an API without the kind has none.
    #[tokio::test]
    async fn reported_route_is_ingress() {
        let server = ApiServer::new();
        for definition in karmada_api::crd::stand_ins().unwrap() {
            server.install(&definition).unwrap();
        }
        for definition in karmada_api::crd::installed().unwrap() {
            server.install(&definition).unwrap();
        }
        let client = Client::new(server.service(), "default");
        let read = async || {
            let now = Timestamp::UNIX_EPOCH;
            let fleet = FleetSnapshot::read_without_backends(&client, None, now).await;
            let fleet = fleet.unwrap();
            let names = fleet.ingresses.iter().map(|(key, _)| key.to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(read().await, [""; 0]);
        server.install(&http_routes()).unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = from_value(json!({ "metadata": { "name": "ns" } })).unwrap();
        let (create, patch) = (PostParams::default(), PatchParams::default());
        namespaces.create(&create, &namespace).await.unwrap();
        let routes: Api<HttpRoute> = Api::namespaced(client.clone(), "ns");
        let located = json!({ "type": "networking.karmada-rs.io/Located", "status": "True", "message": "web: m1" });
        let entry =
            json!({ "controllerName": "karmada-rs.io/multi-cluster", "conditions": [located] });
        for (name, status) in [
            ("told", json!({ "parents": [entry] })),
            ("other", json!({})),
        ] {
            let route = json!({ "apiVersion": HttpRoute::API_VERSION, "kind": HttpRoute::KIND,
                "metadata": { "name": name }, "spec": { "parentRefs": [] } });
            let route = from_value(route).unwrap();
            routes.create(&create, &route).await.unwrap();
            let status = Patch::Merge(json!({ "status": status }));
            routes.patch_status(name, &patch, &status).await.unwrap();
        }
        assert_eq!(read().await, ["ns/httproute:told"]);
    }

    /// Routes that the user may not read may send requests: they are not taken for none, unless the API has no such kind.
    #[tokio::test]
    async fn unreadable_routes_are_not_none() {
        for is_served in [true, false] {
            let api = TestApi::with_kinds(is_served.then(http_routes));
            let call = "GET /apis/gateway.networking.k8s.io/v1/httproutes";
            api.refuse(call, 403, "Forbidden", "no right");
            let read = routes(&api.client(), None).await;
            assert_eq!(read.is_err(), is_served, "{read:?}");
        }
    }

    /// On a hub a member is a cluster, with its action apart from its conditions; placements and members tell where Services run
    /// and at which addresses. The kinds that it need not serve are empty.
    #[tokio::test]
    async fn hub_is_a_fleet() {
        let hub = hub().await;
        let fleet = FleetSnapshot::read(&hub.client(), None, Timestamp::UNIX_EPOCH).await;
        let fleet = fleet.unwrap();
        assert_eq!(fleet.kind, ClusterKind::MemberCluster);
        let [m1, m2] = ["m1", "m2"].map(|name| fleet.require(name).unwrap());
        assert_eq!(m1.remedy_actions(), [TRAFFIC_CONTROL]);
        assert_eq!(m1.condition(TRAFFIC_CONTROL), None);
        assert_eq!(m2.remedy_actions(), [""; 0]);
        let clusters = |service: &str| service_clusters("shop", service, &fleet);
        assert_eq!(clusters("web"), Cached::Present(["m1", "m2"].into()));
        assert_eq!(clusters("other"), Cached::Absent);
        let slices = fleet.slices("shop", "web");
        let clusters: Vec<_> = slices.iter().map(|slice| slice_cluster(slice)).collect();
        assert_eq!(clusters, [Some("m1")]);
        let empty = fleet.remedies.existing() + fleet.ingresses.existing();
        assert_eq!(empty, 0);
        let asked = hub.reads();
        assert!(
            !asked.iter().any(|path| path.contains("work.karmada.io")),
            "{asked:?}"
        );
    }

    /// Of an API that serves both, the kind of which there are objects is that of the clusters.
    #[tokio::test]
    async fn kind_with_objects_counts() {
        let hub = hub().await;
        let now = Timestamp::UNIX_EPOCH;
        for definition in karmada_api::crd::stand_ins().unwrap() {
            hub.server.install(&definition).unwrap();
        }
        let read = async || {
            let fleet = FleetSnapshot::read_without_backends(&hub.user(), None, now).await;
            fleet.unwrap().kind
        };
        assert_eq!(read().await, ClusterKind::MemberCluster);
        for definition in karmada_api::crd::installed().unwrap() {
            hub.server.install(&definition).unwrap();
        }
        let cluster = json!({ "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": "member1" }, "spec": {} });
        hub.create(&cluster).await;
        assert_eq!(read().await, ClusterKind::Cluster);
    }

    /// Who asks for one cluster gets it, whichever kind the API has.
    #[tokio::test]
    async fn cluster_of_hub_is_found() {
        let client = hub().await.client();
        let m1 = cluster("m1", &client).await.unwrap().unwrap();
        assert_eq!(m1.remedy_actions(), [TRAFFIC_CONTROL]);
        assert!(cluster("m9", &client).await.unwrap().is_none());
    }
}
