//! Tests of the provider on the embedded API.

mod keeps_contract;
mod obstacles;
mod writes;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressLoadBalancerStatus;
use karmada_runtime::error::BoxError;
use karmada_runtime::watch::Decoded;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::Event;
use lab_parts::test_api::TestApi;
use serde_json::{Value, json};
use traffic::ingress::Admission;
use traffic::ingress::kubernetes::Clash;

use crate::fixtures::writer;
use crate::provider::balancer::LoadBalancer;
use crate::provider::contract;
use crate::provider::gateway_cluster::error::{GatewayError, GatewayObstacle};

use super::*;

const SERVICES: &str = "/api/v1/namespaces/ns/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/ns/ingresses";

/// A provider and the API of its gateway cluster.
struct Stage {
    api: TestApi,
    provider: Kubernetes,
}

impl Stage {
    /// Returns a stage with an empty gateway cluster, without even the namespace.
    fn empty() -> Self {
        let api = TestApi::with_kinds([]);
        Self {
            provider: Kubernetes::new(api.client(), &writer(), ingresses()),
            api,
        }
    }

    /// Returns a stage with a gateway cluster that has the namespace.
    async fn new() -> Self {
        let stage = Self::empty();
        stage.api.create_namespace("ns").await;
        stage
    }

    /// Returns a stage with a gateway cluster that is as `desired`, as the watches have shown.
    async fn converged(desired: &Desired) -> Self {
        let stage = Self::new().await;
        let wanted = ingresses().objects(desired);
        for object in wanted.services {
            show(&stage.provider.services, stage.api.create(&object).await);
        }
        for object in wanted.slices {
            show(&stage.provider.slices, stage.api.create(&object).await);
        }
        for object in wanted.secrets {
            show(&stage.provider.secrets, stage.api.create(&object).await);
        }
        for object in wanted.routes.unwrap() {
            show(&stage.provider.routes, stage.api.create(&object).await);
        }
        stage
    }

    async fn ensure(&self, desired: &Desired) -> Result<Ensured, BoxError> {
        self.provider.ensure(desired).await
    }

    async fn delete(&self) -> Result<Ensured, BoxError> {
        let none = BTreeSet::new();
        self.provider.delete(&key(), &none).await
    }

    /// Asserts that `error` is that the object of kind `kind` changed since it was seen.
    #[track_caller]
    fn assert_stale(error: &BoxError, expected: &str) {
        let error = error.downcast_ref();
        assert!(
            matches!(error, Some(GatewayError::Stale { kind, .. }) if *kind == expected),
            "{error:?}"
        );
    }

    /// Returns the names of the objects that `desired` requires: the Service and the slices.
    fn names(desired: &Desired) -> (String, Vec<String>) {
        let wanted = ingresses().objects(desired);
        let service = wanted.services[0].metadata.name.clone().unwrap();
        let slices = wanted.slices.into_iter();
        let slices = slices.map(|slice| slice.metadata.name.unwrap());
        (service, slices.collect())
    }

    /// Changes an object as another program does and returns the stored version.
    async fn change<K: GatewayKind>(&self, name: &str, change: Value) -> K {
        let api: Api<K> = Api::namespaced(self.api.user(), "ns");
        let parameters = PatchParams::default();
        let patch = Patch::Merge(change);
        api.patch(name, &parameters, &patch).await.unwrap()
    }
}

/// Passes `object` to the index as the watch does.
fn show<K: GatewayKind>(objects: &GatewayObjects<K>, object: K) {
    objects.observe(Event::Apply(Decoded::Valid(object)));
}

fn ingresses() -> Ingresses {
    Ingresses::new(&"example.com/ours".parse().unwrap(), None)
}

fn key() -> Key {
    contract::key("i")
}

/// Returns Service `s` with one endpoint in each of `clusters`.
fn desired(clusters: &[(&str, Admission)]) -> Desired {
    let names: Vec<&str> = clusters.iter().map(|(name, _)| *name).collect();
    let mut desired = contract::desired("i", &["s"], &names);
    for (name, admission) in clusters {
        contract::admit(&mut desired, name, *admission);
    }
    desired
}

fn open() -> Desired {
    desired(&[("m1", Admission::Admitted), ("m2", Admission::Admitted)])
}

fn m1_blocked() -> Desired {
    let blocked = Admission::Blocked;
    desired(&[("m1", blocked), ("m2", Admission::Admitted)])
}

fn m1_elsewhere() -> Desired {
    let elsewhere = Admission::NotLocated;
    desired(&[("m1", elsewhere), ("m2", Admission::Admitted)])
}
