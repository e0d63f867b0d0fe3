//! Load balancers: what carries out what `rules` desires.

mod kubernetes;
mod none;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_api::Key;
use karmada_rules::ingress::Desired;
use karmada_rules::ingress::kubernetes::Clash;
use karmada_runtime::write::WriteError;

pub(crate) use kubernetes::Kubernetes;
pub(crate) use none::NoLoadBalancer;

/// What serves the traffic of `MultiClusterIngress`es.
pub(crate) trait LoadBalancer: Send + Sync + 'static {
    /// Brings the load balancer to `desired`; does nothing where it is there already. Blocked
    /// clusters are taken out first, whatever becomes of the rest.
    fn ensure(
        &self,
        desired: &Desired,
    ) -> impl Future<Output = Result<Ensured, ProviderError>> + Send;

    /// Removes everything there is of the ingress `key`; does nothing where there is nothing.
    fn delete(&self, key: &Key) -> impl Future<Output = Result<Ensured, ProviderError>> + Send;

    /// The ingresses that the load balancer has something of.
    fn keys(&self) -> Vec<Key>;
}

/// The load balancer that `--provider` names.
pub(crate) enum Balancer {
    /// `none`.
    None(NoLoadBalancer),
    /// `kubernetes`.
    Kubernetes(Arc<Kubernetes>),
}

impl LoadBalancer for Balancer {
    async fn ensure(&self, desired: &Desired) -> Result<Ensured, ProviderError> {
        match self {
            Self::None(balancer) => balancer.ensure(desired).await,
            Self::Kubernetes(balancer) => balancer.ensure(desired).await,
        }
    }

    async fn delete(&self, key: &Key) -> Result<Ensured, ProviderError> {
        match self {
            Self::None(balancer) => balancer.delete(key).await,
            Self::Kubernetes(balancer) => balancer.delete(key).await,
        }
    }

    fn keys(&self) -> Vec<Key> {
        match self {
            Self::None(balancer) => balancer.keys(),
            Self::Kubernetes(balancer) => balancer.keys(),
        }
    }
}

/// What came of bringing the load balancer to where it should be.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Ensured {
    /// Where it listens; none: it does not say.
    pub(crate) load_balancer: Option<IngressLoadBalancerStatus>,
    /// What must be out of the way before the rest can be done.
    pub(crate) obstacles: BTreeSet<Obstacle>,
}

/// What is in the way, for a person to remove.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Obstacle {
    /// An object that is not ours has the name of one of ours.
    Clash(Clash),
    /// The gateway cluster will not have an object.
    Refused {
        /// Its kind.
        kind: &'static str,
        /// Which.
        key: Key,
        /// What the gateway cluster says.
        message: String,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clash(clash) => clash.fmt(f),
            Self::Refused { kind, key, message } => {
                write!(f, "the gateway cluster refuses {kind} {key}: {message}")
            }
        }
    }
}

/// Why the load balancer is not where it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderError {
    /// A write failed.
    #[error("could not write {kind} {key} to the gateway cluster")]
    Write {
        /// The kind of the object.
        kind: &'static str,
        /// Which.
        key: Key,
        /// Why.
        source: Box<WriteError>,
    },
    /// A read failed.
    #[error("could not read {kind} {key} from the gateway cluster")]
    Read {
        /// The kind of the object.
        kind: &'static str,
        /// Which.
        key: Key,
        /// Why.
        source: Box<kube::Error>,
    },
    /// An object changed since it was last seen.
    #[error("{kind} {key} in the gateway cluster is not as it was last seen")]
    Stale {
        /// The kind of the object.
        kind: &'static str,
        /// Which.
        key: Key,
    },
    /// A person must remove something before the ingress can be let go.
    #[error("{0}")]
    Obstructed(Obstacle),
    /// An object does not serialize.
    #[error("could not write down what to change")]
    Edit(#[from] serde_json::Error),
}
