//! `kubectl remedy approve`: says yes to the requests of a staged update run, before or after a stage.

use fleet_api::ApprovalRequest;
use fleet_api::conditions::APPROVED;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::Condition;
use karmada_api::condition::TRUE;
use karmada_runtime::scope::objects_in;
use kube::Client;
use kube::api::ListParams;
use objects::Metadata;
use objects::Scope;
use objects::condition::{find, upsert};
use objects::write::{Guard, ObjectRef, Write};
use serde_json::json;

use crate::answer::Answer;
use crate::args::ApproveArgs;
use crate::error::Error;
use crate::identity::NAME;
use crate::send::{Edited, edit};
use crate::terminal;

/// The prefix of the name of a run that is in a namespace.
const PREFIXES: [&str; 2] = ["sur/", "stagedupdaterun/"];

/// Returns the scope and the name of a run that an argument names.
fn named(argument: &str) -> (Scope, &str) {
    let mut names = PREFIXES
        .iter()
        .filter_map(|prefix| argument.strip_prefix(prefix));
    match names.next() {
        Some(name) => (Scope::Namespaced, name),
        None => (Scope::Cluster, argument),
    }
}

/// Approves the requests of a run at a stage; `namespace` is that of a run which has one.
pub(crate) async fn run(
    args: &ApproveArgs,
    client: &Client,
    namespace: &str,
    now: Timestamp,
) -> Result<Answer, Error> {
    let (scope, run) = named(&args.run);
    let kind = ApprovalRequest::kind_of(scope);
    let namespace = match scope {
        Scope::Cluster => "",
        Scope::Namespaced => namespace,
    };
    let requests = objects_in::<ApprovalRequest>(client.clone(), namespace);
    let all = requests.list(&ListParams::default()).await;
    let all = all.map_err(|source| Error::request(format!("list {kind}s"), source))?;
    let mut waiting = all.items;
    waiting.retain(|one| !one.metadata.is_deleting() && !is_approved(one));
    let asked = waiting.iter();
    let asked: Vec<_> = asked
        .filter(|one| one.spec.run == run && one.spec.stage == args.stage)
        .collect();
    if asked.is_empty() {
        terminal::print_error(&nothing((run, &args.stage), &waiting));
        return Ok(Answer::No);
    }
    for request in asked {
        let name = request.metadata.name();
        let dry_run = args.dry_run.dry_run;
        let edited = edit(&requests, name, dry_run, |found| {
            (!is_approved(found)).then(|| approval(found, scope, now))
        });
        let edited = edited
            .await
            .map_err(|source| Error::request(format!("approve {kind} {name}"), source))?;
        if let Edited::Absent(_) = edited {
            return Err(Error::Unusable(format!("{kind} {name} is gone")));
        }
        let suffix = dry_run.suffix();
        terminal::print(&format!(
            "{}.placement.kubernetes-fleet.io/{name} approved{suffix}\n",
            kind.to_lowercase()
        ));
    }
    Ok(Answer::Yes)
}

fn is_approved(request: &ApprovalRequest) -> bool {
    let status = request.status.as_ref();
    let approved = status.and_then(|status| find(&status.conditions, APPROVED));
    approved.is_some_and(|approved| approved.status == TRUE)
}

/// Returns the write that approves a request.
fn approval(request: &ApprovalRequest, scope: Scope, now: Timestamp) -> Write {
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
    let body = json!({ "status": { "conditions": conditions } });
    let write = Write::merge("approval", ObjectRef::of(request, &scope), body);
    write.of_status().guarded(Guard::Version)
}

/// Returns the line about a stage that asks for nothing.
fn nothing((run, stage): (&str, &str), waiting: &[ApprovalRequest]) -> String {
    let of_run = waiting.iter().filter(|one| one.spec.run == run);
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
    use fleet_api::definitions;
    use lab_parts::test_api::TestApi;
    use serde_json::Value;

    use super::*;
    use crate::args::{DryRun, DryRunArgs};

    const API: &str = "/apis/placement.kubernetes-fleet.io/v1beta1";

    fn request(kind: &str) -> Value {
        json!({ "apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
            "metadata": { "name": "go-after-canary" },
            "spec": { "parentStageRollout": "go", "targetStage": "canary" } })
    }

    /// The request of the stage is approved, once; another stage, and another run, ask for nothing.
    #[tokio::test]
    async fn request_is_approved_once() {
        let api = TestApi::with_kinds(definitions());
        api.create(&request("ClusterApprovalRequest")).await;
        let path = format!("{API}/clusterapprovalrequests/go-after-canary");
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
            let answer = run(&args, &api.client(), "shop", Timestamp::now()).await;
            assert_eq!(answer.unwrap(), expected, "{run_name} {stage}");
            let stored = api.get(&path).await;
            let approved = &stored["status"]["conditions"][0];
            assert_eq!(approved["status"] == "True", is_there);
        }
        let stored = api.get(&path).await;
        let approved = &stored["status"]["conditions"][0];
        assert_eq!(approved["type"], APPROVED);
        assert_eq!(
            approved["observedGeneration"],
            stored["metadata"]["generation"]
        );
    }

    /// A run of a namespace has its requests there, and the one of the same name that has none is another.
    #[tokio::test]
    async fn namespaced_run_is_approved() {
        let api = TestApi::with_kinds(definitions());
        api.create_namespace("shop").await;
        let mut request = request("ApprovalRequest");
        request["metadata"]["namespace"] = json!("shop");
        api.create(&request).await;
        let mut args = ApproveArgs {
            run: "go".to_owned(),
            stage: "canary".to_owned(),
            dry_run: DryRunArgs {
                dry_run: DryRun::None,
            },
        };
        for (run_name, expected) in [("go", Answer::No), ("sur/go", Answer::Yes)] {
            run_name.clone_into(&mut args.run);
            let answer = run(&args, &api.client(), "shop", Timestamp::now()).await;
            assert_eq!(answer.unwrap(), expected, "{run_name}");
        }
        let path = format!("{API}/namespaces/shop/approvalrequests/go-after-canary");
        let stored = api.get(&path).await;
        assert_eq!(stored["status"]["conditions"][0]["status"], "True");
    }
}
