//! `metadata.managedFields`: which of an object's fields are ours, and the way to take over those of others.

mod parts;

use serde_json::{Value, json};

pub(crate) use self::parts::{Element, element, is_union};
use self::parts::{Part, displaced, has_more, is_replaced, lacks, part};
use crate::metadata::Written;
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
    /// The same, and fields that somebody has put in the place of ours, of an object that was written with this very
    /// manifest: or a renamed container would go on running beside ours.
    Displaced,
    /// As of our predecessors, but a field that has left the manifest stays where others have set it, too.
    Sharing,
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

    /// Returns `true` if the entry is that of updates of ours, or of any write of our predecessors.
    fn updated(&self, entry: &Value) -> bool {
        let manager = text(entry, "manager");
        let is_ours = manager == self.ours && text(entry, "operation") == "Update";
        (is_ours || self.predecessors.contains(&manager)) && is_of_object(entry)
    }

    /// Returns `true` if the entry is ours or our predecessors'.
    fn is_ours(&self, entry: &Value) -> bool {
        self.applied(entry) || self.updated(entry)
    }

    /// Returns the fields that we own in the object: those we applied, or else those that were updated.
    pub fn owned<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let entries = entries(object);
        let applied = entries.iter().find(|entry| self.applied(entry));
        let entry = applied.or_else(|| entries.iter().find(|entry| self.updated(entry)))?;
        entry.get("fieldsV1")
    }

    /// Returns `true` if the fields of a manifest that the object has were applied by us, and none was updated;
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
    fn own(&self, object: &Value, path: &[&str]) -> bool {
        let mut entries = entries(object).iter();
        entries.any(|entry| self.is_ours(entry) && has_field(entry, path))
    }

    /// Returns the labels and annotations that we, or our predecessors, own.
    pub fn written(&self, object: &Value) -> Written {
        let [labels, annotations] = ["labels", "annotations"].map(|part| {
            let present = metadata::field(object, part).and_then(Value::as_object);
            let keys = present.into_iter().flatten().map(|(key, _)| key);
            let ours = keys.filter(|key| self.own(object, &["metadata", part, key]));
            ours.cloned().collect()
        });
        Written {
            labels,
            annotations,
        }
    }

    /// Returns `true` if somebody else owns the field at `path`.
    pub fn share(&self, object: &Value, path: &[&str]) -> bool {
        let mut entries = entries(object).iter();
        entries.any(|entry| !self.is_ours(entry) && has_field(entry, path))
    }

    /// Returns `true` if we, or our predecessors, own a field that `body` lacks. The defaults of the cluster are
    /// among those of our updates.
    pub fn have_more_than(&self, object: &Value, body: &Value) -> bool {
        let mut ours = entries(object).iter().filter(|entry| self.is_ours(entry));
        ours.any(|entry| has_more(entry.get("fieldsV1"), body))
    }

    /// Returns `true` if somebody else owns a field that `body` lacks, outside of metadata and status.
    pub fn others_have_more_than(&self, object: &Value, body: &Value) -> bool {
        let mut others = entries(object).iter().filter(|entry| !self.is_ours(entry));
        others.any(|entry| has_more_content(entry, body))
    }

    /// Returns `true` if somebody else alone owns a list or a map as a whole, outside of metadata and status, and has it
    /// otherwise than `body`. A field of ours is so once another has changed it, in whichever version of the kind, be it by
    /// a field within that looks like a default of the cluster.
    pub fn others_have_replaced(&self, object: &Value, body: &Value) -> bool {
        let entries = entries(object).iter();
        let (ours, others): (Vec<_>, Vec<_>) = entries.partition(|entry| self.is_ours(entry));
        // A predecessor's update owns nothing that another had the same before: only a later change tells.
        let is_written = ours.iter().any(|entry| text(entry, "manager") == self.ours);
        let times = ours.iter().map(|entry| text(entry, "time"));
        let since = times.max().filter(|_| !is_written).unwrap_or_default();
        let mut owned = Value::Null;
        for fields in ours.into_iter().filter_map(|entry| entry.get("fieldsV1")) {
            union(&mut owned, fields.clone());
        }
        let since = others
            .into_iter()
            .filter(|entry| text(entry, "time") >= since);
        let mut theirs = since.flat_map(content);
        theirs.any(|(key, fields)| is_replaced((key, fields), &owned, (object, body)))
    }

    /// Returns `true` if the object has nothing outside of metadata and status that an update of ours did not
    /// write; `None` for an object without its managed fields, as caches keep it.
    pub fn have_updated_all(&self, object: &Value) -> Option<bool> {
        metadata::field(object, "managedFields")?;
        let mut entries = entries(object).iter();
        Some(entries.all(|entry| {
            let is_update = text(entry, "manager") == self.ours && self.updated(entry);
            is_update || !has_content(entry)
        }))
    }

    /// Returns `true` if one of these [`writers`] is neither we nor a predecessor.
    pub fn are_with_others<'a>(&self, writers: impl IntoIterator<Item = &'a str>) -> bool {
        let mut writers = writers.into_iter();
        writers.any(|manager| manager != self.ours && !self.predecessors.contains(&manager))
    }

    /// Returns the managed fields by which all that an object has outside of metadata was written by an update of
    /// ours, and `None` if it is.
    pub fn gathered(&self, object: &Value) -> Option<Value> {
        if self.have_updated_all(object)? {
            return None;
        }
        let version = object.get("apiVersion");
        let (mut taken, mut kept) = (Value::Null, Vec::new());
        for entry in entries(object) {
            // The fields of one version may mean nothing in another.
            let is_known = entry.get("apiVersion") == version || !has_more_content(entry, object);
            let is_taken = is_of_object(entry) && is_known;
            let (take, keep) = match is_taken {
                true if self.is_ours(entry) => (entry.get("fieldsV1").cloned(), None),
                true => split(entry),
                false => (None, Some(entry.clone())),
            };
            union(&mut taken, take.unwrap_or_default());
            kept.extend(keep);
        }
        if taken.is_null() {
            return None;
        }
        kept.push(json!({
            "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": taken,
            "manager": self.ours, "operation": "Update",
        }));
        Some(kept.into())
    }

    /// Returns the patch after which an apply of `body` has its effect: the fields of others are ones that we applied,
    /// and fields that have left `body` are nobody's but ours. `None` if that is so. It fails if the object has changed since
    /// it was read.
    pub fn take_over(&self, object: &Value, from: TakeOver, body: &Value) -> Option<JsonPatch> {
        let mut ours = Value::Null;
        for entry in entries(object).iter().filter(|entry| self.is_ours(entry)) {
            union(&mut ours, entry["fieldsV1"].clone());
        }
        let mut is_let_go = false;
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
                TakeOver::FromPredecessors | TakeOver::Displaced if is_of_object(entry) => {
                    let mut entry = entry.clone();
                    let fields = &mut entry["fieldsV1"];
                    is_let_go |= let_go(fields, &ours, body);
                    let take = (from == TakeOver::Displaced)
                        .then(|| displaced(("", fields), (object, body)))
                        .flatten();
                    (take, Some(entry))
                }
                _ => (None, Some(entry.clone())),
            };
            if let Some(take) = take {
                api_version = api_version.or_else(|| entry.get("apiVersion"));
                union(&mut taken, take);
            }
            kept.extend(keep);
        }
        if taken.is_null() && !is_let_go {
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

/// Returns the managers that wrote something of the object outside of metadata and status.
pub fn writers(object: &Value) -> impl Iterator<Item = &str> {
    let written = entries(object).iter().filter(|entry| has_content(entry));
    written.map(|entry| text(entry, "manager"))
}

/// Returns the fields (`FieldsV1`) of the object itself, whoever owns them.
pub fn all_fields(object: &Value) -> Value {
    let mut all = Value::Null;
    let entries = entries(object).iter().filter(|entry| is_of_object(entry));
    for fields in entries.filter_map(|entry| entry.get("fieldsV1")) {
        union(&mut all, fields.clone());
    }
    all
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

/// Returns the fields of an entry of the object itself, outside of metadata and status.
fn content(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let fields = entry.get("fieldsV1").and_then(Value::as_object);
    let fields = fields.filter(|_| is_of_object(entry)).into_iter().flatten();
    fields.filter(|(key, _)| !["f:metadata", "f:status"].contains(&key.as_str()))
}

fn has_content(entry: &Value) -> bool {
    content(entry).next().is_some()
}

/// Returns `true` if the entry has a field outside of metadata and status that `value` has not.
fn has_more_content(entry: &Value, value: &Value) -> bool {
    content(entry).any(|(key, fields)| lacks(value, key, fields))
}

/// Takes out of the fields of somebody else those that `ours` has, too, and `body` no more: while two own one, it stays.
/// Returns `true` if there was such.
fn let_go(theirs: &mut Value, ours: &Value, body: &Value) -> bool {
    let mut is_let_go = false;
    let (Some(theirs), Some(ours)) = (theirs.as_object_mut(), ours.as_object()) else {
        return false;
    };
    theirs.retain(|key, fields| {
        let (Some(ours), part) = (ours.get(key), part(body, key)) else {
            return true;
        };
        let part = match part {
            Part::There(part) => part,
            // An element goes as a whole.
            Part::Missing if is_leaf(ours) || is_leaf(fields) || element(key).is_some() => {
                is_let_go = true;
                return false;
            }
            Part::Missing => &Value::Null,
            Part::Itself => return true,
        };
        let is_less = let_go(fields, ours, part);
        is_let_go |= is_less;
        !(is_less && is_leaf(fields))
    });
    is_let_go
}

/// Returns `true` if these fields are nothing but one.
fn is_leaf(fields: &Value) -> bool {
    let mut keys = fields.as_object().into_iter().flatten().map(|(key, _)| key);
    keys.all(|key| key == ".")
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
mod tests;
