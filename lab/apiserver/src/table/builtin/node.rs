//! Nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cell::{NONE, age, entries_of, items, joined, name, or, text};
use super::columns::Table;

/// The prefix of labels that assign a role to a node.
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

pub(super) const NODE: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Roles", "string", 0),
        ("Age", "string", 0),
        ("Version", "string", 0),
        ("Internal-IP", "string", 1),
        ("External-IP", "string", 1),
        ("OS-Image", "string", 1),
        ("Kernel-Version", "string", 1),
        ("Container-Runtime", "string", 1),
    ],
    cells: |object, now| {
        let info = &object["status"]["nodeInfo"];
        let mut kernel = or(text(&info["kernelVersion"]), "<unknown>");
        if let architecture @ [_, ..] = text(&info["architecture"]).as_bytes() {
            kernel = format!("{kernel} ({})", String::from_utf8_lossy(architecture));
        }
        vec![
            name(object),
            json!(node_status(object)),
            json!(or(&node_roles(object), NONE)),
            json!(age(object, now)),
            json!(text(&info["kubeletVersion"])),
            json!(node_address(object, "InternalIP")),
            json!(node_address(object, "ExternalIP")),
            json!(or(text(&info["osImage"]), "<unknown>")),
            json!(kernel),
            json!(or(text(&info["containerRuntimeVersion"]), "<unknown>")),
        ]
    },
};

fn node_status(node: &Value) -> String {
    let conditions = items(&node["status"]["conditions"]);
    let ready = conditions
        .iter()
        .find(|condition| condition["type"] == "Ready");
    let ready = match ready {
        None => "Unknown",
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    if node["spec"]["unschedulable"] == true {
        format!("{ready},SchedulingDisabled")
    } else {
        ready.to_owned()
    }
}

fn node_roles(node: &Value) -> String {
    let labels = entries_of(&node["metadata"]["labels"]);
    let roles: BTreeSet<_> = labels
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            // The older label has the role in its value.
            None => (key == "kubernetes.io/role").then(|| text(value)),
        })
        .filter(|role| !role.is_empty())
        .collect();
    joined(roles)
}

fn node_address(node: &Value, type_: &str) -> String {
    let addresses = items(&node["status"]["addresses"]);
    let address = addresses.iter().find(|address| address["type"] == type_);
    address.map_or_else(
        || NONE.to_owned(),
        |address| text(&address["address"]).to_owned(),
    )
}
