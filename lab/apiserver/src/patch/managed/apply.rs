//! Server-side apply.

use http::StatusCode;
use serde_json::{Value, json};

use super::entry::{Entry, text};
use super::fields::{managed_fields, read, without_managed_fields, write};
use super::record::{is_ownable, update};
use super::writer::Writer;
use crate::error::ApiError;
use crate::patch::paths::{Paths, shown};
use crate::patch::typed;
use crate::schema::{Node, Schema};

/// The manager of fields that were set before the first apply by an unknown manager.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The last configuration of a client-side `kubectl apply`, whose fields its server-side apply may
/// take over.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the object after a server-side apply, with its managed fields.
pub(crate) fn apply(
    live: Option<&Value>,
    configuration: &Value,
    schema: &Schema,
    writer: Writer<'_>,
    force: bool,
) -> Result<Value, ApiError> {
    if !managed_fields(configuration).is_null() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let mut wanted = configuration.clone();
    if let Some(fields) = wanted.as_object_mut() {
        // Fields that this subresource cannot write are ignored, not rejected.
        fields.retain(|name, _| {
            schema.is_written(name, writer.subresource) || name == "apiVersion" || name == "kind"
        });
    }
    let mut refused = typed::undeclared(schema.root(), &wanted, &Vec::new());
    let mistyped = schema
        .mistyped(&wanted)
        .into_iter()
        .filter(|cause| cause.reason == "FieldValueTypeInvalid");
    refused.extend(mistyped.map(|cause| cause.message));
    if !refused.is_empty() {
        return Err(unusable(configuration, &refused.join("\n")));
    }
    let old = live.map_or_else(|| schema.empty(), without_managed_fields);
    let mut entries = live.and_then(read).unwrap_or_default();
    if live.is_some() && entries.is_empty() {
        let writer = Writer {
            manager: BEFORE_FIRST_APPLY,
            subresource: None,
            ..writer
        };
        update(&mut entries, &schema.empty(), &old, schema, writer)
            .map_err(|error| unusable(configuration, &error))?;
    }
    let merged = Application {
        schema,
        old: &old,
        wanted: &wanted,
        writer,
        force,
    }
    .run(&mut entries)
    .map_err(|error| unusable(configuration, &error))??;
    let mut object = merged;
    // Keeps the annotation of client-side apply in step, so that users can return to it.
    if writer.manager == "kubectl" && object["metadata"]["annotations"][LAST_APPLIED].is_string() {
        object["metadata"]["annotations"][LAST_APPLIED] = json!(last_applied(configuration));
    }
    write(&mut object, entries);
    Ok(object)
}

struct Application<'a> {
    schema: &'a Schema,
    old: &'a Value,
    wanted: &'a Value,
    writer: Writer<'a>,
    force: bool,
}

impl Application<'_> {
    /// Merges the configuration and updates the managers. The inner error is a conflict; the outer
    /// one a list with ambiguous elements.
    fn run(&self, entries: &mut Vec<Entry>) -> Result<Result<Value, ApiError>, String> {
        let root = self.schema.root();
        let mut own = Entry::new(self.writer, true, self.wanted);
        own.paths = typed::paths(root, self.wanted)?;
        own.paths
            .retain(|path| is_ownable(path, self.schema, self.writer.subresource));
        let last = entries
            .iter()
            .position(|entry| entry.is_of(&own))
            .map(|index| entries.swap_remove(index));

        let mut new = typed::merge(root, Some(self.old), Some(self.wanted))?;
        if let Some(last) = &last {
            let all = entries
                .iter()
                .fold(own.paths.clone(), |all, entry| all.union(&entry.paths));
            new = self.pruned(&new, &last.paths, &all)?;
        }

        let difference = typed::difference(root, self.old, &new)?;
        let set = difference.added.union(&difference.modified);
        // `None` allows every takeover.
        let allowed = if self.force {
            None
        } else {
            Some(self.last_applied_fields()?)
        };
        let mut conflicts = Vec::new();
        for entry in entries.iter_mut() {
            let taken = entry.paths.intersection(&set);
            let refused = allowed
                .as_ref()
                .map_or_else(Paths::default, |allowed| taken.difference(allowed));
            if !refused.is_empty() {
                conflicts.push((entry.shown(), refused));
            }
            entry.paths = entry
                .paths
                .difference(&taken)
                .difference(&difference.removed);
        }
        if !conflicts.is_empty() {
            conflicts.sort_by(|(a, _), (b, _)| a.cmp(b));
            return Ok(Err(conflict(&conflicts)));
        }
        // An apply without effect keeps the old time, so that the whole write is a no-op.
        own.time = if new == *self.old {
            last.and_then(|last| last.time)
        } else {
            Some(self.writer.time.to_owned())
        };
        entries.push(own);
        Ok(Ok(new))
    }

    /// Removes from the merged object the fields that this manager applied last time, does not
    /// apply now, and nobody else owns.
    fn pruned(&self, merged: &Value, last: &Paths, owned: &Paths) -> Result<Value, String> {
        let root = self.schema.root();
        let last = typed::with_parents(root, last);
        let all = all_paths(root, merged)?;
        let kept = all_paths(root, &typed::without(root, merged, &last)?)?;
        // Fields of other managers stay, together with the containers around them.
        let kept = kept.union(&typed::with_parents(root, owned));
        let owned = typed::without(root, merged, &all.difference(&kept))?;
        let kept = all_paths(root, &owned)?;
        typed::without(root, merged, &all.difference(&kept).intersection(&last))
    }

    /// Returns the fields that `kubectl apply --server-side` may take over without a conflict:
    /// those that a client-side apply set and that are unchanged since.
    fn last_applied_fields(&self) -> Result<Paths, String> {
        let annotation = self
            .old
            .get("metadata")
            .and_then(|metadata| metadata.get("annotations")?.get(LAST_APPLIED));
        let applied = annotation
            .and_then(Value::as_str)
            .and_then(|text| serde_json::from_str::<Value>(text).ok());
        let Some(applied) = applied.filter(|_| self.writer.manager == "kubectl") else {
            return Ok(Paths::default());
        };
        let root = self.schema.root();
        let difference = typed::difference(root, &applied, self.old)?;
        Ok(typed::paths(root, &applied)?
            .difference(&difference.modified)
            .difference(&difference.added)
            .difference(&difference.removed))
    }
}

/// Returns the paths of an object, those of its containers included.
fn all_paths(root: &Node, object: &Value) -> Result<Paths, String> {
    Ok(typed::with_parents(root, &typed::paths(root, object)?))
}

/// Serializes a configuration as `kubectl` keeps it in its annotation.
fn last_applied(configuration: &Value) -> String {
    let mut configuration = configuration.clone();
    if let Some(annotations) = configuration
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove(LAST_APPLIED);
    }
    format!("{configuration}\n")
}

fn unusable(configuration: &Value, why: &str) -> ApiError {
    let metadata = configuration.get("metadata").unwrap_or(&Value::Null);
    let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
    let (version, kind) = (
        text(configuration, "apiVersion"),
        text(configuration, "kind"),
    );
    // Go prints the core group as `/v1, Kind=…` (`GroupVersionKind.String`).
    let core = if version.contains('/') { "" } else { "/" };
    let message = format!(
        "failed to create typed patch object ({namespace}/{name}; {core}{version}, Kind={kind}): {why}"
    );
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

fn conflict(conflicts: &[(String, Paths)]) -> ApiError {
    let fields = conflicts
        .iter()
        .flat_map(|(manager, paths)| paths.iter().map(move |path| (manager, shown(path))));
    let fields: Vec<_> = fields.collect();
    let causes: Vec<Value> = (fields.iter())
        .map(|(manager, field)| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": field})
        })
        .collect();
    let message = match fields.as_slice() {
        [(manager, field)] => {
            format!("Apply failed with 1 conflict: conflict with {manager}: {field}")
        }
        all => {
            let mut lines = Vec::new();
            for (manager, paths) in conflicts {
                lines.push(format!("conflicts with {manager}:"));
                lines.extend(paths.iter().map(|path| format!("- {}", shown(path))));
            }
            format!(
                "Apply failed with {} conflicts: {}",
                all.len(),
                lines.join("\n")
            )
        }
    };
    ApiError::new(StatusCode::CONFLICT, "Conflict", message).with_details(json!({"causes": causes}))
}
