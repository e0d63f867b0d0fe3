//! The columns of the built-in kinds, as the Kubernetes API prints them.
//!
//! [`table()`] says which kind has which; a kind without columns of its own shows its name and when it was made.
//! `columns` has the type of such a table, `cell` the contents of many cells, and each other file the kinds of
//! one sort. `selector` formats label selectors, as `labels.Selector.String` does.

mod autoscaler;
mod cell;
mod columns;
mod event;
mod network;
mod node;
mod pod;
mod selector;
mod volume;
mod workload;

use serde_json::{Value, json};

use self::autoscaler::AUTOSCALER;
use self::cell::{age, entries, items, name, text};
use self::event::EVENT;
use self::network::{ENDPOINT_SLICE, ENDPOINTS, INGRESS, INGRESS_CLASS, SERVICE};
use self::node::NODE;
use self::pod::POD;
use self::volume::CLAIM;
use self::workload::{
    CRON_JOB, DAEMON_SET, DEPLOYMENT, DISRUPTION_BUDGET, JOB, REPLICA_SET, STATEFUL_SET,
};

pub(super) use self::columns::Table;

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
        "Pod" => &POD,
        "PersistentVolumeClaim" => &CLAIM,
        "Deployment" => &DEPLOYMENT,
        "ReplicaSet" => &REPLICA_SET,
        "StatefulSet" => &STATEFUL_SET,
        "DaemonSet" => &DAEMON_SET,
        "Job" => &JOB,
        "CronJob" => &CRON_JOB,
        "PodDisruptionBudget" => &DISRUPTION_BUDGET,
        "HorizontalPodAutoscaler" => &AUTOSCALER,
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
        vec![
            name(object),
            json!(format!("{}/{}", text(&role["kind"]), text(&role["name"]))),
            json!(age(object, now)),
            json!(subjects(object, "User")),
            json!(subjects(object, "Group")),
            json!(subjects(object, "ServiceAccount")),
        ]
    },
};

/// Returns the subjects of a binding that are of one kind.
fn subjects(binding: &Value, kind: &str) -> String {
    let subjects = items(&binding["subjects"]).iter();
    let names = (subjects.filter(|subject| subject["kind"] == kind)).map(|subject| {
        match text(&subject["namespace"]) {
            "" => text(&subject["name"]).to_owned(),
            namespace => format!("{namespace}/{}", text(&subject["name"])),
        }
    });
    names.collect::<Vec<_>>().join(", ")
}
