//! A plan, compared with the acts of the controllers once its Remedy exists: random fleets on embedded APIs,
//! in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::LazyLock;
use std::time::Duration;

use embedded_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::{Cluster, Remedy, TRAFFIC_CONTROL, condition::DNS_READY};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use super::*;
use crate::fixtures::{
    NAMESPACE, binding, class, cluster, controllers, ingress, remedy, run_ingress_controller,
    run_remedy_controller, slice,
};

const CLUSTERS: [&str; 4] = ["m0", "m1", "m2", "m3"];
const SERVICES: [&str; 2] = ["a", "b"];

/// Virtual, so it takes no time: enough for every write, retry and pause of the controllers.
const SETTLED: Duration = Duration::from_mins(10);

static KARMADA: LazyLock<ApiServer> = LazyLock::new(|| {
    let server = ApiServer::new();
    for definition in karmada_api::crd::stand_ins().unwrap() {
        server.install(&definition).unwrap();
    }
    for definition in karmada_api::crd::installed().unwrap() {
        server.install(&definition).unwrap();
    }
    server
});

/// A random fleet.
#[derive(Clone, Debug)]
struct Drawn {
    /// The status of DNS of each cluster.
    dns: Vec<Option<&'static str>>,
    /// For each Service, the clusters where it runs, and whether its endpoints there are ready.
    located: Vec<BTreeMap<usize, bool>>,
    /// The annotation of the ingress with both Services; another one has just the first.
    when_all_blocked: Option<&'static str>,
    /// The Remedies before the plan, and the one of the plan. Names may be the same.
    before: Vec<(usize, Value)>,
    planned: (usize, Value),
    max_blocked: usize,
}

fn spec() -> impl Strategy<Value = Value> {
    let named = proptest::collection::btree_set(0..CLUSTERS.len(), 0..4);
    let wanted = prop_oneof![Just(Some("False")), Just(Some("True")), Just(None)];
    (proptest::option::of(named), wanted, any::<bool>()).prop_map(|(named, wanted, acts)| {
        let chosen =
            |set: BTreeSet<usize>| set.into_iter().map(|n| CLUSTERS[n]).collect::<Vec<_>>();
        let affinity = named
            .filter(|named| !named.is_empty())
            .map(|named| json!({ "clusterNames": chosen(named) }));
        let matches = wanted.map(|status| {
            let wanted = json!({ "conditionType": DNS_READY, "operator": "Equal",
                "conditionStatus": status });
            json!([{ "clusterConditionMatch": wanted }])
        });
        let actions: &[&str] = if acts { &[TRAFFIC_CONTROL] } else { &["Other"] };
        json!({ "clusterAffinity": affinity, "decisionMatches": matches, "actions": actions })
    })
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let dns = prop_oneof![2 => Just(Some("False")), 2 => Just(Some("True")), 1 => Just(None)];
    let located = proptest::collection::btree_map(0..CLUSTERS.len(), any::<bool>(), 0..4);
    (
        proptest::collection::vec(dns, CLUSTERS.len()),
        proptest::collection::vec(located, SERVICES.len()),
        prop_oneof![Just(None), Just(Some("fail-closed"))],
        proptest::collection::vec((0..3_usize, spec()), 0..3),
        (0..3_usize, spec()),
        0..=CLUSTERS.len(),
    )
        .prop_map(
            |(dns, located, when_all_blocked, before, planned, max_blocked)| Drawn {
                dns,
                located,
                when_all_blocked,
                before,
                planned,
                max_blocked,
            },
        )
}

/// The APIs and the controllers on them.
struct Played {
    karmada: ApiServer,
    gateway: ApiServer,
}

impl Played {
    fn client(&self) -> Client {
        Client::new(self.karmada.service(), "default")
    }

    fn gateway(&self) -> Client {
        Client::new(self.gateway.service(), "default")
    }

    async fn start(drawn: &Drawn) -> Self {
        let played = Self {
            karmada: KARMADA.fork(),
            gateway: ApiServer::new(),
        };
        for name in ["karmada-system", NAMESPACE] {
            let namespace = json!({ "metadata": { "name": name } });
            create::<Namespace>(Api::all(played.client()), from_value(namespace).unwrap()).await;
        }
        played.create_objects(drawn).await;
        played.run_controllers(drawn);
        tokio::time::sleep(SETTLED).await;
        played
    }

    async fn create_objects(&self, drawn: &Drawn) {
        let client = self.client();
        create(Api::all(client.clone()), class()).await;
        for (name, dns) in CLUSTERS.iter().zip(&drawn.dns) {
            let made = cluster(name, *dns, &[]);
            let status = Patch::Merge(json!({ "status": made.status }));
            let clusters: Api<Cluster> = Api::all(client.clone());
            create(clusters.clone(), made).await;
            let parameters = PatchParams::default();
            let patched = clusters.patch_status(name, &parameters, &status).await;
            patched.unwrap();
        }
        for (n, (service, located)) in SERVICES.iter().zip(&drawn.located).enumerate() {
            let ports = json!([{ "name": "http", "port": 80 }]);
            let template = json!({ "metadata": { "name": service }, "spec": { "ports": ports } });
            let template: Service = from_value(template).unwrap();
            create(Api::namespaced(client.clone(), NAMESPACE), template).await;
            let names: Vec<&str> = located.keys().map(|n| CLUSTERS[*n]).collect();
            create(
                Api::namespaced(client.clone(), NAMESPACE),
                binding(service, &names),
            )
            .await;
            for (cluster, is_ready) in located {
                let made = slice(
                    service,
                    CLUSTERS[*cluster],
                    &address(n, *cluster),
                    *is_ready,
                );
                create(Api::namespaced(client.clone(), NAMESPACE), made).await;
            }
        }
        for (name, services, when_all_blocked) in [
            ("both", &SERVICES[..], drawn.when_all_blocked),
            ("first", &SERVICES[..1], None),
        ] {
            let made = ingress(name, services, when_all_blocked);
            create(Api::namespaced(client.clone(), NAMESPACE), made).await;
        }
        for (name, spec) in &drawn.before {
            self.put(&remedy(&name.to_string(), spec)).await;
        }
    }

    fn run_controllers(&self, drawn: &Drawn) {
        let bound = format!("--max-blocked-clusters={}", drawn.max_blocked);
        run_remedy_controller(self.client(), &[&bound]);
        run_ingress_controller(self.client(), self.gateway());
    }

    async fn put(&self, remedy: &Remedy) {
        let remedies: Api<Remedy> = Api::all(self.client());
        let parameters = PatchParams::apply("test").force();
        let mut applied = serde_json::to_value(remedy).unwrap();
        applied["apiVersion"] = Remedy::api_version(&()).into();
        applied["kind"] = Remedy::kind(&()).into();
        let applied = Patch::Apply(applied);
        remedies
            .patch(&remedy.name_any(), &parameters, &applied)
            .await
            .unwrap();
    }

    async fn actions(&self) -> BTreeMap<String, Vec<String>> {
        let clusters: Api<Cluster> = Api::all(self.client());
        let listed = clusters.list(&ListParams::default()).await.unwrap();
        let actions = |cluster: &Cluster| (cluster.name_any(), cluster.remedy_actions().to_vec());
        listed.iter().map(actions).collect()
    }

    /// Returns the clusters with endpoints in the gateway, by ingress and Service, and whether the
    /// endpoints are ready.
    async fn served(&self) -> BTreeMap<(String, usize), BTreeMap<String, bool>> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.gateway(), NAMESPACE);
        let mut served: BTreeMap<_, BTreeMap<String, bool>> = BTreeMap::new();
        for slice in slices.list(&ListParams::default()).await.unwrap() {
            let owner = slice
                .annotations()
                .get("karmada-rs.io/multi-cluster-ingress");
            let ingress = owner.unwrap().rsplit('/').next().unwrap().to_owned();
            for endpoint in slice.endpoints.iter().flatten() {
                let ready = endpoint.conditions.as_ref().and_then(|c| c.ready) != Some(false);
                let parts: Vec<usize> = endpoint.addresses[0]
                    .split('.')
                    .map(|p| p.parse().unwrap())
                    .collect();
                let (service, cluster) = (parts[1], CLUSTERS[parts[2]]);
                let clusters = served.entry((ingress.clone(), service)).or_default();
                clusters.insert(cluster.to_owned(), ready);
            }
        }
        served
    }
}

/// Returns the address of a Service in a cluster.
fn address(service: usize, cluster: usize) -> String {
    format!("10.{service}.{cluster}.1")
}

async fn create<K>(api: Api<K>, object: K)
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn is_carried_out(drawn: Drawn) {
    let played = Played::start(&drawn).await;
    let (actions, served) = (played.actions().await, played.served().await);
    let fleet = FleetSnapshot::read(&played.client(), None, Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
    let bound = format!("--max-blocked-clusters={}", drawn.max_blocked);
    let planned = remedy(&drawn.planned.0.to_string(), &drawn.planned.1);
    let plan = Plan::of(fleet, vec![planned.clone()], &controllers(&[&bound]));

    played.put(&planned).await;
    tokio::time::sleep(SETTLED).await;
    let mut expected = actions;
    for known in &plan.clusters {
        expected.insert(known.name.clone(), known.actions.clone());
    }
    assert_eq!(played.actions().await, expected, "{plan}");

    let then = played.served().await;
    for ingress in ["both", "first"] {
        for (n, service) in SERVICES.iter().enumerate() {
            let key = (ingress.to_owned(), n);
            let now = served.get(&key).cloned().unwrap_or_default();
            let then = then.get(&key).cloned().unwrap_or_default();
            let mut backends = plan.backends.iter();
            let change = backends.find(|b| b.ingress == ingress && b.service == *service);
            let lacks = |a: &BTreeMap<String, bool>, b: &BTreeMap<String, bool>| -> Vec<String> {
                a.keys()
                    .filter(|name| !b.contains_key(*name))
                    .cloned()
                    .collect()
            };
            let (lost, gained) = (lacks(&now, &then), lacks(&then, &now));
            assert_eq!(change.map_or(&[][..], |c| &c.lost), lost, "{plan}");
            assert_eq!(change.map_or(&[][..], |c| &c.gained), gained, "{plan}");
            let has_ready =
                |clusters: &BTreeMap<String, bool>| clusters.values().any(|ready| *ready);
            let is_cut_off = change.is_some_and(|change| change.is_cut_off);
            assert!(!(is_cut_off && has_ready(&then)), "{plan}");
            assert!(is_cut_off || has_ready(&then) || !has_ready(&now), "{plan}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    /// The controllers act as planned.
    #[test]
    fn controllers_carry_out_plan(drawn in drawn()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(is_carried_out(drawn));
    }
}
