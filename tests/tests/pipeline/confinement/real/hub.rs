//! The programs that place, on their hub.

use anyhow::Result;
use pipeline_tests::{
    control_plane::{ApiKind, ControlPlane},
    fleet::isolated,
    manifests,
    rights::grant,
    test_name,
};
use serde_json::{Value, json};

use super::super::{
    Attempt, SHOP_ROLES, allowed, attempt, labelled, named, play, recorded_in, send, until_refused,
};

fn of_placement_controller() -> Vec<Attempt> {
    let outside = "the placement-controller writes in fleet-member-* only";
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces";
    let of_member = |plural: &str| format!("{rbac}/fleet-member-member1/{plural}");
    let binding = |kind: &str, name: &str| {
        let to = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name });
        let subject =
            json!({ "kind": "ServiceAccount", "namespace": "fleet-system", "name": "member1" });
        named(
            "fleet-rolebinding-member1",
            &json!({ "roleRef": to, "subjects": [subject] }),
        )
    };
    let rules = json!({ "rules": [{ "apiGroups": ["cluster.kubernetes-fleet.io", "placement.kubernetes-fleet.io"],
        "resources": ["*"], "verbs": ["*"] }] });
    let role = named("fleet-role-member1", &rules);
    vec![
        attempt(
            "POST",
            "/api/v1/namespaces",
            named("a", &json!({})),
            outside,
        ),
        attempt("PATCH", "/api/v1/namespaces/shop", labelled("a"), outside),
        attempt("DELETE", "/api/v1/namespaces/shop", Value::Null, outside),
        attempt(
            "DELETE",
            "/api/v1/namespaces/fleet-system",
            Value::Null,
            outside,
        ),
        attempt("POST", SHOP_ROLES, role.clone(), outside),
        attempt(
            "PATCH",
            &format!("{SHOP_ROLES}/role"),
            rules.clone(),
            outside,
        ),
        attempt(
            "POST",
            &format!("{rbac}/shop/rolebindings"),
            binding("Role", "role"),
            outside,
        ),
        attempt(
            "PATCH",
            "/api/v1/namespaces/shop/configmaps/map",
            labelled("a"),
            "cannot patch resource",
        ),
        attempt(
            "DELETE",
            "/api/v1/namespaces/shop/secrets/secret",
            Value::Null,
            "cannot delete resource",
        ),
        allowed(
            "POST",
            "/api/v1/namespaces",
            named("fleet-member-member1", &json!({})),
        ),
        allowed("POST", &of_member("roles"), role),
        attempt(
            "POST",
            &of_member("rolebindings"),
            binding("ClusterRole", "view"),
            "grants a Role of the namespace only",
        ),
        allowed(
            "POST",
            &of_member("rolebindings"),
            binding("Role", "fleet-role-member1"),
        ),
    ]
}

fn of_placement_agent() -> Vec<Attempt> {
    let work = named("a", &json!({ "spec": { "workload": { "manifests": [] } } }));
    let fleet = "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements/shop";
    let cluster = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters/member2";
    vec![
        attempt(
            "POST",
            &works("member2"),
            work.clone(),
            "cannot create resource",
        ),
        attempt("PATCH", fleet, labelled("a"), "cannot patch resource"),
        attempt("PATCH", cluster, labelled("a"), "cannot patch resource"),
        attempt(
            "PATCH",
            "/api/v1/namespaces/fleet-member-member1",
            labelled("a"),
            "cannot patch resource",
        ),
        attempt(
            "GET",
            "/api/v1/namespaces/shop/secrets/secret",
            Value::Null,
            "cannot get resource",
        ),
        attempt(
            "GET",
            &works("member2"),
            Value::Null,
            "cannot list resource",
        ),
        allowed("POST", &works("member1"), work),
    ]
}

/// Returns the path of the status of a cluster.
fn status(cluster: &str) -> String {
    format!("/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters/{cluster}/status")
}

/// Returns a status with one condition.
fn says(kind: &str, reason: &str) -> Value {
    let condition = json!({ "type": kind, "status": "False", "reason": reason, "message": "",
        "lastTransitionTime": "2026-11-26T08:00:00Z" });
    json!({ "status": { "conditions": [condition] } })
}

fn usage() -> Value {
    json!({ "status": { "resourceUsage": { "capacity": { "cpu": "1" } } } })
}

fn of_health_agent() -> Vec<Attempt> {
    let signal = || says("ServiceDomainNameResolutionReady", "Tried");
    vec![
        attempt(
            "PATCH",
            &status("member1"),
            usage(),
            "writes conditions of a MemberCluster only",
        ),
        attempt(
            "PATCH",
            &status("member1"),
            says("Joined", "Tried"),
            "is not this account's to write",
        ),
        attempt(
            "PATCH",
            &status("member1"),
            says("TrafficControl", "DeclaredSignalReady"),
            "is not this account's to write",
        ),
        attempt(
            "PATCH",
            &status("member2"),
            signal(),
            "cannot patch resource",
        ),
        attempt(
            "PATCH",
            status("member1").trim_end_matches("/status"),
            labelled("a"),
            "cannot patch resource",
        ),
        attempt(
            "GET",
            &works("member1"),
            Value::Null,
            "cannot list resource",
        ),
        recorded_in("fleet-member-member2", Some("cannot create resource")),
        recorded_in("fleet-member-member1", None),
        allowed("PATCH", &status("member1"), signal()),
    ]
}

fn of_remedy_controller() -> Vec<Attempt> {
    let status = status("member1");
    vec![
        attempt(
            "PATCH",
            &status,
            usage(),
            "writes conditions of a MemberCluster only",
        ),
        attempt(
            "PATCH",
            &status,
            says("Joined", "DeclaredSignalReady"),
            "is not this account's to write",
        ),
        attempt(
            "PATCH",
            status.trim_end_matches("/status"),
            labelled("a"),
            "cannot patch resource",
        ),
        allowed("PATCH", &status, says("TrafficControl", "Tried")),
    ]
}

/// Returns the path of the Works of a cluster.
fn works(cluster: &str) -> String {
    format!("/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/fleet-member-{cluster}/works")
}

/// Returns the requests of somebody who may write the `ConfigMap`s and envelopes of a placed namespace.
fn of_writer() -> Vec<Attempt> {
    let maps = "/api/v1/namespaces/shop/configmaps";
    let envelopes = "/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/shop/resourceenvelopes";
    let holding = |version: &str, kind: &str| {
        let held = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "a" } });
        let name = kind.to_lowercase();
        named(&name, &json!({ "data": { "a": held } }))
    };
    let annotated = |value: &str| {
        let annotations = json!({ "kubernetes-fleet.io/envelope-configmap": value });
        json!({ "metadata": { "name": format!("is-{value}"), "annotations": annotations } })
    };
    vec![
        allowed("POST", maps, named("map", &json!({}))),
        allowed("POST", maps, annotated("false")),
        attempt(
            "POST",
            maps,
            annotated("true"),
            "by those who may create ClusterResourceEnvelopes",
        ),
        allowed("POST", envelopes, holding("v1", "ResourceQuota")),
        attempt(
            "POST",
            envelopes,
            holding("rbac.authorization.k8s.io/v1", "RoleBinding"),
            "by those who may escalate and bind Roles in its namespace",
        ),
    ]
}

/// Case F58: nor with those of placements can anything but clusters' namespaces be written on the hub.
#[test]
fn stolen_tokens_spare_the_hub() {
    isolated(test_name!(), async || {
        let hub = ControlPlane::start("hub", ApiKind::Real).await?;
        hub.install_crds(&[manifests::path("placement/crds")])
            .await?;
        for namespace in ["fleet-system", "shop", "fleet-member-member2"] {
            hub.namespace(namespace).await?;
        }
        let role = named("role", &json!({ "rules": [] }));
        send(&hub.client(), "POST", SHOP_ROLES, &role).await?;
        manifests::apply(&hub.client(), "placement/hub/placement-controller.yaml").await?;
        manifests::apply(&hub.client(), "placement/hub/selected.yaml").await?;
        hub.guard([
            "placement/hub/confinement.yaml",
            "placement/hub/envelopes.yaml",
        ])
        .await?;
        let controller = "system:serviceaccount:fleet-system:placement-controller";
        let client = hub.client_for(controller).await?;
        let outside = named("outside", &json!({}));
        until_refused(
            &client,
            "POST",
            "/api/v1/namespaces?dryRun=All",
            &outside,
            "writes in fleet-member-* only",
        )
        .await;
        play(&hub, controller, of_placement_controller()).await?;
        let agent = "system:serviceaccount:fleet-system:member1";
        let client = hub.client_for(agent).await?;
        // Its rights were made now.
        while send(&client, "GET", &works("member1"), &Value::Null)
            .await
            .is_err()
        {}
        play(&hub, agent, of_placement_agent()).await?;
        play_health_agent(&hub).await?;
        play_writer(&hub).await
    });
}

async fn play_health_agent(hub: &ControlPlane) -> Result<()> {
    let clusters = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
    let cluster = json!({ "spec": { "identity": { "kind": "User", "name": "a" } } });
    send(&hub.client(), "POST", clusters, &named("member1", &cluster)).await?;
    manifests::apply(&hub.client(), "placement/hub/cluster-health-agent.yaml").await?;
    let agent = "system:serviceaccount:fleet-member-member1:cluster-health-agent";
    let client = hub.client_for(agent).await?;
    let status = format!("{clusters}/member1/status?dryRun=All");
    let usage = json!({ "status": { "resourceUsage": {} } });
    until_refused(
        &client,
        "PATCH",
        &status,
        &usage,
        "writes conditions of a MemberCluster only",
    )
    .await;
    play(hub, agent, of_health_agent()).await?;
    // The next account may not remove the agent's objects.
    let bare = json!({ "status": { "conditions": null } });
    send(&hub.client(), "PATCH", &self::status("member1"), &bare).await?;
    manifests::apply(&hub.client(), "placement/remedies/rights.yaml").await?;
    let controller = "system:serviceaccount:fleet-system:remedy-controller";
    let client = hub.client_for(controller).await?;
    // Its rights were made now.
    while send(&client, "GET", clusters, &Value::Null).await.is_err() {}
    play(hub, controller, of_remedy_controller()).await?;
    Ok(())
}

async fn play_writer(hub: &ControlPlane) -> Result<()> {
    let rights = json!([
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"] },
        { "apiGroups": ["placement.kubernetes-fleet.io"], "resources": ["resourceenvelopes"],
            "verbs": ["create"] },
    ]);
    grant(&hub.client(), "writer", &rights).await?;
    let client = hub.client_for("writer").await?;
    let maps = "/api/v1/namespaces/shop/configmaps?dryRun=All";
    let annotations = json!({ "kubernetes-fleet.io/envelope-configmap": "true" });
    let envelope = json!({ "metadata": { "name": "envelope", "annotations": annotations } });
    until_refused(
        &client,
        "POST",
        maps,
        &envelope,
        "who may create ClusterResourceEnvelopes",
    )
    .await;
    play(hub, "writer", of_writer()).await?;
    Ok(())
}
