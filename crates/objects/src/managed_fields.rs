//! `metadata.managedFields`: which of an object's fields are ours, and the way to take over those of others.

use serde_json::{Map, Value, json};

use crate::patch::JsonPatch;
use crate::{Metadata, metadata};

/// The managers by which the entries of one owner are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Managers {
    /// The manager of the fields that we write.
    pub ours: &'static str,
    /// The managers of the programs before us, whose updates count as ours.
    pub predecessors: &'static [&'static str],
}

/// The entries whose fields become ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOver {
    /// Those of our predecessors: or a field that leaves the manifest would stay for ever.
    FromPredecessors,
    /// Those of everybody, but for metadata and subresources: or a foreign container would go on running
    /// beside ours.
    FromAll,
}

impl Managers {
    /// Returns `true` if the entry is that of our applies.
    fn applied(&self, entry: &Value) -> bool {
        text(entry, "manager") == self.ours
            && text(entry, "operation") == "Apply"
            && is_of_object(entry)
    }

    /// Returns `true` if the entry is that of updates of ours, or of our predecessors.
    fn updated(&self, entry: &Value) -> bool {
        let manager = text(entry, "manager");
        (manager == self.ours || self.predecessors.contains(&manager))
            && text(entry, "operation") == "Update"
            && is_of_object(entry)
    }

    /// Returns the fields that we own in the object: those we applied, or else those that were updated.
    pub fn owned<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let entries = entries(object);
        let applied = entries.iter().find(|entry| self.applied(entry));
        let entry = applied.or_else(|| entries.iter().find(|entry| self.updated(entry)))?;
        entry.get("fieldsV1")
    }

    /// Returns `true` if what the object has of a manifest was applied by us, and nothing of it was updated;
    /// `None` for an object without its managed fields, as caches keep it.
    pub fn have_applied_all(&self, object: &Value) -> Option<bool> {
        metadata::field(object, "managedFields")?;
        let mut entries = entries(object).iter();
        let is_updated = entries.clone().any(|entry| self.updated(entry));
        Some(entries.any(|entry| self.applied(entry)) && !is_updated)
    }

    /// Returns `true` if we own a field that is not in the manifest any more, so that a write would remove it.
    ///
    /// The defaults of the cluster are fields of an entry of updates, too. So such an entry counts only for
    /// kinds without generation, which have none.
    pub fn own_more_than(&self, object: &Value, manifest: &Value) -> bool {
        let entries = entries(object);
        if let Some(applied) = entries.iter().find(|entry| self.applied(entry)) {
            return has_more(applied.get("fieldsV1"), manifest);
        }
        metadata::field(object, "generation").is_none()
            && entries
                .iter()
                .any(|entry| self.updated(entry) && has_more(entry.get("fieldsV1"), manifest))
    }

    /// Returns `true` if we, or our predecessors, own the field at `path`.
    pub fn own(&self, object: &Value, path: &[&str]) -> bool {
        let mut entries = entries(object).iter();
        entries.any(|entry| (self.applied(entry) || self.updated(entry)) && has_field(entry, path))
    }

    /// Returns `true` if somebody else owns the field at `path`.
    pub fn share(&self, object: &Value, path: &[&str]) -> bool {
        let mut entries = entries(object).iter();
        entries.any(|entry| !self.applied(entry) && !self.updated(entry) && has_field(entry, path))
    }

    /// Returns the patch that turns the fields of others into ones that we applied, and `None`
    /// if nobody has any. It fails if the object has changed since it was read.
    pub fn take_over(&self, object: &Value, from: TakeOver) -> Option<JsonPatch> {
        let mut taken = Value::Null;
        let mut api_version = None;
        let mut kept = Vec::new();
        let mut applied = None;
        for entry in entries(object) {
            if self.applied(entry) {
                applied = Some(entry);
                continue;
            }
            let (take, keep) = match from {
                _ if self.updated(entry) => (entry.get("fieldsV1").cloned(), None),
                TakeOver::FromAll if is_of_object(entry) => split(entry),
                _ => (None, Some(entry.clone())),
            };
            if let Some(take) = take {
                api_version = api_version.or_else(|| entry.get("apiVersion"));
                union(&mut taken, take);
            }
            kept.extend(keep);
        }
        if taken.is_null() {
            return None;
        }
        let mut entry = applied.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": api_version.or_else(|| object.get("apiVersion")),
                "fieldsType": "FieldsV1",
                "manager": self.ours,
                "operation": "Apply",
            })
        });
        let fields = entry.get_mut("fieldsV1").map(Value::take);
        union(&mut taken, fields.unwrap_or_default());
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("fieldsV1".to_owned(), taken);
        }
        kept.push(entry);
        let mut patch = JsonPatch::default();
        patch.replace(["metadata", "managedFields"], kept.into());
        Some(patch.guarded(Some(object.resource_version())))
    }
}

/// An element of a list, as a key of `FieldsV1` names it.
pub(crate) enum Element {
    /// `k:`: the element with these values of its keys.
    Keys(Map<String, Value>),
    /// `v:`: the element that is this value.
    Equal(Value),
}

/// Returns the element that a key of `FieldsV1` names.
pub(crate) fn element(key: &str) -> Option<Element> {
    if let Some(keys) = key.strip_prefix("k:") {
        return serde_json::from_str(keys).ok().map(Element::Keys);
    }
    let value = key.strip_prefix("v:")?;
    serde_json::from_str(value).ok().map(Element::Equal)
}

impl Element {
    /// Returns `true` if `value` is this element. A key that it lacks has its default, which nobody but the
    /// API server knows.
    pub(crate) fn is(&self, value: &Value) -> bool {
        match self {
            Self::Equal(this) => this == value,
            Self::Keys(keys) => {
                value.is_object()
                    && keys
                        .iter()
                        .all(|(name, this)| value.get(name).is_none_or(|value| value == this))
            }
        }
    }
}

/// Returns the entries of an object.
fn entries(object: &Value) -> &[Value] {
    let entries = metadata::field(object, "managedFields");
    entries.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(entry: &'a Value, name: &str) -> &'a str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns `true` if the entry is about the object itself and not about a subresource.
fn is_of_object(entry: &Value) -> bool {
    text(entry, "subresource").is_empty()
}

/// Returns `true` if the entry has the field at `path`.
fn has_field(entry: &Value, path: &[&str]) -> bool {
    let field = path.iter().try_fold(entry.get("fieldsV1"), |fields, name| {
        Some(fields?.get(format!("f:{name}")))
    });
    field.flatten().is_some()
}

/// Returns `true` if `fields` has one that `value` has not.
fn has_more(fields: Option<&Value>, value: &Value) -> bool {
    let fields = fields.and_then(Value::as_object);
    fields.into_iter().flatten().any(|(key, fields)| {
        let part = if let Some(name) = key.strip_prefix("f:") {
            value.get(name)
        } else if let Some(element) = element(key) {
            let list = value.as_array();
            list.and_then(|list| list.iter().find(|part| element.is(part)))
        } else {
            // `.` is the field itself, and `i:` is not used by any server.
            return false;
        };
        part.is_none_or(|part| has_more(Some(fields), part))
    })
}

/// Returns the fields of an entry outside metadata, and the rest of the entry; each if there is any.
fn split(entry: &Value) -> (Option<Value>, Option<Value>) {
    let Some(fields) = entry.get("fieldsV1").and_then(Value::as_object) else {
        return (None, Some(entry.clone()));
    };
    let mut outside = fields.clone();
    let rest = outside.remove("f:metadata").map(|fields| {
        let mut entry = entry.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("fieldsV1".to_owned(), json!({ "f:metadata": fields }));
        }
        entry
    });
    (
        (!outside.is_empty()).then_some(Value::Object(outside)),
        rest,
    )
}

/// Adds the fields of `other` to `fields`.
fn union(fields: &mut Value, other: Value) {
    match (fields, other) {
        (Value::Object(fields), Value::Object(other)) => {
            for (key, value) in other {
                union(fields.entry(key).or_insert(Value::Null), value);
            }
        }
        (fields @ Value::Null, other) => *fields = other,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Managers = Managers {
        ours: "us",
        predecessors: &["before"],
    };

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({ "manager": manager, "operation": operation, "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields })
    }

    fn object(entries: &[Value]) -> Value {
        json!({ "apiVersion": "v1", "metadata": { "resourceVersion": "7", "managedFields": entries } })
    }

    fn field(name: &str) -> Value {
        json!({ "f:metadata": { "f:labels": { format!("f:{name}"): {} } }, "f:data": { format!("f:{name}"): {} } })
    }

    /// Returns the entries after a take-over.
    fn taken(object: &Value, from: TakeOver) -> Value {
        let patch = US.take_over(object, from).unwrap();
        patch.value(["metadata", "managedFields"]).unwrap().clone()
    }

    /// Updates of a predecessor, and of ours, become fields that we applied; metadata of others is left to them.
    #[test]
    fn take_over_merges_entries() {
        let mut scale = entry("scaler", "Update", &field("scaled"));
        scale["subresource"] = json!("scale");
        let object = object(&[
            entry("before", "Update", &field("b")),
            entry("us", "Apply", &field("a")),
            entry("other", "Update", &field("o")),
            scale.clone(),
        ]);
        let ours = taken(&object, TakeOver::FromPredecessors);
        let merged = json!({ "f:metadata": { "f:labels": { "f:a": {}, "f:b": {} } }, "f:data": { "f:a": {}, "f:b": {} } });
        let other = entry("other", "Update", &field("o"));
        assert_eq!(ours, json!([other, scale, entry("us", "Apply", &merged)]));
        let mut merged = merged;
        merged["f:data"]["f:o"] = json!({});
        let labels = json!({ "f:metadata": { "f:labels": { "f:o": {} } } });
        let other = entry("other", "Update", &labels);
        let expected = json!([other, scale, entry("us", "Apply", &merged)]);
        assert_eq!(taken(&object, TakeOver::FromAll), expected);
    }

    /// The patch is guarded by the version that was read, and not sent if there is nothing to take.
    #[test]
    fn take_over_is_guarded() {
        let ours = object(&[entry("us", "Apply", &field("a"))]);
        assert_eq!(US.take_over(&ours, TakeOver::FromAll), None);
        let theirs = object(&[entry("before", "Update", &field("a"))]);
        let patch = US.take_over(&theirs, TakeOver::FromPredecessors).unwrap();
        let guard = json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": "7" });
        assert_eq!(json!(patch)[0], guard);
    }

    /// Of an object from a cache nobody knows who has written it.
    #[test]
    fn owners_are_told_apart() {
        let applied = entry("us", "Apply", &field("a"));
        let updated = entry("before", "Update", &field("b"));
        let other = entry("other", "Update", &field("o"));
        for (entries, expected) in [
            (vec![applied.clone(), other.clone()], Some(true)),
            (vec![applied.clone(), updated.clone()], Some(false)),
            (vec![other.clone()], Some(false)),
        ] {
            let object = object(&entries);
            assert_eq!(US.have_applied_all(&object), expected, "{object}");
        }
        assert_eq!(US.have_applied_all(&json!({ "metadata": {} })), None);
        let object = object(&[applied, updated, other]);
        let owns = ["a", "b", "o"].map(|name| US.own(&object, &["data", name]));
        assert_eq!(owns, [true, true, false]);
        let shares = ["a", "b", "o"].map(|name| US.share(&object, &["data", name]));
        assert_eq!(shares, [false, false, true]);
    }

    /// Defaults are fields of an update, too: so a kind with a generation is judged by what we applied alone.
    #[test]
    fn fields_that_left_are_found() {
        let manifest = json!({ "metadata": { "labels": { "a": "1" } }, "data": { "a": "1" } });
        let more = json!({ "f:data": { "f:a": {}, "f:gone": {} } });
        for (manager, operation, generation, expected) in [
            ("us", "Apply", None, true),
            ("us", "Apply", Some(3), true),
            ("before", "Update", None, true),
            ("before", "Update", Some(3), false),
            ("other", "Update", None, false),
        ] {
            let mut object = object(&[entry(manager, operation, &more)]);
            object["metadata"]["generation"] = json!(generation);
            if generation.is_none() {
                object["metadata"]
                    .as_object_mut()
                    .unwrap()
                    .remove("generation");
            }
            let found = US.own_more_than(&object, &manifest);
            assert_eq!(found, expected, "{manager} {operation} {generation:?}");
        }
        let object = object(&[entry("us", "Apply", &field("a"))]);
        assert!(!US.own_more_than(&object, &manifest));
    }
}
