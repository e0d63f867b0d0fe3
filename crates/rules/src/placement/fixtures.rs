//! Objects as a running KubeFleet served them.

use serde_json::Value;

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

/// Returns the object of a file.
pub(super) fn fixture(name: &str) -> Value {
    macro_rules! files {
        ($($name:literal)*) => {
            match name {
                $($name => include_str!(concat!("fixtures/", $name, ".json")),)*
                _ => panic!("no fixture {name}"),
            }
        };
    }
    let text = files! {
        "crp-1-policysnapshot-0" "crp-all-policysnapshot-0" "crp-five-policysnapshot-0"
        "crp-five-policysnapshot-1" "crp-fixed-policysnapshot-0" "crp-taint-policysnapshot-0"
        "crp-taint-tolerated-policysnapshot-1" "crp-1-resourcesnapshot-0"
        "crp-absent-resourcesnapshot-0" "crp-all-resourcesnapshot-0" "crp-env-resourcesnapshot-0"
        "crp-1-work" "crp-big-resourcesnapshots" "crp-roll-resourcesnapshots"
        "crp-five-policysnapshot-0-scaled" "membercluster" "binding-scheduled-2-strategy"
        "binding-unscheduled" "crp-five-bindings" "crp-1-bindings" "crp-all-bindings"
    };
    serde_json::from_str(text).unwrap()
}

/// Returns the items of a file with a list.
pub(super) fn items(name: &str) -> Vec<Value> {
    fixture(name)["items"].as_array().cloned().unwrap()
}

/// Returns an object without what only its server knows.
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
