//! Placements whose members are updated by runs, stage by stage.

use anyhow::Result;
use fleet_api::{
    ApprovalRequest, StagedUpdateRun, StagedUpdateStrategy,
    update::{RunState, UpdateRunStatus},
};
use jiff::Timestamp;
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use pipeline_tests::{fleet::Member, propagation::create, wait::until};
use serde_json::json;

use super::{MAP, Stage, maps, said, stories};

/// The canary, and the last of the other two.
const CANARY: Member = Member(2);
const LAST: Member = Member(3);

fn runs(stage: &Stage) -> Api<StagedUpdateRun> {
    Api::all(stage.fleet.hub.client())
}

fn requests(stage: &Stage) -> Api<ApprovalRequest> {
    Api::all(stage.fleet.hub.client())
}

/// Fills a namespace, and places it by runs through two stages: the canary, and after an approval and two seconds the others,
/// which need another approval. Placement and strategy have its name.
async fn place(stage: &Stage, name: &str) -> Result<()> {
    stage.fill(name).await?;
    let selector = json!({ "group": "", "version": "v1", "kind": "Namespace", "name": name });
    let spec = json!({ "resourceSelectors": [selector], "strategy": { "type": "External" } });
    stage.fleet.place(name, spec).await?;
    let env = |value: &str| json!({ "matchLabels": { "env": value } });
    let strategies: Api<StagedUpdateStrategy> = Api::all(stage.fleet.hub.client());
    let after = json!([{ "type": "Approval" }, { "type": "TimedWait", "waitTime": "2s" }]);
    let stages = json!([
        { "name": "canary", "labelSelector": env("canary"), "afterStageTasks": after },
        { "name": "prod", "labelSelector": env("prod"), "beforeStageTasks": [{ "type": "Approval" }] },
    ]);
    let strategy = json!({ "metadata": { "name": name }, "spec": { "stages": stages } });
    create(&strategies, strategy).await?;
    let waiting = "RolloutStarted Unknown RolloutControlledByExternalController".to_owned();
    stage
        .until_status(name, "waiting for a run", |status| {
            said(&status.conditions).contains(&waiting) && status.placement_statuses.len() == 3
        })
        .await
}

async fn start(stage: &Stage, name: &str, run: &str, snapshot: &str) -> Result<()> {
    let spec = json!({ "placementName": name, "stagedRolloutStrategyName": name,
        "resourceSnapshotIndex": snapshot, "state": "Run" });
    create(
        &runs(stage),
        json!({ "metadata": { "name": run }, "spec": spec }),
    )
    .await
}

async fn want(stage: &Stage, run: &str, wanted: RunState) -> Result<()> {
    let patch = Patch::Merge(json!({ "spec": { "state": wanted } }));
    runs(stage)
        .patch(run, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Waits until a run says this.
async fn until_said(stage: &Stage, run: &str, condition: &str) -> Result<()> {
    let says =
        |status: &UpdateRunStatus| said(&status.conditions).iter().any(|one| one == condition);
    until(&runs(stage), run, condition, |found| {
        let status = found.and_then(|found| found.status.as_ref());
        status.is_some_and(says)
    })
    .await?;
    Ok(())
}

/// Approves a request once it is there, as KubeFleet's plugin does.
async fn approve(stage: &Stage, name: &str) -> Result<()> {
    let requests = requests(stage);
    until(&requests, name, "made", |found| found.is_some()).await?;
    let approved = json!([{ "type": "Approved", "status": "True", "reason": "lgtm", "message": "",
        "observedGeneration": 1, "lastTransitionTime": Timestamp::now().strftime("%FT%TZ").to_string() }]);
    let patch = Patch::Merge(json!({ "status": { "conditions": approved } }));
    requests
        .patch_status(name, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

async fn has_map(stage: &Stage, name: &str, member: Member) -> Result<bool> {
    let map = maps(stage.fleet.member(member), name).get_opt(MAP).await?;
    Ok(map.is_some())
}

/// Cases F80, F82, F83, F86: nothing goes without a run; one goes through its stages with its approvals, is stopped and goes on,
/// another brings back what was before, and one that is deleted leaves its clusters as they are.
async fn runs_update_members(stage: &mut Stage) -> Result<()> {
    let name = "staged";
    place(stage, name).await?;
    assert!(!has_map(stage, name, CANARY).await?);
    start(stage, name, "first", "").await?;
    stage.until_value(CANARY, name, "value").await?;
    until_said(stage, "first", "Progressing False UpdateRunWaiting").await?;
    approve(stage, "first-after-canary").await?;
    let request = "first-before-prod";
    until(&requests(stage), request, "made", |found| found.is_some()).await?;
    assert!(!has_map(stage, name, LAST).await?);
    want(stage, "first", RunState::Stop).await?;
    until_said(stage, "first", "Progressing False UpdateRunStopped").await?;
    approve(stage, request).await?;
    assert!(!has_map(stage, name, LAST).await?);
    want(stage, "first", RunState::Run).await?;
    until_said(stage, "first", "Succeeded True UpdateRunSucceeded").await?;
    stage.until_value(LAST, name, "value").await?;
    stage.until_complete_at(name, 0).await?;

    stage.edit(name, "new").await?;
    // A run without an index takes what is newest at its start.
    start(stage, name, "second", "").await?;
    stage.until_value(CANARY, name, "new").await?;
    until_said(stage, "second", "Progressing False UpdateRunWaiting").await?;
    let gone = DeleteParams::default();
    runs(stage).delete("second", &gone).await?;
    until(&runs(stage), "second", "gone", |found| found.is_none()).await?;
    let left = requests(stage).list(&ListParams::default()).await?;
    assert!(left.iter().all(|one| one.spec.run == "first"), "{left:?}");
    stage.until_value(CANARY, name, "new").await?;
    stage.until_value(LAST, name, "value").await?;

    start(stage, name, "back", "0").await?;
    approve(stage, "back-after-canary").await?;
    approve(stage, "back-before-prod").await?;
    until_said(stage, "back", "Succeeded True UpdateRunSucceeded").await?;
    stage.until_value(CANARY, name, "value").await?;
    stage.until_complete_at(name, 0).await?;
    for run in ["first", "back"] {
        runs(stage).delete(run, &gone).await?;
    }
    stage.remove(name).await
}

stories!(3: runs_update_members);
