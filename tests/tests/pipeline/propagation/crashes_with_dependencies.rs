//! The life of a template and what it refers to while every program dies after each of its writes.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, create},
};
use serde_json::{Value, json};

use super::crashes::{crash_and_count_moves, moves};
use super::dependencies::{both, create_dependencies, has_no_map, lazily, referring};
use super::lazy::{edit, policy_applied, second_passes, until_claimed};
use super::record::Record;
use super::{WEB, change, deployments, has_data, has_image, holds, maps, scale, set_data, suspend};

/// Cases P39, P47, P38 and P29, in this order.
async fn dependencies_follow_their_template(server: ApiKind) -> Result<()> {
    let fleet = PropagationFleet::start(server, 2).await?;
    let value = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("a").cloned());
    let record = |member| Record::of(maps(fleet.member(member)), value);
    let (one, two) = (record(Member(1)), record(Member(2)));
    crash_and_count_moves(&fleet, &[], &[3, 2], life_with_dependencies(&fleet, server)).await?;
    let version = |value: &str| Some(Some(value.to_owned()));
    one.ensure(&[version("1"), version("2")]).await?;
    two.ensure(&[version("1"), None]).await
}

async fn life_with_dependencies(fleet: &PropagationFleet, server: ApiKind) -> Result<()> {
    let (one, two) = (Member(1), Member(2));
    let waits = async || policy_applied(fleet, "False", "waits for the next edit").await;
    create_dependencies(fleet).await?;
    create(&deployments(&fleet.karmada), referring()).await?;
    second_passes(fleet).await?;
    fleet.create_policy(WEB, both(one, false)).await?;
    until_claimed(&deployments(&fleet.karmada)).await?;
    until_claimed(&maps(&fleet.karmada)).await?;
    autoscale(fleet, server).await?;
    has_image(fleet, one, "web:1").await?;
    change(fleet, WEB, both(two, true)).await?;
    waits().await?;
    edit(fleet, "first").await?;
    moves(fleet, one, two).await?;
    has_data(fleet, two, &[("a", "1")]).await?;

    change(fleet, WEB, lazily(one)).await?;
    waits().await?;
    edit(fleet, "second").await?;
    moves(fleet, two, one).await?;
    has_data(fleet, one, &[("a", "1")]).await?;
    has_no_map(fleet, two).await?;

    suspend(fleet, json!({ "dispatching": true })).await?;
    holds(fleet, one, "1").await?;
    set_data(&fleet.karmada, json!({ "a": "2" })).await?;
    holds(fleet, one, "2").await?;
    has_data(fleet, one, &[("a", "1")]).await?;
    suspend(fleet, Value::Null).await?;
    has_data(fleet, one, &[("a", "2")]).await
}

/// Scales the template as an autoscaler does; the embedded API has no subresource for it.
async fn autoscale(fleet: &PropagationFleet, server: ApiKind) -> Result<()> {
    let templates = deployments(&fleet.karmada);
    if server == ApiKind::Embedded {
        return scale(&templates, 6).await;
    }
    let replicas = Patch::Merge(json!({ "spec": { "replicas": 6 } }));
    let parameters = PatchParams::default();
    templates.patch_scale(WEB, &parameters, &replicas).await?;
    Ok(())
}

on_both!(both long: dependencies_follow_their_template);
