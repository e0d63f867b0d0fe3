//! A policy of either scope.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{ClusterPropagationPolicy, PropagationPolicy, PropagationSpec, names};
use objects::write::ObjectRef;
use objects::{GroupVersionKind, Metadata};
use serde_json::Value;

use super::selector::best_rank;

/// A policy of either scope that may claim a template.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its metadata. One with a namespace is a `PropagationPolicy`.
    pub metadata: &'a ObjectMeta,
    /// Its spec.
    pub spec: &'a PropagationSpec,
}

impl<'a> Candidate<'a> {
    /// Creates a candidate.
    pub fn new(metadata: &'a ObjectMeta, spec: &'a PropagationSpec) -> Self {
        Self { metadata, spec }
    }

    /// Returns the policy as an object of the API.
    pub fn object(&self) -> ObjectRef {
        match self.namespace() {
            Some(_) => ObjectRef::of_metadata::<PropagationPolicy>(self.metadata, &()),
            None => ObjectRef::of_metadata::<ClusterPropagationPolicy>(self.metadata, &()),
        }
    }

    /// Returns the namespace; `None` for a `ClusterPropagationPolicy`.
    pub fn namespace(&self) -> Option<&'a str> {
        self.metadata.namespace.as_deref().filter(|n| !n.is_empty())
    }

    /// Returns the name.
    pub fn name(&self) -> &'a str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the ID that claims carry.
    pub fn id(&self) -> Option<&'a str> {
        let id = self.metadata.label(self.id_label());
        id.filter(|id| !id.is_empty())
    }

    /// Returns the label with that ID, on the policy and on the objects that it claims.
    pub fn id_label(&self) -> &'static str {
        match self.namespace() {
            Some(_) => names::POLICY_ID,
            None => names::CLUSTER_POLICY_ID,
        }
    }

    /// Returns the finalizer of the policy's kind.
    pub fn finalizer(&self) -> &'static str {
        match self.namespace() {
            Some(_) => names::POLICY_FINALIZER,
            None => names::CLUSTER_POLICY_FINALIZER,
        }
    }

    /// Returns `true` if the policy selects the template.
    pub fn selects(&self, template: &Value) -> bool {
        let selectors = &self.spec.resource_selectors;
        best_rank(selectors, self.namespace(), template).is_some()
    }

    /// Returns `true` if the policy selects the template in a version of its kind. The other demands of selectors are the same
    /// in each.
    pub fn selects_in(&self, version: &GroupVersionKind, template: &Value) -> bool {
        let mut template = template.clone();
        if let Some(fields) = template.as_object_mut() {
            fields.insert("apiVersion".to_owned(), version.api_version().into());
        }
        self.selects(&template)
    }

    /// Returns `true` if the policy is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

impl<'a> From<&'a PropagationPolicy> for Candidate<'a> {
    fn from(policy: &'a PropagationPolicy) -> Self {
        Self::new(&policy.metadata, &policy.spec)
    }
}

impl<'a> From<&'a ClusterPropagationPolicy> for Candidate<'a> {
    fn from(policy: &'a ClusterPropagationPolicy) -> Self {
        Self::new(&policy.metadata, &policy.spec)
    }
}
