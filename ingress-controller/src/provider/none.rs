use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::write::Writer;
use objects::Key;
use traffic::ingress::{Desired, Held};

use super::balancer::{Ensured, LoadBalancer};

/// The provider `none`: another program reads the status and serves the traffic.
#[derive(Debug)]
pub(crate) struct NoLoadBalancer;

impl LoadBalancer for NoLoadBalancer {
    fn serves(&self) -> bool {
        false
    }

    fn watch(self: Arc<Self>, _: &mut Program, _: &Queue<Key>) {}

    fn ensure<'a>(
        &'a self,
        _: &'a Writer,
        _: &'a Desired,
    ) -> BoxFuture<'a, Result<Ensured, BoxError>> {
        ready(Ok(Ensured::default())).boxed()
    }

    fn delete<'a>(
        &'a self,
        _: &'a Writer,
        _: &'a Key,
        _: &'a BTreeSet<String>,
    ) -> BoxFuture<'a, Result<Ensured, BoxError>> {
        ready(Ok(Ensured::default())).boxed()
    }

    fn cut<'a>(
        &'a self,
        _: &'a Writer,
        _: &'a Key,
        _: &'a Held,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        ready(Ok(())).boxed()
    }

    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }

    fn holds(&self, _: &Key) -> bool {
        false
    }

    fn endpoints(&self, _: &Key) -> Held {
        Held::new()
    }

    fn is_outage(&self, _: &BoxError) -> bool {
        false
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), BoxError>> {
        ready(Ok(())).boxed()
    }
}
