//! The trait of every provider.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::Writer;
use objects::Key;
use traffic::ingress::{Desired, ServedClusters};

use crate::reason::Reason;

/// A load balancer for `MultiClusterIngress`es.
///
/// All its writes go through the [`Writer`] with which it was made, which performs them only while leading.
#[async_trait]
pub trait LoadBalancer: Send + Sync + 'static {
    /// Returns `false` if another program serves the traffic: then nothing is desired of this load
    /// balancer, and objects on which [`Desired`] alone depends are not watched.
    fn serves(&self) -> bool;

    /// Adds the provider's own watches to `program`. They wake an ingress through `queue` when its
    /// part of the load balancer changes.
    fn watch(self: Arc<Self>, program: &mut Program, queue: &Queue<Key>);

    /// Brings the load balancer, which [serves](Self::serves), to `desired` with as few writes as necessary. Removes the endpoints of
    /// clusters that are blocked, leaving or unknown first, even if the rest fails.
    async fn ensure(&self, desired: &Desired) -> Result<Ensured, BoxError>;

    /// Removes everything that belongs to the ingress `key`, the endpoints of `excluded` clusters first.
    /// Fails while anything of it is left.
    async fn delete(&self, key: &Key, excluded: &BTreeSet<String>) -> Result<Ensured, BoxError>;

    /// Removes the endpoints of the ingress `key` that are in `cut`, and nothing else.
    async fn cut(&self, key: &Key, cut: &ServedClusters) -> Result<(), BoxError>;

    /// Returns the ingresses that the load balancer holds something of.
    fn keys(&self) -> Vec<Key>;

    /// Returns `true` if the load balancer holds something of the ingress `key`.
    fn holds(&self, key: &Key) -> bool;

    /// Returns the member clusters that the load balancer holds endpoints of for the ingress `key`.
    fn endpoints(&self, key: &Key) -> ServedClusters;

    /// Returns `true` if `error`, from one of the calls above, may mean that the load balancer does not
    /// answer at all.
    fn is_outage(&self, error: &BoxError) -> bool;

    /// Sends a request that changes nothing.
    ///
    /// # Errors
    /// Fails if the load balancer does not answer.
    async fn probe(&self) -> Result<(), BoxError>;
}

/// The outcome of [`LoadBalancer::ensure`] and [`LoadBalancer::delete`].
#[derive(Debug, Default, PartialEq)]
pub struct Ensured {
    /// The addresses of the load balancer; `None` if the provider does not know them.
    pub load_balancer: Option<IngressLoadBalancerStatus>,
    /// The obstacles met. Everything that does not depend on them is done.
    pub obstacles: BTreeSet<Obstacle>,
}

/// A reason why an ingress is not served according to its spec, which a user must remove.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{message}")]
pub struct Obstacle {
    /// The reason of the Event about it.
    pub reason: Reason,
    /// The object that causes it.
    pub object: RelatedObject,
    /// The description for the user.
    pub message: String,
}

/// Fails with the first of the obstacles met.
pub(super) fn require_none<O: Into<Obstacle>>(met: BTreeSet<O>) -> Result<(), BoxError> {
    let first: Option<Obstacle> = met.into_iter().next().map(Into::into);
    first.map_or(Ok(()), |obstacle| Err(obstacle.into()))
}

/// The object that an Event refers to besides its ingress.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelatedObject {
    /// The API version; `None` for objects of another cluster.
    pub api_version: Option<&'static str>,
    /// The kind.
    pub kind: &'static str,
    /// The key.
    pub key: Key,
}

/// Makes load balancers that write with a [`Writer`].
pub(crate) type Balancers = Box<dyn FnOnce(&Writer) -> Vec<NamedBalancer> + Send>;

/// A load balancer, one of those that serve the same ingresses.
pub struct NamedBalancer {
    /// Its name, empty if it is the only one.
    pub name: &'static str,
    /// The load balancer.
    pub balancer: Arc<dyn LoadBalancer>,
}

impl NamedBalancer {
    /// Returns the only load balancer.
    pub fn only(balancer: impl LoadBalancer) -> Vec<Self> {
        let (name, balancer) = ("", Arc::new(balancer));
        vec![Self { name, balancer }]
    }
}

/// Returns the name of a task, a gate or a label of the load balancer `name`. It is needed as long as the program lives.
pub(crate) fn label(of: &'static str, name: &'static str) -> &'static str {
    if name.is_empty() {
        of
    } else {
        Box::leak(format!("{of}_{name}").into_boxed_str())
    }
}
