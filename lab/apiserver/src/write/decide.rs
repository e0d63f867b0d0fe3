//! The fields that the server sets, and those that a write cannot change.

use serde_json::{Map, Value};

use super::Write;
use crate::error::ApiError;
use crate::kinds::{self, Kind};
use crate::metadata;
use crate::patch::{self, Writer};

impl Write<'_> {
    /// Sets the fields of a new object that the server decides.
    pub(super) fn initialize(&mut self, object: &mut Value) {
        let uid = self.state.uid();
        if metadata::text(object, "name").is_empty() {
            let base = metadata::text(object, "generateName");
            if !base.is_empty() {
                // Leaves room for the suffix within 63 characters (`MaxGeneratedNameLength`).
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
        // A kubelet registers its Node together with its status, so Nodes keep theirs.
        if self.kind.has_status
            && !self.kind.is("", "nodes")
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
            self.kind.schema.default(object);
        }
    }

    /// Restores the fields that an update cannot change.
    pub(super) fn prepare(&self, object: &mut Value, before: &Value) {
        if self.options.is_status {
            self.keep_all_but_status(object, before);
        } else if self.kind.has_status {
            copy_field(object, "status", before);
        }
        for field in ["creationTimestamp", "generation", "selfLink"] {
            metadata::restore(object, field, before);
        }
        // A client may omit these, but validation rejects other values.
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
            // The status strategy of custom resources keeps all metadata but the managed fields.
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

    /// Completes a valid object before it is stored: address, generation and managed fields.
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
            let services = self
                .state
                .collection(&self.kind.collection())
                .objects
                .values();
            let services = services.map(|service| service.value());
            let services = services.collect::<Result<Vec<_>, _>>()?;
            let uid = &object["metadata"]["uid"];
            let others = services
                .iter()
                .filter(|other| other["metadata"]["uid"] != *uid);
            self.refuse(object, &kinds::refuse_node_ports(object, others))?;
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

/// Returns `true` if the object is of another generation: anything but metadata and status differs or, of a
/// Deployment, its annotations (`deploymentStrategy.PrepareForUpdate` of kube-apiserver).
fn is_changed(kind: &Kind, object: &Value, before: &Value) -> bool {
    desired(kind, object).ne(desired(kind, before))
        || kind.is("apps", "deployments") && annotations(object) != annotations(before)
}

/// Returns the fields of an object that are its desired state.
fn desired<'a>(kind: &Kind, object: &'a Value) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let has_status = kind.has_status;
    (object.as_object().into_iter().flatten())
        .filter(move |(field, _)| *field != "metadata" && !(has_status && *field == "status"))
}

/// Returns the annotations of an object, and `None` if it has none.
fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    let annotations = object.pointer("/metadata/annotations")?.as_object()?;
    (!annotations.is_empty()).then_some(annotations)
}
