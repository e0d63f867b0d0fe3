//! Horizontal pod autoscalers.

use serde_json::{Value, json};

use super::cell::{NONE, age, items, name, number, text};
use super::columns::Table;

/// The limit of metrics in a cell.
const SHOWN: usize = 2;

const UNKNOWN: &str = "<unknown>";

pub(super) const AUTOSCALER: Table = Table {
    columns: &[
        ("Name", "string", 0),
        ("Reference", "string", 0),
        ("Targets", "string", 0),
        ("MinPods", "string", 0),
        ("MaxPods", "string", 0),
        ("Replicas", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, now| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let target = &spec["scaleTargetRef"];
        let least = spec["minReplicas"].as_i64();
        vec![
            name(object),
            json!(format!(
                "{}/{}",
                text(&target["kind"]),
                text(&target["name"])
            )),
            json!(metrics(
                items(&spec["metrics"]),
                items(&status["currentMetrics"])
            )),
            json!(least.map_or_else(|| "<unset>".to_owned(), |least| least.to_string())),
            json!(number(&spec["maxReplicas"])),
            json!(number(&status["currentReplicas"])),
            json!(age(object, now)),
        ]
    },
};

fn metrics(wanted: &[Value], current: &[Value]) -> String {
    let shown = wanted.iter().enumerate().map(|(index, wanted)| {
        // They belong together by their place in the two lists.
        metric(wanted, current.get(index).unwrap_or(&Value::Null))
    });
    let shown: Vec<String> = shown.take(SHOWN).collect();
    match wanted.len().saturating_sub(SHOWN) {
        _ if wanted.is_empty() => NONE.to_owned(),
        0 => shown.join(", "),
        more => format!("{} + {more} more...", shown.join(", ")),
    }
}

fn metric(wanted: &Value, current: &Value) -> String {
    let field = match text(&wanted["type"]) {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let (source, target) = (&wanted[field], &wanted[field]["target"]);
    let now = &current[field]["current"];
    let average = text(&target["averageValue"]);
    match field {
        "resource" | "containerResource" => {
            let values = if average.is_empty() {
                let now = percent(&now["averageUtilization"], UNKNOWN);
                format!("{now}/{}", percent(&target["averageUtilization"], "<auto>"))
            } else {
                format!("{}/{average}", known(&now["averageValue"]))
            };
            format!("{}: {values}", text(&source["name"]))
        }
        "pods" => format!("{}/{average}", known(&now["averageValue"])),
        _ if average.is_empty() => format!("{}/{}", known(&now["value"]), text(&target["value"])),
        _ => format!("{}/{average} (avg)", known(&now["averageValue"])),
    }
}

fn known(value: &Value) -> &str {
    value.as_str().unwrap_or(UNKNOWN)
}

fn percent(value: &Value, otherwise: &str) -> String {
    let percent = value.as_i64();
    percent.map_or_else(|| otherwise.to_owned(), |percent| format!("{percent}%"))
}
