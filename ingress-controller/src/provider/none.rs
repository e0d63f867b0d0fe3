use karmada_api::Key;
use karmada_rules::ingress::Desired;

use super::{Ensured, LoadBalancer, ProviderError};

/// Nothing: something else reads the status and serves the traffic.
#[derive(Debug)]
pub(crate) struct NoLoadBalancer;

impl LoadBalancer for NoLoadBalancer {
    async fn ensure(&self, _: &Desired) -> Result<Ensured, ProviderError> {
        Ok(Ensured::default())
    }

    async fn delete(&self, _: &Key) -> Result<Ensured, ProviderError> {
        Ok(Ensured::default())
    }

    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }
}
