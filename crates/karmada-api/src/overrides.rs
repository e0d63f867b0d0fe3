//! The policies that change templates for some clusters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::placement::ClusterSelector;
use crate::policy::ResourceSelector;
use objects::lenient;
use objects::resource::kind;
use objects::schema;

kind! {
    /// Changes for some clusters of the templates of its namespace.
    OverridePolicy, "OverridePolicy", "policy.karmada.io", "v1alpha1", "overridepolicies", NamespaceResourceScope,
    {
        /// The templates and the changes.
        spec: OverrideSpec,
    }
}

kind! {
    /// Changes for some clusters of the templates of any namespace, or of none.
    ClusterOverridePolicy, "ClusterOverridePolicy", "policy.karmada.io", "v1alpha1", "clusteroverridepolicies",
    ClusterResourceScope,
    {
        /// The templates and the changes.
        spec: OverrideSpec,
    }
}

/// The templates that an override policy selects, and the changes of each in some clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OverrideSpec {
    /// The templates; empty for all.
    #[serde(deserialize_with = "lenient::nullable")]
    pub resource_selectors: Vec<ResourceSelector>,
    /// The changes.
    #[serde(deserialize_with = "lenient::nullable")]
    pub override_rules: Vec<OverrideRule>,
    /// The clusters of `overriders`, the older form of one rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterSelector>,
    /// The changes of the older form.
    #[serde(deserialize_with = "lenient::nullable")]
    #[schemars(with = "Option<Overriders>")]
    pub overriders: Value,
}

/// The changes of a manifest in some clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["overriders"]))]
pub struct OverrideRule {
    /// The clusters; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterSelector>,
    /// The changes.
    // Raw, for [`Overriders`] to read: a Work records them as the user wrote them.
    #[serde(deserialize_with = "lenient::nullable")]
    #[schemars(with = "Option<Overriders>")]
    pub overriders: Value,
}

/// Changes of a manifest, in the order of the fields here except that `plaintext` comes last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Overriders {
    /// Changes by JSON pointer.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub plaintext: Vec<PlaintextOverrider>,
    /// Changes of images.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub image_overrider: Vec<ImageOverrider>,
    /// Changes of containers' commands.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub command_overrider: Vec<CommandArgsOverrider>,
    /// Changes of containers' arguments.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub args_overrider: Vec<CommandArgsOverrider>,
    /// Changes of labels.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub labels_overrider: Vec<LabelAnnotationOverrider>,
    /// Changes of annotations.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub annotations_overrider: Vec<LabelAnnotationOverrider>,
    /// Changes within texts that are JSON or YAML.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub field_overrider: Vec<FieldOverrider>,
}

/// A change at a place of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["path", "operator"]))]
pub struct PlaintextOverrider {
    /// The place, as a JSON pointer (RFC 6901).
    pub path: String,
    /// `add`, `remove` or `replace`.
    #[schemars(extend("enum" = ["add", "remove", "replace"]))]
    pub operator: String,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub value: Option<Value>,
}

/// A change of a part of images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["component", "operator"]))]
pub struct ImageOverrider {
    /// The place of the image; absent for every container's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicate: Option<ImagePredicate>,
    /// `Registry`, `Repository` or `Tag`.
    #[schemars(extend("enum" = ["Registry", "Repository", "Tag"]))]
    pub component: String,
    /// `add`, `remove` or `replace`.
    #[schemars(extend("enum" = ["add", "remove", "replace"]))]
    pub operator: String,
    /// The new part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The place of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["path"]))]
pub struct ImagePredicate {
    /// The place, as a JSON pointer (RFC 6901).
    pub path: String,
}

/// A change of a container's command or arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["containerName", "operator"]))]
pub struct CommandArgsOverrider {
    /// The container's name.
    pub container_name: String,
    /// `add` or `remove`.
    #[schemars(extend("enum" = ["add", "remove"]))]
    pub operator: String,
    /// The words to add or to remove.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub value: Vec<String>,
}

/// A change of labels or annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["operator"]))]
pub struct LabelAnnotationOverrider {
    /// `add`, `remove` or `replace`.
    #[schemars(extend("enum" = ["add", "remove", "replace"]))]
    pub operator: String,
    /// The keys with their values.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "std::collections::BTreeMap::is_empty"
    )]
    pub value: std::collections::BTreeMap<String, String>,
}

/// Changes within a text of the manifest that is JSON or YAML.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["fieldPath"]))]
pub struct FieldOverrider {
    /// The place of the text, as a JSON pointer (RFC 6901).
    pub field_path: String,
    /// Changes of a JSON text.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub json: Vec<FieldPatch>,
    /// Changes of a YAML text.
    #[serde(
        deserialize_with = "lenient::nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub yaml: Vec<FieldPatch>,
}

/// A change within a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["subPath", "operator"]))]
pub struct FieldPatch {
    /// The place within the text, as a JSON pointer (RFC 6901).
    pub sub_path: String,
    /// `add`, `remove` or `replace`.
    #[schemars(extend("enum" = ["add", "remove", "replace"]))]
    pub operator: String,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub value: Option<Value>,
}
