//! Tests of the provider on the embedded API.

mod keeps_contract;
mod records;

use std::net::Ipv4Addr;

use futures::FutureExt;
use karmada_runtime::client::Addresses;
use kube::api::ListParams;
use lab_parts::test_api::TestApi;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::writer;
use crate::provider::contract;

const NAMESPACE: &str = "dns";
const ENDPOINTS: &str = "/apis/externaldns.k8s.io/v1alpha1/namespaces/dns/dnsendpoints";

/// Returns the kind of ExternalDNS, without its schema.
fn kind() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "dnsendpoints.externaldns.k8s.io" },
        "spec": {
            "group": "externaldns.k8s.io",
            "scope": "Namespaced",
            "names": { "kind": "DNSEndpoint", "plural": "dnsendpoints", "singular": "dnsendpoint" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

/// Returns the API of the cluster in which ExternalDNS runs.
async fn api() -> TestApi {
    let api = TestApi::with_kinds([kind()]);
    api.create_namespace(NAMESPACE).await;
    api
}

fn publisher() -> Publisher {
    let controller = "example.com/ours".parse().unwrap();
    let ttl = Duration::from_secs(30);
    Publisher::new(&controller, NAMESPACE.to_owned(), ttl, String::new())
}

/// Creates a provider with hosts that resolve as in `zone`. It has seen nothing yet.
fn provider(api: &TestApi, zone: &Zone) -> Dns {
    let records = Arc::clone(zone);
    let addresses = Addresses::by(move |name| {
        let answer = records.lock()(&name);
        async move { answer }.boxed()
    });
    let answers = Answers::new(addresses, publisher().ttl(), Gauge::default());
    Dns::new(api.client(), &writer(), publisher(), answers)
}

type Answer = std::io::Result<Vec<std::net::IpAddr>>;
/// The answers of DNS by name.
type Zone = Arc<Mutex<Box<dyn Fn(&str) -> Answer + Send>>>;

fn zone(answer: impl Fn(&str) -> Answer + Send + 'static) -> Zone {
    Arc::new(Mutex::new(Box::new(answer)))
}

fn nowhere() -> Zone {
    zone(|_| Err(std::io::ErrorKind::NotFound.into()))
}

/// Shows a provider a complete list, as a watch that begins does.
async fn list(api: &TestApi, provider: &Dns) -> Vec<Key> {
    let ours = ListParams::default().labels(&provider.publisher.managed_by().selector());
    let found = Api::<DnsEndpoint>::namespaced(api.user(), NAMESPACE);
    let found = found.list(&ours).await.unwrap();
    provider.observe(Event::Init);
    for object in found {
        provider.observe(Event::InitApply(Decoded::Valid(object)));
    }
    provider.observe(Event::InitDone)
}
