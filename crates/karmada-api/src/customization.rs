//! The scripts by which users interpret kinds.

use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use objects::resource::kind;

kind! {
    /// Scripts that interpret the objects of a kind.
    ResourceInterpreterCustomization, "ResourceInterpreterCustomization", "config.karmada.io", "v1alpha1",
    "resourceinterpretercustomizations", ClusterResourceScope,
    {
        /// The kind and its scripts.
        spec: CustomizationSpec,
    }
}

/// A kind and the scripts that interpret its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["customizations", "target"]))]
pub struct CustomizationSpec {
    /// The kind.
    #[serde(deserialize_with = "lenient::nullable")]
    pub target: CustomizationTarget,
    /// The scripts.
    #[serde(deserialize_with = "lenient::nullable")]
    pub customizations: CustomizationRules,
}

/// A kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["apiVersion", "kind"]))]
pub struct CustomizationTarget {
    /// The group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// The scripts of a kind, by their operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomizationRules {
    /// Defines `Retain(desired, observed)`: the object that replaces the observed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<LuaScript>,
    /// Defines `GetReplicas(object)`: the replicas, and what each needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_resource: Option<LuaScript>,
    /// Defines `GetComponents(object)`: the components.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component_resource: Option<LuaScript>,
    /// Defines `ReviseReplica(object, replicas)`: the object with that many replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_revision: Option<LuaScript>,
    /// Defines `ReflectStatus(object)`: the part of the status that is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reflection: Option<LuaScript>,
    /// Defines `AggregateStatus(object, items)`: the object with the status that is put together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_aggregation: Option<LuaScript>,
    /// Defines `InterpretHealth(object)`: true for an object that is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_interpretation: Option<LuaScript>,
    /// Defines `GetDependencies(object)`: the objects that it refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependency_interpretation: Option<LuaScript>,
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["luaScript"]))]
pub struct LuaScript {
    /// The source, in Lua.
    pub lua_script: String,
}
