use std::time::Duration;

use embedded_apiserver::ApiServer;
use http::header::ACCEPT;
use http::{Method, Request};
use karmada_api::Remedy;
use karmada_api::condition::DNS_READY;
use karmada_runtime::expectations::Expectations;
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::program::Program;
use karmada_runtime::write::{WriteMode, Writer};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use serde_json::{Value, from_value, json};
use tower::ServiceExt;
use traffic::ClusterKind;
use traffic::remedy::MaxBlocked;

use super::*;
use crate::events::notices;
use crate::watch::tests::Watched;

/// Returns a cluster whose DNS fails.
fn failing(name: &str, actions: &Value) -> Cluster {
    let condition = json!({ "type": DNS_READY, "status": "False" });
    from_value(json!({
        "metadata": { "name": name }, "spec": {},
        "status": { "conditions": [condition], "remedyActions": actions },
    }))
    .unwrap()
}

fn remedy_on_dns() -> Remedy {
    let requirement =
        json!({ "conditionType": DNS_READY, "operator": "Equal", "conditionStatus": "False" });
    from_value(json!({
        "metadata": { "name": "dns" },
        "spec": {
            "decisionMatches": [{ "clusterConditionMatch": requirement }],
            "actions": [TRAFFIC_CONTROL],
        },
    }))
    .unwrap()
}

/// Returns the watches of a controller that may block one cluster, and the controller.
fn started(client: &Client) -> (Watched, Reconciler) {
    let budget = karmada_runtime::events::EventBudget {
        burst: 300,
        per_second: 20,
    };
    let mut program = Program::new(crate::identity::IDENTITY, ([127, 0, 0, 1], 0).into());
    let events = EventRecorder::spawn(&mut program, client.clone(), budget);
    let leading = Writer::new(Leadership::always(), WriteMetrics::default());
    let notices = notices(events.clone());
    let (writes, expectations) = (WriteMode::Perform(leading), Expectations::default());
    let watched = Watched::new(MaxBlocked::Count(1), &expectations);
    let reconciler = Reconciler {
        index: Arc::clone(&watched.index),
        clusters: Clusters {
            kind: ClusterKind::Cluster,
            client: client.clone(),
        },
        surveying: tokio::sync::Mutex::default(),
        committer: Committer::new(
            client.clone(),
            crate::identity::NAME,
            writes,
            expectations,
            Some(notices),
        ),
        events,
        queues: watched.queues.clone(),
        following: crate::metrics::action_delay(&mut program.registry),
    };
    (watched, reconciler)
}

/// A block of the former leader that the watch has not shown counts in the bound.
/// The former leader has blocked m2, which the watch has not shown, and m1 fails too.
#[tokio::test]
async fn former_leaders_block_counts() {
    let server = ApiServer::new();
    for definition in karmada_api::crd::stand_ins().unwrap() {
        server.install(&definition).unwrap();
    }
    let client = || Client::new(server.service(), "default");
    let (mut watched, reconciler) = started(&client());
    let clusters: Api<Cluster> = Api::all(client());
    let applied = |cluster| watcher::Event::Apply(Decoded::Valid(cluster));
    for name in ["m1", "m2"] {
        let cluster = failing(name, &Value::Null);
        clusters
            .create(&PostParams::default(), &cluster)
            .await
            .unwrap();
        let status = Patch::Merge(json!({ "status": cluster.status }));
        let patched = clusters
            .patch_status(name, &PatchParams::default(), &status)
            .await;
        watched.cluster(applied(patched.unwrap()));
    }
    let blocked = Patch::Merge(json!({ "status": { "remedyActions": [TRAFFIC_CONTROL] } }));
    let parameters = PatchParams::default();
    let shown = clusters
        .patch_status("m2", &parameters, &blocked)
        .await
        .unwrap();
    let remedy = watcher::Event::Apply(Decoded::Valid(remedy_on_dns()));
    watched.remedy(remedy);

    let actions = async |name: &str| {
        let cluster = clusters.get(name).await.unwrap();
        cluster.remedy_actions().to_vec()
    };
    for key in reconciler.keys() {
        reconciler.reconcile(&key).await.unwrap();
    }
    assert_eq!(actions("m1").await, [""; 0]);
    assert_eq!(actions("m2").await, [TRAFFIC_CONTROL]);

    // Once the watch has caught up it alone counts: m2 recovers, and m1 takes its place.
    watched.cluster(applied(shown));
    let recovered =
        Patch::Merge(json!({ "status": { "conditions": null, "remedyActions": null } }));
    let recovered = clusters
        .patch_status("m2", &parameters, &recovered)
        .await
        .unwrap();
    watched.cluster(applied(recovered));
    reconciler
        .reconcile(&Key::cluster_scoped("m1"))
        .await
        .unwrap();
    assert_eq!(actions("m1").await, [TRAFFIC_CONTROL]);
}

/// Who undoes every write of the actions meets growing pauses.
#[tokio::test(start_paused = true)]
async fn contended_actions_back_off() {
    let server = ApiServer::new();
    for definition in karmada_api::crd::stand_ins().unwrap() {
        server.install(&definition).unwrap();
    }
    let client = Client::new(server.service(), "default");
    let clusters: Api<Cluster> = Api::all(client.clone());
    let cluster = failing("m1", &Value::Null);
    clusters
        .create(&PostParams::default(), &cluster)
        .await
        .unwrap();
    let (mut watched, reconciler) = started(&client);
    let remedy = watcher::Event::Apply(Decoded::Valid(remedy_on_dns()));
    watched.remedy(remedy);
    assert_eq!(reconciler.keys(), []);
    let key = Key::cluster_scoped("m1");

    let mut blocked_at = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        // The other writer is quick, and never tires.
        let conditions = cluster.status.as_ref().map(|status| &status.conditions);
        let status = json!({ "conditions": conditions, "remedyActions": null });
        let undone = Patch::Merge(json!({ "status": status }));
        let parameters = PatchParams::default();
        let undone = clusters.patch_status("m1", &parameters, &undone).await;
        let undone = watcher::Event::Apply(Decoded::Valid(undone.unwrap()));
        watched.cluster(undone);
        reconciler.reconcile(&key).await.unwrap();
        let stored = clusters.get("m1").await.unwrap();
        if stored.remedy_actions() == [TRAFFIC_CONTROL] {
            blocked_at.push(begun.elapsed().as_secs());
        } else {
            tokio::time::advance(Duration::from_millis(500)).await;
        }
    }
    assert_eq!(blocked_at, [0, 0, 0, 1, 3, 7, 15]);
}

/// The answer to a write of the actions holds the metadata alone.
/// A cluster may have 100 kB, and only its new version is read of an answer.
#[tokio::test]
async fn answers_hold_metadata_alone() {
    let server = ApiServer::new();
    for definition in karmada_api::crd::stand_ins().unwrap() {
        server.install(&definition).unwrap();
    }
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let service = {
        let (server, accepted) = (server.service(), Arc::clone(&accepted));
        tower::service_fn(move |request: Request<kube::client::Body>| {
            if request.method() == Method::PATCH {
                let accept = request.headers()[ACCEPT].to_str().unwrap();
                accepted.lock().push(accept.to_owned());
            }
            server.clone().oneshot(request)
        })
    };
    let clusters: Api<Cluster> = Api::all(Client::new(server.service(), "default"));
    let cluster = failing("m1", &Value::Null);
    let created = clusters.create(&PostParams::default(), &cluster).await;
    let (mut watched, reconciler) = started(&Client::new(service, "default"));
    let cluster = Cluster {
        status: cluster.status,
        ..created.unwrap()
    };
    let cluster = watcher::Event::Apply(Decoded::Valid(cluster));
    watched.cluster(cluster);
    let remedy = watcher::Event::Apply(Decoded::Valid(remedy_on_dns()));
    watched.remedy(remedy);
    for key in reconciler.keys() {
        reconciler.reconcile(&key).await.unwrap();
    }
    let accepted = accepted.lock();
    assert!(
        accepted.len() == 1
            && accepted[0].starts_with("application/json;as=PartialObjectMetadata;"),
        "{accepted:?}"
    );
}
