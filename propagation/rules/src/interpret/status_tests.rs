use serde_json::{Value, json};

use super::*;

/// A status is reflected by kind.
#[test]
fn kind_decides_reflected_status() {
    let generation = "resourcetemplate.karmada.io/generation";
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "generation": 3, "annotations": { generation: "5" } },
        "status": { "replicas": 2, "readyReplicas": 0, "observedGeneration": 3, "conditions": [{}] } });
    let reflected = json!({ "generation": 3, "resourceTemplateGeneration": 5,
        "observedGeneration": 3, "replicas": 2 });
    let cases = [
        (deployment, Some(reflected)),
        (json!({ "apiVersion": "v1", "kind": "ConfigMap" }), None),
        (
            json!({ "apiVersion": "v1", "kind": "Service", "status": { "loadBalancer": {} } }),
            None,
        ),
        (
            json!({ "apiVersion": "v1", "kind": "Service", "spec": { "type": "LoadBalancer" },
            "status": { "loadBalancer": { "ingress": [] }, "conditions": [] } }),
            Some(json!({ "loadBalancer": { "ingress": [] } })),
        ),
        (
            json!({ "apiVersion": "batch/v1", "kind": "Job",
            "status": { "active": 1, "ready": 1, "uncountedTerminatedPods": {} } }),
            Some(json!({ "active": 1 })),
        ),
        (
            json!({ "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "status": { "currentReplicas": 1, "currentMetrics": [] } }),
            Some(json!({ "currentReplicas": 1, "desiredReplicas": 0 })),
        ),
        (
            json!({ "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "status": { "currentReplicas": 1, "currentCPUUtilizationPercentage": 50 } }),
            Some(json!({ "currentReplicas": 1, "currentCPUUtilizationPercentage": 50 })),
        ),
        (
            json!({ "apiVersion": "x/v1", "kind": "Y", "status": { "z": [] } }),
            Some(json!({ "z": [] })),
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(reflect(&object), expected, "{object}");
    }
}

fn member<'a>(cluster: &'a str, status: &'a Value) -> MemberStatus<'a> {
    MemberStatus {
        cluster,
        status: Some(status),
        manifest_generation: 4,
    }
}

fn apply(template: &Value, patch: &Value) -> Value {
    let mut template = template.clone();
    json_patch::merge(&mut template, patch);
    template
}

/// Replicas add up and the generation is observed once every member has.
#[test]
fn replicas_add_up() {
    let template = json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "generation": 5 }, "status": { "observedGeneration": 4, "readyReplicas": 1 } });
    let ready = json!({ "generation": 2, "observedGeneration": 2, "resourceTemplateGeneration": 4,
        "replicas": 2, "readyReplicas": 2 });
    let behind = json!({ "generation": 2, "observedGeneration": 1, "resourceTemplateGeneration": 4,
        "replicas": 1 });
    let status = |members: &[MemberStatus<'_>], rebuilt| {
        let patch = template_status(&template, members, rebuilt).unwrap();
        let applied = apply(&template, &patch);
        assert_eq!(template_status(&applied, members, rebuilt), None);
        applied["status"].clone()
    };
    let both = [member("m1", &ready), member("m2", &ready)];
    assert_eq!(status(&both, true)["observedGeneration"], 5);
    assert_eq!(status(&both, true)["readyReplicas"], 4);
    assert_eq!(
        status(&both, false)["observedGeneration"],
        4,
        "a manifest is older"
    );
    let one = [member("m1", &ready), member("m2", &behind)];
    assert_eq!(
        status(&one, true)["observedGeneration"],
        4,
        "a member is behind"
    );
    assert_eq!(status(&one, true)["replicas"], 3);
    let old = MemberStatus {
        manifest_generation: 5,
        ..member("m1", &ready)
    };
    assert_eq!(
        status(&[old], true)["observedGeneration"],
        4,
        "the object is older"
    );
}

/// A Job ends as its copies do and then stays.
#[test]
fn job_ends_with_its_copies() {
    let template = json!({ "apiVersion": "batch/v1", "kind": "Job", "status": {} });
    let done = json!({ "succeeded": 1, "startTime": "2026-11-22T08:00:00Z",
        "completionTime": "2026-11-22T08:01:00Z",
        "conditions": [{ "type": "Complete", "status": "True", "lastTransitionTime": "2026-11-22T08:01:00Z" }] });
    let failed = json!({ "failed": 1, "startTime": "2026-11-22T07:00:00Z",
        "conditions": [{ "type": "Failed", "status": "True", "lastTransitionTime": "2026-11-22T08:02:00Z" }] });
    let active = json!({ "active": 1, "startTime": "2026-11-22T08:00:00Z" });
    let kinds = |members: &[MemberStatus<'_>]| {
        let patch = template_status(&template, members, true).unwrap();
        let applied = apply(&template, &patch);
        let conditions = applied["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let kinds: Vec<_> = conditions
            .iter()
            .map(|c| c["type"].as_str().unwrap().to_owned())
            .collect();
        if !kinds.is_empty() {
            assert_eq!(
                template_status(&applied, &[member("m9", &active)], true),
                None
            );
        }
        kinds
    };
    let (m1, m2) = (member("m1", &done), member("m2", &done));
    assert_eq!(kinds(&[m1, m2]), ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(
        kinds(&[m1, member("m2", &failed)]),
        ["FailureTarget", "Failed"]
    );
    assert!(kinds(&[m1, member("m2", &active)]).is_empty());
    // Its start cannot be set anew: it is that of the first, once all have told theirs.
    let start = |members: &[MemberStatus<'_>]| {
        let patch = template_status(&template, members, true);
        let applied = apply(&template, &patch.unwrap_or_default());
        applied["status"]["startTime"].clone()
    };
    let silent = json!({});
    assert_eq!(start(&[m1, member("m2", &silent)]), Value::Null);
    let earlier = json!({ "active": 1, "startTime": "2026-11-22T07:59:00Z" });
    assert_eq!(start(&[m1, member("m2", &earlier)]), "2026-11-22T07:59:00Z");
}

/// The API lets no container run again that has ended and may not restart: it stays so, though its copy is gone.
#[test]
fn ended_containers_stay_ended() {
    let [terminated, running] = ["terminated", "running"].map(|state| {
        json!({ "phase": "Running",
            "containerStatuses": [{ "name": "web", "state": { state: {} } }] })
    });
    for (policy, expected) in [("Never", "terminated"), ("Always", "running")] {
        let template = json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "restartPolicy": policy },
            "status": terminated });
        let patch = template_status(&template, &[member("m1", &running)], true).unwrap();
        let state = &apply(&template, &patch)["status"]["containerStatuses"][0]["state"];
        assert!(state.get(expected).is_some(), "{policy}");
    }
}

fn status_of(version: &str, kind: &str, statuses: &[Value]) -> Option<Value> {
    let template =
        json!({ "apiVersion": version, "kind": kind, "spec": { "type": "LoadBalancer" } });
    let members: Vec<_> = statuses
        .iter()
        .zip(["m1", "m2"])
        .map(|(s, m)| member(m, s))
        .collect();
    template_status(&template, &members, true).map(|patch| patch["status"].clone())
}

fn kept(ready: bool, state: &Value) -> Value {
    json!({ "phase": "Running", "containerStatuses": [{
        "name": "web", "image": "web:1", "imageID": "x", "restartCount": 3, "ready": ready,
        "state": state,
    }] })
}

#[test]
fn other_kinds_have_rules_of_their_own() {
    let address = |ip: &str| json!({ "loadBalancer": { "ingress": [{ "ip": ip }] } });
    assert_eq!(
        status_of(
            "v1",
            "Service",
            &[address("192.0.2.2"), address("192.0.2.1")]
        )
        .unwrap(),
        json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }, { "ip": "192.0.2.2" }] } })
    );
    assert_eq!(
        status_of(
            "networking.k8s.io/v1",
            "Ingress",
            &[address("a"), address("a")]
        )
        .unwrap(),
        address("a")
    );
    let phase = |phase: &str| json!({ "phase": phase });
    assert_eq!(
        status_of("v1", "Pod", &[phase("Running"), phase("Failed")]),
        Some(phase("Failed"))
    );
    assert_eq!(
        status_of("v1", "Pod", &[phase("Running"), json!({})]),
        Some(phase("Pending"))
    );
    let running = json!({ "phase": "Running", "containerStatuses": [{
        "name": "web", "image": "web:1", "imageID": "x", "restartCount": 3, "ready": true,
        "started": true, "lastState": {}, "state": { "running": { "startedAt": "2026-11-22T08:00:00Z" } },
    }] });
    let state = &running["containerStatuses"][0]["state"];
    assert_eq!(
        status_of("v1", "Pod", &[running.clone(), running.clone()]),
        Some(kept(true, state))
    );
    let mut waiting = running.clone();
    let container = &mut waiting["containerStatuses"][0];
    container["ready"] = json!(false);
    container["state"] = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    let state = container["state"].clone();
    assert_eq!(
        status_of("v1", "Pod", &[running, waiting]),
        Some(kept(false, &state))
    );
    let claim = "PersistentVolumeClaim";
    assert_eq!(
        status_of("v1", claim, &[phase("Bound"), phase("Pending")]),
        Some(phase("Pending"))
    );
    assert_eq!(
        status_of("v1", claim, &[phase("Pending"), phase("Lost")]),
        Some(phase("Lost"))
    );
    assert_eq!(
        status_of("v1", claim, &[phase("Bound"), phase("Bound")]),
        Some(phase("Bound"))
    );
    let bound = phase("Bound");
    let volume = json!({ "apiVersion": "v1", "kind": "PersistentVolume", "status": {} });
    let mute = MemberStatus {
        status: None,
        ..member("m2", &bound)
    };
    let patch = template_status(&volume, &[member("m1", &bound), mute], true).unwrap();
    assert_eq!(apply(&volume, &patch)["status"], phase("Pending"));
    let budget = json!({ "currentHealthy": 1, "disruptedPods": { "a": "2026-11-22T08:00:00Z" } });
    let budget = status_of(
        "policy/v1",
        "PodDisruptionBudget",
        &[budget.clone(), budget],
    )
    .unwrap();
    assert_eq!(budget["currentHealthy"], 2);
    let pods: Vec<_> = budget["disruptedPods"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(pods, ["m1/a", "m2/a"]);
    assert_eq!(status_of("v1", "ConfigMap", &[json!({})]), None);
}
