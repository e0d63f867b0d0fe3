//! Members that take nothing.

use anyhow::Result;
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::{Timestamp, ToSpan};
use k8s_openapi::api::{
    core::v1::{Secret, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::Api;
use pipeline_tests::{
    api::{create, merge},
    control_plane::{ApiKind, ControlPlane},
    fleet::{Member, NAMESPACE, isolated},
    programs::{Binary, Running},
    propagation::PropagationFleet,
    test_name,
};
use serde_json::json;

use crate::{
    drills::{Drill, alert::Target},
    propagation::{
        WEB,
        bad_input::{is_refused, leave_no_room},
        has_data, maps, set_data, settings,
    },
};

const MEMBER: Member = Member(1);
/// The namespace and the name of the fleet's account in a member.
const ACCOUNT: (&str, &str) = ("karmada-rs", "fleet");

fn targets(execution: &Running) -> [Target<'_>; 1] {
    [Target::on_host(Binary::ExecutionController, execution)]
}

/// Creates the fleet's account in a member, with every right.
async fn create_account(member: &ControlPlane) -> Result<()> {
    let (namespace, name) = ACCOUNT;
    member.namespace(namespace).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(member.client(), namespace);
    create(&accounts, json!({ "metadata": { "name": name } })).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(member.client());
    let subject = json!({ "kind": "ServiceAccount", "namespace": namespace, "name": name });
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" });
    let binding = json!({ "metadata": { "name": name }, "roleRef": role, "subjects": [subject] });
    create(&bindings, binding).await
}

/// Has the fleet use a token that begins and ends at these times.
async fn use_token(fleet: &PropagationFleet, life: [Timestamp; 2]) -> Result<()> {
    let (namespace, name) = ACCOUNT;
    let token = fleet.member(MEMBER).account_token(namespace, name, life);
    let token = BASE64_STANDARD.encode(token.await?);
    let secrets: Api<Secret> = Api::namespaced(fleet.karmada.client(), "karmada-cluster");
    let patch = json!({ "data": { "token": token } });
    merge(&secrets, &MEMBER.name(), &patch).await
}

/// The member grants tokens of an hour, and nobody renewed the last one. No test waits for an hour: the program is given
/// one of two hours ago.
#[test]
fn token_for_member_has_ended() {
    isolated(test_name!(), async || {
        let fleet = settings(ApiKind::Real, 1, json!({})).await?;
        create_account(fleet.member(MEMBER)).await?;
        let now = Timestamp::now();
        use_token(&fleet, [now, now + 9000.hours()]).await?;
        let programs = fleet.run().await?;
        has_data(&fleet, MEMBER, &[("a", "1")]).await?;
        let execution = &programs.execution_controller;
        let mut drill = Drill::of("KarmadaRsMemberCredentialsExpiring");
        drill.record(&targets(execution)).await?;

        use_token(&fleet, [now - 2.hours(), now - 1.hours()]).await?;
        set_data(&fleet.karmada, json!({ "a": "2" })).await?;
        is_refused(&fleet, MEMBER, "Unauthorized").await?;
        drill.record(&targets(execution)).await?;
        let labels = json!({ "member": "member1", "severity": "critical" });
        drill.fires(16, &labels, "The token for member1 ends soon, or has ended")?;
        let contexts = [
            ("karmada", &fleet.karmada),
            ("member1", fleet.member(MEMBER)),
        ];
        let cause = format!("member1: its credentials ended at {:.0}", now - 1.hours());
        drill
            .names(&contexts, &[("CLUSTER", "member1")], &[&cause])
            .await
    });
}

/// A namespace of the member is full, so that one of two `ConfigMap`s gets there.
#[test]
fn quota_refuses_a_work() {
    const MORE: &str = "more";
    isolated(test_name!(), async || {
        let fleet = settings(ApiKind::Real, 1, json!({})).await?;
        let programs = fleet.run().await?;
        has_data(&fleet, MEMBER, &[("a", "1")]).await?;
        programs.rest().await?;
        let execution = &programs.execution_controller;
        let mut drill = Drill::of("KarmadaRsWorksUnapplied");
        drill.record(&targets(execution)).await?;

        leave_no_room(fleet.member(MEMBER)).await?;
        create(
            &maps(&fleet.karmada),
            json!({ "metadata": { "name": MORE } }),
        )
        .await?;
        let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": MORE });
        let policy = json!({ "resourceSelectors": [selector], "placement": {} });
        fleet.create_policy(MORE, policy).await?;
        let work = PropagationFleet::work_name("ConfigMap", MORE);
        let oldest = "karmada_execution_controller_oldest_unapplied_work_seconds";
        execution.until_metric(oldest, |age| age > 0.0).await?;
        drill.record(&targets(execution)).await?;
        let seconds = drill.last(oldest).unwrap_or_default();
        let labels = json!({ "member": "member1", "severity": "warning" });
        let summary = format!("A Work for member1 has not been applied for 17m {seconds}s");
        drill.fires(17, &labels, &summary)?;
        let contexts = [
            ("karmada", &fleet.karmada),
            ("member1", fleet.member(MEMBER)),
        ];
        let values = [
            ("CLUSTER", "member1"),
            ("NAMESPACE", NAMESPACE),
            ("NAME", &work),
        ];
        let cause = format!("exceeded quota: {WEB}, requested: configmaps=1");
        drill.names(&contexts, &values, &[&cause]).await
    });
}
