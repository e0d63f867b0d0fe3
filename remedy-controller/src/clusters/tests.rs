//! The whole program on the hub of a KubeFleet, in virtual time.

use std::time::Duration;

use clap::Parser;
use embedded_apiserver::ApiServer;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1 as events;
use karmada_api::condition::DNS_READY;
use karmada_api::{Remedy, TRAFFIC_CONTROL};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use objects::condition::AnyCondition;
use serde_json::{from_value, json};
use tokio::time::sleep;

use super::*;

/// Longer than everything but the patience with a reporter takes.
const SETTLED: Duration = Duration::from_secs(20);

/// A hub with the members m1 and m2, of which each has joined and has DNS, and the program.
struct Hub {
    clusters: Clusters,
}

impl Hub {
    async fn start() -> Self {
        let server = ApiServer::new();
        let remedies = karmada_api::crd::installed().unwrap().remove(0);
        for definition in fleet_api::definitions().into_iter().chain([remedies]) {
            server.install(&definition).unwrap();
        }
        let client = Client::new(server.service(), "default");
        let clusters = Clusters {
            kind: ClusterKind::MemberCluster,
            client: client.clone(),
        };
        let hub = Self { clusters };
        for name in ["m1", "m2"] {
            let identity = json!({ "kind": "User", "name": name });
            let member = DynamicObject::new(name, &hub.clusters.kind.resource());
            let member = member.data(json!({ "spec": { "identity": identity } }));
            let created = hub.members().create(&PostParams::default(), &member).await;
            created.unwrap();
            hub.say(name, "True").await;
        }
        let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
        // It has its lease where it has rights to it.
        hub.create_namespace("fleet-system").await;
        let line = [crate::identity::NAME, "--cluster-kind=MemberCluster"];
        let args = crate::Args::try_parse_from(line).unwrap();
        crate::assemble(&args, client, &mut program);
        tokio::spawn(program.run_until(async || std::future::pending().await));
        hub
    }

    async fn create_namespace(&self, name: &str) {
        let namespace = json!({ "metadata": { "name": name } });
        let namespace: Namespace = from_value(namespace).unwrap();
        let namespaces = Api::all(self.clusters.client.clone());
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        created.unwrap();
    }

    fn members(&self) -> Api<DynamicObject> {
        Api::all_with(self.clusters.client.clone(), &self.clusters.kind.resource())
    }

    fn remedies(&self) -> Api<Remedy> {
        Api::all(self.clusters.client.clone())
    }

    /// Says that a member has joined, and whether it has DNS.
    async fn say(&self, name: &str, dns: &str) {
        let said = [("Joined", "True"), (DNS_READY, dns)].map(|(kind, status)| {
            json!({ "type": kind, "status": status, "reason": "Said", "message": "",
                "lastTransitionTime": "2026-11-20T08:00:00Z" })
        });
        let patch = Patch::Merge(json!({ "status": { "conditions": said } }));
        let (members, parameters) = (self.members(), PatchParams::default());
        let patched = members.patch_status(name, &parameters, &patch).await;
        patched.unwrap();
    }

    /// Returns types, statuses and reasons of the conditions of a member.
    async fn said(&self, name: &str) -> Vec<String> {
        let (_, conditions) = self.clusters.conditions(name).await.unwrap().unwrap();
        let conditions = conditions.iter();
        conditions
            .map(|one| {
                let reason = one["reason"].as_str().unwrap_or_default();
                format!("{} {} {reason}", one.kind(), one.status())
            })
            .collect()
    }

    /// Returns the reasons of the Events about a member.
    async fn events(&self, name: &str) -> Vec<String> {
        let all: Api<events::Event> = Api::all(self.clusters.client.clone());
        let all = all.list(&ListParams::default()).await.unwrap();
        let about = all.into_iter().filter(|event| {
            let regarding = event.regarding.as_ref().unwrap();
            regarding.name.as_deref() == Some(name)
                && regarding.kind.as_deref() == Some("MemberCluster")
        });
        about.filter_map(|event| event.reason).collect()
    }
}

/// Case F119: the condition of a member decides, and so does its Remedy: the action comes and goes beside the conditions of others.
#[tokio::test(start_paused = true)]
async fn action_follows_condition() {
    let hub = Hub::start().await;
    let requirement =
        json!({ "conditionType": DNS_READY, "operator": "Equal", "conditionStatus": "False" });
    let spec = json!({
        "decisionMatches": [{ "clusterConditionMatch": requirement }],
        "actions": [TRAFFIC_CONTROL],
    });
    let remedy = json!({ "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy",
        "metadata": { "name": "dns" }, "spec": spec });
    let remedy: Remedy = from_value(remedy).unwrap();
    let created = hub.remedies().create(&PostParams::default(), &remedy).await;
    created.unwrap();
    hub.say("m1", "False").await;
    sleep(SETTLED).await;
    let dead = [
        "Joined True Said".to_owned(),
        format!("{DNS_READY} False Said"),
    ];
    let blocked = format!("{TRAFFIC_CONTROL} True RemedyActionSet");
    assert_eq!(hub.said("m1").await, [&dead[..], &[blocked]].concat());
    assert_eq!(hub.said("m2").await.len(), 2);
    assert!(
        hub.events("m1")
            .await
            .contains(&"RemedyActionSet".to_owned())
    );

    let deleted = hub.remedies().delete("dns", &DeleteParams::default()).await;
    deleted.unwrap();
    sleep(SETTLED).await;
    assert_eq!(hub.said("m1").await, dead);
    assert!(
        hub.events("m1")
            .await
            .contains(&"RemedyActionCleared".to_owned())
    );
}

/// Nobody renews the lease of a member's agents any more: the hub says so.
#[tokio::test(start_paused = true)]
async fn silent_agents_are_told() {
    let hub = Hub::start().await;
    let client = || hub.clusters.client.clone();
    hub.create_namespace("fleet-member-m1").await;
    let parameters = PostParams::default();
    let lease = json!({ "metadata": { "name": "cluster-health-agent" },
        "spec": { "holderIdentity": "n1", "leaseDurationSeconds": 15,
            "renewTime": "2026-11-20T08:00:00.000000Z" } });
    let lease: Lease = from_value(lease).unwrap();
    let leases = Api::namespaced(client(), "fleet-member-m1");
    leases.create(&parameters, &lease).await.unwrap();
    sleep(SETTLED).await;
    assert_eq!(hub.said("m1").await.len(), 2);
    sleep(Duration::from_mins(3)).await;
    let silent = "HealthReporterReady False ReporterSilent".to_owned();
    assert_eq!(hub.said("m1").await.last(), Some(&silent));
    assert_eq!(hub.said("m2").await.len(), 2);
}
