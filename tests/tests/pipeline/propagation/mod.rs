//! A workload travels from a policy to the members, and a pause holds it. docs/cases.md lists the cases.
//!
//! - `base`, `copies`, `exact`, `kinds`, `many_kinds`, `jobs`, `services`, `naming`: copies that arrive, and go again.
//! - `suspension`: a pause, and its end.
//! - `dependencies`, `api_upgrade`: policies that wait for the next edit of a template.
//! - `failover`: when a workload leaves a cluster.
//! - `stories`, `dns_outage`: the examples of the proposals, from their first line to their last.
//! - `recorded`, `takeover`: objects and fleets of a real Karmada; `mixed`: a large one. `restored`: a member's data put back. `bad_input`: mistakes that must delay nobody else.
//! - `protected`: workloads that outlive their namespace.
//! - `rights`: which kinds may be propagated.
//! - `record` writes down each version of an object that a member has had.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

mod api_upgrade;
pub(crate) mod bad_input;
mod base;
mod copies;
mod dependencies;
mod dns_outage;
mod exact;
mod failover;
mod jobs;
mod kinds;
mod many_kinds;
mod mixed;
mod naming;
mod protected;
mod record;
mod recorded;
mod restored;
mod rights;
mod services;
mod stories;
mod suspension;
mod takeover;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use karmada_api::{ResourceBindingStatus, Work, names};
use kube::Api;
use pipeline_tests::{
    api::{create, merge},
    control_plane::{ApiKind, ControlPlane},
    fleet::{Member, NAMESPACE},
    propagation::{PropagationFleet, PropagationPrograms, namespaced},
    wait::{until, until_told},
};
use serde_json::{Value, json};

pub(crate) const WEB: &str = "web";
/// The name of a `ClusterRole`.
const ROLE: &str = "shop:reader";
const IMAGE: &str = "/spec/template/spec/containers/0/image";

pub(crate) fn deployment(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": WEB, "namespace": NAMESPACE, "labels": { "app": WEB } },
        "spec": {
            "replicas": 4,
            "selector": { "matchLabels": { "app": WEB } },
            "template": {
                "metadata": { "labels": { "app": WEB } },
                "spec": { "containers": [{ "name": WEB, "image": image }] },
            },
        },
    })
}

/// A policy for the deployment: half of its replicas in each of two members.
pub(crate) fn divided(members: &[Member]) -> Value {
    let names: Vec<_> = members.iter().map(|member| member.name()).collect();
    let weights = names
        .iter()
        .map(|name| json!({ "targetCluster": { "clusterNames": [name] }, "weight": 1 }));
    let weights: Vec<_> = weights.collect();
    json!({
        "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB }],
        "placement": {
            "clusterAffinity": { "clusterNames": names },
            "replicaScheduling": {
                "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                "weightPreference": { "staticWeightList": weights },
            },
        },
    })
}

/// Starts a fleet of these members and its programs, and waits until all members run the deployment in
/// its first version.
pub(crate) async fn deployed(
    server: ApiKind,
    members: &[Member],
) -> Result<(PropagationFleet, PropagationPrograms)> {
    let fleet = PropagationFleet::start(server, u8::try_from(members.len())?).await?;
    create(&deployments(&fleet.karmada), deployment("web:1")).await?;
    fleet.create_policy(WEB, divided(members)).await?;
    let programs = fleet.run().await?;
    for &member in members {
        has_image(&fleet, member, "web:1").await?;
    }
    Ok((fleet, programs))
}

fn image(deployment: &Deployment) -> Option<String> {
    let value = serde_json::to_value(deployment).ok()?;
    Some(value.pointer(IMAGE)?.as_str()?.to_owned())
}

async fn has_image(fleet: &PropagationFleet, member: Member, wanted: &str) -> Result<()> {
    let deployments = deployments(fleet.member(member));
    until(&deployments, WEB, wanted, |object| {
        object.and_then(image).as_deref() == Some(wanted)
    })
    .await?;
    Ok(())
}

async fn set_image(fleet: &PropagationFleet, wanted: &str) -> Result<()> {
    let deployments = deployments(&fleet.karmada);
    let containers = json!([{ "name": WEB, "image": wanted }]);
    let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    merge(&deployments, WEB, &patch).await
}

/// Changes fields of a policy's spec.
async fn change(fleet: &PropagationFleet, policy: &str, spec: Value) -> Result<()> {
    let patch = json!({ "spec": spec });
    merge(&fleet.policies(), policy, &patch).await
}

async fn suspend(fleet: &PropagationFleet, suspension: Value) -> Result<()> {
    change(fleet, WEB, json!({ "suspension": suspension })).await
}

/// Returns the deployments of an API.
pub(crate) fn deployments(api: &ControlPlane) -> Api<Deployment> {
    namespaced(api.client())
}

/// Sets the replicas of the deployment.
async fn scale(deployments: &Api<Deployment>, replicas: i32) -> Result<()> {
    let patch = json!({ "spec": { "replicas": replicas } });
    merge(deployments, WEB, &patch).await
}

/// Waits until the Work of the object [`WEB`] of a kind in `member` is as wanted.
pub(crate) async fn until_work(
    fleet: &PropagationFleet,
    member: Member,
    kind: &str,
    what: &str,
    is: impl Fn(Option<&Work>) -> bool,
) -> Result<()> {
    let name = PropagationFleet::work_name(kind, WEB);
    until(&fleet.works(member), &name, what, is).await?;
    Ok(())
}

/// Waits until the Work of the deployment in `member` has the condition.
async fn work_has(
    fleet: &PropagationFleet,
    member: Member,
    kind: &str,
    status: &str,
    image: &str,
) -> Result<()> {
    let what = format!("{kind} {status} with {image}");
    until_work(fleet, member, "Deployment", &what, |work| {
        work.is_some_and(|work| {
            let manifest = work.spec.workload.manifests.first();
            let runs = manifest.and_then(|manifest| manifest.pointer(IMAGE));
            has_condition(work, kind, status) && runs.and_then(Value::as_str) == Some(image)
        })
    })
    .await
}

/// The metric of the templates that our programs leave alone.
const LEFT_ALONE: &str = "karmada_propagation_controller_uninterpreted_templates 0";

/// Fails unless the programs, which only observe, would write nothing, and leave no template alone.
async fn would_write_nothing(observers: &PropagationPrograms) -> Result<()> {
    let left_alone = observers.propagation_controller.metrics().await?;
    let left_alone = left_alone.lines().any(|line| line == LEFT_ALONE);
    ensure!(left_alone, "{LEFT_ALONE} is no metric");
    for (program, name) in observers.all() {
        let would_write = format!("karmada_{name}_would_write_total");
        let count = program.metric(&would_write).await?;
        ensure!(
            count == 0.0,
            "{}",
            would_write_lines(&program.metrics().await?)
        );
    }
    Ok(())
}

fn would_write_lines(metrics: &str) -> String {
    let lines = metrics
        .lines()
        .filter(|line| line.contains("would_write_total{"));
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn has_condition(work: &Work, kind: &str, status: &str) -> bool {
    let condition = work.condition(kind);
    condition.is_some_and(|condition| condition.status == status)
}

/// Starts a fleet with a `ConfigMap` and a policy that puts it into all of its members, with these other
/// fields.
async fn with_settings(
    server: ApiKind,
    members: u8,
    policy: Value,
) -> Result<(PropagationFleet, PropagationPrograms)> {
    let fleet = settings(server, members, policy).await?;
    let programs = fleet.run().await?;
    Ok((fleet, programs))
}

/// Starts a fleet like [`with_settings`], without programs.
pub(crate) async fn settings(
    server: ApiKind,
    members: u8,
    policy: Value,
) -> Result<PropagationFleet> {
    let fleet = PropagationFleet::start(server, members).await?;
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), settings).await?;
    let mut spec = json!({
        "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": WEB }],
        "placement": {},
    });
    let fields = policy.as_object().cloned();
    spec.as_object_mut()
        .unwrap()
        .extend(fields.unwrap_or_default());
    fleet.create_policy(WEB, spec).await?;
    Ok(fleet)
}

/// Returns the `ConfigMaps` of an API.
pub(crate) fn maps(api: &ControlPlane) -> Api<ConfigMap> {
    namespaced(api.client())
}

/// Changes the `ConfigMap` in an API.
pub(crate) async fn set_data(api: &ControlPlane, data: Value) -> Result<()> {
    let patch = json!({ "data": data });
    merge(&maps(api), WEB, &patch).await
}

/// Waits until the `ConfigMap` in `member` has this data.
pub(crate) async fn has_data(
    fleet: &PropagationFleet,
    member: Member,
    wanted: &[(&str, &str)],
) -> Result<()> {
    let wanted = data(wanted);
    let api = maps(fleet.member(member));
    until(&api, WEB, &format!("{wanted:?}"), |copy| {
        copy.is_some_and(|copy| copy.data.as_ref() == Some(&wanted))
    })
    .await?;
    Ok(())
}

fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs.iter().map(|(key, value)| (*key, *value));
    owned
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Waits until the Work of the `ConfigMap` in `member` is suspended, and holds this value of `a`.
async fn holds(fleet: &PropagationFleet, member: Member, value: &str) -> Result<()> {
    let what = format!("suspended with {value}");
    until_work(fleet, member, "ConfigMap", &what, |work| {
        work.is_some_and(|work| {
            let manifest = work.spec.workload.manifests.first();
            // The condition alone may be of an earlier pause.
            work.is_suspended()
                && has_condition(work, "Dispatching", "False")
                && manifest.is_some_and(|manifest| manifest["data"]["a"] == value)
        })
    })
    .await
}

/// Waits until the condition `PolicyApplied` of the binding of the object [`WEB`] of a kind has this status and a message with
/// `text`.
async fn policy_applied(
    fleet: &PropagationFleet,
    kind: &str,
    status: &str,
    text: &str,
) -> Result<()> {
    let name = names::binding(kind, WEB);
    until_told(&fleet.bindings(), &name, ["PolicyApplied", status], text).await
}

/// Waits until the binding of that name is scheduled and applied everywhere.
pub(crate) async fn is_fully_applied(fleet: &PropagationFleet, binding: &str) -> Result<()> {
    until(&fleet.bindings(), binding, "fully applied", |binding| {
        binding.is_some_and(|binding| is_applied_everywhere(binding.status.as_ref()))
    })
    .await?;
    Ok(())
}

fn is_applied_everywhere(status: Option<&ResourceBindingStatus>) -> bool {
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let conditions = conditions.unwrap_or_default();
    ["Scheduled", "FullyApplied"].iter().all(|kind| {
        let mut conditions = conditions.iter();
        conditions.any(|condition| condition.type_ == *kind && condition.status == "True")
    })
}

/// Returns the image that a member runs.
async fn running(fleet: &PropagationFleet, member: Member) -> Result<String> {
    let deployments = deployments(fleet.member(member));
    Ok(image(&deployments.get(WEB).await?).unwrap_or_default())
}
