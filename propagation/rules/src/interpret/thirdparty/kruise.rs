//! Kruise: workloads beside Kubernetes' own.

use objects::health::{is_observed, status_number};
use objects::metadata;
use serde_json::{Map, Value, json};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::reading::{count, is_true, list, observed_part, pods, status_part, text};
use crate::interpret::replicas::{Replicas, pod_requirements};
use crate::interpret::revise::set;

pub(super) const KINDS: &[Known] = &[
    (
        "apps.kruise.io/v1alpha1",
        "CloneSet",
        Interpreter {
            reflect: Some(|object| CLONE_SET.reflect(object)),
            aggregate: Some(|all| Some(CLONE_SET.aggregate(all))),
            ..WORKLOAD
        },
    ),
    (
        "apps.kruise.io/v1beta1",
        "StatefulSet",
        Interpreter {
            reflect: Some(|object| STATEFUL_SET.reflect(object)),
            aggregate: Some(|all| Some(STATEFUL_SET.aggregate(all))),
            ..WORKLOAD
        },
    ),
    (
        "apps.kruise.io/v1alpha1",
        "UnitedDeployment",
        Interpreter {
            reflect: Some(|object| UNITED_DEPLOYMENT.reflect(object)),
            aggregate: Some(|all| Some(UNITED_DEPLOYMENT.aggregate(all))),
            ..WORKLOAD
        },
    ),
    (
        "apps.kruise.io/v1alpha1",
        "DaemonSet",
        Interpreter {
            is_healthy: Some(is_daemon_set_healthy),
            reflect: Some(|object| DAEMON_SET.reflect(object)),
            aggregate: Some(|all| Some(DAEMON_SET.aggregate(all))),
            needs: Some(|template| pods(template, &[POD])),
            ..Interpreter::NONE
        },
    ),
    (
        "apps.kruise.io/v1alpha1",
        "SidecarSet",
        Interpreter {
            replicas: Some(|_| Replicas::default()),
            is_healthy: Some(is_sidecar_set_healthy),
            reflect: Some(|object| status_part(object, &SIDECARS).into()),
            aggregate: Some(|all| Some(all.sums(&SIDECARS)).filter(|_| all.copies() > 0)),
            needs: Some(|template| pods(template, &["/spec"])),
            ..Interpreter::NONE
        },
    ),
    (
        "apps.kruise.io/v1alpha1",
        "BroadcastJob",
        Interpreter {
            replicas: Some(broadcast_replicas),
            components: None,
            revise: Some(|manifest, replicas| set(manifest, "parallelism", replicas)),
            is_healthy: Some(is_broadcast_healthy),
            reflect: Some(|object| status_part(object, &BROADCAST).into()),
            aggregate: Some(broadcast_status),
            retain: Some(retain_labels),
            needs: Some(|template| pods(template, &[POD])),
        },
    ),
    (
        "apps.kruise.io/v1alpha1",
        "AdvancedCronJob",
        Interpreter {
            aggregate: Some(cron_status),
            needs: Some(|template| pods(template, &SCHEDULED)),
            ..Interpreter::NONE
        },
    ),
];

/// The place of the Pods' spec.
const POD: &str = "/spec/template/spec";

/// The places of the Pods' spec in an object that is started on schedule.
const SCHEDULED: [&str; 2] = [
    "/spec/template/jobTemplate/spec/template/spec",
    "/spec/template/broadcastJobTemplate/spec/template/spec",
];

/// The part that is common to the workloads that have replicas.
const WORKLOAD: Interpreter = Interpreter {
    replicas: Some(replicas),
    revise: Some(|manifest, replicas| set(manifest, "replicas", replicas)),
    is_healthy: Some(is_workload_healthy),
    needs: Some(|template| pods(template, &[POD])),
    ..Interpreter::NONE
};

/// The fields of a workload's status, beside the generations.
struct Status {
    /// Those that add up.
    counts: &'static [&'static str],
    /// Those of which the last counts.
    texts: &'static [&'static str],
    has_conditions: bool,
}

const CLONE_SET: Status = Status {
    counts: &[
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "updatedReadyReplicas",
        "expectedUpdatedReplicas",
    ],
    texts: &["updateRevision", "currentRevision", "labelSelector"],
    has_conditions: false,
};
const STATEFUL_SET: Status = Status {
    counts: &[
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "currentReplicas",
        "updatedReplicas",
        "updatedReadyReplicas",
    ],
    ..CLONE_SET
};
const UNITED_DEPLOYMENT: Status = Status {
    counts: &[
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "unavailableReplicas",
    ],
    texts: &[],
    has_conditions: true,
};
const DAEMON_SET: Status = Status {
    counts: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    ],
    texts: &["daemonSetHash"],
    has_conditions: false,
};
const SIDECARS: [&str; 3] = ["matchedPods", "updatedPods", "readyPods"];
const BROADCAST: [&str; 8] = [
    "conditions",
    "startTime",
    "completionTime",
    "active",
    "succeeded",
    "failed",
    "desired",
    "phase",
];

impl Status {
    fn reflect(&self, object: &Value) -> Value {
        let conditions: &[&str] = if self.has_conditions {
            &["conditions"]
        } else {
            &[]
        };
        observed_part(object, &[self.counts, self.texts, conditions].concat())
    }

    fn aggregate(&self, all: &Aggregation<'_>) -> Map<String, Value> {
        let mut status = all.sums(self.counts);
        for name in self.texts {
            status.insert((*name).to_owned(), all.last_text(name));
        }
        if self.has_conditions {
            let conditions = last_of_each_type(all.joined("conditions"));
            status.insert("conditions".to_owned(), conditions.into());
        }
        status.insert("observedGeneration".to_owned(), all.observed_generation());
        all.keeping(status)
    }
}

fn last_of_each_type(conditions: Vec<Value>) -> Vec<Value> {
    let mut last: Vec<Value> = Vec::new();
    for condition in conditions {
        let mut known = last.iter_mut();
        let same = known.find(|one| text(one, "/type") == text(&condition, "/type"));
        match same {
            Some(same) => *same = condition,
            None => last.push(condition),
        }
    }
    last
}

fn replicas(template: &Value) -> Replicas {
    let replicas = count(template, "/spec/replicas").unwrap_or_default();
    Replicas::new(replicas, template.pointer(POD).and_then(pod_requirements))
}

fn is_workload_healthy(object: &Value) -> bool {
    let updated = status_number(object, "updatedReplicas");
    is_observed(object)
        && count(object, "/spec/replicas").is_none_or(|wanted| updated >= wanted)
        && status_number(object, "availableReplicas") >= updated
}

fn is_daemon_set_healthy(object: &Value) -> bool {
    let updated = status_number(object, "updatedNumberScheduled");
    is_observed(object)
        && updated >= status_number(object, "desiredNumberScheduled")
        && status_number(object, "numberAvailable") >= updated
}

/// One that concerns no Pod has nothing to do.
fn is_sidecar_set_healthy(object: &Value) -> bool {
    let matched = status_number(object, "matchedPods");
    let has_status = object.get("status").is_some_and(Value::is_object);
    has_status && (matched == 0 || status_number(object, "updatedPods") == matched)
}

fn broadcast_replicas(template: &Value) -> Replicas {
    let parallelism = count(template, "/spec/parallelism").unwrap_or(1);
    Replicas::new(
        parallelism,
        template.pointer(POD).and_then(pod_requirements),
    )
}

fn is_broadcast_healthy(object: &Value) -> bool {
    let [desired, failed, succeeded, active] =
        ["desired", "failed", "succeeded", "active"].map(|name| status_number(object, name));
    desired != 0 && failed == 0 && (succeeded != 0 || active != 0)
}

fn broadcast_status(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    if all.copies() == 0 {
        return None;
    }
    let mut complete = 0;
    let mut failed = Vec::new();
    for (cluster, status) in all.members() {
        let mut conditions = list(status, "/conditions");
        let end = conditions.find(|one| is_true(one, "Complete") || is_true(one, "Failed"));
        match end.map(|end| text(end, "/type")) {
            Some("Complete") => complete += 1,
            Some(_) => failed.push(cluster),
            None => {}
        }
    }
    let mut conditions = Vec::new();
    if !failed.is_empty() {
        let clusters = failed.join(", ");
        let message = format!("Job executed failed in member clusters: {clusters}");
        conditions.push(json!({
            "type": "Failed", "status": "True", "reason": "JobFailed", "message": message,
        }));
    }
    if complete == all.copies() {
        conditions.push(json!({
            "type": "Completed", "status": "True", "reason": "Completed", "message": "Job completed",
        }));
    }
    let mut status = all.sums(&["active", "succeeded", "failed", "desired"]);
    status.insert("phase".to_owned(), all.last_text("phase"));
    status.insert("conditions".to_owned(), conditions.into());
    Some(all.keeping(status))
}

/// The member's controller marks the Pods by labels of the template.
fn retain_labels(body: &mut Value, object: &Value) {
    let labels = object.pointer("/spec/template/metadata/labels");
    if let Some(labels) = labels.filter(|labels| labels.is_object())
        && let Some(template) = body.pointer_mut("/spec/template")
    {
        metadata::set(template, "labels", labels.clone());
    }
}

fn cron_status(all: &Aggregation<'_>) -> Option<Map<String, Value>> {
    if all.copies() == 0 {
        return None;
    }
    let fields = [
        ("active", all.joined("active").into()),
        ("type", all.last_text("type")),
        ("lastScheduleTime", all.last("lastScheduleTime")),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Some(all.keeping(Map::from_iter(fields)))
}
