use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Include, builtin, event, partial_list, table};
use crate::kinds::{Column, Kind};

fn now() -> Timestamp {
    "2026-11-21T09:00:00Z".parse().unwrap()
}

fn remedies(columns: &[(&str, &str, &str)]) -> Kind {
    Kind {
        columns: columns
            .iter()
            .map(|(name, type_, path)| Column {
                name: (*name).to_owned(),
                type_: (*type_).to_owned(),
                description: String::new(),
                priority: 0,
                json_path: (*path).to_owned(),
            })
            .collect(),
        ..crate::discovery::tests::kind("remedy.example.com", "Remedy", "remedies")
    }
}

fn remedy() -> Value {
    json!({
        "apiVersion": "remedy.example.com/v1", "kind": "Remedy",
        "metadata": { "name": "dns", "resourceVersion": "7", "uid": "u",
                      "creationTimestamp": "2026-11-21T08:59:30Z" },
        "spec": { "actions": ["TrafficControl"] },
    })
}

/// A custom resource shows its name and its columns.
#[test]
fn custom_resource_shows_its_columns() {
    let kind = remedies(&[
        ("Actions", "string", ".spec.actions"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]);
    let metadata = json!({ "resourceVersion": "9", "selfLink": "x" });
    let shown = table(&kind, [&remedy()], &metadata, Include::None, now());
    assert_eq!(shown["metadata"], json!({ "resourceVersion": "9" }));
    assert_eq!(
        shown["rows"],
        json!([{ "cells": ["dns", r#"["TrafficControl"]"#, "30s"], "object": null }])
    );
    let titles = shown["columnDefinitions"].as_array().unwrap().iter();
    let titles: Vec<_> = titles.map(|column| column["name"].clone()).collect();
    assert_eq!(titles, ["Name", "Actions", "Age"]);
    assert_eq!(
        shown["columnDefinitions"][1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.actions"
    );
}

/// A custom resource without columns shows name and age.
#[test]
fn columnless_resource_shows_age() {
    let shown = table(
        &remedies(&[]),
        [&remedy()],
        &Value::Null,
        Include::None,
        now(),
    );
    assert_eq!(shown["rows"][0]["cells"], json!(["dns", "30s"]));
    assert_eq!(shown["columnDefinitions"][1]["name"], "Age");
}

/// A row carries as much of its object as was requested.
#[test]
fn row_includes_what_is_requested() {
    let (kind, remedy) = (remedies(&[]), remedy());
    let object = |include| {
        table(&kind, [&remedy], &Value::Null, include, now())["rows"][0]["object"].clone()
    };
    assert_eq!(object(Include::None), Value::Null);
    assert_eq!(object(Include::Object), remedy);
    let partial = object(Include::Metadata);
    assert_eq!(partial["kind"], "PartialObjectMetadata");
    assert_eq!(partial["metadata"], remedy["metadata"]);
    assert_eq!(partial.get("spec"), None);
    assert_eq!(Include::parse(""), Ok(Include::Metadata));
    assert!(Include::parse("Everything").is_err());
}

/// Only the first event of a watch names the columns.
#[test]
fn first_event_names_columns() {
    let (kind, remedy) = (remedies(&[]), remedy());
    let first = event(&kind, &remedy, Include::None, now(), true);
    assert_eq!(first["columnDefinitions"].as_array().unwrap().len(), 2);
    assert_eq!(first["metadata"]["resourceVersion"], "7");
    let second = event(&kind, &remedy, Include::None, now(), false);
    assert_eq!(second["columnDefinitions"], Value::Null);
}

/// A list of metadata has nothing else.
#[test]
fn metadata_list_has_metadata_only() {
    let list = json!({ "metadata": { "resourceVersion": "9" }, "items": [remedy()] });
    let partial = partial_list(&list);
    assert_eq!(partial["metadata"]["resourceVersion"], "9");
    assert_eq!(partial["items"][0]["metadata"]["name"], "dns");
    assert_eq!(partial["items"][0].get("spec"), None);
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

/// A node shows roles readiness and what it runs.
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
