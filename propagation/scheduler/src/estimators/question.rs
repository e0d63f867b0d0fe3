//! The question to the estimator of a cluster about a binding, and the call that asks it.

use std::sync::Arc;

use http::uri::PathAndQuery;
use karmada_api::ResourceBindingSpec;
use propagation_rules::schedule::{self, missing_components};
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::message::{
    AssumedWorkload, Component, MaxAvailableComponentSetsRequest,
    MaxAvailableComponentSetsResponse, MaxAvailableReplicasRequest, MaxAvailableReplicasResponse,
    ReplicaRequirements,
};

/// A question about the room of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Question {
    /// For how many replicas?
    Replicas(MaxAvailableReplicasRequest),
    /// For how many sets of Pods that differ?
    Sets(MaxAvailableComponentSetsRequest),
}

const REPLICAS: &str =
    "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas";
const SETS: &str =
    "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableComponentSets";

impl Question {
    /// Returns the question about a cluster for a binding, besides the workloads that are `assumed` to be there; `None` if
    /// it needs no room there.
    ///
    /// # Errors
    /// Fails if the needs of its replicas are not as Karmada writes them.
    pub(super) fn about(
        spec: &ResourceBindingSpec,
        cluster: &str,
        assumed: &[Arc<schedule::AssumedWorkload>],
    ) -> Result<Option<Self>, serde_json::Error> {
        let assumed_workloads = assumed.iter().map(|workload| told(workload)).collect();
        if spec.components.iter().flatten().next().is_none() {
            return Ok(Some(Self::Replicas(MaxAvailableReplicasRequest {
                cluster: cluster.to_owned(),
                replica_requirements: ReplicaRequirements::read(
                    spec.replica_requirements.as_ref(),
                )?,
                assumed_workloads,
            })));
        }
        let mut components = Vec::new();
        for component in missing_components(spec, cluster) {
            let needs = ReplicaRequirements::read(component.replica_requirements.as_ref())?;
            components.push(part(&component, needs));
        }
        let request = MaxAvailableComponentSetsRequest {
            cluster: cluster.to_owned(),
            namespace: spec.resource.namespace.clone().unwrap_or_default(),
            components,
            assumed_workloads,
        };
        Ok((!request.components.is_empty()).then_some(Self::Sets(request)))
    }

    /// Asks the question, and returns the number that is the answer.
    pub(super) async fn send(self, channel: Channel) -> Result<i32, Status> {
        match self {
            Self::Replicas(request) => {
                let answer: MaxAvailableReplicasResponse = call(channel, REPLICAS, request).await?;
                Ok(answer.max_replicas)
            }
            Self::Sets(request) => {
                let answer: MaxAvailableComponentSetsResponse =
                    call(channel, SETS, request).await?;
                Ok(answer.max_sets)
            }
        }
    }
}

/// Returns the message to an estimator about a workload that is assumed.
fn told(workload: &schedule::AssumedWorkload) -> AssumedWorkload {
    let components = workload.components.iter().map(|component| {
        // A need of another binding that cannot be read spoils no question about this one: its Pods count.
        let needs = ReplicaRequirements::read(component.replica_requirements.as_ref());
        part(component, needs.unwrap_or_default())
    });
    AssumedWorkload {
        namespace: workload.namespace.clone(),
        components: components.collect(),
    }
}

fn part(component: &karmada_api::Component, needs: Option<ReplicaRequirements>) -> Component {
    Component {
        name: component.name.clone(),
        replicas: component.replicas,
        replica_requirements: needs.map(Into::into),
    }
}

async fn call<Q, A>(channel: Channel, method: &'static str, request: Q) -> Result<A, Status>
where
    Q: Message + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
{
    let mut client = Grpc::new(channel);
    let ready = client.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec: ProstCodec<Q, A> = ProstCodec::default();
    let method = PathAndQuery::from_static(method);
    let answer = client.unary(Request::new(request), method, codec).await?;
    Ok(answer.into_inner())
}
