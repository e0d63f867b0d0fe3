//! The columns of the built-in kinds, as the Kubernetes API prints them.

mod cell;
mod event;
mod network;
mod node;

use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) use self::cell::age;
use self::cell::{entries, items, name, text};
use self::event::EVENT;
use self::network::{ENDPOINT_SLICE, ENDPOINTS, INGRESS, INGRESS_CLASS, SERVICE};
use self::node::NODE;

/// The columns of one kind, and the function that fills them.
pub(super) struct Table {
    /// Name, type, priority.
    pub(super) columns: &'static [(&'static str, &'static str, i64)],
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// Returns the table of a kind, or the default one.
pub(super) fn table(kind: &str) -> &'static Table {
    match kind {
        "Namespace" => &NAMESPACE,
        "ConfigMap" => &CONFIG_MAP,
        "Secret" => &SECRET,
        "Service" => &SERVICE,
        "Endpoints" => &ENDPOINTS,
        "EndpointSlice" => &ENDPOINT_SLICE,
        "Node" => &NODE,
        "ServiceAccount" => &SERVICE_ACCOUNT,
        "Event" => &EVENT,
        "Lease" => &LEASE,
        "Ingress" => &INGRESS,
        "IngressClass" => &INGRESS_CLASS,
        "RoleBinding" | "ClusterRoleBinding" => &ROLE_BINDING,
        _ => &ANY,
    }
}

const ANY: Table = Table {
    columns: &[("Name", "string", 0), ("Created At", "date", 0)],
    cells: |object, _| {
        vec![
            name(object),
            object["metadata"]["creationTimestamp"].clone(),
        ]
    },
};

const NAMESPACE: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        let phase = text(&object["status"]["phase"]);
        vec![name(object), json!(phase), json!(age(object, now))]
    },
};

const CONFIG_MAP: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Data", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        let entries = entries(&object["data"]) + entries(&object["binaryData"]);
        vec![name(object), json!(entries), json!(age(object, now))]
    },
};

const SECRET: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Type", "string", 0),
        ("Data", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        vec![
            name(object),
            json!(text(&object["type"])),
            json!(entries(&object["data"])),
            json!(age(object, now)),
        ]
    },
};

const SERVICE_ACCOUNT: Table = Table {
    columns: &[("Name", "string", 0), ("Age", "string", 0)],
    cells: |object, now| vec![name(object), json!(age(object, now))],
};

const LEASE: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Holder", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        let holder = text(&object["spec"]["holderIdentity"]);
        vec![name(object), json!(holder), json!(age(object, now))]
    },
};

const ROLE_BINDING: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Role", "string", 0),
        ("Age", "string", 0),
        ("Users", "string", 1),
        ("Groups", "string", 1),
        ("ServiceAccounts", "string", 1),
    ],
    cells: |object, now| {
        let role = &object["roleRef"];
        let subjects = |kind: &str| {
            let subjects = items(&object["subjects"]).iter();
            let names =
                subjects
                    .filter(|subject| subject["kind"] == kind)
                    .map(|subject| match text(&subject["namespace"]) {
                        "" => text(&subject["name"]).to_owned(),
                        namespace => format!("{namespace}/{}", text(&subject["name"])),
                    });
            json!(names.collect::<Vec<_>>().join(", "))
        };
        vec![
            name(object),
            json!(format!("{}/{}", text(&role["kind"]), text(&role["name"]))),
            json!(age(object, now)),
            subjects("User"),
            subjects("Group"),
            subjects("ServiceAccount"),
        ]
    },
};
