//! Suspended dispatching, while every program dies after each of its writes.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use pipeline_tests::{
    control_plane::ApiKind,
    fleet::Member,
    on_embedded,
    propagation::{PropagationFleet, create},
};
use serde_json::{Value, json};

use super::crashes::crash_after_each_write;
use super::moves::{
    at, evict_from_paused, evict_to_paused, leaves, lose_a_cluster_while_paused, move_from_paused,
    move_while_paused, one_of_two, place, wholly,
};
use super::record::Record;
use super::stories::Story;
use super::suspension::{
    edit_while_paused, fight, paused, place_while_paused, resume_in_three_ways,
};
use super::while_suspended::{
    delete_everywhere, drift_and_lose_the_binding, lose_a_work, lose_the_policy, lose_the_template,
    pause_both_scopes, pause_one_member, report_while_paused,
};
use super::{
    WEB, all_have, all_hold, change, maps, set_data, set_image, settings, suspend, work_has,
};

/// In the first member another writer scales the copy: three times in vain, and ten times during the pause, which a
/// single write ends.
const LIFE_OF_A_DEPLOYMENT: Story = Story {
    members: &[Member(1), Member(2)],
    ran: &[
        &[
            ("web:1", 0),
            ("web:1", 1),
            ("web:1", 0),
            ("web:1", 2),
            ("web:1", 0),
            ("web:1", 3),
            ("web:1", 0),
            ("web:1", 6),
            ("web:1", 7),
            ("web:1", 8),
            ("web:1", 9),
            ("web:1", 10),
            ("web:1", 11),
            ("web:1", 12),
            ("web:1", 13),
            ("web:1", 14),
            ("web:1", 15),
            ("web:1", 0),
            ("web:2", 1),
        ],
        &[("web:1", 0), ("web:2", 1)],
    ],
};

/// Cases P15, P24 and P18, in this order.
async fn deployment_changes_at_resume(server: ApiKind) -> Result<()> {
    let story = life_of_a_deployment;
    LIFE_OF_A_DEPLOYMENT.tell_with_crashes(server, story).await
}

async fn life_of_a_deployment(fleet: &PropagationFleet) -> Result<()> {
    fight(fleet).await?;
    report_while_paused(fleet).await?;
    set_image(fleet, "web:1").await?;
    edit_while_paused(fleet).await?;
    suspend(fleet, Value::Null).await?;
    for member in [Member(1), Member(2)] {
        work_has(fleet, member, "Applied", "True", "web:2").await?;
    }
    Ok(())
}

/// Cases P21, P20, P19, P23, P22 and P25, in this order.
async fn config_map_changes_at_resume(server: ApiKind) -> Result<()> {
    let mut fleet = settings(server, 2, paused()).await?;
    fleet.karmada.start_controllers().await?;
    let members = fleet.members().map(|member| fleet.member(member));
    let records: Vec<_> = members.map(|member| Record::of(maps(member), a)).collect();
    let programs = crash_after_each_write(&fleet, &[], life_of_a_config_map(&fleet)).await?;
    programs.settled().await?;
    let ran = [
        "2 1 2 3 4 1 2 1 drifted - 2 1 - 1 - 1 - 1 2",
        "2 1 2 3 4 1 2 1 - 2 1 - 1 - 1 2",
    ];
    are_recorded(&fleet, &records, ran).await
}

/// Fails unless each member has had these values of `a`, one after the other; `-` stands for no copy.
async fn are_recorded(
    fleet: &PropagationFleet,
    records: &[Record<String>],
    ran: [&str; 2],
) -> Result<()> {
    for ((member, record), ran) in fleet.members().zip(records).zip(ran) {
        let versions = ran.split(' ');
        let versions = versions.map(|value| (value != "-").then(|| value.to_owned()));
        let ensured = record.ensure(&versions.collect::<Vec<_>>()).await;
        ensured.with_context(|| member.name())?;
    }
    Ok(())
}

/// Returns the value of `a` in a `ConfigMap`.
fn a(map: &ConfigMap) -> String {
    let data = map.data.as_ref();
    let value = data.and_then(|data| data.get("a"));
    value.cloned().unwrap_or_default()
}

async fn life_of_a_config_map(fleet: &PropagationFleet) -> Result<()> {
    place_while_paused(fleet).await?;
    is_again_as_at_first(fleet).await?;
    resume_in_three_ways(fleet).await?;
    is_again_as_at_first(fleet).await?;
    pause_one_member(fleet).await?;
    is_again_as_at_first(fleet).await?;

    drift_and_lose_the_binding(fleet).await?;
    suspend(fleet, Value::Null).await?;
    all_have(fleet, "2").await?;
    is_again_as_at_first(fleet).await?;
    lose_a_work(fleet).await?;
    lose_the_template(fleet).await?;
    let settings = json!({ "metadata": { "name": WEB }, "data": { "a": "1" } });
    create(&maps(&fleet.karmada), settings).await?;
    all_hold(fleet, "1").await?;
    suspend(fleet, Value::Null).await?;
    all_have(fleet, "1").await?;
    lose_the_policy(fleet).await?;
    delete_everywhere(fleet).await?;

    pause_both_scopes(fleet).await
}

/// Sets the `ConfigMap` to what [`settings`] has, and waits until all members have it.
async fn is_again_as_at_first(fleet: &PropagationFleet) -> Result<()> {
    set_data(&fleet.karmada, json!({ "a": "1" })).await?;
    all_have(fleet, "1").await
}

/// Case P27: copies move while paused, with their placement, for a taint and with their cluster.
async fn config_map_moves_at_resume(server: ApiKind) -> Result<()> {
    let only_first = json!({ "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    let fleet = settings(server, 2, only_first).await?;
    let records = fleet
        .members()
        .map(|member| Record::of(maps(fleet.member(member)), a));
    let records: Vec<_> = records.collect();
    let flags = &["--evict-untolerated"];
    let programs = crash_after_each_write(&fleet, flags, life_of_moves(&fleet)).await?;
    programs.settled().await?;
    let ran = ["1 - 1 - 1 - 1 - 1", "1 - 1 - 1 - 1 - 1"];
    are_recorded(&fleet, &records, ran).await
}

async fn life_of_moves(fleet: &PropagationFleet) -> Result<()> {
    let (first, next) = (Member(1), Member(2));
    // Programs that die have no metric of what they hold.
    let held = async || Ok(());
    for suspension in [wholly(), at(next)] {
        move_while_paused(fleet, suspension, held()).await?;
        place(fleet, first).await?;
        leaves(fleet, next).await?;
    }
    move_from_paused(fleet, held()).await?;

    change(fleet, WEB, json!({ "placement": one_of_two() })).await?;
    evict_from_paused(fleet, next, first, wholly()).await?;
    evict_from_paused(fleet, first, next, at(first)).await?;
    evict_to_paused(fleet, next, first).await?;
    lose_a_cluster_while_paused(fleet).await
}

on_embedded!(
    long:
    config_map_moves_at_resume,
    deployment_changes_at_resume,
    config_map_changes_at_resume,
);
