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
    let about = either(object, "involvedObject", "regarding");
    let kind = text(&about["kind"]).to_lowercase();
    let first = match either(object, "firstTimestamp", "deprecatedFirstTimestamp") {
        Value::Null => &object["eventTime"],
        first => first,
    };
    let mut last = match either(object, "lastTimestamp", "deprecatedLastTimestamp") {
        Value::Null => first,
        last => last,
    };
    let mut count = either(object, "count", "deprecatedCount")
        .as_i64()
        .unwrap_or(0)
        .max(1);
    let series = &object["series"];
    if !series.is_null() {
        last = &series["lastObservedTime"];
        count = series["count"].as_i64().unwrap_or(0);
    }
    let source = either(object, "source", "deprecatedSource");
    let controller = either(object, "reportingComponent", "reportingController");
    let component = or(text(&source["component"]), text(controller));
    let source = match or(text(&source["host"]), text(&object["reportingInstance"])) {
        instance if instance.is_empty() => component,
        instance => format!("{component}, {instance}"),
    };
    vec![
        json!(age::since(last.as_str(), now)),
        json!(text(&object["type"])),
        json!(text(&object["reason"])),
        json!(match text(&about["name"]) {
            "" => kind,
            name => format!("{kind}/{name}"),
        }),
        json!(text(&about["fieldPath"])),
        json!(source),
        json!(text(either(object, "message", "note")).trim()),
        json!(age::since(first.as_str(), now)),
        json!(count),
        name(object),
    ]
}

/// Returns a field by its name in the core group, or by that in the newer one.
fn either<'a>(event: &'a Value, core: &str, newer: &str) -> &'a Value {
    match &event[core] {
        Value::Null => &event[newer],
        value => value,
    }
}
