//! The API of the fleet, and who else writes there.

use std::convert::Infallible;

use anyhow::Result;
use http::Request;
use k8s_openapi::api::{
    flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration},
    rbac::v1::ClusterRoleBinding,
};
use karmada_api::{ResourceBinding, TRAFFIC_CONTROL, names};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    api::create,
    control_plane::{ApiKind, ControlPlane},
    fleet::{Fleet, Member, isolated},
    programs::{Binary, Profile, Running},
    test_name,
    wait::{until, until_event},
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    drills::{Drill, alert::Target},
    propagation::{WEB, deployed, is_fully_applied},
};

/// The flow of everybody, which has one place.
const CROWD: &str = "crowd";
/// A user who asks for all clusters again and again.
const REPORTS: &str = "reports";
const CLUSTERS: u8 = 8;

/// Puts the remedy-controller and a user into one flow, which serves one request at a time.
async fn crowd(karmada: &ControlPlane) -> Result<()> {
    let client = karmada.client();
    let levels: Api<PriorityLevelConfiguration> = Api::all(client.clone());
    let limited = json!({ "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
        "limitResponse": { "type": "Reject" } });
    let level =
        json!({ "metadata": { "name": CROWD }, "spec": { "type": "Limited", "limited": limited } });
    create(&levels, level).await?;
    let users = [
        "system:serviceaccount:karmada-system:remedy-controller",
        REPORTS,
    ];
    let users = users.map(|user| json!({ "kind": "User", "user": { "name": user } }));
    let all = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
        "clusterScope": true });
    let schema = json!({ "metadata": { "name": CROWD }, "spec": {
        "matchingPrecedence": 50,
        "priorityLevelConfiguration": { "name": CROWD },
        "rules": [{ "subjects": users, "resourceRules": [all] }],
    } });
    let schemas: Api<FlowSchema> = Api::all(client.clone());
    create(&schemas, schema).await?;
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" });
    let subject =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": REPORTS });
    let bindings: Api<ClusterRoleBinding> = Api::all(client);
    let binding =
        json!({ "metadata": { "name": REPORTS }, "roleRef": role, "subjects": [subject] });
    create(&bindings, binding).await
}

/// Lists all clusters again and again until it is dropped, from several places.
async fn flood(karmada: &ControlPlane) -> Result<JoinSet<()>> {
    let mut flood = JoinSet::new();
    for _ in 0..4 {
        let client = karmada.client_for(REPORTS).await?;
        flood.spawn(async move {
            while let Ok(list) =
                Request::get("/apis/cluster.karmada.io/v1alpha1/clusters").body(Vec::new())
            {
                // Most are refused.
                drop(client.request_text(list).await);
            }
        });
    }
    Ok(flood)
}

/// Returns the number of requests of a program that were answered 429.
async fn throttled(program: &Running) -> Result<f64> {
    let metrics = program.metrics().await?;
    let lines = metrics.lines();
    let samples =
        lines.filter(|line| line.contains("_api_requests_total{") && line.contains("code=\"429\""));
    let counts = samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    Ok(counts.sum())
}

/// Somebody's reports ask the API all the time, in the same flow as the remedy-controller, whose requests get 429.
#[test]
fn flood_throttles_a_program() {
    isolated(test_name!(), async || {
        let fleet = Fleet::start(ApiKind::Real, Profile::Debug).await?;
        for number in 1..=CLUSTERS {
            fleet.register(Member(number)).await?;
        }
        let controller = fleet.remedy_controller().await?;
        controller.rests("karmada_remedy_controller").await?;
        let targets = [Target::on_host(Binary::RemedyController, &controller)];
        let mut drill = Drill::of("KarmadaRsRequestsThrottled");
        drill.record(&targets).await?;

        crowd(&fleet.karmada).await?;
        let _flood = flood(&fleet.karmada).await?;
        let remedy = json!({ "actions": [TRAFFIC_CONTROL] });
        fleet.create_remedy("all", remedy).await?;
        for least in [4.0, 16.0] {
            while throttled(&controller).await? < least {}
            drill.record(&targets).await?;
        }
        let labels = json!({ "api": "karmada", "job": "remedy-controller", "namespace": "karmada-system",
            "severity": "warning" });
        let summary = "The karmada API answers 429 to the remedy-controller";
        drill.fires(6, &labels, summary)?;
        let contexts = [("karmada", &fleet.karmada)];
        let rejected = r#"{flow_schema="crowd",priority_level="crowd",reason="concurrency-limit"}"#;
        let cause = [rejected, "name: reports"];
        drill.names(&contexts, &[("NAME", CROWD)], &cause).await
    });
}

/// Returns `true` for a binding as the propagation-controller makes it.
fn is_ours(binding: Option<&ResourceBinding>) -> bool {
    binding.is_some_and(|binding| binding.spec.replicas == Some(4))
}

/// The controllers that write other replicas into the binding.
const RIVAL: &str = "karmada-controller-manager";

/// Writes other replicas into a binding as often as it is ours.
async fn undo_each(bindings: &Api<ResourceBinding>, name: &str) -> Result<Infallible> {
    let parameters = PatchParams {
        field_manager: Some(RIVAL.to_owned()),
        ..PatchParams::default()
    };
    let theirs = Patch::Merge(json!({ "spec": { "replicas": 9 } }));
    loop {
        until(bindings, name, "ours", is_ours).await?;
        bindings.patch(name, &parameters, &theirs).await?;
    }
}

/// A Karmada upgrade has started Karmada's own controllers again, which put back their own binding of a template.
#[test]
fn rival_undoes_writes() {
    isolated(test_name!(), async || {
        let (fleet, programs) = deployed(ApiKind::Real, &[Member(1)]).await?;
        let binding = names::binding("Deployment", WEB);
        is_fully_applied(&fleet, &binding).await?;
        let controller = &programs.propagation_controller;
        let targets = [Target::on_host(Binary::PropagationController, controller)];
        let mut drill = Drill::of("KarmadaRsWritesContested");
        drill.record(&targets).await?;

        let bindings = fleet.bindings();
        let client = fleet.karmada.client();
        let named = format!("BindingContested {RIVAL} undoes every write to");
        tokio::select! {
            undone = undo_each(&bindings, &binding) => match undone? {},
            told = until_event(&client, "Deployment", WEB, &named) => told?,
        }
        until(&bindings, &binding, "ours", is_ours).await?;
        let contested = "karmada_propagation_controller_contested_writes_total";
        controller
            .until_metric(contested, |count| count > 0.0)
            .await?;
        drill.record(&targets).await?;
        let labels = json!({ "job": "propagation-controller", "namespace": "karmada-system",
            "severity": "warning" });
        let summary = "Another client undoes what the propagation-controller writes";
        drill.fires(6, &labels, summary)?;
        let contexts = [("karmada", &fleet.karmada)];
        let values = [("PROGRAM", "propagation-controller")];
        let cause = "karmada-controller-manager undoes every write";
        drill.names(&contexts, &values, &[cause]).await
    });
}
