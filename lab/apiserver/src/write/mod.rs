//! Creates and updates: the path of an object from the request to the store.

mod decide;
mod decode;
mod validate;

use serde_json::Value;

use crate::error::{ApiError, Cause, Qualified};
use crate::kinds::{self, Kind};
use crate::metadata;
use crate::store::{Object, State};

/// The limit of one object, in bytes; the default of etcd (`--max-request-bytes`).
const MAX_OBJECT: usize = 1_572_864;

/// `fieldValidation`: the treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped with a warning.
    Warn,
    /// They make the request fail.
    Strict,
}

#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) manager: String,
    pub(crate) validation: FieldValidation,
    /// Set if only `status` is written.
    pub(crate) is_status: bool,
    /// Set if the patch has already recorded the managed fields.
    pub(crate) is_apply: bool,
    /// The current time in RFC 3339, in whole seconds.
    pub(crate) now: String,
}

#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) kind: &'a Kind,
    pub(crate) options: &'a WriteOptions,
    /// Warnings about the request.
    pub(crate) warnings: Vec<String>,
}

/// The result of a create or update.
#[derive(Debug)]
pub(crate) struct WriteOutcome {
    /// The object as it is stored, in the version of the request.
    pub(crate) object: Value,
    pub(crate) is_new: bool,
}

impl Write<'_> {
    /// Creates an object.
    pub(crate) fn create(
        &mut self,
        namespace: Option<&str>,
        object: Value,
    ) -> Result<WriteOutcome, ApiError> {
        let mut object = self.decode(object, true)?;
        match namespace {
            Some(namespace) => place(namespace, &mut object)?,
            None => {
                metadata::of(&mut object).remove("namespace");
            }
        }
        self.initialize(&mut object);
        let name = metadata::text(&object, "name").to_owned();
        if let Some(namespace) = namespace {
            self.check_namespace(namespace, &name)?;
        }
        self.check_readable(&object, true)?;
        self.complete(&mut object);
        self.validate(&object, None)?;
        self.check_definition(&name)?;
        self.warnings
            .extend(kinds::warnings(self.kind, &object, None));
        self.finish(&mut object, None)?;
        let key = self.kind.key(namespace.unwrap_or_default(), &name);
        let resource = self.kind.resource();
        match self.state.find(&self.kind.collection(), &key) {
            Some(found) if found.is_terminating => {
                return Err(ApiError::still_exists(resource, &name));
            }
            Some(_) if !metadata::text(&object, "generateName").is_empty() => {
                return Err(ApiError::no_unique_name(resource, &name));
            }
            Some(_) => return Err(ApiError::already_exists(resource, &name)),
            None => {}
        }
        let object = self.store(object)?;
        Ok(WriteOutcome {
            object,
            is_new: true,
        })
    }

    /// Updates an object to the result of `change`, which gets and returns it in the version of the
    /// request. `is_whole` is `true` if the client sent the whole object and not a patch.
    pub(crate) fn update(
        &mut self,
        namespace: Option<&str>,
        name: &str,
        is_whole: bool,
        change: impl FnOnce(&Value) -> Result<Value, ApiError>,
    ) -> Result<WriteOutcome, ApiError> {
        let key = self.kind.key(namespace.unwrap_or_default(), name);
        let stored = (self.state.find(&self.kind.collection(), &key))
            .ok_or_else(|| ApiError::not_found(self.kind.resource(), name))?;
        let before = self.kind.to_served(stored.value()?);
        let mut object = self.decode(change(&before)?, is_whole)?;
        self.check_version(&mut object, &before, is_whole)?;
        if let Some(namespace) = namespace {
            place(namespace, &mut object)?;
        } else {
            metadata::of(&mut object).remove("namespace");
        }
        self.prepare(&mut object, &before);
        self.check_readable(&object, is_whole)?;
        self.complete(&mut object);
        self.validate(&object, Some(&before))?;
        let warnings = kinds::warnings(self.kind, &object, Some(&before));
        self.warnings.extend(warnings);
        self.finish(&mut object, Some(&before))?;
        // A write without effect keeps the version and causes no event.
        if is_same(&object, &before) {
            return Ok(WriteOutcome {
                object: before,
                is_new: false,
            });
        }
        // The update removed the last finalizer, which completes the deletion. Namespaces wait for
        // their contents instead.
        let is_free = metadata::is_terminating(&before)
            && metadata::finalizers(&object).next().is_none()
            && !self.kind.is_namespace();
        if is_free {
            if !self.options.dry_run {
                self.state.remove(self.kind, &key)?;
            }
            return Ok(WriteOutcome {
                object,
                is_new: false,
            });
        }
        let object = self.store(object)?;
        Ok(WriteOutcome {
            object,
            is_new: false,
        })
    }

    /// Returns `true` if an object with this key exists.
    pub(crate) fn exists(&self, key: &str) -> bool {
        self.state.find(&self.kind.collection(), key).is_some()
    }

    fn check_namespace(&self, namespace: &str, name: &str) -> Result<(), ApiError> {
        let namespaces = (String::new(), "namespaces".to_owned());
        match self.state.find(&namespaces, namespace) {
            None => {
                let resource = Qualified {
                    group: "",
                    name: "namespaces",
                };
                Err(ApiError::not_found(resource, namespace))
            }
            Some(found) if found.is_terminating => Err(ApiError::namespace_terminating(
                self.kind.resource(),
                name,
                namespace,
            )),
            Some(_) => Ok(()),
        }
    }

    /// Rejects the creation of a custom resource with a terminating definition.
    fn check_definition(&self, name: &str) -> Result<(), ApiError> {
        let (group, plural) = kinds::DEFINITIONS;
        let resource = self.kind.resource();
        let definition = (self.state).find(
            &(group.to_owned(), plural.to_owned()),
            &resource.to_string(),
        );
        if self.kind.custom && definition.is_some_and(|definition| definition.is_terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(resource, name, why));
        }
        Ok(())
    }

    fn check_version(
        &self,
        object: &mut Value,
        before: &Value,
        is_whole: bool,
    ) -> Result<(), ApiError> {
        let name = metadata::text(before, "name");
        if is_whole {
            let uid = metadata::text(object, "uid");
            let existing = metadata::text(before, "uid");
            if !uid.is_empty() && uid != existing {
                let why = format!(
                    "Precondition failed: UID in precondition: {uid}, UID in object meta: {existing}"
                );
                return Err(ApiError::conflict(self.kind.resource(), name, &why));
            }
        }
        let current = metadata::text(before, "resourceVersion");
        match metadata::text(object, "resourceVersion") {
            // Without a version, the last write wins.
            "" | "0" if self.kind.storage.unconditional_update => {}
            "" | "0" => {
                let why = "must be specified for an update";
                let cause = Cause::invalid("metadata.resourceVersion", 0, why);
                return Err(ApiError::invalid(self.kind.resource(), name, &[cause]));
            }
            given if given == current => return Ok(()),
            given if given.parse::<u64>().is_err() => {
                let why = format!("strconv.ParseUint: parsing {given:?}: invalid syntax");
                return Err(ApiError::of_store(&why));
            }
            _ => return Err(ApiError::modified(self.kind.resource(), name)),
        }
        metadata::set(object, "resourceVersion", current);
        Ok(())
    }

    fn refuse(&self, object: &Value, causes: &[Cause]) -> Result<(), ApiError> {
        if causes.is_empty() {
            return Ok(());
        }
        let name = metadata::text(object, "name");
        Err(ApiError::invalid(self.kind.qualified(), name, causes))
    }

    fn store(&mut self, object: Value) -> Result<Value, ApiError> {
        let mut stored = self.kind.to_stored(object);
        if self.options.dry_run {
            return Ok(self.kind.to_served(stored));
        }
        let prepared = self.state.prepare(self.kind, &mut stored);
        if prepared.text.len() > MAX_OBJECT {
            return Err(ApiError::of_store("etcdserver: request is too large"));
        }
        self.state.commit(self.kind, prepared, &stored);
        Ok(self.kind.to_served(stored))
    }
}

/// Returns a stored object in the version of a kind.
pub(crate) fn as_value(kind: &Kind, object: &Object) -> Result<Value, ApiError> {
    Ok(kind.to_served(object.value()?))
}

/// Returns `true` if two objects differ at most in the times of their managers: such a write keeps
/// the resource version.
fn is_same(object: &Value, before: &Value) -> bool {
    if object == before {
        return true;
    }
    without_times(object) == without_times(before)
}

fn without_times(object: &Value) -> Value {
    let mut object = object.clone();
    let managers = metadata::of(&mut object).get_mut("managedFields");
    for manager in managers.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(manager) = manager.as_object_mut() {
            manager.remove("time");
        }
    }
    object
}

/// Puts an object into the namespace of the request.
fn place(namespace: &str, object: &mut Value) -> Result<(), ApiError> {
    match metadata::text(object, "namespace") {
        "" => metadata::set(object, "namespace", namespace),
        given if given == namespace => {}
        _ => {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
    }
    Ok(())
}
