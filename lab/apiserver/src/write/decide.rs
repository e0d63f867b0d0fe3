//! What the server decides about an object, and what a write cannot change.

use serde_json::Value;

use super::Write;
use crate::error::ApiError;
use crate::kinds::{self, Kind};
use crate::metadata;
use crate::patch::{self, Writer};

impl Write<'_> {
    /// Gives a new object what the server decides.
    pub(super) fn initialize(&mut self, object: &mut Value) {
        let uid = self.state.uid();
        if metadata::text(object, "name").is_empty() {
            let base = metadata::text(object, "generateName");
            if !base.is_empty() {
                let end = base.floor_char_boundary(58);
                let name = format!("{}{}", &base[..end], self.state.suffix());
                metadata::set(object, "name", name);
            }
        }
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            metadata::of(object).remove(field);
        }
        metadata::set(object, "uid", uid);
        metadata::set(object, "creationTimestamp", self.options.now.as_str());
        if self.kind.storage.generation {
            metadata::set(object, "generation", 1);
        }
        // A kubelet says with its Node how it is.
        if self.kind.has_status
            && !self.kind.is("", "nodes")
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
            self.kind.schema.default(object);
        }
    }

    /// Puts back what an update cannot change.
    pub(super) fn prepare(&self, object: &mut Value, before: &Value) {
        if self.options.is_status {
            self.keep_all_but_status(object, before);
        } else if self.kind.has_status {
            copy_field(object, "status", before);
        }
        for field in ["creationTimestamp", "generation", "selfLink"] {
            metadata::restore(object, field, before);
        }
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "uid"] {
            if object["metadata"][field].is_null() || object["metadata"][field] == "" {
                metadata::restore(object, field, before);
            }
        }
    }

    fn keep_all_but_status(&self, object: &mut Value, before: &Value) {
        let mut kept = before.clone();
        copy_field(&mut kept, "status", object);
        if self.kind.custom {
            // Only an apply says in the object who manages what.
            metadata::restore(&mut kept, "managedFields", object);
        } else {
            kept["metadata"] = object["metadata"].take();
        }
        *object = kept;
    }

    pub(super) fn complete(&self, object: &mut Value) {
        kinds::complete(self.kind, object);
        if self.kind.is_definition() {
            kinds::establish(object, &self.options.now);
        }
    }

    /// What is written into a valid object before it is stored.
    pub(super) fn finish(
        &mut self,
        object: &mut Value,
        before: Option<&Value>,
    ) -> Result<(), ApiError> {
        if self.kind.is("", "services") {
            let assigned = kinds::assign_cluster_ip(&self.state.cluster_ips, object, before);
            if let Err(cause) = assigned {
                self.refuse(object, &[cause])?;
            }
        }
        if let Some(before) = before
            && self.kind.storage.generation
            && !self.options.is_status
            && is_changed(self.kind, object, before)
        {
            let generation = before["metadata"]["generation"]
                .as_i64()
                .unwrap_or_default();
            metadata::set(object, "generation", generation.saturating_add(1));
        }
        if self.options.is_apply {
            return Ok(());
        }
        let writer = Writer {
            manager: &self.options.manager,
            subresource: self.options.is_status.then_some("status"),
            time: &self.options.now,
        };
        patch::record(before, object, &self.kind.schema, writer);
        Ok(())
    }
}

fn copy_field(object: &mut Value, field: &str, from: &Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match from.get(field) {
        Some(value) => {
            fields.insert(field.to_owned(), value.clone());
        }
        None => {
            fields.remove(field);
        }
    }
}

/// Whether what is desired has changed.
fn is_changed(kind: &Kind, object: &Value, before: &Value) -> bool {
    let desired = |object: &Value| -> Vec<(String, Value)> {
        (object.as_object().into_iter().flatten())
            .filter(|(field, _)| *field != "metadata" && !(kind.has_status && *field == "status"))
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect()
    };
    desired(object) != desired(before)
}
