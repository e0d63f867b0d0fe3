//! The parts of a template whose Pods differ, such as the managers and the workers of a job.

use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use objects::schema;

/// A part of a template: Pods of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Component {
    /// Its name, which no other part of the template has.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: String,
    /// Its replicas.
    #[serde(deserialize_with = "lenient::or_default")]
    pub replicas: i32,
    /// The needs of one replica.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub replica_requirements: Option<Value>,
}

/// A part of a template in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct TargetComponent {
    /// Its name.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: String,
    /// Its replicas there.
    #[serde(deserialize_with = "lenient::or_default")]
    pub replicas: i32,
}
