//! Policies that wait for the next edit of a template.

use std::{fmt::Debug, time::Duration};

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use karmada_api::names;
use kube::{
    Api, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, create},
    wait::{until, until_told},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::base::is_claimed;
use super::{WEB, change, deployed, deployments, has_data, has_image, is_fully_applied, maps};

/// A Lazy policy that places the deployment in one member.
pub(super) fn lazily(member: Member) -> Value {
    json!({
        "activationPreference": "Lazy",
        "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB }],
        "placement": { "clusterAffinity": { "clusterNames": [member.name()] } },
    })
}

/// Returns the policy with this priority, for which it takes templates of others.
pub(super) fn preempting(mut policy: Value, priority: i32) -> Value {
    policy["priority"] = priority.into();
    policy["preemption"] = "Always".into();
    policy
}

/// Edits the template without an effect on its copies' pods: it gets this annotation.
pub(super) async fn edit(fleet: &PropagationFleet, key: &str) -> Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { key: "1" } } }));
    let parameters = PatchParams::default();
    deployments(&fleet.karmada)
        .patch(WEB, &parameters, &patch)
        .await?;
    Ok(())
}

/// Waits until the condition of the deployment's binding has this status and a message with `text`.
pub(super) async fn policy_applied(
    fleet: &PropagationFleet,
    status: &str,
    text: &str,
) -> Result<()> {
    policy_applied_to(fleet, "Deployment", status, text).await
}

/// Waits like [`policy_applied`], for the binding of the object [`WEB`] of a kind.
pub(super) async fn policy_applied_to(
    fleet: &PropagationFleet,
    kind: &str,
    status: &str,
    text: &str,
) -> Result<()> {
    let name = names::binding(kind, WEB);
    until_told(&fleet.bindings(), &name, ["PolicyApplied", status], text).await
}

/// Waits until the second in which the template was created is over: times of objects have seconds, and those of
/// one second count as one file.
pub(super) async fn second_passes(fleet: &PropagationFleet) -> Result<()> {
    let template = deployments(&fleet.karmada).get(WEB).await?;
    let created = template.metadata.creation_timestamp;
    let created = created.map(|time| time.0).unwrap_or_default();
    while Timestamp::now().as_second() <= created.as_second() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Waits until a policy has claimed the template [`WEB`] of a kind.
pub(super) async fn until_claimed<K>(templates: &Api<K>) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    until(templates, WEB, "claimed", |template: Option<&K>| {
        template.is_some_and(is_claimed)
    })
    .await?;
    Ok(())
}

async fn has_no_copy(fleet: &PropagationFleet, member: Member) -> Result<()> {
    let copy = deployments(fleet.member(member)).get_opt(WEB).await?;
    assert!(copy.is_none(), "{} runs it", member.name());
    Ok(())
}

/// Moves the deployment from member 1 to member 2 by an edit.
async fn moves_with_an_edit(fleet: &PropagationFleet) -> Result<()> {
    edit(fleet, "refresh-time").await?;
    has_image(fleet, Member(2), "web:1").await?;
    let copies = deployments(fleet.member(Member(1)));
    until(&copies, WEB, "gone", |copy: Option<&Deployment>| {
        copy.is_none()
    })
    .await?;
    Ok(())
}

/// Cases P34 and P44: a template waits for an edit before it follows its next policy. In Karmada it moves when the policy
/// before is deleted (W2) or edited (W3).
async fn next_policy_waits(server: ApiKind) -> Result<()> {
    let (one, two) = (Member(1), Member(2));
    let (fleet, programs) = deployed(server, &[one, two]).await?;
    change(&fleet, WEB, lazily(one)).await?;
    policy_applied(&fleet, "False", "waits for the next edit").await?;
    fleet.create_policy("zz", lazily(two)).await?;
    let deletion = DeleteParams::default();
    fleet.policies().delete(WEB, &deletion).await?;
    policy_applied(&fleet, "False", "shop/zz").await?;
    for member in [one, two] {
        has_image(&fleet, member, "web:1").await?;
    }
    moves_with_an_edit(&fleet).await?;

    fleet
        .create_policy("next", preempting(lazily(one), 2))
        .await?;
    policy_applied(&fleet, "False", "shop/next").await?;
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), settings).await?;
    // That it has the ConfigMap shows that its edit was seen.
    let mut edited = lazily(one);
    edited["activationPreference"] = Value::Null;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB });
    let deployment = edited["resourceSelectors"][0].take();
    edited["resourceSelectors"] = json!([deployment, map]);
    change(&fleet, "zz", edited).await?;
    has_data(&fleet, one, &[("a", "1")]).await?;
    programs.rest().await?;
    has_image(&fleet, two, "web:1").await?;
    has_no_copy(&fleet, one).await?;
    edit(&fleet, "next-time").await?;
    has_image(&fleet, one, "web:1").await
}

/// Many enough for a page of a list, a queue and its workers.
const MANY: u16 = 200;

/// Case P50: while many templates wait for a changed policy, no template, binding or Work is written but for the
/// condition of the bindings.
async fn policy_edit_writes_no_spec(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let mut policy = lazily(Member(1));
    policy["resourceSelectors"] = json!([{ "apiVersion": "v1", "kind": "ConfigMap",
        "labelSelector": { "matchLabels": { "app": WEB } } }]);
    fleet.create_policy(WEB, policy).await?;
    let programs = fleet.run().await?;
    let templates = maps(&fleet.karmada);
    let many: Vec<_> = (0..MANY).map(|nth| format!("{WEB}{nth}")).collect();
    for name in &many {
        create(
            &templates,
            json!({ "metadata": { "name": name, "labels": { "app": WEB } } }),
        )
        .await?;
    }
    for name in &many {
        is_fully_applied(&fleet, &names::binding("ConfigMap", name)).await?;
    }
    programs.rest().await?;

    let before = fleet.karmada.successful_writes().await?;
    let placement = lazily(Member(2))["placement"].take();
    change(&fleet, WEB, json!({ "placement": placement })).await?;
    let waiting = "karmada_propagation_controller_waiting_templates";
    let controller = &programs.propagation_controller;
    controller
        .until_metric(waiting, |count| count >= f64::from(MANY))
        .await?;
    programs.rest().await?;
    let written = fleet.karmada.successful_writes().await?.since(&before);
    let of_workloads = ["configmaps", "resourcebindings", "works"];
    assert!(!written.changes(&of_workloads), "{written}");
    let member = maps(fleet.member(Member(2)));
    assert_eq!(member.list(&ListParams::default()).await?.items, []);
    Ok(())
}

on_both!(
    long:
    next_policy_waits,
    policy_edit_writes_no_spec,
);
