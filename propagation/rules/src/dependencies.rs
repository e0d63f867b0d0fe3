//! The objects that a template refers to and that follow it into its clusters.
//!
//! The binding of the template lists them. Each that exists has an attached binding: one that names, instead
//! of a placement, the bindings that require it, with their clusters. An object may have a policy of its
//! own, too: both parts live in one binding, and neither writes the other's.

mod attached;
mod references;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};
use karmada_api::names;
use objects::patch::JsonPatch;
use objects::write::Write;
use objects::{Metadata, group, selector};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::binding::write;
use crate::binding_ref::BindingRef;

pub use attached::{
    Need, Referrers, attach, conflict, detach, is_attached, is_paused, needed_clusters,
};
pub use references::{pod_references, references};

/// An object that a template refers to, or those that labels select in a namespace, as bindings list them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dependency {
    /// The group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name; empty for objects that are selected.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The labels of objects that are selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<Labels>,
}

/// The labels that objects must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Labels {
    /// The labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// The requirements on further labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
}

/// A requirement on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl Labels {
    /// Returns `true` unless Kubernetes refuses the selector.
    pub fn is_valid(&self) -> bool {
        selector::is_valid(&self.selector())
    }

    fn selector(&self) -> LabelSelector {
        let requirements = self.match_expressions.iter();
        let requirements = requirements.map(|requirement| LabelSelectorRequirement {
            key: requirement.key.clone(),
            operator: requirement.operator.clone(),
            values: Some(requirement.values.clone()),
        });
        LabelSelector {
            match_labels: Some(self.match_labels.clone()),
            match_expressions: Some(requirements.collect()),
        }
    }
}

impl Dependency {
    /// Returns `true` if the labels of an object of the kind and namespace are those that are selected.
    pub fn selects(&self, object: &Value) -> bool {
        let selector = self.label_selector.as_ref();
        selector.is_some_and(|labels| selector::selects(&labels.selector(), object))
    }

    /// Returns `true` if a binding is of an object that is named or selected. One whose template is not
    /// known counts as selected: absence from the cache is no deletion.
    pub fn has(&self, binding: BindingRef<'_>, template: Option<&Value>) -> bool {
        let resource = &binding.spec.resource;
        let namespace = resource.namespace.as_deref().unwrap_or_default();
        let is_of_kind =
            group(&resource.api_version) == group(&self.api_version) && resource.kind == self.kind;
        if !is_of_kind || namespace != self.namespace {
            return false;
        }
        match &self.label_selector {
            None => resource.name == self.name,
            Some(_) => template.is_none_or(|template| self.selects(template)),
        }
    }
}

/// Returns `true` if the dependencies of the binding's template follow it.
pub fn follow(binding: BindingRef<'_>) -> bool {
    binding.spec.propagate_deps == Some(true) && binding.metadata.deletion_timestamp.is_none()
}

/// Returns the objects that a binding lists.
pub fn listed(binding: &ObjectMeta) -> BTreeSet<Dependency> {
    let text = binding.annotation(names::DEPENDENCIES).unwrap_or_default();
    // A list that Karmada found to be empty is null.
    let list: Option<Vec<Value>> = serde_json::from_str(text).unwrap_or_default();
    let elements = list.into_iter().flatten();
    elements
        .filter_map(|element| serde_json::from_value(element).ok())
        .collect()
}

/// Plans the write of a binding's list. The finalizer that comes with it keeps the binding until nothing is
/// attached on its account.
pub fn list(binding: BindingRef<'_>, wanted: &BTreeSet<Dependency>) -> Option<Write> {
    let metadata = binding.metadata;
    let mut patch = JsonPatch::default();
    if listed(metadata) != *wanted {
        let text = serde_json::to_string(wanted).unwrap_or_default();
        let list = (names::DEPENDENCIES, Some(text.as_str()));
        patch.entries("annotations", metadata.annotations.as_ref(), [list]);
    }
    if !wanted.is_empty() {
        patch.add_finalizer(metadata, names::DEPENDENCIES_FINALIZER);
    }
    write::patched(binding, patch)
}

/// Plans the last write of a binding on whose account nothing is attached any more.
pub fn release(binding: BindingRef<'_>) -> Option<Write> {
    let (metadata, ours) = (binding.metadata, names::DEPENDENCIES_FINALIZER);
    if !metadata.has_finalizer(ours) {
        return None;
    }
    let mut patch = JsonPatch::default();
    patch.remove_finalizer(metadata, ours);
    let list = (names::DEPENDENCIES, None);
    patch.entries("annotations", metadata.annotations.as_ref(), [list]);
    write::patched(binding, patch)
}
