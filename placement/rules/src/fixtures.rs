//! Objects as a running KubeFleet served them.

use objects::write::Write;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, to_value};

/// Returns an object as a merge patch leaves it.
pub(super) fn merged<T: Serialize + DeserializeOwned>(object: &T, write: &Write) -> T {
    let mut json = to_value(object).unwrap();
    json_patch::merge(&mut json, write.body());
    from_value(json).unwrap()
}

/// The snapshots of policies.
pub(super) const POLICY_SNAPSHOTS: [&str; 7] = [
    "crp-1-policysnapshot-0",
    "crp-all-policysnapshot-0",
    "crp-five-policysnapshot-0",
    "crp-five-policysnapshot-1",
    "crp-fixed-policysnapshot-0",
    "crp-taint-policysnapshot-0",
    "crp-taint-tolerated-policysnapshot-1",
];

/// The snapshots of objects that are alone in their groups.
pub(super) const RESOURCE_SNAPSHOTS: [&str; 4] = [
    "crp-1-resourcesnapshot-0",
    "crp-absent-resourcesnapshot-0",
    "crp-all-resourcesnapshot-0",
    "crp-env-resourcesnapshot-0",
];

macro_rules! files {
    ($($name:literal)*) => {
        /// Every file.
        const FILES: &[&str] = &[$($name),*];

        /// Returns the object of a file.
        pub(super) fn fixture(name: &str) -> Value {
            let text = match name {
                $($name => include_str!(concat!("fixtures/", $name, ".json")),)*
                _ => panic!("no fixture {name}"),
            };
            serde_json::from_str(text).unwrap()
        }
    };
}

files! {
    "binding-unscheduled-deleting"
    "crp-over-clusterresourceoverride" "crp-over-clusterresourceoverridesnapshot" "crp-over-resourceoverride"
    "crp-over-resourceoverridesnapshot" "crp-over-works" "crp-over-failed"
    "crp-over-available" "crp-over-bindings" "crp-diff-drifted" "crp-diff-bindings" "crp-diff-works"
    "crp-diff-work-drifted" "crp-diff-reported" "crp-diff-takeover-never" "crp-diff-takeover-ifnodiff"
    "crp-diff-work-ifnodiff" "crp-diff-member-configmap-taken-over" "crp-diff-ssa-member-configmap"
    "crp-all-appliedwork" "crp-all-member-configmap" "crp-all-member-namespace" "internalmembercluster"
    "internalmembercluster-left"
    "binding-bound-apply-in-progress" "binding-bound-no-status" "binding-scheduled-2-strategy"
    "binding-unscheduled" "crp-1-available" "crp-1-bindings" "crp-1-member-objects"
    "crp-1-not-available" "crp-1-policysnapshot-0" "crp-1-resourcesnapshot-0" "crp-1-work"
    "crp-1-work-not-available" "crp-absent-resourcesnapshot-0" "crp-all-available"
    "crp-all-bindings" "crp-all-policysnapshot-0" "crp-all-resourcesnapshot-0"
    "crp-big-resourcesnapshots" "crp-env-available" "crp-env-resourcesnapshot-0" "crp-env-works" "crp-five-bindings"
    "crp-five-policysnapshot-0" "crp-five-policysnapshot-0-scaled" "crp-five-policysnapshot-1"
    "crp-five-unfulfilled" "crp-five-zero" "crp-fixed-policysnapshot-0" "crp-fixed-unfulfilled"
    "crp-roll-bindings-mid-rollout" "crp-roll-mid-rollout" "crp-roll-resourcesnapshots"
    "crp-taint-policysnapshot-0" "crp-taint-tolerated-policysnapshot-1" "crp-twice-invalid"
    "membercluster" "placement-overridden-pending" "placement-rollout-unknown"
    "placement-schedule-pending" "work-write-ahead"
}

/// Returns the items of a file with a list.
pub(super) fn items(name: &str) -> Vec<Value> {
    fixture(name)["items"].as_array().cloned().unwrap()
}

/// Returns an object without the fields that only its server knows.
pub(super) fn without_server_fields(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|name, _| {
        let of_server = [
            "creationTimestamp",
            "generation",
            "managedFields",
            "resourceVersion",
            "uid",
        ];
        !of_server.contains(&&**name)
    });
    object
}

/// Returns the values for which a schema has no field, or which it does not allow, with their paths.
fn unfit(schema: &Value, value: &Value, path: &str) -> Vec<String> {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return Vec::new();
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return vec![format!("{path} is {value}")];
    }
    match value {
        Value::Object(fields) => {
            let unfit = fields.iter().flat_map(|(name, value)| {
                let path = format!("{path}.{name}");
                let field = schema["properties"].get(name);
                match field.or_else(|| schema.get("additionalProperties")) {
                    Some(schema) => unfit(schema, value, &path),
                    None => vec![path],
                }
            });
            unfit.collect()
        }
        Value::Array(list) => {
            let elements = list.iter();
            elements
                .flat_map(|value| unfit(&schema["items"], value, path))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// An API with our definitions stores everything that a running KubeFleet wrote.
#[test]
fn recorded_objects_fit_the_definitions() {
    let definitions = fleet_api::definitions();
    for name in FILES {
        let file = fixture(name);
        let objects = file["items"].as_array().cloned();
        for object in objects.unwrap_or_else(|| vec![file]) {
            let definition = definitions.iter().find(|one| {
                let group = objects::group_kind(&object).0;
                one["spec"]["group"] == group && one["spec"]["names"]["kind"] == object["kind"]
            });
            let Some(definition) = definition else {
                continue;
            };
            let schema = &definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"];
            for part in ["spec", "status"] {
                if let Some(value) = object.get(part) {
                    let unfit = unfit(&schema["properties"][part], value, part);
                    assert_eq!(unfit, [""; 0], "{name}");
                }
            }
        }
    }
}
