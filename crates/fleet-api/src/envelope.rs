//! Envelopes: the objects in them are placed, and have no effect on the hub, where they are mere content.

use std::collections::BTreeMap;

use objects::lenient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use objects::resource::kind;
use objects::schema;

kind! {
    /// Cluster-scoped objects.
    ClusterResourceEnvelope, "ClusterResourceEnvelope", "placement.kubernetes-fleet.io", "v1beta1",
    "clusterresourceenvelopes", ClusterResourceScope,
    {
        /// The objects.
        #[serde(flatten)]
        content: EnvelopeContent,
    }
}

kind! {
    /// Objects of its own namespace.
    ResourceEnvelope, "ResourceEnvelope", "placement.kubernetes-fleet.io", "v1beta1",
    "resourceenvelopes", NamespaceResourceScope,
    {
        /// The objects.
        #[serde(flatten)]
        content: EnvelopeContent,
    }
}

/// The content of an envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvelopeContent {
    /// The objects, by names of their own, such as those of files.
    #[serde(deserialize_with = "lenient::nullable")]
    #[schemars(schema_with = "schema::any_objects")]
    pub data: BTreeMap<String, Value>,
}
