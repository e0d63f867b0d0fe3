//! The life of a placement while both programs die after each of their writes.

use anyhow::{Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, ResourceExt};
use pipeline_tests::{
    control_plane::ApiKind,
    crashes::{CrashingProgram, crash_during},
    fleet::Member,
    on_both,
    placement::PlacementFleet,
    programs::Binary,
    wait::until,
};
use serde_json::json;

use super::deployments::{BROKEN, create_web, run, set_image, until_stopped};
use super::{Stage, registered};

const NAME: &str = "life";
/// The member that leaves and joins again.
const MEMBER: Member = Member(3);

/// Returns the programs of a fleet, each with proxies of its own.
async fn crashing_programs(fleet: &PlacementFleet) -> Result<Vec<CrashingProgram>> {
    let mut programs = vec![CrashingProgram::new(Binary::PlacementController, &fleet.hub).await?];
    for member in fleet.members() {
        let agent = CrashingProgram::new(Binary::PlacementAgent, fleet.member(member)).await?;
        let agent = agent.with([format!("--cluster-name={}", member.name())]);
        programs.push(agent.reaching("--hub-kubeconfig", &fleet.hub).await?);
    }
    Ok(programs)
}

/// Cases F29, F30, F35, F44, F48, F49 and F50: whatever write is the last of a program, the next one goes on from there.
/// Those that follow at the end write nothing but heartbeats.
async fn any_write_may_be_last(server: ApiKind) -> Result<()> {
    let fleet = registered(server, 3).await?;
    let programs = crashing_programs(&fleet).await?;
    let stage = Stage { fleet, programs };
    let members = stage.fleet.members();
    let running = members.map(|member| run(stage.fleet.member(member).client()));
    let running = try_join_all(running.collect::<Vec<_>>());
    let told = async {
        crash_during(&stage.programs, live(&stage)).await?;
        let Stage { fleet, .. } = stage;
        let programs = fleet.run().await?;
        let mut stage = Stage { fleet, programs };
        stage.until_complete(NAME).await?;
        stage.hand_over().await
    };
    tokio::select! {
        told = told => told,
        ended = running => bail!("nothing runs: {ended:?}"),
    }
}

async fn live(stage: &Stage<Vec<CrashingProgram>>) -> Result<()> {
    for member in stage.fleet.members() {
        stage.until_joined(member).await?;
    }
    stage.fill(NAME).await?;
    let templates = create_web(stage, NAME).await?;
    let everywhere = json!({ "placementType": "PickAll" });
    stage.place(NAME, everywhere.clone()).await?;
    stage.until_complete(NAME).await?;
    let copies = copies(stage).await?;

    set_image(&templates, "web:2").await?;
    stage.until_complete_at(NAME, 1).await?;
    set_image(&templates, BROKEN).await?;
    until_stopped(stage, NAME, "web:2").await?;
    set_image(&templates, "web:2").await?;
    stage.until_complete_at(NAME, 3).await?;

    stage.disturb(MEMBER, NAME).await?;
    stage.leave(MEMBER).await?;
    stage.fleet.register(MEMBER, json!({})).await?;
    stage.until_joined(MEMBER).await?;
    // It is complete without the member, too.
    let (works, work) = (stage.fleet.works(MEMBER), format!("{NAME}-work"));
    until(&works, &work, "applied again", |found| {
        let status = found.and_then(|work| work.status.as_ref());
        status.is_some_and(|status| !status.conditions.is_empty())
    })
    .await?;
    stage.until_complete(NAME).await?;
    // None has gone and come again.
    assert_eq!(self::copies(stage).await?, copies);

    stage.remove(NAME).await?;
    stage.place(NAME, everywhere).await?;
    stage.until_complete(NAME).await
}

/// Returns the identities of the Deployments in the members.
async fn copies<P>(stage: &Stage<P>) -> Result<Vec<Option<String>>> {
    let mut copies = Vec::new();
    for member in stage.fleet.members() {
        let client = stage.fleet.member(member).client();
        let deployments: Api<Deployment> = Api::namespaced(client, NAME);
        copies.push(deployments.get("web").await?.uid());
    }
    Ok(copies)
}

on_both!(both long: any_write_may_be_last);
