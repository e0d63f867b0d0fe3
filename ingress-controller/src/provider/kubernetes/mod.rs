//! The provider `kubernetes`: a gateway cluster with an ingress controller, whichever it is, that serves an Ingress.

mod args;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;
use karmada_runtime::program::{Program, StartError};
use karmada_runtime::queue::Queue;
use objects::Key;
use traffic::ingress::kubernetes::{Ingresses, ManagedBy, Objects};
use traffic::ingress::{ControllerName, Desired};

pub(crate) use self::args::KubernetesArgs;

use super::balancer::{Balancers, Ensured, Obstacle};
use super::gateway_cluster::{
    self, GatewayCluster, GatewayClusterArgs, GatewayKind, GatewayObjects, Routing,
};

/// A gateway cluster with an ingress controller.
pub type Kubernetes = GatewayCluster<Ingresses>;

/// Connects to every gateway cluster of the flags.
pub(super) async fn connect(
    clusters: &GatewayClusterArgs,
    args: &KubernetesArgs,
    controller: &ControllerName,
    program: &mut Program,
) -> Result<Balancers, StartError> {
    let class = args.ingress_class().map(ToOwned::to_owned);
    let routing = Ingresses::new(controller, class);
    let copies_secrets = args.copy_tls_secrets();
    gateway_cluster::connect(
        clusters,
        "kubernetes",
        program,
        move |name, client, writer| {
            let mut provider = Kubernetes::named(name, client, writer, routing.clone());
            provider.copies_secrets = copies_secrets;
            provider
        },
    )
    .await
}

impl GatewayKind for Ingress {
    const WATCH: &'static str = "gateway_ingresses";
}

impl Routing for Ingresses {
    type Route = Ingress;

    fn managed_by(&self) -> &ManagedBy {
        Self::managed_by(self)
    }

    fn objects(
        &self,
        desired: &Desired,
        _: &GatewayObjects<Ingress>,
    ) -> (Objects<Ingress>, BTreeSet<Obstacle>) {
        (Self::objects(self, desired), BTreeSet::new())
    }

    /// Returns the addresses that the gateway's ingress controller reports.
    fn report(&self, _: &Desired, routes: &[Arc<Ingress>]) -> Ensured {
        let mut statuses = routes.iter().filter_map(|route| route.status.as_ref());
        let reported = statuses.find_map(|status| status.load_balancer.clone());
        Ensured {
            load_balancer: Some(reported.unwrap_or_default()),
            obstacles: BTreeSet::new(),
        }
    }

    fn watch(_: &Arc<GatewayCluster<Self>>, _: &mut Program, _: &Queue<Key>) {}
}

#[cfg(test)]
mod tests;
