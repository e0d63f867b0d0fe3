//! The owner of each field that a create, an update or a patch has changed.

use serde_json::Value;

use super::entry::Entry;
use super::fields::{managed_fields, read, without_managed_fields, write};
use super::writer::Writer;
use crate::patch::typed;
use crate::schema::Schema;

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
    let sent = match writer.subresource {
        Some(_) => None,
        None if is_reset(object, schema) => Some(Vec::new()),
        None => read(object).filter(|entries| !entries.is_empty()),
    };
    let mut entries = sent.or_else(|| live.and_then(read)).unwrap_or_default();
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

pub(super) fn update(
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

pub(super) fn is_ownable(path: &[String], schema: &Schema, subresource: Option<&str>) -> bool {
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
    while entries.iter().filter(|entry| !entry.applies).count() > MAX_UPDATERS {
        let Some(index) = oldest_updater(entries) else {
            return;
        };
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

fn oldest_updater(entries: &[Entry]) -> Option<usize> {
    let updaters = (entries.iter().enumerate())
        .filter(|(_, entry)| !entry.applies && entry.manager != ANCIENT);
    let oldest =
        updaters.min_by(|(_, a), (_, b)| (&a.time, &a.manager).cmp(&(&b.time, &b.manager)));
    oldest.map(|(index, _)| index)
}
