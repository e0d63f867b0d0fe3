//! Copies equal their templates byte for byte, whatever somebody in the member does to them.

use anyhow::Result;
use karmada_api::names;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use pipeline_tests::{
    api::merge,
    control_plane::{ApiKind, ControlPlane},
    crds,
    fleet::{Member, NAMESPACE},
    on_both,
    propagation::{PropagationFleet, PropagationPrograms},
    wait::until,
};
use serde_json::{Value, from_value, json};

use super::has_condition;

const MEMBER: Member = Member(1);

/// Returns the objects of a kind in an API.
fn objects(api: &ControlPlane, version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(api.client(), NAMESPACE, &resource)
}

/// Creates a template.
async fn create(fleet: &PropagationFleet, template: &Value) -> Result<()> {
    let templates = objects(
        &fleet.karmada,
        text(template, "apiVersion"),
        text(template, "kind"),
    );
    let template = from_value(template.clone())?;
    templates.create(&PostParams::default(), &template).await?;
    Ok(())
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap()
}

/// Waits until the copy of an object has this value at `pointer`, and its Work is applied.
async fn has(fleet: &PropagationFleet, of: [&str; 3], pointer: &str, wanted: &Value) -> Result<()> {
    let [version, kind, name] = of;
    let copies = objects(fleet.member(MEMBER), version, kind);
    until(&copies, name, &format!("with {wanted}"), |copy| {
        let copy = copy.map(|copy| serde_json::to_value(copy).unwrap());
        let found = copy.as_ref().and_then(|copy| copy.pointer(pointer));
        found.unwrap_or(&Value::Null) == wanted
    })
    .await?;
    let work = names::work(kind, NAMESPACE, name);
    until(&fleet.works(MEMBER), &work, "applied", |work| {
        work.is_some_and(|work| has_condition(work, "Applied", "True"))
    })
    .await?;
    Ok(())
}

/// Selects these templates, and lets the member serve their kinds. The API has objects of its own.
async fn propagate(fleet: &PropagationFleet, templates: &[[&str; 4]]) -> Result<()> {
    let selectors = templates.iter().map(
        |[version, kind, _, name]| json!({ "apiVersion": version, "kind": kind, "name": name }),
    );
    let spec = json!({ "resourceSelectors": selectors.collect::<Vec<_>>(), "placement": {} });
    fleet.create_cluster_policy("all", spec).await?;
    let kinds = templates.iter();
    let kinds = kinds.map(|[version, kind, plural, _]| (*version, *kind, *plural));
    fleet.enable(MEMBER, kinds).await
}

/// Returns the containers of a Deployment.
fn containers(names: &[&str]) -> Value {
    let containers = names.iter().map(|name| {
        let image = format!("registry.example.com/shop/{name}:1");
        json!({ "name": name, "image": image })
    });
    containers.collect()
}

/// Fails unless the member takes no write while the programs start anew.
async fn ensure_restart_writes_nothing(
    fleet: &PropagationFleet,
    programs: PropagationPrograms,
) -> Result<()> {
    programs.settled().await?;
    programs.stop().await?;
    let before = fleet.member(MEMBER).successful_writes().await?;
    let programs = fleet.run().await?;
    programs.settled().await?;
    let written = fleet
        .member(MEMBER)
        .successful_writes()
        .await?
        .since(&before);
    assert_eq!(written.to_string(), "no writes");
    Ok(())
}

const CONTAINERS: &str = "/spec/template/spec/containers";
const DEPLOYMENT: [&str; 4] = ["apps/v1", "Deployment", "deployments", "web"];

fn deployment(containers: &Value) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": NAMESPACE },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "web" } }, "template": {
            "metadata": { "labels": { "app": "web" } }, "spec": { "containers": containers } } } })
}

/// Case P71: a sidecar that another program has tuned leaves with its template.
async fn touched_sidecar_leaves(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    propagate(&fleet, &[DEPLOYMENT]).await?;
    create(&fleet, &deployment(&containers(&["web", "proxy"]))).await?;
    let programs = fleet.run().await?;
    let of = ["apps/v1", "Deployment", "web"];
    has(&fleet, of, &format!("{CONTAINERS}/1/name"), &json!("proxy")).await?;
    let limits = json!([{ "name": "proxy", "resources": { "limits": { "cpu": "1" } } }]);
    let tuning = Patch::Apply(json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": { "template": { "spec": { "containers": limits } } } }));
    let copies = objects(fleet.member(MEMBER), "apps/v1", "Deployment");
    let by_tuner = PatchParams::apply("tuner");
    copies.patch("web", &by_tuner, &tuning).await?;

    let templates = objects(&fleet.karmada, "apps/v1", "Deployment");
    let spec = json!({ "template": { "spec": { "containers": containers(&["web"]) } } });
    let without = json!({ "spec": spec });
    merge(&templates, "web", &without).await?;
    has(&fleet, of, &format!("{CONTAINERS}/1"), &Value::Null).await?;
    has(&fleet, of, &format!("{CONTAINERS}/0/name"), &json!("web")).await?;
    ensure_restart_writes_nothing(&fleet, programs).await
}

/// Case P73: a member with an older CRD gets the fields that it knows. Case P74: texts arrive byte for byte.
async fn copies_have_what_members_know(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 1).await?;
    fleet.allow("example.com/shirts").await?;
    let shirt = ["example.com/v1", "Shirt", "shirts", "one"];
    propagate(&fleet, &[shirt, ["v1", "ConfigMap", "configmaps", "odd"]]).await?;
    let fields = json!({ "size": { "type": "integer" } });
    let mut more = fields.clone();
    more["color"] = json!({ "type": "string" });
    for (api, fields) in [(&fleet.karmada, &more), (fleet.member(MEMBER), &fields)] {
        let definition = crds::definition("example.com", "Shirt", "shirts", fields)?;
        crds::apply(&api.client(), &[definition]).await?;
    }
    let metadata = |name: &str| json!({ "name": name, "namespace": NAMESPACE });
    create(
        &fleet,
        &json!({ "apiVersion": "example.com/v1", "kind": "Shirt",
        "metadata": metadata("one"), "spec": { "size": 1, "color": "red" } }),
    )
    .await?;
    let odd = "x \u{2028} y \u{2029} z \u{85} \u{7f}\u{9f}\u{fffe}\u{ffff}\u{1f600}";
    create(
        &fleet,
        &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("odd"),
        "data": { "text": odd } }),
    )
    .await?;
    let programs = fleet.run().await?;

    has(
        &fleet,
        ["v1", "ConfigMap", "odd"],
        "/data/text",
        &json!(odd),
    )
    .await?;
    has(
        &fleet,
        ["example.com/v1", "Shirt", "one"],
        "/spec",
        &json!({ "size": 1 }),
    )
    .await?;
    let work = names::work("Shirt", NAMESPACE, "one");
    let work = fleet.works(MEMBER).get(&work).await?;
    let message = &work.condition("Applied").unwrap().message;
    assert!(message.contains("lacks spec.color of Shirt"), "{message}");
    programs.stop().await
}

on_both!(
    long:
    touched_sidecar_leaves,
    copies_have_what_members_know,
);
