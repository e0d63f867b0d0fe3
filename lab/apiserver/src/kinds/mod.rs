//! What can be stored: the built-in kinds, and those that a `CustomResourceDefinition` adds.

mod builtin;
mod custom;
mod events;
mod registry;
mod rules;
mod selectable;
mod services;
mod text;
mod warnings;

use std::sync::Arc;

use serde_json::Value;

use crate::error::Qualified;
use crate::names::NameRule;
use crate::schema::Schema;

pub(crate) use builtin::complete;
pub(crate) use custom::{DEFINITIONS, Definition, INSTANCES_FINALIZER, establish};
pub(crate) use registry::Registry;
pub(crate) use rules::{validate, validate_change};
pub(crate) use services::{ClusterIps, assign_cluster_ip};
pub(crate) use text::with_types_first;
pub(crate) use warnings::warnings;

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
    /// Whether `status` is a resource of its own, which a write of the object leaves alone.
    pub(crate) has_status: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) schema: Arc<Schema>,
    /// Whether a `CustomResourceDefinition` made it: then there is no strategic merge.
    pub(crate) custom: bool,
    pub(crate) storage: Storage,
}

/// How objects of a kind are kept and written.
#[expect(
    clippy::struct_excessive_bools,
    reason = "kinds have them in many combinations"
)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    /// The version that is stored, if it is not this one.
    pub(crate) version: Option<String>,
    pub(crate) names: NameRule,
    /// Whether `metadata.generation` counts the changes of what is desired.
    pub(crate) generation: bool,
    /// Whether an update needs no `resourceVersion`.
    pub(crate) unconditional_update: bool,
    /// Whether an update of an absent object creates it.
    pub(crate) create_on_update: bool,
    /// Whether the answer to a delete is the object.
    pub(crate) answers_deleted: bool,
    /// What field selectors may name besides `metadata.name` and `metadata.namespace`.
    pub(crate) selectable: Vec<Selectable>,
}

/// A field that a field selector may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selectable {
    /// `involvedObject.kind`
    pub(crate) label: String,
    /// Where the value is in the object as it is stored; the first of several that is not empty.
    pub(crate) paths: Vec<Vec<String>>,
}

/// A column that `kubectl get` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `date`, …
    pub(crate) type_: String,
    pub(crate) description: String,
    /// Above 0 only `-o wide` shows it.
    pub(crate) priority: i64,
    /// Where the value is: the JSONPath of a CRD, such as `.spec.replicas`.
    pub(crate) json_path: String,
}

/// Where objects are kept: group and plural of a collection. Both kinds of Event share one.
pub(crate) type CollectionId = (String, String);

impl Kind {
    /// `v1` or `group/version`.
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

    /// Whether the kind is one of kube-apiserver itself, not of its extension.
    pub(crate) fn is_of_core(&self) -> bool {
        !self.custom && !self.is_definition()
    }

    /// The group and plural that its objects are kept under.
    pub(crate) fn collection(&self) -> CollectionId {
        if self.is(events::GROUP, events::PLURAL) {
            return (String::new(), events::PLURAL.to_owned());
        }
        (self.group.clone(), self.plural.clone())
    }

    /// What an object is kept under within its collection.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced {
            format!("{namespace}/{name}")
        } else {
            name.to_owned()
        }
    }

    /// An object of this kind as it is stored.
    pub(crate) fn to_stored(&self, mut object: Value) -> Value {
        if self.is(events::GROUP, events::PLURAL) {
            return events::into_core(object);
        }
        if let Some(version) = &self.storage.version {
            object["apiVersion"] = format!("{}/{version}", self.group).into();
        }
        object
    }

    /// A stored object as one of this kind.
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
