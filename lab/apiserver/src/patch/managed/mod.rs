//! Field managers: `metadata.managedFields`, and the server-side apply that is based on it.
//!
//! The rules are those of `k8s.io/apimachinery/pkg/util/managedfields`, except that all managers
//! are assumed to use the current version of the object.

mod apply;
mod entry;

use serde_json::{Value, json};

use self::entry::Entry;
use super::typed;
use crate::schema::Schema;

pub(super) use self::apply::apply;

/// The manager that takes over from the oldest ones if there are too many.
const ANCIENT: &str = "ancient-changes";
/// The limit of managers of updates per object.
const MAX_UPDATERS: usize = 10;

/// Fields without an owner: the server sets them, or they are part of the object's path.
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

/// The author of a write: field manager, subresource and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) subresource: Option<&'a str>,
    /// RFC 3339, in seconds.
    pub(crate) time: &'a str,
}

/// Returns the field manager of a request. It defaults to the first part of the user agent.
pub(crate) fn manager_of(field_manager: Option<&str>, user_agent: Option<&str>) -> String {
    if let Some(name) = field_manager.filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let agent = user_agent
        .and_then(|agent| agent.split('/').next())
        .unwrap_or_default();
    let mut name = String::new();
    for letter in agent.chars().filter(|letter| !letter.is_control()) {
        // `FieldManagerMaxLength` of apimachinery, in bytes.
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

/// Returns the entries of an object, or `None` if one of them is malformed.
fn read(object: &Value) -> Option<Vec<Entry>> {
    managed_fields(object)
        .as_array()
        .into_iter()
        .flatten()
        .map(Entry::read)
        .collect()
}

fn write(object: &mut Value, mut entries: Vec<Entry>) {
    // A manager without fields is forgotten.
    entries.retain(|entry| !entry.paths.is_empty());
    entries.sort_by(|a, b| {
        let order = |entry: &Entry| {
            (
                // Applies first, then by age (`sortEncodedManagedFields` of apimachinery).
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

/// Returns `true` if the object resets its managed fields: `[{}]`, and for built-in kinds also
/// `[]`.
fn is_reset(object: &Value, schema: &Schema) -> bool {
    match managed_fields(object).as_array().map(Vec::as_slice) {
        Some([]) => schema.is_builtin(),
        Some([entry]) => entry.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    }
}

/// Records in `metadata.managedFields` the changes of this create, update or patch. `object` must
/// be final except for its managed fields; `live` is `None` for a create.
pub(crate) fn record(
    live: Option<&Value>,
    object: &mut Value,
    schema: &Schema,
    writer: Writer<'_>,
) {
    // A write of a subresource ignores the managed fields in its body (`decodeLiveOrNew`).
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
    // Tracking starts with the creation or the first apply; an object without managers stays so.
    if live.is_some() && entries.is_empty() {
        *object = new;
        return;
    }
    let old = live.map_or_else(|| schema.empty(), without_managed_fields);
    match update(&mut entries, &old, &new, schema, writer) {
        Ok(()) => cap(&mut entries),
        // Ambiguous list elements make tracking impossible; the write itself is valid.
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
        // A changed field belongs to whoever changed it last.
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

/// Merges the oldest managers of updates into [`ANCIENT`] while there are too many.
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
        // Versions stay apart: fields of one version mean nothing in another.
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
