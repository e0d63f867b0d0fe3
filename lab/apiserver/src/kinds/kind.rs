//! A kind: its names, and the rules for its objects.

use std::sync::Arc;

use serde_json::Value;

use super::events;
use crate::error::Qualified;
use crate::names::NameRule;
use crate::schema::Schema;

/// Group and plural of definitions.
pub(crate) const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// A kind of object in one version of its group.
#[expect(
    clippy::struct_field_names,
    reason = "the Kubernetes API has these names"
)]
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Set if `status` is a subresource, which writes of the object itself ignore.
    pub(crate) has_status: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) schema: Arc<Schema>,
    /// Set for custom resources, which have no strategic merge patch.
    pub(crate) custom: bool,
    pub(crate) storage: Storage,
}

/// The rules for storing and writing objects of a kind.
#[expect(
    clippy::struct_excessive_bools,
    reason = "kinds have them in many combinations"
)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    /// The storage version, if it is not this one.
    pub(crate) version: Option<String>,
    pub(crate) names: NameRule,
    /// Set if `metadata.generation` counts changes of the desired state.
    pub(crate) generation: bool,
    /// Set if an update needs no `resourceVersion`.
    pub(crate) unconditional_update: bool,
    /// Set if an update of an absent object creates it.
    pub(crate) create_on_update: bool,
    /// Set if a delete returns the object instead of a `Status`.
    pub(crate) returns_deleted: bool,
    /// Fields for field selectors, besides `metadata.name` and `metadata.namespace`.
    pub(crate) selectable: Vec<Selectable>,
}

/// A field that field selectors can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selectable {
    /// The name in a selector: `involvedObject.kind`.
    pub(crate) label: String,
    /// Paths of the value in the stored object. The first that is not empty counts.
    pub(crate) paths: Vec<Vec<String>>,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `date`, …
    pub(crate) type_: String,
    pub(crate) description: String,
    /// Columns above 0 are only in the `-o wide` output.
    pub(crate) priority: i64,
    /// The JSONPath of the value, such as `.spec.replicas`.
    pub(crate) json_path: String,
}

/// Group and plural of a collection. Both groups of Event share one.
pub(crate) type CollectionId = (String, String);

impl Kind {
    /// Returns the `apiVersion`: `v1` or `group/version`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn resource(&self) -> Qualified<'_> {
        Qualified {
            group: &self.group,
            name: &self.plural,
        }
    }

    pub(crate) fn qualified(&self) -> Qualified<'_> {
        Qualified {
            group: &self.group,
            name: &self.kind,
        }
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.is("", "namespaces")
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.is(DEFINITIONS.0, DEFINITIONS.1)
    }

    /// Returns `true` for kinds of kube-apiserver itself, `false` for those of its extension
    /// server.
    pub(crate) fn is_of_core(&self) -> bool {
        !self.custom && !self.is_definition()
    }

    /// Returns the collection of its objects.
    pub(crate) fn collection(&self) -> CollectionId {
        if self.is(events::GROUP, events::PLURAL) {
            return (String::new(), events::PLURAL.to_owned());
        }
        (self.group.clone(), self.plural.clone())
    }

    /// Returns the key of an object within its collection.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced {
            format!("{namespace}/{name}")
        } else {
            name.to_owned()
        }
    }

    /// Converts an object of this kind to the stored form.
    pub(crate) fn to_stored(&self, mut object: Value) -> Value {
        if self.is(events::GROUP, events::PLURAL) {
            return events::into_core(object);
        }
        if let Some(version) = &self.storage.version {
            object["apiVersion"] = format!("{}/{version}", self.group).into();
        }
        object
    }

    /// Converts a stored object to this kind.
    pub(crate) fn to_served(&self, mut object: Value) -> Value {
        if self.is(events::GROUP, events::PLURAL) {
            return events::from_core(object);
        }
        if self.storage.version.is_some() {
            object["apiVersion"] = self.api_version().into();
            self.schema.default(&mut object);
        }
        object
    }
}
