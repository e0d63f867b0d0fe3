//! Rules that a recording of one case does not show.

use super::*;

/// Returns the status of a template of a recorded kind that is new.
fn status(name: &str, statuses: &[Value]) -> Value {
    let mut one = named(name);
    one.content["template"]["status"] = json!(null);
    one.status(statuses)
}

/// The generation of a template is observed only once every member has seen it, and every manifest is of it.
#[test]
fn generation_awaits_every_member() {
    let one = named("cloneset");
    let seen = json!({ "generation": 2, "observedGeneration": 2, "resourceTemplateGeneration": 4 });
    let behind =
        json!({ "generation": 2, "observedGeneration": 1, "resourceTemplateGeneration": 4 });
    let older =
        json!({ "generation": 2, "observedGeneration": 2, "resourceTemplateGeneration": 3 });
    for (other, expected) in [(&seen, 4), (&behind, 3), (&older, 3), (&Value::Null, 3)] {
        let status = one.status(&[seen.clone(), other.clone()]);
        assert_eq!(status["observedGeneration"], expected, "{other}");
    }
    let statuses = [seen];
    let members = named_members(one.template(), &statuses);
    let patch = template_status(one.template(), &members, false).unwrap_or_default();
    assert_eq!(
        patch["status"].get("observedGeneration"),
        None,
        "a manifest is older"
    );
}

/// A template that is in no cluster has nothing: its counts are zero, and of other kinds nothing is said.
#[test]
fn absent_copies_count_zero() {
    let cloned = named("cloneset").status(&[]);
    assert_eq!(cloned["replicas"].as_i64().unwrap_or_default(), 0);
    assert_eq!(cloned["observedGeneration"], 4);
    assert_eq!(status("flinkdeployment", &[]), json!(null));
    assert_eq!(status("broadcastjob", &[]), json!(null));
    assert_eq!(status("raycluster", &[]), json!(null));
}

/// A kind may require its counts: those that are written come with all others, zeros included.
#[test]
fn counts_are_written_together() {
    let found = status("cloneset", &[json!({ "replicas": 2 })]);
    let counts = json!({ "replicas": 2, "readyReplicas": 0, "availableReplicas": 0, "updatedReplicas": 0,
        "updatedReadyReplicas": 0, "expectedUpdatedReplicas": 0, "observedGeneration": 0,
        "updateRevision": "", "currentRevision": "", "labelSelector": "" });
    assert_eq!(found, counts);
}

/// The one copy of a job is the job: its status is taken over, and fields that have left it go.
#[test]
fn single_copy_reports_whole() {
    for name in [
        "volcano-job",
        "mpijob",
        "raycluster",
        "rayjob",
        "rayservice",
        "notebook",
        "sparkapplication",
    ] {
        let mut one = named(name);
        one.content["template"]["status"] =
            json!({ "old": { "deep": 1 }, "state": { "phase": "Old", "extra": 1 } });
        let reported = json!({ "state": { "phase": "New" }, "custom": [1] });
        assert_eq!(
            one.status(std::slice::from_ref(&reported)),
            reported,
            "{name}"
        );
        let before = one.template()["status"].clone();
        assert_eq!(
            one.status(&[json!(null)]),
            before,
            "{name}: it has not reported yet"
        );
    }
}

/// Karmada's script lets a verdict on one cluster stand for those after it that have none.
#[test]
fn broadcast_verdict_is_its_own() {
    let [failed, complete] = ["Failed", "Complete"]
        .map(|kind| json!({ "conditions": [{ "type": kind, "status": "True" }] }));
    let active = json!({ "active": 1 });
    let has_failed = status("broadcastjob", &[failed, active.clone(), active.clone()]);
    assert_eq!(
        has_failed["conditions"][0]["message"],
        "Job executed failed in member clusters: member1"
    );
    let runs = status("broadcastjob", &[complete.clone(), active]);
    assert_eq!(runs["conditions"], json!([]));
    let is_complete = status("broadcastjob", &[complete.clone(), complete]);
    assert_eq!(is_complete["conditions"][0]["type"], "Completed");
}

/// Karmada's script adds to the failures that it has counted before, at each look.
#[test]
fn release_failures_do_not_grow() {
    let mut one = named("helmrelease");
    one.content["template"]["status"] = json!({ "failures": 7 });
    let failures =
        one.status(&[json!({ "failures": 2 }), json!({ "failures": 1 })])["failures"].clone();
    assert_eq!(failures, 3);
}

/// Karmada's script reads a chart's generation from nowhere, so that it never counts as observed.
#[test]
fn chart_reports_its_generation() {
    let chart = object(
        "source.toolkit.fluxcd.io/v1beta2",
        "HelmChart",
        &json!({ "status": { "observedGeneration": 1 } }),
    );
    assert_eq!(
        reflect(&chart),
        Some(json!({ "generation": 1, "observedGeneration": 1 }))
    );
}

/// A source without an account refers to none, and one without names to nothing.
#[test]
fn unnamed_references_are_none() {
    for spec in [
        json!({}),
        json!({ "secretRef": { "name": "" }, "serviceAccountName": "" }),
    ] {
        let version = "source.toolkit.fluxcd.io/v1beta2";
        let source = object(version, "OCIRepository", &json!({ "spec": spec }));
        assert_eq!(referred(&source), BTreeSet::new());
    }
}

const FLINK: &str = "flink.apache.org/v1beta1";

/// A Flink job has as many workers as its parallelism needs, unless it says how many.
#[test]
fn flink_workers_follow_parallelism() {
    let [four, none] = ["4", "0"].map(|slots| {
        json!({ "job": { "parallelism": 10 },
            "flinkConfiguration": { "taskmanager.numberOfTaskSlots": slots } })
    });
    let counted = json!({ "jobManager": { "replicas": 2 }, "taskManager": { "replicas": 5 } });
    for (spec, expected) in [(json!({}), 2), (four, 4), (none, 2), (counted, 7)] {
        let job = object(FLINK, "FlinkDeployment", &json!({ "spec": spec }));
        assert_eq!(replicas(&job).count, Some(expected), "{spec}");
    }
}

fn is_flink_healthy(status: &Value) -> bool {
    let job = object(FLINK, "FlinkDeployment", &json!({ "status": status }));
    health(&job) == Health::Healthy
}

/// A Flink job that starts is moved if it could start elsewhere, and not if it would fail there as well.
#[test]
fn flink_health_follows_state() {
    let job = |state: &str, error: &str| json!({ "error": error, "jobStatus": { "state": state } });
    for state in [
        "RUNNING",
        "FAILED",
        "FINISHED",
        "CANCELED",
        "CANCELLING",
        "FAILING",
        "RESTARTING",
        "SUSPENDED",
    ] {
        assert!(is_flink_healthy(&job(state, "")), "{state}");
    }
    for state in ["CREATED", "INITIALIZING", "RECONCILING"] {
        assert!(!is_flink_healthy(&job(state, "no node")), "{state}");
        assert!(
            is_flink_healthy(&job(state, "pod: ImagePullBackOff")),
            "{state}"
        );
    }
    assert!(!is_flink_healthy(&job("ELSEWHERE", "")));
    assert!(!is_flink_healthy(&json!({ "error": "ErrImagePull" })));
    let session = json!({ "jobManagerDeploymentStatus": "READY", "lifecycleState": "STABLE" });
    assert!(is_flink_healthy(&session));
}

fn divided(had: &[i64], replicas: i32) -> Vec<i64> {
    let groups: Vec<_> = had
        .iter()
        .map(|replicas| json!({ "replicas": replicas }))
        .collect();
    let spec = json!({ "rayClusterConfig": { "workerGroupSpecs": groups } });
    let mut service = object("ray.io/v1", "RayService", &json!({ "spec": spec }));
    revise(&mut service, replicas);
    let groups = &service["spec"]["rayClusterConfig"]["workerGroupSpecs"];
    let groups = groups.as_array().unwrap().iter();
    groups
        .map(|group| group["replicas"].as_i64().unwrap())
        .collect()
}

/// Workers are divided as the template divides them, and none is invented by rounding.
#[test]
fn ray_workers_are_divided() {
    assert_eq!(divided(&[3], 7), [6]);
    assert_eq!(divided(&[1, 2, 3], 13), [2, 4, 6]);
    assert_eq!(divided(&[0, 0], 8), [4, 3]);
    assert_eq!(divided(&[4, 0], 9), [8, 0]);
    assert_eq!(divided(&[5, 1], 1), [0, 0]);
    assert_eq!(divided(&[5], 0), [0]);
    assert_eq!(divided(&[1, 1, 0], 2), [1, 0, 0]);
}

/// The state of an application that nobody knows is no reason to fail, and matters less than others.
#[test]
fn unknown_spark_state_matters_least() {
    for (states, worst) in [
        (&["DREAMING", "SUBMITTED"][..], "SUBMITTED"),
        (&["DREAMING", "UNKNOWN"], "DREAMING"),
        (
            &["RUNNING", "SUBMISSION_FAILED", "FAILED"],
            "SUBMISSION_FAILED",
        ),
    ] {
        let states = states.iter();
        let states = states.map(|state| json!({ "applicationState": { "state": state } }));
        let added_up = status("sparkapplication", &states.collect::<Vec<_>>());
        assert_eq!(added_up["applicationState"]["state"], worst);
    }
}

/// A notebook that no node has room for says so, and one that runs everywhere is ready since its last start.
#[test]
fn notebooks_wait_or_run() {
    let running = |at: &str| json!({ "readyReplicas": 1, "containerState": { "running": { "startedAt": at } } });
    let (first, second) = ("2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z");
    let ready = status("notebook", &[running(second), running(first)]);
    assert_eq!(
        ready["containerState"],
        json!({ "running": { "startedAt": second } })
    );
    assert_eq!(ready["conditions"][0]["lastTransitionTime"], second);
    let waiting = status("notebook", &[running(first), json!({ "readyReplicas": 0 })]);
    assert_eq!(
        waiting["containerState"],
        json!({ "waiting": { "reason": "Unschedulable" } })
    );
    assert_eq!(waiting["conditions"][0]["reason"], "NotebookFailed");
}

/// A training job ends as its copies do, at the time at which the last of them did.
#[test]
fn training_ends_with_last_copy() {
    let ended = |kind: &str, at: &str| json!({ "completionTime": at, "conditions": [{ "type": kind, "status": "True", "lastTransitionTime": at }] });
    let (first, last) = ("2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z");
    for (name, reasons) in [
        ("pytorchjob", ["PyTorchJobSucceeded", "PyTorchJobFailed"]),
        ("tfjob", ["Completed", "TFJobFailed"]),
    ] {
        let succeeded = status(name, &[ended("Succeeded", last), ended("Succeeded", first)]);
        assert_eq!(succeeded["completionTime"], last, "{name}");
        assert_eq!(succeeded["conditions"][0]["reason"], reasons[0]);
        assert_eq!(succeeded["conditions"][0]["lastTransitionTime"], last);
        let failed = status(name, &[ended("Succeeded", last), ended("Failed", first)]);
        assert_eq!(failed.get("completionTime"), None, "{name}");
        assert_eq!(failed["conditions"][0]["reason"], reasons[1]);
        assert_eq!(failed["conditions"][0]["lastTransitionTime"], first);
    }
}

fn volcano_job(phase: &str, duration: &str) -> Value {
    let conditions = json!([{ "status": phase, "lastTransitionTime": "2026-11-20T08:00:00Z" }]);
    json!({ "version": 1, "runningDuration": duration, "state": { "phase": phase }, "conditions": conditions })
}

/// A batch job is complete once it is in every cluster, and takes as long as the longest.
#[test]
fn volcano_job_completes_everywhere() {
    let complete = status(
        "volcano-job",
        &[
            volcano_job("Completed", "1h2m3s"),
            volcano_job("Completed", "90m"),
        ],
    );
    assert_eq!(complete["state"]["message"], "Job completed successfully");
    assert_eq!(complete["runningDuration"], "90m");
    let running = status(
        "volcano-job",
        &[
            volcano_job("Completed", "1s"),
            volcano_job("Running", "900ms"),
        ],
    );
    assert_eq!(running.get("state"), None);
    assert_eq!(running["runningDuration"], "1s");
    assert_eq!(running["conditions"].as_array().unwrap().len(), 2);
}

fn ray_sum(first: Value, second: Value) -> [Value; 3] {
    let sum = status("raycluster", &[first, second]);
    [
        sum["desiredCPU"].clone(),
        sum["desiredMemory"].clone(),
        sum["desiredGPU"].clone(),
    ]
}

/// Quantities add up in the notation in which they come.
#[test]
fn ray_resources_add_up() {
    let of = |cpu: &str, memory: &str| json!({ "desiredCPU": cpu, "desiredMemory": memory, "desiredGPU": "500" });
    assert_eq!(
        ray_sum(of("1000m", "3072Mi"), of("2500m", "2Gi")),
        ["3500m", "5Gi", "1000"]
    );
    assert_eq!(ray_sum(of("2", "3G"), of("4", "5G")), ["6", "8G", "1000"]);
    assert_eq!(ray_sum(of("0", "0"), of("x", "1Gi")), ["0", "1Gi", "1000"]);
}

fn is_policy_healthy(status: &Value) -> bool {
    health(&object(
        "kyverno.io/v1",
        "Policy",
        &json!({ "status": status }),
    )) == Health::Healthy
}

/// A policy that says in a field of its own that it is ready needs no condition.
#[test]
fn kyverno_field_precedes_condition() {
    let [succeeded, other] = ["Succeeded", "Other"]
        .map(|reason| json!([{ "type": "Ready", "status": "True", "reason": reason }]));
    assert!(is_policy_healthy(&json!({ "conditions": succeeded })));
    assert!(!is_policy_healthy(&json!({ "conditions": other })));
    let unready = json!({ "ready": false, "conditions": succeeded });
    assert!(!is_policy_healthy(&unready));
    assert!(!is_policy_healthy(&json!({})));
}
