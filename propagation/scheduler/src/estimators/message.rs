//! The questions to an estimator, and its answers, in the protocol buffers of Karmada's
//! `pkg/estimator/pb/service.proto` and of Kubernetes.
//!
//! Values of Kubernetes' own types are sent twice: Karmada reads them as bytes since 1.18, and as messages before.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1;
use objects::lenient::nullable;
use prost::Message;
use serde::Deserialize;
use serde_json::Value;

/// Asks for how many replicas a cluster has room.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MaxAvailableReplicasRequest {
    #[prost(string, tag = "1")]
    pub(crate) cluster: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) replica_requirements: Option<ReplicaRequirements>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) assumed_workloads: Vec<AssumedWorkload>,
}

/// Answers with a number of replicas, which is -1 if it is not known.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MaxAvailableReplicasResponse {
    #[prost(int32, tag = "1")]
    pub(crate) max_replicas: i32,
}

/// Asks for how many sets of different Pods a cluster has room.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MaxAvailableComponentSetsRequest {
    #[prost(string, tag = "1")]
    pub(crate) cluster: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) components: Vec<Component>,
    #[prost(string, tag = "3")]
    pub(crate) namespace: String,
    #[prost(message, repeated, tag = "4")]
    pub(crate) assumed_workloads: Vec<AssumedWorkload>,
}

/// Answers with a number of sets, which is -1 if it is not known.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MaxAvailableComponentSetsResponse {
    #[prost(int32, tag = "1")]
    pub(crate) max_sets: i32,
}

/// The Pods of one template that take room in the cluster, though no node has them yet.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AssumedWorkload {
    /// Where quotas count them.
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) components: Vec<Component>,
}

/// The Pods of one kind in a set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Component {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) replica_requirements: Option<ComponentReplicaRequirements>,
    #[prost(int32, tag = "3")]
    pub(crate) replicas: i32,
}

/// The needs of one of them.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ComponentReplicaRequirements {
    #[prost(message, optional, tag = "1")]
    pub(crate) node_claim: Option<NodeClaim>,
    /// By the names of resources.
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) resource_request: BTreeMap<String, Quantity>,
    #[prost(string, tag = "3")]
    pub(crate) priority_class_name: String,
    /// The same, each amount encoded.
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(crate) resource_request_bytes: BTreeMap<String, Vec<u8>>,
}

/// The needs of one replica.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReplicaRequirements {
    #[prost(message, optional, tag = "1")]
    pub(crate) node_claim: Option<NodeClaim>,
    /// By the names of resources.
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) resource_request: BTreeMap<String, Quantity>,
    #[prost(string, tag = "3")]
    pub(crate) namespace: String,
    #[prost(string, tag = "4")]
    pub(crate) priority_class_name: String,
    /// The same, each amount encoded.
    #[prost(btree_map = "string, bytes", tag = "5")]
    pub(crate) resource_request_bytes: BTreeMap<String, Vec<u8>>,
}

/// The nodes on which a replica may be.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeClaim {
    #[prost(message, optional, tag = "1")]
    pub(crate) node_affinity: Option<NodeSelector>,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) node_selector: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) tolerations: Vec<Toleration>,
    /// The same as `node_affinity`, encoded.
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) node_affinity_bytes: Vec<u8>,
    /// The same as `tolerations`, each encoded.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub(crate) tolerations_bytes: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Quantity {
    #[prost(string, tag = "1")]
    pub(crate) string: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeSelector {
    #[prost(message, repeated, tag = "1")]
    pub(crate) node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeSelectorTerm {
    #[prost(message, repeated, tag = "1")]
    pub(crate) match_expressions: Vec<NodeSelectorRequirement>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) match_fields: Vec<NodeSelectorRequirement>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeSelectorRequirement {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) operator: String,
    #[prost(string, repeated, tag = "3")]
    pub(crate) values: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Toleration {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) operator: String,
    #[prost(string, tag = "3")]
    pub(crate) value: String,
    #[prost(string, tag = "4")]
    pub(crate) effect: String,
    #[prost(int64, optional, tag = "5")]
    pub(crate) seconds: Option<i64>,
}

/// The same, as a binding has it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Needs {
    node_claim: Option<Claim>,
    #[serde(deserialize_with = "nullable")]
    namespace: String,
    #[serde(deserialize_with = "nullable")]
    priority_class_name: String,
    #[serde(deserialize_with = "nullable")]
    resource_request: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Claim {
    hard_node_affinity: Option<v1::NodeSelector>,
    #[serde(deserialize_with = "nullable")]
    node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    tolerations: Vec<v1::Toleration>,
}

impl ReplicaRequirements {
    /// Reads the requirements of a binding.
    ///
    /// # Errors
    /// Fails if they are not as Karmada writes them.
    pub(crate) fn read(requirements: Option<&Value>) -> Result<Option<Self>, serde_json::Error> {
        let Some(requirements) = requirements else {
            return Ok(None);
        };
        let needs: Option<Needs> = Deserialize::deserialize(requirements)?;
        Ok(needs.map(Self::from))
    }
}

impl From<ReplicaRequirements> for ComponentReplicaRequirements {
    fn from(needs: ReplicaRequirements) -> Self {
        Self {
            node_claim: needs.node_claim,
            resource_request: needs.resource_request,
            priority_class_name: needs.priority_class_name,
            resource_request_bytes: needs.resource_request_bytes,
        }
    }
}

impl From<Needs> for ReplicaRequirements {
    fn from(needs: Needs) -> Self {
        let request = needs.resource_request.into_iter();
        let request = request.map(|(name, amount)| {
            let string = match amount {
                Value::String(amount) => amount,
                number => number.to_string(),
            };
            (name, Quantity { string })
        });
        let request: BTreeMap<_, _> = request.collect();
        let encoded = request.iter();
        let encoded = encoded.map(|(name, amount)| (name.clone(), amount.encode_to_vec()));
        Self {
            node_claim: needs.node_claim.map(NodeClaim::from),
            namespace: needs.namespace,
            priority_class_name: needs.priority_class_name,
            resource_request_bytes: encoded.collect(),
            resource_request: request,
        }
    }
}

impl From<Claim> for NodeClaim {
    fn from(claim: Claim) -> Self {
        let affinity = claim.hard_node_affinity.map(NodeSelector::from);
        let tolerations = claim.tolerations.into_iter().map(Toleration::from);
        let tolerations: Vec<_> = tolerations.collect();
        let encoded = affinity.as_ref().map(Message::encode_to_vec);
        Self {
            node_selector: claim.node_selector,
            node_affinity_bytes: encoded.unwrap_or_default(),
            tolerations_bytes: tolerations.iter().map(Message::encode_to_vec).collect(),
            node_affinity: affinity,
            tolerations,
        }
    }
}

impl From<v1::NodeSelector> for NodeSelector {
    fn from(selector: v1::NodeSelector) -> Self {
        let terms = selector.node_selector_terms.into_iter();
        let terms = terms.map(|term| NodeSelectorTerm {
            match_expressions: requirements(term.match_expressions),
            match_fields: requirements(term.match_fields),
        });
        Self {
            node_selector_terms: terms.collect(),
        }
    }
}

fn requirements(of: Option<Vec<v1::NodeSelectorRequirement>>) -> Vec<NodeSelectorRequirement> {
    let requirements = of.into_iter().flatten();
    let requirements = requirements.map(|one| NodeSelectorRequirement {
        key: one.key,
        operator: one.operator,
        values: one.values.unwrap_or_default(),
    });
    requirements.collect()
}

impl From<v1::Toleration> for Toleration {
    fn from(toleration: v1::Toleration) -> Self {
        Self {
            key: toleration.key.unwrap_or_default(),
            operator: toleration.operator.unwrap_or_default(),
            value: toleration.value.unwrap_or_default(),
            effect: toleration.effect.unwrap_or_default(),
            seconds: toleration.toleration_seconds,
        }
    }
}
