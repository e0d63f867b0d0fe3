//! A member whose store is put back to an earlier copy: its resource versions go back, too.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use pipeline_tests::{
    api::{create, merge},
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::PropagationFleet,
    wait::until,
};
use serde_json::json;

use super::{data, maps};

const COPIES: usize = 30;

/// Case P68: later writes than the copy are made again, without a restart of ours.
async fn member_is_filled_again(server: ApiKind) -> Result<()> {
    let mut fleet = PropagationFleet::start(server, 1).await?;
    let programs = fleet.run().await?;
    let selector = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let spec = json!({ "resourceSelectors": [selector],
        "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    fleet.create_policy("all", spec).await?;
    let templates = maps(&fleet.karmada);
    create(
        &templates,
        json!({ "metadata": { "name": "old" }, "data": { "v": "1" } }),
    )
    .await?;
    has(&maps(fleet.member(Member(1))), "old", "1").await?;

    fleet.member_mut(Member(1)).copy_data().await?;
    let copies = maps(fleet.member(Member(1)));
    for number in 0..COPIES {
        let name = format!("new-{number}");
        create(
            &templates,
            json!({ "metadata": { "name": name }, "data": { "v": "1" } }),
        )
        .await?;
        has(&copies, &name, "1").await?;
    }
    let edit = json!({ "data": { "v": "2" } });
    merge(&templates, "old", &edit).await?;
    has(&copies, "old", "2").await?;
    programs.settled().await?;

    fleet.member_mut(Member(1)).restore_data().await?;
    let copies = maps(fleet.member(Member(1)));
    for number in 0..COPIES {
        has(&copies, &format!("new-{number}"), "1").await?;
    }
    has(&copies, "old", "2").await?;
    let rewinds = "karmada_execution_controller_api_rewinds_total";
    programs
        .execution_controller
        .until_metric(rewinds, |count| count > 0.0)
        .await?;
    Ok(())
}

/// Waits until the `ConfigMap` has this value of `v`.
async fn has(copies: &Api<ConfigMap>, name: &str, value: &str) -> Result<()> {
    let wanted = data(&[("v", value)]);
    until(copies, name, value, |copy| {
        copy.is_some_and(|copy| copy.data.as_ref() == Some(&wanted))
    })
    .await?;
    Ok(())
}

on_both!(long: member_is_filled_again);
