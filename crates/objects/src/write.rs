//! Writes as decisions make them: the object, the change, and the part that must still be as it was. Who sends one needs to
//! know nothing else.

use std::convert::Infallible;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Key;
use crate::metadata::{self, Metadata};
use crate::patch::{self, JsonPatch, merge_between};
use crate::wanted::Wanted;

/// An object of the API, as it was when something was decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Its kind.
    pub resource: ApiResource,
    /// Its namespace and name.
    pub key: Key,
    /// Its uid; `None` if that does not matter, or it does not exist.
    pub uid: Option<String>,
    /// Its resource version, likewise.
    pub version: Option<String>,
    /// Its generation, if it has one.
    pub generation: Option<i64>,
}

/// A change of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is created.
    Create(Value),
    /// It is patched with a merge patch (RFC 7396).
    Merge(Value),
    /// It is patched with the operations of a JSON patch (RFC 6902). Of its guards only the version is one.
    Json(JsonPatch),
    /// It is applied, on the server's side.
    Apply {
        /// The fields that it is to have.
        body: Value,
        /// True if fields that other managers have set otherwise become ours.
        is_forced: bool,
    },
    /// It is replaced by this one.
    Replace(Value),
    /// It is deleted, and the objects that it owns in the background.
    Delete,
}

/// The part that must be as it was when the write was decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// Nothing.
    #[default]
    None,
    /// The object's version.
    Version,
    /// The object's uid.
    Uid,
}

/// A write to an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The name of such writes in metrics.
    pub target: &'static str,
    /// The object.
    pub object: ObjectRef,
    /// The change.
    pub action: Action,
    /// The subresource that is written.
    pub subresource: Option<&'static str>,
    /// The part that must be as it was.
    pub guard: Guard,
    /// Its effect on fields that nobody else may write. Without any, whoever undoes the write is not looked for.
    pub wanted: Option<Wanted>,
    /// The part of the object, where several decide about parts of it: the writes of one are not undone by another's.
    pub part: String,
    /// Those to whom Events tell who undoes it.
    pub about: Vec<ObjectReference>,
}

/// The consequences of a decision. `E` is told of it, if something is.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<E = Infallible> {
    /// The writes.
    pub writes: Vec<Write>,
    /// The news that is told once they are stored.
    pub events: Vec<E>,
    /// The time at which the same facts mean something else.
    pub wake_at: Option<Timestamp>,
}

impl<E> Default for Plan<E> {
    fn default() -> Self {
        Self {
            writes: Vec::new(),
            events: Vec::new(),
            wake_at: None,
        }
    }
}

impl ObjectRef {
    /// Refers to `object` as it is.
    pub fn of<K: Resource>(object: &K, kind: &K::DynamicType) -> Self {
        Self::of_metadata::<K>(object.meta(), kind)
    }

    /// Refers to the object that has these metadata.
    pub fn of_metadata<K: Resource>(metadata: &ObjectMeta, kind: &K::DynamicType) -> Self {
        Self {
            uid: metadata.uid.clone(),
            version: metadata.resource_version.clone(),
            generation: metadata.generation,
            ..Self::named::<K>(metadata.key(), kind)
        }
    }

    /// Refers to the object `key`, whatever it is now.
    pub fn named<K: Resource>(key: Key, kind: &K::DynamicType) -> Self {
        Self {
            resource: ApiResource::erase::<K>(kind),
            key,
            uid: None,
            version: None,
            generation: None,
        }
    }

    /// Returns the object as Events name it.
    pub fn reference(&self) -> ObjectReference {
        let Key { namespace, name } = self.key.clone();
        ObjectReference {
            api_version: Some(self.resource.api_version.clone()),
            kind: Some(self.resource.kind.clone()),
            name: Some(name),
            namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

impl Write {
    /// Makes a write of an action on an object.
    pub fn new(target: &'static str, object: ObjectRef, action: Action) -> Self {
        Self {
            target,
            object,
            action,
            subresource: None,
            guard: Guard::None,
            wanted: None,
            part: String::new(),
            about: Vec::new(),
        }
    }

    /// Creates `object`.
    pub fn create<K: Resource + Serialize>(
        target: &'static str,
        object: &K,
        kind: &K::DynamicType,
    ) -> Self {
        Self::create_as(target, ObjectRef::of(object, kind), json!(object))
    }

    /// Creates an object with this body.
    pub fn create_as(target: &'static str, object: ObjectRef, body: Value) -> Self {
        Self::new(target, object, Action::Create(body))
    }

    /// Patches an object with a merge patch.
    pub fn merge(target: &'static str, object: ObjectRef, body: Value) -> Self {
        Self::new(target, object, Action::Merge(body))
    }

    /// Patches an object with a JSON patch.
    pub fn json(target: &'static str, object: ObjectRef, patch: JsonPatch) -> Self {
        Self::new(target, object, Action::Json(patch))
    }

    /// Replaces an object by `body`.
    pub fn replace(target: &'static str, object: ObjectRef, body: Value) -> Self {
        Self::new(target, object, Action::Replace(body))
    }

    /// Deletes an object.
    pub fn delete(target: &'static str, object: ObjectRef) -> Self {
        Self::new(target, object, Action::Delete)
    }

    /// Replaces the finalizers of an object that is as it was.
    pub fn finalizers(target: &'static str, object: ObjectRef, finalizers: &[String]) -> Self {
        let body = json!({ "metadata": { "finalizers": finalizers } });
        Self::merge(target, object, body).guarded(Guard::Version)
    }

    /// Makes one status of another, of an object that is as it was; `None` if they are equal.
    pub fn status_between(
        target: &'static str,
        object: ObjectRef,
        before: &impl Serialize,
        after: &impl Serialize,
    ) -> Option<Self> {
        let patch = merge_between(&json!(before), &json!(after))?;
        let write = Self::merge(target, object, json!({ "status": patch }));
        Some(write.of_status().guarded(Guard::Version))
    }

    /// Writes the status alone.
    #[must_use]
    pub fn of_status(mut self) -> Self {
        self.subresource = Some("status");
        self
    }

    /// Fails unless that is as it was.
    #[must_use]
    pub fn guarded(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// Writes a field that nobody else may write.
    #[must_use]
    pub fn owning(mut self, field: &str) -> Self {
        let all = self.body().clone();
        let wanted = self.wanted.get_or_insert_with(|| Wanted::created(all));
        wanted.paths.push(field.to_owned());
        self
    }

    /// Writes an object that nobody else may write, or deletes one that nobody else may make again.
    #[must_use]
    pub fn owning_all(self) -> Self {
        let wanted = Wanted::created(self.body().clone());
        self.bringing(wanted)
    }

    /// Writes fields that nobody else may write.
    #[must_use]
    pub fn bringing(mut self, wanted: Wanted) -> Self {
        self.wanted = Some(wanted);
        self
    }

    /// Writes this part of the object.
    #[must_use]
    pub fn of_part(mut self, part: String) -> Self {
        self.part = part;
        self
    }

    /// Concerns these.
    #[must_use]
    pub fn about(mut self, about: Vec<ObjectReference>) -> Self {
        self.about = about;
        self
    }

    /// Returns the object that was `before` as this has left it, which is `stored` now; `None` if that cannot be told.
    pub fn applied(&self, before: &impl Serialize, stored: &ObjectRef) -> Option<Value> {
        let mut object = json!(before);
        match &self.action {
            Action::Merge(body) => json_patch::merge(&mut object, body),
            Action::Json(patch) => patch::apply(patch.operations(), &mut object).ok()?,
            Action::Create(_) | Action::Apply { .. } | Action::Replace(_) | Action::Delete => {
                return None;
            }
        }
        metadata::set(&mut object, "resourceVersion", json!(stored.version));
        // Without a guard it may be that of a write by others meanwhile.
        if let (Guard::Version, Some(generation)) = (self.guard, stored.generation) {
            metadata::set(&mut object, "generation", json!(generation));
        }
        Some(object)
    }

    /// Returns the object, the fields of one, or the merge patch that is sent, without its guard; null if neither is.
    pub fn body(&self) -> &Value {
        static NOTHING: Value = Value::Null;
        match &self.action {
            Action::Create(body)
            | Action::Merge(body)
            | Action::Apply { body, .. }
            | Action::Replace(body) => body,
            Action::Json(_) | Action::Delete => &NOTHING,
        }
    }

    /// Returns the same with its guard.
    pub fn guarded_body(&self) -> Value {
        let ObjectRef { uid, version, .. } = &self.object;
        let mut body = self.body().clone();
        match self.guard {
            Guard::None => {}
            Guard::Version => metadata::set(&mut body, "resourceVersion", json!(version)),
            Guard::Uid => metadata::set(&mut body, "uid", json!(uid)),
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::from_value;

    use super::*;

    fn object() -> ObjectRef {
        let metadata =
            json!({ "namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "7" });
        let map: ConfigMap = from_value(json!({ "metadata": metadata })).unwrap();
        ObjectRef::of(&map, &())
    }

    /// A guard is that of the object which was decided about, and the body without it is the same at each version.
    #[test]
    fn guard_is_no_content() {
        let write = Write::finalizers("map", object(), &["a".to_owned()]);
        assert_eq!(
            write.body(),
            &json!({ "metadata": { "finalizers": ["a"] } })
        );
        let sent = json!({ "metadata": { "finalizers": ["a"], "resourceVersion": "7" } });
        assert_eq!(write.guarded_body(), sent);
        let sent = json!({ "metadata": { "finalizers": ["a"], "uid": "u" } });
        assert_eq!(write.guarded(Guard::Uid).guarded_body(), sent);
    }

    /// Only a status that differs is written.
    #[test]
    fn equal_status_is_unwritten() {
        let before = json!({ "a": 1, "b": 2 });
        let write = Write::status_between("status", object(), &before, &before);
        assert_eq!(write, None);
        let write = Write::status_between("status", object(), &before, &json!({ "a": 1 }));
        let write = write.unwrap();
        assert_eq!(write.body(), &json!({ "status": { "b": null } }));
        assert_eq!(
            (write.subresource, write.guard),
            (Some("status"), Guard::Version)
        );
    }

    /// An object is known as it was written before a watch shows it.
    #[test]
    fn patch_makes_what_is_stored() {
        let stored = ObjectRef {
            version: Some("8".to_owned()),
            generation: Some(2),
            ..object()
        };
        let before = json!({ "metadata": { "name": "web", "resourceVersion": "7" }, "spec": {} });
        let mut patch = JsonPatch::default();
        patch.add(["spec", "a"], json!(1));
        let merge = Write::merge("map", object(), json!({ "spec": { "a": 1 } }));
        let metadata = json!({ "name": "web", "resourceVersion": "8", "generation": 2 });
        let after = json!({ "metadata": metadata, "spec": { "a": 1 } });
        for write in [merge, Write::json("map", object(), patch)] {
            let write = write.guarded(Guard::Version);
            assert_eq!(write.applied(&before, &stored), Some(after.clone()));
        }
        let deletion = Write::delete("map", object());
        assert_eq!(deletion.applied(&before, &stored), None);
    }

    /// Events name an object as kube does.
    #[test]
    fn references_are_those_of_kube() {
        let map = ConfigMap {
            metadata: from_value(json!({ "namespace": "shop", "name": "web", "uid": "u" }))
                .unwrap(),
            ..ConfigMap::default()
        };
        let reference = ObjectRef::of(&map, &()).reference();
        assert_eq!(reference, map.object_ref(&()));
    }
}
