use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

/// An export of the Service of the same name: in a member cluster to which it is propagated, Karmada
/// collects the Service's endpoints. It has no spec.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExport {
    /// The group and version; absent in the elements of some lists.
    pub api_version: String,
    /// The kind; absent in the elements of some lists.
    pub kind: String,
    /// Its metadata.
    pub metadata: ObjectMeta,
}

/// A policy that propagates resource templates of its namespace to member clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PropagationPolicy {
    /// The group and version; absent in the elements of some lists.
    pub api_version: String,
    /// The kind; absent in the elements of some lists.
    pub kind: String,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// The templates and the clusters.
    pub spec: PropagationSpec,
}

/// The templates that a policy selects, and the clusters to which it propagates them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PropagationSpec {
    /// The templates.
    pub resource_selectors: Vec<ResourceSelector>,
    /// The clusters.
    pub placement: Placement,
}

/// A selection of a resource template by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSelector {
    /// The template's API group and version.
    pub api_version: String,
    /// The template's kind.
    pub kind: String,
    /// The template's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The clusters to which a policy propagates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// The selection of clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<PlacementAffinity>,
}

/// A selection of clusters by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementAffinity {
    /// The clusters' names. Absent or empty: every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_names: Option<Vec<String>>,
}

impl ServiceExport {
    /// The group and version.
    pub const API_VERSION: &'static str = "multicluster.x-k8s.io/v1alpha1";
    /// The kind.
    pub const KIND: &'static str = "ServiceExport";
}

impl PropagationPolicy {
    /// The group and version.
    pub const API_VERSION: &'static str = "policy.karmada.io/v1alpha1";
    /// The kind.
    pub const KIND: &'static str = "PropagationPolicy";
}

impl Resource for ServiceExport {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Self::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "multicluster.x-k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "serviceexports".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Resource for PropagationPolicy {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Self::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "policy.karmada.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "propagationpolicies".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
