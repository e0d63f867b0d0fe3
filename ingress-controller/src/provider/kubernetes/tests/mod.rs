//! A gateway cluster on a stage, for the tests of the provider.

mod obstacles;
mod writes;

use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::discovery::v1::Endpoint;
use k8s_openapi::api::networking::v1::{IngressBackend, IngressServiceBackend, IngressSpec};
use karmada_api::execution_namespace;
use karmada_rules::ingress::kubernetes::{Clash, Managed};
use karmada_rules::ingress::{Admission, Backend, Cached, ClusterEndpoints};
use karmada_runtime::lease::Leadership;
use karmada_runtime::metrics::WriteMetrics;
use karmada_runtime::watch::Guarded;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;
use crate::fake::{FakeApi, refusal};

const SERVICES: &str = "/api/v1/namespaces/ns/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/ns/ingresses";

/// A provider and the API of its gateway cluster.
struct Stage {
    api: FakeApi,
    provider: Kubernetes,
}

fn stage() -> Stage {
    let api = FakeApi::default();
    let gateway = Gateway::new(&"example.com/ours".parse().unwrap(), None);
    let writer = Writer::new(Leadership::always(), WriteMetrics::default());
    Stage {
        provider: Kubernetes::new(api.client(), gateway, writer),
        api,
    }
}

impl Stage {
    /// A stage whose gateway cluster is as `desired`, and the watches have told so.
    fn converged(desired: &Desired) -> Self {
        let stage = stage();
        let wanted = stage.provider.gateway.objects(desired);
        for object in wanted.services {
            stage.tell(&stage.provider.services, object);
        }
        for object in wanted.slices {
            stage.tell(&stage.provider.slices, object);
        }
        if let Some(object) = wanted.ingress {
            stage.tell(&stage.provider.ingresses, object);
        }
        stage
    }

    #[expect(clippy::unused_self, reason = "reads as an act of the stage")]
    fn tell<K: Kind>(&self, kept: &Kept<K>, mut object: K) {
        object.meta_mut().resource_version = Some("7".to_owned());
        object.meta_mut().uid = Some("u".to_owned());
        kept.observe(Event::Apply(Guarded::Good(object)));
    }

    /// The names of the objects that `desired` asks for: a Service, the slices, the Ingress.
    fn names(&self, desired: &Desired) -> (String, Vec<String>) {
        let wanted = self.provider.gateway.objects(desired);
        let name = |meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
            meta.name.clone().unwrap()
        };
        let slices = wanted
            .slices
            .iter()
            .map(|slice| name(Managed::metadata(slice)));
        let slices = slices.collect();
        (name(Managed::metadata(&wanted.services[0])), slices)
    }
}

fn key() -> Key {
    Key::new("ns", "i")
}

/// Service `s`, with one endpoint in each of `clusters`.
fn desired(clusters: &[(&str, Admission)]) -> Desired {
    let backend = IngressBackend {
        resource: None,
        service: Some(IngressServiceBackend {
            name: "s".to_owned(),
            port: None,
        }),
    };
    let clusters = clusters
        .iter()
        .map(|&(cluster, admission)| ClusterEndpoints {
            cluster: cluster.to_owned(),
            admission,
            slices: vec![Arc::new(slice(cluster))],
        });
    Desired {
        key: key(),
        routes: IngressSpec {
            default_backend: Some(backend),
            ..IngressSpec::default()
        },
        backends: vec![Backend {
            service: "s".to_owned(),
            ports: Cached::Present(vec![ServicePort {
                port: 80,
                ..ServicePort::default()
            }]),
            clusters: clusters.collect(),
        }],
        unread_slices: BTreeSet::new(),
    }
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

fn slice(cluster: &str) -> EndpointSlice {
    let mut slice = EndpointSlice {
        address_type: "IPv4".to_owned(),
        endpoints: Some(vec![Endpoint {
            addresses: vec!["10.0.0.1".to_owned()],
            ..Endpoint::default()
        }]),
        ..EndpointSlice::default()
    };
    slice.metadata.name = Some(format!("{cluster}-x"));
    let annotation = ("work.karmada.io/namespace", execution_namespace(cluster));
    slice.metadata.annotations = Some([annotation].map(|(k, v)| (k.to_owned(), v)).into());
    slice
}
