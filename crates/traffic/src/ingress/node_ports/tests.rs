use karmada_api::MultiClusterIngressStatus;
use serde_json::{Value, from_value, json};

use super::super::fixtures::{Fixture, bound, cluster, ingress, slice as collected};
use super::super::{BackendAddresses, Desired, Problem};
use super::*;

/// Returns the published nodes of a cluster, each with its address and whether it is ready.
fn published(nodes: &[(&str, &str, bool)]) -> Vec<Arc<EndpointSlice>> {
    let endpoints = nodes.iter().map(|(name, address, is_ready)| {
        json!({ "addresses": [address], "conditions": { "ready": is_ready }, "nodeName": name })
    });
    let endpoints: Vec<Value> = endpoints.collect();
    let slice =
        json!({ "metadata": { "name": "nodes" }, "addressType": "IPv4", "endpoints": endpoints });
    vec![Arc::new(from_value(slice).unwrap())]
}

/// Service `s` with a node port in two clusters, each of which has two ready nodes.
fn fixture(policy: &str) -> Fixture {
    let template = json!({
        "metadata": { "name": "s", "namespace": "ns" },
        "spec": { "type": "NodePort", "externalTrafficPolicy": policy,
            "ports": [{ "name": "web", "port": 80, "nodePort": 30080 }] },
    });
    let nodes = ["1", "2"].map(|member| {
        let addresses = ["1", "2", "3"].map(|node| format!("10.{member}.0.{node}"));
        let nodes = [
            ("node-1", &*addresses[0], true),
            ("node-2", &*addresses[1], true),
            ("node-3", &*addresses[2], false),
        ];
        (format!("m{member}"), published(&nodes))
    });
    let fixture = Fixture::default()
        .with_cluster(cluster("m1"))
        .with_cluster(cluster("m2"))
        .with_binding("s", bound("s", &[("m1", json!([])), ("m2", json!([]))]))
        .with_template(from_value(template).unwrap());
    Fixture {
        nodes: nodes.into(),
        ..fixture
    }
}

fn desired(fixture: &Fixture) -> Desired {
    let spec = ingress("i", &["s"], None).spec.ingress;
    let (key, status) = (Key::new("ns", "i"), MultiClusterIngressStatus::default());
    let addresses = BackendAddresses::LoadBalancers;
    Desired::new(key, &spec, &status, addresses, fixture)
}

/// Returns `<address>:<port>` for each endpoint.
fn endpoints(desired: &Desired) -> Vec<String> {
    let clusters = desired.backends[0].clusters.iter();
    let all = clusters.flat_map(|cluster| &cluster.slices);
    let all = all.flat_map(|slice| {
        let port = slice.ports.iter().flatten().find_map(|port| port.port);
        let endpoints = slice.endpoints.iter().flatten();
        let addresses = endpoints.flat_map(|endpoint| endpoint.addresses.clone());
        addresses.map(move |address| format!("{address}:{}", port.unwrap_or_default()))
    });
    all.collect()
}

fn problems(desired: &Desired) -> Vec<String> {
    desired.problems().iter().map(Problem::to_string).collect()
}

fn everywhere(second: u16) -> [String; 4] {
    [
        "10.1.0.1:30080".to_owned(),
        "10.1.0.2:30080".to_owned(),
        format!("10.2.0.1:{second}"),
        format!("10.2.0.2:{second}"),
    ]
}

/// Case T7: a Service of type `NodePort` is served at the ready nodes of each member, at the template's node port, or at the one
/// that a member has allocated itself.
#[test]
fn ready_nodes_serve() {
    let mut fixture = fixture("Cluster");
    assert_eq!(endpoints(&desired(&fixture)), everywhere(30_080));
    assert_eq!(problems(&desired(&fixture)), [""; 0]);
    let mut report = |own: Value| {
        let binding = fixture.bindings.get_mut("s").unwrap();
        let status = binding.status.as_mut().unwrap();
        let items = status.aggregated_status.as_mut().unwrap();
        items[1].status = Some(json!({ "nodePorts": own }));
        endpoints(&desired(&fixture))
    };
    assert_eq!(report(json!({ "web": 31_234 })), everywhere(31_234));
    for odd in [
        json!(null),
        json!([31_234]),
        json!({ "web": 0, "x": 1 }),
        json!({ "web": "31234" }),
        json!({ "web": 70_000 }),
    ] {
        assert_eq!(report(odd.clone()), everywhere(30_080), "{odd}");
    }
}

/// A Service of one family is not served at the other addresses of its nodes, and at any where they have none of its own.
#[test]
fn other_family_is_left_out() {
    let mut fixture = fixture("Cluster");
    let mut other = EndpointSlice::clone(&published(&[("node-1", "2001:db8::1", true)])[0]);
    other.address_type = "IPv6".to_owned();
    let nodes = fixture.nodes.get_mut("m1").unwrap();
    nodes.push(Arc::new(other));
    let (ipv4, ipv6) = (["10.1.0.1:30080", "10.1.0.2:30080"], ["2001:db8::1:30080"]);
    let both = [&ipv4[..], &ipv6[..]].concat();
    let elsewhere = ["10.2.0.1:30080", "10.2.0.2:30080"];
    for (families, policy, expected) in [
        (None, None, &both[..]),
        (Some(vec!["IPv4"]), None, &ipv4),
        (Some(vec!["IPv4"]), Some("SingleStack"), &ipv4),
        (Some(vec!["IPv6"]), Some("SingleStack"), &ipv6),
        (Some(vec!["IPv4"]), Some("PreferDualStack"), &both),
        (Some(vec!["IPv4", "IPv6"]), Some("RequireDualStack"), &both),
    ] {
        let spec = fixture.templates.get_mut("s").unwrap().spec.as_mut();
        let spec = spec.unwrap();
        spec.ip_families = families.map(|all| all.into_iter().map(str::to_owned).collect());
        spec.ip_family_policy = policy.map(str::to_owned);
        let found = endpoints(&desired(&fixture));
        assert_eq!(found, [expected, &elsewhere[..]].concat(), "{policy:?}");
    }
}

/// Where a member has given the Service a load balancer, that one serves.
#[test]
fn load_balancer_comes_first() {
    let entries = json!([{ "ip": "192.0.2.1" }]);
    let binding = bound("s", &[("m1", entries), ("m2", json!([]))]);
    let fixture = fixture("Cluster").with_binding("s", binding);
    let expected = ["192.0.2.1:80", "10.2.0.1:30080", "10.2.0.2:30080"];
    assert_eq!(endpoints(&desired(&fixture)), expected);
}

/// The reasons that keep nodes out are told, for all clusters at once.
#[test]
fn obstacles_are_told() {
    let mut unpublished = fixture("Cluster");
    unpublished.nodes.remove("m2");
    let found = desired(&unpublished);
    assert_eq!(endpoints(&found), ["10.1.0.1:30080", "10.1.0.2:30080"]);
    let expected = "Service s gets no request at nodes of m2: their nodes are not published; give the Service the type LoadBalancer, or in a fleet without Karmada run the cluster-controller with --publish-node-addresses";
    assert_eq!(problems(&found), [expected]);
    let mut unallocated = fixture("Cluster");
    let spec = unallocated.templates.get_mut("s").unwrap().spec.as_mut();
    spec.unwrap().ports.as_mut().unwrap()[0].node_port = None;
    let expected = "Service s gets no request at nodes of m1, m2: port 80 has no node port; set nodePort in the Service, or let its API allocate one";
    assert_eq!(problems(&desired(&unallocated)), [expected]);
}

/// Slices of nodes that cannot be read take no address away.
#[test]
fn unread_nodes_keep_addresses() {
    let mut unread = fixture("Cluster");
    unread.nodes.remove("m2");
    unread.unread_nodes = ["m2".to_owned()].into();
    assert_eq!(
        desired(&unread).unread_slices,
        ["status/s".to_owned()].into()
    );
    let mut uncollected = fixture("Local");
    uncollected.unread_slices = ["x".to_owned()].into();
    let expected = ["status/s", "x"].map(str::to_owned);
    assert_eq!(desired(&uncollected).unread_slices, expected.into());
}

/// Case T8: with `externalTrafficPolicy: Local` a node serves that has a ready endpoint of the Service, and agents learn nothing from
/// its port; where nobody tells which these are, none of them serves, and an obstacle says so.
#[test]
fn local_policy_takes_nodes_with_endpoints() {
    let ready = collected("s", "m1", "x", &["10.244.0.1"]);
    let mut ending = collected("s", "m1", "y", &["10.244.0.2"]);
    let endpoint = &mut ending.endpoints.as_mut().unwrap()[0];
    endpoint.node_name = Some("node-2".to_owned());
    endpoint.conditions.as_mut().unwrap().ready = Some(false);
    let known = fixture("Local").with_slices(&[ready, ending.clone()]);
    let found = desired(&known);
    assert_eq!(endpoints(&found), ["10.1.0.1:30080"]);
    let slice = &found.backends[0].clusters[0].slices[0];
    let annotations = slice.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations[TRAFFIC_POLICY_ANNOTATION], "Local");
    let [at_one, at_both] = ["m2", "m1, m2"].map(|clusters| {
        format!(
            "Service s gets no request at nodes of {clusters}: with externalTrafficPolicy Local only nodes with a ready pod serve, and it is not known which these are; export the Service, and collect endpoints with the names of their nodes"
        )
    });
    assert_eq!(problems(&found), [at_one]);

    let mut nameless = collected("s", "m1", "x", &["10.244.0.1"]);
    nameless.endpoints.as_mut().unwrap()[0].node_name = None;
    let unknown = fixture("Local").with_slices(&[nameless, ending]);
    let found = desired(&unknown);
    assert_eq!(endpoints(&found), [""; 0]);
    assert_eq!(problems(&found), [at_both]);
    let found = desired(&fixture("Cluster"));
    let slice = &found.backends[0].clusters[0].slices[0];
    let annotations = slice.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations[TRAFFIC_POLICY_ANNOTATION], "Cluster");
}

/// Case T9: one address at which a port of the Service is served at two ports, as where two members have the same addresses, is told:
/// Traefik serves the first only.
#[test]
fn shared_address_is_told() {
    let mut fixture = fixture("Cluster");
    let nodes = fixture.nodes["m1"].clone();
    fixture.nodes.insert("m2".to_owned(), nodes);
    assert_eq!(problems(&desired(&fixture)), [""; 0], "at the same port");
    let binding = fixture.bindings.get_mut("s").unwrap();
    let status = binding.status.as_mut().unwrap();
    status.aggregated_status.as_mut().unwrap()[1].status =
        Some(json!({ "nodePorts": { "web": 31_234 } }));
    let told = ["10.1.0.1", "10.1.0.2"].map(|address| {
        format!(
            "Service s has one address with several ports, of which a gateway may serve the first only: {address} with 30080 and 31234; give each member addresses of its own"
        )
    });
    assert_eq!(problems(&desired(&fixture)), told);
}
