//! The slices in which the nodes of a cluster are published: requests for a Service with node ports go to them.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::execution_namespace;
use karmada_api::names::{NODE_PUBLISHER, SLICE_MANAGED_BY};
use objects::metadata::has_marks;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::json;

/// The name of the writes in metrics.
const TARGET: &str = "node_slice";
/// The most nodes of a slice: as many as the endpoints of one by Kubernetes itself.
const MOST: usize = 100;

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddresses {
    /// Its name.
    pub name: String,
    /// Its addresses of the type that is published.
    pub addresses: Vec<IpAddr>,
    /// True if its condition `Ready` is True.
    pub is_ready: bool,
}

/// Returns the writes that publish all `nodes` of a cluster. `published` are those of the slices that exist.
pub(super) fn publish(
    cluster: &str,
    nodes: &[NodeAddresses],
    published: &[Arc<EndpointSlice>],
) -> Vec<Write> {
    let wanted = slices(cluster, nodes);
    let mut writes = Vec::new();
    for slice in &wanted {
        let name = &slice.metadata.name;
        match published.iter().find(|one| one.metadata.name == *name) {
            None => writes.push(Write::create(TARGET, slice, &())),
            Some(one) => writes.extend(change(one, slice)),
        }
    }
    let outdated = published.iter().filter(|one| {
        let mut wanted = wanted.iter();
        !wanted.any(|slice| slice.metadata.name == one.metadata.name)
    });
    let deletions = outdated.map(|one| {
        let write = Write::delete(TARGET, ObjectRef::of(&**one, &()));
        write.guarded(Guard::Version)
    });
    writes.extend(deletions);
    writes
}

/// Returns the write that makes `wanted` of a slice, if something that is ours differs.
fn change(published: &EndpointSlice, wanted: &EndpointSlice) -> Option<Write> {
    let is_same =
        has_marks(&published.metadata, &wanted.metadata) && published.endpoints == wanted.endpoints;
    (!is_same).then(|| {
        let metadata = json!({ "labels": wanted.metadata.labels });
        let body = json!({ "metadata": metadata, "endpoints": wanted.endpoints });
        Write::merge(TARGET, ObjectRef::of(published, &()), body).guarded(Guard::Version)
    })
}

/// Returns the slices of the nodes, by family. They belong to no Service.
fn slices(cluster: &str, nodes: &[NodeAddresses]) -> Vec<EndpointSlice> {
    let mut nodes: Vec<&NodeAddresses> = nodes.iter().collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    let mut slices = Vec::new();
    for family in FAMILIES {
        let of_family = nodes.iter().filter_map(|node| {
            // The first is the one by which Kubernetes knows the node.
            let mut addresses = node.addresses.iter().copied();
            let address = addresses.find(|it| it.is_ipv6() == (family == IPV6))?;
            Some(endpoint(node, address))
        });
        let endpoints: Vec<Endpoint> = of_family.collect();
        let chunks = endpoints.chunks(MOST).enumerate();
        slices.extend(chunks.map(|(number, endpoints)| slice(cluster, family, number, endpoints)));
    }
    slices
}

const IPV6: &str = "IPv6";
/// The families of addresses, by the names that slices have for them.
const FAMILIES: [&str; 2] = ["IPv4", IPV6];

fn slice(cluster: &str, family: &str, number: usize, endpoints: &[Endpoint]) -> EndpointSlice {
    let name = format!("karmada-rs-nodes-{}-{number}", family.to_lowercase());
    let label = (SLICE_MANAGED_BY.to_owned(), NODE_PUBLISHER.to_owned());
    EndpointSlice {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(execution_namespace(cluster)),
            labels: Some([label].into()),
            ..ObjectMeta::default()
        },
        address_type: family.to_owned(),
        endpoints: Some(endpoints.to_vec()),
        ports: None,
    }
}

fn endpoint(node: &NodeAddresses, address: IpAddr) -> Endpoint {
    Endpoint {
        addresses: vec![address.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(node.is_ready),
            ..EndpointConditions::default()
        }),
        node_name: Some(node.name.clone()),
        ..Endpoint::default()
    }
}

#[cfg(test)]
mod tests {
    use objects::write::Action;
    use serde_json::{Value, from_value};

    use super::*;

    fn node(name: &str, addresses: &[&str], is_ready: bool) -> NodeAddresses {
        let addresses = addresses.iter().map(|address| address.parse().unwrap());
        NodeAddresses {
            name: name.to_owned(),
            addresses: addresses.collect(),
            is_ready,
        }
    }

    /// Returns the published slices of these nodes, as an API server has stored them.
    fn stored(nodes: &[NodeAddresses]) -> Vec<Arc<EndpointSlice>> {
        let writes = publish("m1", nodes, &[]).into_iter();
        let created = writes.map(|write| {
            let mut slice: EndpointSlice = from_value(write.body().clone()).unwrap();
            slice.metadata.resource_version = Some("7".to_owned());
            Arc::new(slice)
        });
        created.collect()
    }

    fn names(slices: &[Arc<EndpointSlice>]) -> Vec<&str> {
        let names = slices.iter().map(|slice| slice.metadata.name.as_deref());
        names.map(Option::unwrap_or_default).collect()
    }

    /// A node is an endpoint of each family that it has, with its name and its readiness, in a slice of no Service.
    #[test]
    fn nodes_are_endpoints() {
        let nodes = [
            node("n2", &["10.0.0.2"], false),
            node("n1", &["10.0.0.1", "10.9.0.1", "2001:db8::1"], true),
            node("n3", &[], true),
        ];
        let slices = stored(&nodes);
        let expected = ["karmada-rs-nodes-ipv4-0", "karmada-rs-nodes-ipv6-0"];
        assert_eq!(names(&slices), expected);
        let slice = json!(*slices[0]);
        let label =
            json!({ "endpointslice.kubernetes.io/managed-by": "cluster-controller.karmada-rs.io" });
        assert_eq!(slice["metadata"]["namespace"], "karmada-es-m1");
        assert_eq!(slice["metadata"]["labels"], label);
        let endpoint = |address: &str, node: &str, is_ready: bool| json!({ "addresses": [address], "conditions": { "ready": is_ready }, "nodeName": node });
        let endpoints = [
            endpoint("10.0.0.1", "n1", true),
            endpoint("10.0.0.2", "n2", false),
        ];
        assert_eq!(slice["endpoints"], json!(endpoints));
        let endpoints = [endpoint("2001:db8::1", "n1", true)];
        assert_eq!(json!(*slices[1])["endpoints"], json!(endpoints));
    }

    /// A published slice is not written again; one that changes is changed in the version that was read, and one that no
    /// node is left of is deleted.
    #[test]
    fn only_changes_are_written() {
        let before = [node("n1", &["10.0.0.1", "2001:db8::1"], true)];
        let published = stored(&before);
        assert_eq!(publish("m1", &before, &published), []);
        let after = [node("n1", &["10.0.0.1"], false)];
        let writes = publish("m1", &after, &published);
        let [change, deletion] = &*writes else {
            panic!("{writes:?}");
        };
        let patch = change.guarded_body();
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(
            patch["endpoints"][0]["conditions"]["ready"],
            Value::Bool(false)
        );
        assert_eq!(deletion.action, Action::Delete);
        assert_eq!(deletion.object.key.name, "karmada-rs-nodes-ipv6-0");
    }

    /// A slice has no more nodes than a slice of Kubernetes has endpoints.
    #[test]
    fn many_nodes_are_split() {
        let nodes = (0..250).map(|n| node(&format!("n{n:03}"), &[&format!("10.0.0.{n}")], true));
        let nodes: Vec<NodeAddresses> = nodes.collect();
        let slices = stored(&nodes);
        let sizes = slices
            .iter()
            .map(|slice| slice.endpoints.as_ref().map(Vec::len));
        assert_eq!(sizes.flatten().collect::<Vec<_>>(), [100, 100, 50]);
        assert_eq!(names(&slices)[2], "karmada-rs-nodes-ipv4-2");
    }
}
