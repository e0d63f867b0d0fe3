//! Claims of volumes.

use serde_json::{Value, json};

use super::cell::{age, items, joined, name, or, text};
use super::columns::Table;

/// Where the class was before it had a field of its own.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The modes in the order in which they are shown.
const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

pub(super) const CLAIM: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Volume", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Age", "string", 0),
        ("VolumeMode", "string", 1),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let (metadata, volume) = (&object["metadata"], text(&spec["volumeName"]));
        let phase = match metadata["deletionTimestamp"] {
            Value::Null => text(&status["phase"]),
            _ => "Terminating",
        };
        let (capacity, modes) = match volume {
            // Capacity and modes are known only once there is a volume.
            "" => ("", String::new()),
            _ => (text(&status["capacity"]["storage"]), access_modes(status)),
        };
        let class = text(&metadata["annotations"][OLD_CLASS]);
        vec![
            name(object),
            json!(phase),
            json!(volume),
            json!(capacity),
            json!(modes),
            json!(or(class, text(&spec["storageClassName"]))),
            json!(or(text(&spec["volumeAttributesClassName"]), "<unset>")),
            json!(age(object, now)),
            json!(or(text(&spec["volumeMode"]), "Filesystem")),
        ]
    },
};

fn access_modes(status: &Value) -> String {
    let given = items(&status["accessModes"]);
    let shown = (MODES.iter()).filter(|(mode, _)| given.iter().any(|given| given == mode));
    joined(shown.map(|(_, short)| short))
}
