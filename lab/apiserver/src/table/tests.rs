use jiff::Timestamp;
use serde_json::{Value, json};

use super::builtin;

fn now() -> Timestamp {
    "2026-11-21T09:00:00Z".parse().unwrap()
}

/// Compares with the cells of a real kube-apiserver 1.36 for the same objects.
#[test]
fn builtin_cells_are_kubes() {
    let shown: Vec<(String, Value, Value)> =
        serde_json::from_str(include_str!("shown.json")).unwrap();
    for (kind, mut object, cells) in shown {
        object["metadata"] = json!({ "name": "x", "creationTimestamp": "2026-11-21T08:59:50Z" });
        let table = builtin::table(&kind);
        let shown = (table.cells)(&object, now());
        assert_eq!(json!(shown), cells, "{kind}");
        assert_eq!(shown.len(), table.columns.len(), "{kind}");
    }
}

/// A node shows its roles, readiness and versions.
#[test]
fn node_shows_roles_and_readiness() {
    let node = json!({
        "metadata": { "name": "n1", "creationTimestamp": "2026-11-21T08:59:50Z", "labels": {
            "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "x", "other": "y" } },
        "spec": { "unschedulable": true },
        "status": {
            "conditions": [{ "type": "Ready", "status": "True" }],
            "addresses": [{ "type": "InternalIP", "address": "10.1.1.1" }],
            "nodeInfo": { "kubeletVersion": "v1.36.0", "osImage": "Linux", "kernelVersion": "6", "architecture": "amd64" },
        },
    });
    assert_eq!(
        json!((builtin::table("Node").cells)(&node, now())),
        json!([
            "n1",
            "Ready,SchedulingDisabled",
            "control-plane,x",
            "10s",
            "v1.36.0",
            "10.1.1.1",
            "<none>",
            "Linux",
            "6 (amd64)",
            "<unknown>"
        ])
    );
}

/// An event shows the same in either group.
#[test]
fn event_cells_match_across_groups() {
    let core = json!({
        "metadata": { "name": "e1" }, "type": "Normal", "reason": "Why",
        "involvedObject": { "kind": "Service", "name": "web", "fieldPath": "spec.x" },
        "message": "hello\n", "source": { "component": "c", "host": "h" }, "count": 3,
        "firstTimestamp": "2026-11-21T08:58:00Z", "lastTimestamp": "2026-11-21T08:59:00Z",
    });
    let newer = json!({
        "metadata": { "name": "e1" }, "type": "Normal", "reason": "Why",
        "regarding": { "kind": "Service", "name": "web", "fieldPath": "spec.x" },
        "note": "hello", "deprecatedSource": { "component": "c", "host": "h" }, "deprecatedCount": 3,
        "deprecatedFirstTimestamp": "2026-11-21T08:58:00Z", "deprecatedLastTimestamp": "2026-11-21T08:59:00Z",
    });
    let shown = json!([
        "60s",
        "Normal",
        "Why",
        "service/web",
        "spec.x",
        "c, h",
        "hello",
        "2m",
        3,
        "e1"
    ]);
    for event in [core, newer] {
        assert_eq!(json!((builtin::table("Event").cells)(&event, now())), shown);
    }
    let series = json!({
        "eventTime": "2026-11-21T08:58:00.000000Z", "regarding": { "kind": "Service" },
        "reportingController": "foo.com/c", "reportingInstance": "i",
        "series": { "count": 5, "lastObservedTime": "2026-11-21T08:59:00.000000Z" },
    });
    let shown = (builtin::table("Event").cells)(&series, now());
    assert_eq!(json!(shown[..2]), json!(["60s", ""]));
    assert_eq!(
        json!(shown[3..9]),
        json!(["service", "", "foo.com/c, i", "", "2m", 5])
    );
}
