//! Jobs whose end is the end of the object, too.

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use pipeline_tests::{
    api::{create, merge_status},
    both,
    control_plane::ApiKind,
    fleet::Member,
    propagation::{PropagationFleet, namespaced},
    test_name,
    wait::until,
};
use serde_json::json;

const ONCE: &str = "once";

/// Case P67: a Job with a time to live goes from the fleet and from the member after its end, as the controllers of
/// the fleet's page see to.
async fn finished_job_leaves(server: ApiKind) -> Result<()> {
    let mut fleet = PropagationFleet::start(server, 1).await?;
    fleet.karmada.start_controllers().await?;
    fleet
        .enable(Member(1), [("batch/v1", "Job", "jobs")])
        .await?;
    let _programs = fleet.run().await?;
    let templates: Api<Job> = namespaced(fleet.karmada.client());
    let container = json!({ "name": ONCE, "image": "registry.example.com/shop/once:1" });
    let job = json!({ "metadata": { "name": ONCE }, "spec": {
        "ttlSecondsAfterFinished": 2,
        "template": { "spec": { "restartPolicy": "Never", "containers": [container] } },
    } });
    create(&templates, job).await?;
    let selector = json!({ "apiVersion": "batch/v1", "kind": "Job", "name": ONCE });
    let spec = json!({ "resourceSelectors": [selector],
        "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } });
    fleet.create_policy(ONCE, spec).await?;

    let copies: Api<Job> = namespaced(fleet.member(Member(1)).client());
    until(&copies, ONCE, "there", |copy| copy.is_some()).await?;
    let at = jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let conditions = ["SuccessCriteriaMet", "Complete"].map(|kind| {
        json!({ "type": kind, "status": "True", "reason": "CompletionsReached", "message": "",
            "lastProbeTime": at, "lastTransitionTime": at })
    });
    let ended = json!({
        "startTime": at, "completionTime": at, "succeeded": 1, "conditions": conditions,
    });
    merge_status(&copies, ONCE, &ended).await?;
    until(&templates, ONCE, "gone", |template| template.is_none()).await?;
    until(&copies, ONCE, "gone", |copy| copy.is_none()).await?;
    Ok(())
}

// On the real API only: the embedded one has no such controller.
mod real {
    use super::*;

    #[test]
    fn finished_job_leaves() {
        both::run(test_name!(), ApiKind::Real, super::finished_job_leaves);
    }
}
