//! The definitions of staged updates, with the rules of KubeFleet's.

use serde_json::{Value, json};

use super::amendments::{
    Amendment, amended, apply_strategy, at, first_of, one_of, rules, with_names_up_to,
};
use super::columns;
use super::definition::Definition;
use crate::update::{
    APPROVAL, ApprovalRequestSpec, ApprovalRequestStatus, TIMED_WAIT, UpdateRunSpec,
    UpdateRunStatus, UpdateStrategySpec,
};
use crate::{ApprovalRequest, StagedUpdateRun, StagedUpdateStrategy};
use objects::Scope;
use objects::schema::{age_column, structural};

/// Returns the definitions of both scopes.
pub(super) fn definitions() -> Vec<Value> {
    [Scope::Cluster, Scope::Namespaced]
        .into_iter()
        .flat_map(of_scope)
        .collect()
}

fn of_scope(scope: Scope) -> [Value; 3] {
    // The longest name of a namespaced run is KubeFleet's, though no label takes more than 63 characters.
    let ([of_strategies, of_runs, of_approvals], longest) = match scope {
        Scope::Cluster => (["csus", "csur", "careq"], 63),
        Scope::Namespaced => (["sus", "sur", "areq"], 127),
    };
    let runs = Definition {
        short_names: json!([of_runs]),
        spec: run(),
        status: Some(run_status()),
        columns: columns::of_runs(),
    }
    .of_scope::<StagedUpdateRun>(scope);
    [
        Definition {
            short_names: json!([of_strategies]),
            spec: amended(structural::<UpdateStrategySpec>(), &stages("")),
            status: None,
            columns: vec![age_column()],
        }
        .of_scope::<StagedUpdateStrategy>(scope),
        with_names_up_to(longest, runs),
        Definition {
            short_names: json!([of_approvals]),
            spec: approval(),
            status: Some(structural::<ApprovalRequestStatus>()),
            columns: columns::of_approvals(),
        }
        .of_scope::<ApprovalRequest>(scope),
    ]
}

/// Returns the rules of the stages at a path.
fn stages(path: &str) -> Vec<Amendment> {
    let at_stage = |field: &str, amendment: Value| (format!("{path}stages[]{field}"), amendment);
    let concurrency = rules(&[(
        "self == null || type(self) != int || self >= 1",
        "maxConcurrency must be at least 1",
    )]);
    let approval = (
        "!self.exists(e, e.type == 'Approval' && has(e.waitTime))",
        "AfterStageTaskType is Approval, waitTime is not allowed",
    );
    let wait = (
        "!self.exists(e, e.type == 'TimedWait' && !has(e.waitTime))",
        "AfterStageTaskType is TimedWait, waitTime is required",
    );
    let no_wait = (
        "!self.exists(e, e.type == 'TimedWait')",
        "BeforeStageTaskType cannot be TimedWait",
    );
    let root = path.trim_end_matches('.');
    let mut amendments = vec![
        at(root, json!({ "required": ["stages"] })),
        (format!("{path}stages"), json!({ "maxItems": 31 })),
        at_stage("", json!({ "required": ["name"] })),
        at_stage(
            ".name",
            json!({ "maxLength": 63, "pattern": "^[a-z0-9]+$" }),
        ),
        at_stage(
            ".maxConcurrency",
            json!({ "x-kubernetes-int-or-string": true, "default": 1,
                "pattern": "^(100|[1-9][0-9]?)%$" }),
        ),
        at_stage(".maxConcurrency", concurrency),
        at_stage(".beforeStageTasks", json!({ "maxItems": 1 })),
        at_stage(".beforeStageTasks", rules(&[approval, no_wait])),
        at_stage(".afterStageTasks", json!({ "maxItems": 2 })),
        at_stage(".afterStageTasks", rules(&[approval, wait])),
    ];
    for tasks in [".beforeStageTasks[]", ".afterStageTasks[]"] {
        let duration = "^(?:[0-9]+(\\.[0-9]+)?(?:s|m|h))+$";
        let negative = "!has(self.waitTime) || duration(self.waitTime) >= duration('0s')";
        let negative = rules(&[(negative, "waitTime must be a non-negative duration")]);
        amendments.extend([
            at_stage(tasks, json!({ "required": ["type"] })),
            at_stage(tasks, negative),
            at_stage(&format!("{tasks}.type"), one_of(&[TIMED_WAIT, APPROVAL])),
            at_stage(&format!("{tasks}.waitTime"), json!({ "pattern": duration })),
        ]);
    }
    amendments
}

fn run() -> Value {
    let constant = |field: &str| {
        let message = format!("{field} is immutable");
        at(field, rules(&[("self == oldSelf", &message)]))
    };
    let transitions = [
        ("Initialize", "Stop"),
        ("Run", "Initialize"),
        ("Stop", "Initialize"),
    ];
    let transitions = transitions.map(|(from, to)| {
        (
            format!("!(has(oldSelf.state) && oldSelf.state == '{from}' && self.state == '{to}')"),
            format!("invalid state transition: cannot transition from {from} to {to}"),
        )
    });
    let transitions: Vec<_> = transitions
        .iter()
        .map(|(rule, message)| (&**rule, &**message))
        .collect();
    amended(
        structural::<UpdateRunSpec>(),
        &[
            at("", rules(&transitions)),
            at(
                "",
                json!({ "required": ["placementName", "stagedRolloutStrategyName"] }),
            ),
            at("placementName", json!({ "maxLength": 255 })),
            constant("placementName"),
            constant("resourceSnapshotIndex"),
            constant("stagedRolloutStrategyName"),
            at("state", first_of(&["Initialize", "Run", "Stop"])),
        ],
    )
}

fn run_status() -> Value {
    let mut amendments = stages("stagedUpdateStrategySnapshot.");
    amendments.extend(apply_strategy("appliedStrategy"));
    for stage in ["stagesStatus[]", "deletionStageStatus"] {
        amendments.extend([
            at(stage, json!({ "required": ["stageName", "clusters"] })),
            (
                format!("{stage}.clusters[]"),
                json!({ "required": ["clusterName"] }),
            ),
        ]);
        for (tasks, most) in [("afterStageTaskStatus", 2), ("beforeStageTaskStatus", 1)] {
            amendments.extend([
                (format!("{stage}.{tasks}"), json!({ "maxItems": most })),
                (
                    format!("{stage}.{tasks}[]"),
                    json!({ "required": ["type"] }),
                ),
                (
                    format!("{stage}.{tasks}[].type"),
                    one_of(&[TIMED_WAIT, APPROVAL]),
                ),
            ]);
        }
    }
    amended(structural::<UpdateRunStatus>(), &amendments)
}

fn approval() -> Value {
    amended(
        structural::<ApprovalRequestSpec>(),
        &[
            at(
                "",
                json!({ "required": ["parentStageRollout", "targetStage"] }),
            ),
            at(
                "",
                rules(&[("self == oldSelf", "The spec field is immutable")]),
            ),
        ],
    )
}
