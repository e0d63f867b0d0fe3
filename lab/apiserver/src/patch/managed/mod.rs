//! Who set which field: `metadata.managedFields`, and the apply that goes by it.
//!
//! The rules are those of `k8s.io/apimachinery/pkg/util/managedfields`. All managers are taken to
//! mean the version in which the object is written now.

mod apply;
mod entry;

use serde_json::{Value, json};

use self::entry::Entry;
use super::typed;
use crate::schema::Schema;

pub(super) use self::apply::apply;

/// The manager that takes over from the oldest when there are too many.
const ANCIENT: &str = "ancient-changes";
/// How many managers of updates an object has at most.
const MAX_UPDATERS: usize = 10;

/// Fields that nobody owns, for the server or the object's address sets them.
const UNOWNED: &[&[&str]] = &[
    &["f:apiVersion"],
    &["f:kind"],
    &["f:metadata"],
    &["f:metadata", "f:name"],
    &["f:metadata", "f:namespace"],
    &["f:metadata", "f:creationTimestamp"],
    &["f:metadata", "f:selfLink"],
    &["f:metadata", "f:uid"],
    &["f:metadata", "f:clusterName"],
    &["f:metadata", "f:generation"],
    &["f:metadata", "f:managedFields"],
    &["f:metadata", "f:resourceVersion"],
];

/// Who writes, by which door, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) subresource: Option<&'a str>,
    /// RFC 3339, in seconds.
    pub(crate) time: &'a str,
}

/// The name under which a request without `fieldManager` writes: the first part of its user agent.
pub(crate) fn manager_of(field_manager: Option<&str>, user_agent: Option<&str>) -> String {
    if let Some(name) = field_manager.filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let agent = user_agent
        .and_then(|agent| agent.split('/').next())
        .unwrap_or_default();
    let mut name = String::new();
    for letter in agent.chars().filter(|letter| !letter.is_control()) {
        if name.len() + letter.len_utf8() > 128 {
            break;
        }
        name.push(letter);
    }
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

fn text(value: &Value, name: &str) -> String {
    value
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn managed_fields(object: &Value) -> &Value {
    object
        .pointer("/metadata/managedFields")
        .unwrap_or(&Value::Null)
}

/// The entries of an object; none if one of them cannot be read.
fn read(object: &Value) -> Option<Vec<Entry>> {
    managed_fields(object)
        .as_array()
        .into_iter()
        .flatten()
        .map(Entry::read)
        .collect()
}

fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.paths.is_empty());
    entries.sort_by(|a, b| {
        let order = |entry: &Entry| {
            (
                !entry.applies,
                entry.time.clone(),
                entry.manager.clone(),
                entry.api_version.clone(),
                entry.subresource.clone(),
            )
        };
        order(a).cmp(&order(b))
    });
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let Some(metadata) = fields
        .entry("metadata")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    else {
        return;
    };
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert(
            "managedFields".to_owned(),
            entries.iter().map(Entry::write).collect(),
        );
    }
}

fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Whether the client asks to forget all managers: `[{}]`, and of built-in kinds `[]` too.
fn is_reset(object: &Value, schema: &Schema) -> bool {
    match managed_fields(object).as_array().map(Vec::as_slice) {
        Some([]) => schema.is_builtin(),
        Some([entry]) => entry.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    }
}

/// Writes down in `metadata.managedFields` of an object about to be stored what this create, update
/// or patch changed. `object` is final but for its managed fields; `live` is none for a create.
pub(crate) fn record(
    live: Option<&Value>,
    object: &mut Value,
    schema: &Schema,
    writer: Writer<'_>,
) {
    let of_live = || live.and_then(read).unwrap_or_default();
    let mut entries = if writer.subresource.is_some() {
        of_live()
    } else if is_reset(object, schema) {
        Vec::new()
    } else {
        read(object)
            .filter(|entries| !entries.is_empty())
            .unwrap_or_else(of_live)
    };
    let new = without_managed_fields(object);
    if live.is_some() && entries.is_empty() {
        *object = new;
        return;
    }
    let old = live.map_or_else(|| schema.empty(), without_managed_fields);
    match update(&mut entries, &old, &new, schema, writer) {
        Ok(()) => cap(&mut entries),
        Err(_) => entries.clear(),
    }
    write(object, entries);
}

fn update(
    entries: &mut Vec<Entry>,
    old: &Value,
    new: &Value,
    schema: &Schema,
    writer: Writer<'_>,
) -> Result<(), String> {
    let difference = typed::difference(schema.root(), old, new)?;
    let mut set = difference.added.union(&difference.modified);
    for entry in entries.iter_mut() {
        entry.paths = entry.paths.difference(&set).difference(&difference.removed);
    }
    set.retain(|path| is_ownable(path, schema, writer.subresource));
    if set.is_empty() {
        return Ok(());
    }
    let mut own = Entry::new(writer, false, new);
    own.time = Some(writer.time.to_owned());
    own.paths = set;
    if let Some(index) = entries.iter().position(|entry| entry.is_of(&own)) {
        own.paths = own.paths.union(&entries.swap_remove(index).paths);
    }
    entries.push(own);
    Ok(())
}

fn is_ownable(path: &[String], schema: &Schema, subresource: Option<&str>) -> bool {
    let top = path
        .first()
        .and_then(|step| step.strip_prefix("f:"))
        .unwrap_or_default();
    !UNOWNED.contains(
        &path
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice(),
    ) && schema.is_written(top, subresource)
}

/// Lets [`ANCIENT`] take over from the oldest managers of updates while there are too many.
fn cap(entries: &mut Vec<Entry>) {
    let oldest = |entries: &[Entry]| {
        let updaters = entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| !entry.applies && entry.manager != ANCIENT);
        updaters
            .min_by(|(_, a), (_, b)| (&a.time, &a.manager).cmp(&(&b.time, &b.manager)))
            .map(|(index, _)| index)
    };
    while entries.iter().filter(|entry| !entry.applies).count() > MAX_UPDATERS {
        let Some(index) = oldest(entries) else { return };
        let mut old = entries.swap_remove(index);
        ANCIENT.clone_into(&mut old.manager);
        old.subresource.clear();
        if let Some(ancient) = entries.iter_mut().find(|entry| entry.is_of(&old)) {
            ancient.paths = ancient.paths.union(&old.paths);
            ancient.time = old.time;
        } else {
            entries.push(old);
        }
    }
}
