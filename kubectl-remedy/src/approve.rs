//! `kubectl remedy approve`: says yes to what a staged update run asks a person for, before or after a stage.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::Condition;
use karmada_api::condition::TRUE;
use karmada_api::fleet::ClusterApprovalRequest;
use karmada_api::fleet::conditions::APPROVED;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use objects::Metadata;
use objects::condition::{find, upsert};
use objects::patch::guarded;
use serde_json::json;

use crate::answer::Answer;
use crate::args::{ApproveArgs, DryRun};
use crate::error::Error;
use crate::identity::NAME;
use crate::terminal;

/// Approves what a run waits for at a stage.
pub(crate) async fn run(
    args: &ApproveArgs,
    client: &Client,
    now: Timestamp,
) -> Result<Answer, Error> {
    let requests: Api<ClusterApprovalRequest> = Api::all(client.clone());
    let all = requests.list(&ListParams::default()).await;
    let all = all.map_err(|source| Error::request("list ClusterApprovalRequests", source))?;
    let mut waiting = all.items;
    waiting.retain(|one| !one.metadata.is_deleting() && !is_approved(one));
    let is_asked =
        |one: &&ClusterApprovalRequest| one.spec.run == args.run && one.spec.stage == args.stage;
    let asked: Vec<_> = waiting.iter().filter(is_asked).collect();
    if asked.is_empty() {
        terminal::print_error(&nothing(args, &waiting));
        return Ok(Answer::No);
    }
    for request in asked {
        let name = request.metadata.name();
        let dry_run = args.dry_run.dry_run;
        if dry_run != DryRun::Client {
            let parameters = PatchParams {
                dry_run: dry_run == DryRun::Server,
                ..PatchParams::default()
            };
            let patch = Patch::Merge(approval(request, now));
            let written = requests.patch_status(name, &parameters, &patch).await;
            written.map_err(|source| {
                Error::request(format!("approve ClusterApprovalRequest {name}"), source)
            })?;
        }
        let suffix = dry_run.suffix();
        terminal::print(&format!(
            "clusterapprovalrequest.placement.kubernetes-fleet.io/{name} approved{suffix}\n"
        ));
    }
    Ok(Answer::Yes)
}

fn is_approved(request: &ClusterApprovalRequest) -> bool {
    let status = request.status.as_ref();
    let approved = status.and_then(|status| find(&status.conditions, APPROVED));
    approved.is_some_and(|approved| approved.status == TRUE)
}

/// Returns the patch of the status that approves a request.
fn approval(request: &ClusterApprovalRequest, now: Timestamp) -> serde_json::Value {
    let mut conditions = request.status.clone().unwrap_or_default().conditions;
    upsert(
        &mut conditions,
        Condition {
            type_: APPROVED.to_owned(),
            status: TRUE.to_owned(),
            reason: "Approved".to_owned(),
            message: format!("Approved by {NAME}"),
            observed_generation: request.metadata.generation,
            last_transition_time: Some(Time(now)),
            ..Condition::default()
        },
    );
    let version = request.metadata.resource_version();
    guarded(
        Some(version),
        json!({ "status": { "conditions": conditions } }),
    )
}

/// Returns the line about a stage that asks for nothing.
fn nothing(args: &ApproveArgs, waiting: &[ClusterApprovalRequest]) -> String {
    let ApproveArgs { run, stage, .. } = args;
    let of_run = waiting.iter().filter(|one| one.spec.run == *run);
    let stages: Vec<_> = of_run.map(|one| &*one.spec.stage).collect();
    let hint = if stages.is_empty() {
        "it waits for no approval".to_owned()
    } else {
        format!("it waits for one of {}", stages.join(", "))
    };
    format!("run {run} asks for no approval of stage {stage}: {hint}")
}

#[cfg(test)]
mod tests {
    use karmada_api::fleet::definitions;
    use lab_parts::test_api::TestApi;

    use super::*;
    use crate::args::DryRunArgs;

    const REQUESTS: &str =
        "/apis/placement.kubernetes-fleet.io/v1beta1/clusterapprovalrequests/go-after-canary";

    /// The request of the stage is approved, once; another stage, and another run, ask for nothing.
    #[tokio::test]
    async fn request_is_approved_once() {
        let api = TestApi::with_kinds(definitions());
        let request = json!({ "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterApprovalRequest", "metadata": { "name": "go-after-canary" },
            "spec": { "parentStageRollout": "go", "targetStage": "canary" } });
        api.create(&request).await;
        for (run_name, stage, dry_run, expected, is_there) in [
            ("go", "prod", DryRun::None, Answer::No, false),
            ("other", "canary", DryRun::None, Answer::No, false),
            ("go", "canary", DryRun::Client, Answer::Yes, false),
            ("go", "canary", DryRun::None, Answer::Yes, true),
            ("go", "canary", DryRun::None, Answer::No, true),
        ] {
            let args = ApproveArgs {
                run: run_name.to_owned(),
                stage: stage.to_owned(),
                dry_run: DryRunArgs { dry_run },
            };
            let answer = run(&args, &api.client(), Timestamp::now()).await.unwrap();
            assert_eq!(answer, expected, "{run_name} {stage}");
            let stored = api.get(REQUESTS).await;
            let approved = &stored["status"]["conditions"][0];
            assert_eq!(approved["status"] == "True", is_there);
        }
        let stored = api.get(REQUESTS).await;
        let approved = &stored["status"]["conditions"][0];
        assert_eq!(approved["type"], APPROVED);
        assert_eq!(
            approved["observedGeneration"],
            stored["metadata"]["generation"]
        );
    }
}
