//! Whether an object of a member does its work, by its kind.

use objects::condition::{AnyCondition, TRUE, find};
use objects::group_kind;
use objects::health::{
    Health, has_address, health, is_observed, is_paused, replicas, status_number,
};
use serde_json::Value;

/// Whether an object does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It does.
    Available,
    /// It does not, or not yet.
    NotYet,
    /// It does not, and its controller has given up.
    GivenUp,
    /// Nobody can say.
    NotTrackable,
}

/// Returns whether an object does its work.
pub fn availability(object: &Value) -> Availability {
    let available = match group_kind(object) {
        ("apps", "Deployment") => {
            if is_observed(object) && has_exceeded_its_deadline(object) {
                return Availability::GivenUp;
            }
            // While replicas of an older version go, those of the newest need not carry the load.
            is_healthy(object)
                && (is_paused(object) || status_number(object, "replicas") <= replicas(object))
        }
        ("apps", "StatefulSet" | "DaemonSet") => is_healthy(object),
        ("", "Service") => match object["spec"]["type"].as_str() {
            Some("ExternalName") => return Availability::NotTrackable,
            Some("LoadBalancer") => has_address(object),
            _ => object["spec"]["clusterIP"]
                .as_str()
                .is_some_and(|ip| !ip.is_empty()),
        },
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            has_true(object, "Established") && has_true(object, "NamesAccepted")
        }
        ("policy", "PodDisruptionBudget") => is_observed(object),
        (
            "",
            "Namespace" | "Secret" | "ConfigMap" | "ServiceAccount" | "LimitRange"
            | "ResourceQuota",
        )
        | (
            "rbac.authorization.k8s.io",
            "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding",
        )
        | ("networking.k8s.io", "NetworkPolicy" | "IngressClass")
        | ("storage.k8s.io", "StorageClass" | "CSIDriver" | "CSINode" | "CSIStorageCapacity")
        | ("apps", "ControllerRevision")
        | ("scheduling.k8s.io", "PriorityClass") => true,
        _ => return Availability::NotTrackable,
    };
    if available {
        Availability::Available
    } else {
        Availability::NotYet
    }
}

fn is_healthy(object: &Value) -> bool {
    health(object) == Health::Healthy
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten()
}

fn has_true(object: &Value, kind: &str) -> bool {
    find(conditions(object), kind).is_some_and(|condition| condition.status() == TRUE)
}

fn has_exceeded_its_deadline(deployment: &Value) -> bool {
    let progressing = find(conditions(deployment), "Progressing");
    progressing.is_some_and(|condition| condition["reason"] == "ProgressDeadlineExceeded")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::items;
    use super::*;

    fn object(api_version: &str, kind: &str, rest: &Value) -> Value {
        let mut object = json!({ "apiVersion": api_version, "kind": kind,
            "metadata": { "name": "a", "generation": 2 } });
        json_patch::merge(&mut object, rest);
        object
    }

    /// The seven objects of the seed's first example as they were in a member, the Deployment available.
    #[test]
    fn recorded_objects_are_available() {
        for object in items("crp-1-member-objects") {
            let expected = match objects::kind(&object) {
                "Job" => Availability::NotTrackable,
                _ => Availability::Available,
            };
            assert_eq!(
                availability(&object),
                expected,
                "{}",
                objects::kind(&object)
            );
        }
    }

    fn ready(number: i64) -> Value {
        json!({ "observedGeneration": 2, "replicas": number, "updatedReplicas": number,
        "availableReplicas": number })
    }

    /// Returns a set as its controller leaves it in a rollout to the last of three replicas.
    fn set(partition: i64) -> Value {
        object(
            "apps/v1",
            "StatefulSet",
            &json!({
        "spec": { "replicas": 3, "updateStrategy": { "rollingUpdate": { "partition": partition } } },
        "status": { "observedGeneration": 2, "replicas": 3, "availableReplicas": 3,
            "currentReplicas": 2, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b" } }),
        )
    }

    fn daemons(updated: i64) -> Value {
        object(
            "apps/v1",
            "DaemonSet",
            &json!({
        "status": { "observedGeneration": 2, "numberAvailable": 3, "desiredNumberScheduled": 3,
            "currentNumberScheduled": 3, "updatedNumberScheduled": updated } }),
        )
    }

    fn by_hand(mut workload: Value) -> Value {
        workload["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
        workload
    }

    /// Case F108: pods that are left at an older version on purpose are as they are to be.
    #[test]
    fn workloads_wait_for_their_replicas() {
        let deployment = |replicas: Value, status: Value| {
            object(
                "apps/v1",
                "Deployment",
                &json!({ "spec": { "replicas": replicas }, "status": status }),
            )
        };
        let mut with_old = ready(2);
        with_old["replicas"] = json!(3);
        let given_up = json!({ "observedGeneration": 2, "conditions": [{ "type": "Progressing",
            "status": "False", "reason": "ProgressDeadlineExceeded" }] });
        let mut paused = deployment(json!(2), with_old.clone());
        paused["spec"]["paused"] = json!(true);
        let mut old = ready(2);
        old["observedGeneration"] = json!(1);
        for (object, expected) in [
            (deployment(json!(2), ready(2)), Availability::Available),
            (deployment(json!(2), ready(1)), Availability::NotYet),
            (deployment(json!(2), old), Availability::NotYet),
            (deployment(json!(2), with_old), Availability::NotYet),
            (deployment(Value::Null, ready(1)), Availability::Available),
            (
                deployment(json!(0), json!({ "observedGeneration": 2 })),
                Availability::Available,
            ),
            (deployment(json!(2), given_up), Availability::GivenUp),
            (set(2), Availability::Available),
            (set(0), Availability::NotYet),
            (daemons(3), Availability::Available),
            (daemons(2), Availability::NotYet),
            (paused, Availability::Available),
            (by_hand(set(0)), Availability::Available),
            (by_hand(daemons(2)), Availability::Available),
        ] {
            assert_eq!(availability(&object), expected, "{object}");
        }
    }

    fn definition(established: &str) -> Value {
        object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &json!({ "status": { "conditions": [
            { "type": "Established", "status": established },
            { "type": "NamesAccepted", "status": "True" }] } }),
        )
    }

    #[test]
    fn other_kinds_have_their_rules() {
        let service = |rest: Value| object("v1", "Service", &rest);
        let address = json!({ "loadBalancer": { "ingress": [{ "hostname": "a.example.com" }] } });
        let [waiting, balancing] = [json!({}), address].map(|status| {
            service(json!({ "spec": { "type": "LoadBalancer",
            "clusterIP": "10.0.0.1" }, "status": status }))
        });
        for (object, expected) in [
            (
                service(json!({ "spec": { "clusterIP": "10.0.0.1" } })),
                Availability::Available,
            ),
            (service(json!({})), Availability::NotYet),
            (
                service(json!({ "spec": { "type": "ExternalName" } })),
                Availability::NotTrackable,
            ),
            (waiting, Availability::NotYet),
            (balancing, Availability::Available),
            (definition("True"), Availability::Available),
            (definition("False"), Availability::NotYet),
            (
                object("v1", "PersistentVolumeClaim", &json!({})),
                Availability::NotTrackable,
            ),
            (
                object("example.com/v1", "Toy", &json!({})),
                Availability::NotTrackable,
            ),
            (
                object("storage.k8s.io/v1", "CSIDriver", &json!({})),
                Availability::Available,
            ),
            (
                object(
                    "policy/v1",
                    "PodDisruptionBudget",
                    &json!({ "status": { "observedGeneration": 2 } }),
                ),
                Availability::Available,
            ),
        ] {
            assert_eq!(availability(&object), expected, "{object}");
        }
    }
}
