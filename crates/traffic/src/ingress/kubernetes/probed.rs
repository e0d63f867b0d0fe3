//! The addresses that agents on the gateway's nodes learn from our slices: those in each member cluster, blocked ones included.

use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use karmada_api::names::SERVICE_NAME;

use super::managed_by::ManagedBy;
use super::objects::{CLUSTER_LABEL, has_objects, slices};
use crate::ingress::node_ports::{LOCAL, TRAFFIC_POLICY_ANNOTATION};
use crate::ingress::{Admission, Desired};

/// The label by which kube-proxy passes over a slice. Without it, one of no Service is an error in its log.
const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";
/// The most addresses of one slice: no more are tried of a cluster.
const MOST: usize = 5;

/// Returns the endpoints of blocked clusters in slices of no Service: nothing is sent there, and agents on the gateway's nodes see when
/// they can be reached again.
pub fn blocked_slices(managed_by: &ManagedBy, desired: &Desired) -> Vec<EndpointSlice> {
    let mut blocked = Vec::new();
    for backend in desired.backends.iter().filter(|b| has_objects(b)) {
        let clusters = backend.clusters.iter();
        for cluster in clusters.filter(|cluster| cluster.admission == Admission::Blocked) {
            let slices = slices(managed_by, &desired.key, backend, cluster);
            blocked.extend(slices.map(unserved));
        }
    }
    blocked
}

/// Returns the slice as one of no Service, with another name: a proxy that is told of a change alone would serve on.
fn unserved(mut slice: EndpointSlice) -> EndpointSlice {
    let name = slice.metadata.name.take().unwrap_or_default();
    // The name ends with a hash, and is never longer than one of a Service.
    slice.metadata.name = Some(format!("{name}-blocked"));
    let labels = slice.metadata.labels.get_or_insert_default();
    labels.remove(SERVICE_NAME);
    labels.insert(HEADLESS_LABEL.to_owned(), String::new());
    slice
}

/// Returns the member cluster that the endpoints in one of our slices belong to, and addresses of those that are ready, at most
/// five. `None` for other slices, and for those that tell nothing about their cluster.
pub fn probed(slice: &EndpointSlice) -> Option<(&str, Vec<SocketAddr>)> {
    let labels = slice.metadata.labels.as_ref()?;
    let cluster = labels.get(CLUSTER_LABEL)?;
    let annotations = slice.metadata.annotations.as_ref();
    let policy = annotations.and_then(|all| all.get(TRAFFIC_POLICY_ANNOTATION));
    if policy.is_some_and(|policy| policy == LOCAL) {
        return None;
    }
    let mut ports = slice.ports.iter().flatten();
    // An absent protocol means TCP.
    let tcp = ports.find(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP")?;
    let port = u16::try_from(tcp.port?).ok().filter(|&port| port != 0)?;
    let ready = slice.endpoints.iter().flatten().filter(|it| is_ready(it));
    let addresses = ready.flat_map(|endpoint| &endpoint.addresses);
    let ips = addresses.filter_map(|address| address.parse().ok());
    let addresses = ips.map(|ip: IpAddr| SocketAddr::new(ip, port)).take(MOST);
    Some((cluster, addresses.collect()))
}

fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions
        .and_then(|conditions| conditions.ready)
        .unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn slice(change: impl FnOnce(&mut Value)) -> EndpointSlice {
        let mut slice = json!({
            "metadata": { "name": "shop-web-0123456789", "labels": {
                CLUSTER_LABEL: "m1", SERVICE_NAME: "shop-web-aa" } },
            "addressType": "IPv4",
            "endpoints": [
                { "addresses": ["10.0.0.1"], "conditions": { "ready": true } },
                { "addresses": ["10.0.0.2"], "conditions": { "ready": false } },
                { "addresses": ["10.0.0.3", "web.example.com"] },
            ],
            "ports": [{ "port": 53, "protocol": "UDP" }, { "port": 8080 }, { "port": 9090 }],
        });
        change(&mut slice);
        from_value(slice).unwrap()
    }

    /// Ready addresses are probed at the first TCP port, served or not.
    #[test]
    fn ready_addresses_are_probed() {
        let served = slice(|_| {});
        let addresses = ["10.0.0.1:8080", "10.0.0.3:8080"].map(|it| it.parse().unwrap());
        let expected = Some(("m1", addresses.to_vec()));
        assert_eq!(probed(&served), expected);
        let unserved = unserved(served);
        assert_eq!(probed(&unserved), expected);
        assert_eq!(
            unserved.metadata.name.as_deref(),
            Some("shop-web-0123456789-blocked")
        );
        let labels = unserved.metadata.labels.unwrap();
        assert!(!labels.contains_key(SERVICE_NAME) && labels.contains_key(HEADLESS_LABEL));
    }

    /// Slices of others, and those from which nothing follows, are passed over.
    #[test]
    fn other_slices_are_passed_over() {
        for (what, other) in [
            ("label", slice(|it| it["metadata"]["labels"] = json!({}))),
            ("port", slice(|it| it["ports"] = json!([]))),
            (
                "tcp",
                slice(|it| it["ports"] = json!([{ "port": 53, "protocol": "UDP" }])),
            ),
            (
                "number",
                slice(|it| it["ports"] = json!([{ "port": 70000 }])),
            ),
            ("zero", slice(|it| it["ports"] = json!([{ "port": 0 }]))),
            (
                "local",
                slice(|it| {
                    it["metadata"]["annotations"] = json!({ TRAFFIC_POLICY_ANNOTATION: "Local" });
                }),
            ),
        ] {
            assert_eq!(probed(&other), None, "{what}");
        }
        let empty = slice(|it| it["endpoints"] = json!(null));
        assert_eq!(probed(&empty), Some(("m1", vec![])));
    }
}
