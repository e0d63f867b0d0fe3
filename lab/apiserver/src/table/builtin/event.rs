//! Events.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cell::{name, or, text};
use super::columns::Table;
use crate::table::age;

pub(super) const EVENT: Table = Table {
    columns: &[
        ("Last Seen", "string", 0),
        ("Type", "string", 0),
        ("Reason", "string", 0),
        ("Object", "string", 0),
        ("Subobject", "string", 1),
        ("Source", "string", 1),
        ("Message", "string", 0),
        ("First Seen", "string", 1),
        ("Count", "string", 1),
        ("Name", "string", 1),
    ],
    cells: event,
};

/// Returns the cells of an Event of either group, whose fields are named differently.
fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, newer: &str| match &object[core] {
        Value::Null => object[newer].clone(),
        value => value.clone(),
    };
    let time = |time: &Value| age::since(time.as_str(), now);
    let about = either("involvedObject", "regarding");
    let kind = text(&about["kind"]).to_lowercase();
    let first = match either("firstTimestamp", "deprecatedFirstTimestamp") {
        Value::Null => time(&object["eventTime"]),
        first => time(&first),
    };
    let mut last = match either("lastTimestamp", "deprecatedLastTimestamp") {
        Value::Null => first.clone(),
        last => time(&last),
    };
    let mut count = either("count", "deprecatedCount")
        .as_i64()
        .unwrap_or(0)
        .max(1);
    let series = &object["series"];
    if !series.is_null() {
        last = time(&series["lastObservedTime"]);
        count = series["count"].as_i64().unwrap_or(0);
    }
    let source = either("source", "deprecatedSource");
    let controller = either("reportingComponent", "reportingController");
    let component = or(text(&source["component"]), text(&controller));
    let source = match or(text(&source["host"]), text(&object["reportingInstance"])) {
        instance if instance.is_empty() => component,
        instance => format!("{component}, {instance}"),
    };
    vec![
        json!(last),
        json!(text(&object["type"])),
        json!(text(&object["reason"])),
        json!(match text(&about["name"]) {
            "" => kind,
            name => format!("{kind}/{name}"),
        }),
        json!(text(&about["fieldPath"])),
        json!(source),
        json!(text(&either("message", "note")).trim()),
        json!(first),
        json!(count),
        name(object),
    ]
}
