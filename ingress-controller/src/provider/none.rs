use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use objects::Key;
use traffic::ingress::{Desired, ServedClusters};

use super::balancer::{Ensured, LoadBalancer};

/// The provider `none`: another program reads the status and serves the traffic.
#[derive(Debug)]
pub(crate) struct NoLoadBalancer;

#[async_trait]
impl LoadBalancer for NoLoadBalancer {
    fn serves(&self) -> bool {
        false
    }

    fn watch(self: Arc<Self>, _: &mut Program, _: &Queue<Key>) {}

    async fn ensure(&self, _: &Desired) -> Result<Ensured, BoxError> {
        Ok(Ensured::default())
    }

    async fn delete(&self, _: &Key, _: &BTreeSet<String>) -> Result<Ensured, BoxError> {
        Ok(Ensured::default())
    }

    async fn cut(&self, _: &Key, _: &ServedClusters) -> Result<(), BoxError> {
        Ok(())
    }

    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }

    fn holds(&self, _: &Key) -> bool {
        false
    }

    fn endpoints(&self, _: &Key) -> ServedClusters {
        ServedClusters::new()
    }

    fn is_outage(&self, _: &BoxError) -> bool {
        false
    }

    async fn probe(&self) -> Result<(), BoxError> {
        Ok(())
    }
}
