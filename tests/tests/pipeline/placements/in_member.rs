//! What becomes of a placement in a member, whatever somebody does to it there, and whatever becomes of the hub.

use anyhow::Result;
use fleet_api::{AppliedWork, Work};
use k8s_openapi::api::{apps::v1::Deployment, rbac::v1::ClusterRole};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use pipeline_tests::{
    control_plane::ControlPlane, crds, fleet::Member, propagation::create, wait::until,
};
use serde_json::{Value, from_value, json};

use super::{KEY, MAP, Stage, edit, maps, namespaces, said, stories};

const MEMBER: Member = Member(1);

/// Case F44: what somebody changes or deletes in the member is put right.
async fn drift_is_put_right(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "drift";
    stage.placed(NAME).await?;
    stage.disturb(MEMBER, NAME).await?;
    stage.remove(NAME).await
}

/// Case F47: what belongs to another in the member is left to it, and the placement says of which object and why; once
/// it is free, it is taken.
async fn foreign_object_is_named(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "foreign";
    let member = stage.fleet.member(MEMBER);
    member.namespace(NAME).await?;
    let propagated = json!({ "metadata": { "name": MAP, "labels": { "karmada.io/managed": "true" } },
        "data": { KEY: "theirs" } });
    create(&maps(member, NAME), propagated).await?;
    stage.fill(NAME).await?;
    stage
        .place(NAME, json!({ "placementType": "PickAll" }))
        .await?;
    stage
        .until_status(NAME, "refused", |status| {
            let is_failed =
                said(&status.conditions).contains(&"Applied False ApplyFailed".to_owned());
            let clusters = status.placement_statuses.iter();
            let mut failed = clusters.flat_map(|one| &one.failed_placements);
            is_failed
                && failed.any(|failed| {
                    failed.identifier.name == MAP
                        && failed.condition.reason == "FailedToTakeOver"
                        && failed.condition.message.contains("propagated by Karmada")
                })
        })
        .await?;
    stage.until_value(MEMBER, NAME, "theirs").await?;
    let free = Patch::Merge(json!({ "metadata": { "labels": null } }));
    let maps = maps(member, NAME);
    maps.patch(MAP, &PatchParams::default(), &free).await?;
    stage.until_complete(NAME).await?;
    stage.until_value(MEMBER, NAME, "value").await?;
    stage.remove(NAME).await
}

/// Case F54: without its hub a member keeps what it has; with it again, it gets what is new.
async fn member_does_without_hub(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "outage";
    stage.placed(NAME).await?;
    stage.fleet.hub.stop_api().await?;
    edit(stage.fleet.member(MEMBER), NAME, "of somebody").await?;
    stage.until_value(MEMBER, NAME, "value").await?;
    stage.fleet.hub.start_api().await?;
    stage.edit(NAME, "edited").await?;
    stage.until_value(MEMBER, NAME, "edited").await?;
    stage.until_complete(NAME).await?;
    stage.remove(NAME).await
}

/// Case F50: programs that take over from others write nothing but heartbeats.
async fn next_programs_write_nothing(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "handover";
    stage.placed(NAME).await?;
    stage.hand_over().await?;
    stage.remove(NAME).await
}

/// Case F49: a member that leaves keeps what it has; when it joins again, nothing of that is written, and edits arrive.
async fn leaving_keeps_objects(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "leaving";
    stage.placed(NAME).await?;
    let member = stage.fleet.member(MEMBER);
    let copy = maps(member, NAME).get(MAP).await?;
    stage.leave(MEMBER).await?;
    let owners: Api<AppliedWork> = Api::all(member.client());
    owners.get("leaving-work").await?;
    assert!(namespaces(member).get_opt(NAME).await?.is_some());
    stage
        .until_status(NAME, "nowhere", |status| {
            status.placement_statuses.is_empty()
        })
        .await?;

    stage.fleet.register(MEMBER, json!({})).await?;
    stage.until_joined(MEMBER).await?;
    stage.until_complete(NAME).await?;
    let kept = maps(member, NAME).get(MAP).await?;
    assert_eq!(kept.resource_version(), copy.resource_version());
    stage.edit(NAME, "edited").await?;
    stage.until_value(MEMBER, NAME, "edited").await?;
    stage.until_complete(NAME).await?;
    stage.remove(NAME).await
}

const CONTAINERS: &str = "/spec/template/spec/containers";

/// Returns the containers of a Deployment.
fn containers(names: &[&str]) -> Value {
    let containers = names.iter().map(|name| {
        let image = format!("registry.example.com/shop/{name}:1");
        json!({ "name": name, "image": image })
    });
    containers.collect()
}

/// Case F55: a sidecar that another program has tuned in the member leaves with its template.
async fn touched_sidecar_leaves(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "sidecar";
    stage.fill(NAME).await?;
    let deployment = |api: &ControlPlane| Api::<Deployment>::namespaced(api.client(), NAME);
    let labels = json!({ "app": "web" });
    let pod = |names: &[&str]| {
        json!({ "metadata": { "labels": labels },
        "spec": { "containers": containers(names) } })
    };
    let spec = json!({ "selector": { "matchLabels": labels }, "template": pod(&["web", "proxy"]) });
    let (templates, copies) = (
        deployment(&stage.fleet.hub),
        deployment(stage.fleet.member(MEMBER)),
    );
    create(
        &templates,
        json!({ "metadata": { "name": "web" }, "spec": spec }),
    )
    .await?;
    stage
        .place(NAME, json!({ "placementType": "PickAll" }))
        .await?;
    has_containers(&copies, &["web", "proxy"]).await?;

    let limits = json!([{ "name": "proxy", "resources": { "limits": { "cpu": "1" } } }]);
    let tuning = Patch::Apply(json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": { "template": { "spec": { "containers": limits } } } }));
    let by_tuner = PatchParams::apply("tuner");
    copies.patch("web", &by_tuner, &tuning).await?;
    let without = Patch::Merge(json!({ "spec": { "template": pod(&["web"]) } }));
    templates
        .patch("web", &PatchParams::default(), &without)
        .await?;
    has_containers(&copies, &["web"]).await?;
    stage
        .until_status(NAME, "applied", |status| {
            said(&status.conditions).contains(&"Applied True ApplySucceeded".to_owned())
        })
        .await?;
    stage.remove(NAME).await
}

async fn has_containers(copies: &Api<Deployment>, names: &[&str]) -> Result<()> {
    until(copies, "web", &format!("of {names:?}"), |copy| {
        let copy = json!(copy);
        let found = copy.pointer(CONTAINERS).and_then(Value::as_array);
        let found = found.into_iter().flatten().map(|one| &one["name"]);
        found.eq(names)
    })
    .await?;
    Ok(())
}

/// Cases F56 and F57: a member with an older definition gets what it knows, and the Work names the rest; texts arrive byte
/// for byte. The hub places a kind of its users once it may read it.
async fn copies_have_what_members_know(stage: &mut Stage) -> Result<()> {
    const NAME: &str = "exact";
    let reads = json!({ "metadata": { "name": "reads-shirts",
            "labels": { "karmada-rs.io/aggregate-to-placement-controller": "true" } },
        "rules": [{ "apiGroups": ["example.com"], "resources": ["shirts"], "verbs": ["list", "watch"] }] });
    let (hub, member) = (&stage.fleet.hub, stage.fleet.member(MEMBER));
    create(&Api::<ClusterRole>::all(hub.client()), reads).await?;
    let older = json!({ "size": { "type": "integer" } });
    let mut newer = older.clone();
    newer["color"] = json!({ "type": "string" });
    for (api, fields) in [(hub, newer), (member, older)] {
        let definition = crds::definition("example.com", "Shirt", "shirts", &fields)?;
        crds::apply(&api.client(), &[definition]).await?;
    }
    stage.fill(NAME).await?;
    let odd = "x \u{2028} y \u{2029} z \u{85} \u{7f}\u{9f}\u{fffe}\u{ffff}\u{1f600}";
    stage.edit(NAME, odd).await?;
    let shirt = json!({ "apiVersion": "example.com/v1", "kind": "Shirt",
        "metadata": { "name": "one" }, "spec": { "size": 1, "color": "red" } });
    let shirts = |api: &ControlPlane| -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Shirt"));
        Api::namespaced_with(api.client(), NAME, &kind)
    };
    let parameters = PostParams::default();
    shirts(hub).create(&parameters, &from_value(shirt)?).await?;
    stage
        .place(NAME, json!({ "placementType": "PickAll" }))
        .await?;
    let copies = shirts(member);
    until(&copies, "one", "there", |found| found.is_some()).await?;
    assert_eq!(copies.get("one").await?.data["spec"], json!({ "size": 1 }));
    stage.until_complete(NAME).await?;
    stage.until_value(MEMBER, NAME, odd).await?;
    let told = |work: Option<&Work>| {
        let status = json!(work.map(|work| &work.status)).to_string();
        status.contains("lacks spec.color of Shirt")
    };
    let works = stage.fleet.works(MEMBER);
    until(&works, "exact-work", "told of the color", told).await?;
    stage.remove(NAME).await
}

stories!(
    1:
    drift_is_put_right,
    foreign_object_is_named,
    member_does_without_hub,
    next_programs_write_nothing,
    leaving_keeps_objects,
    touched_sidecar_leaves,
    copies_have_what_members_know,
);
