use karmada_api::MultiClusterIngressStatus;
use objects::Key;
use serde_json::{Value, json};

use super::super::fixtures::{Fixture, blocked, bound, cluster, ingress, template};
use super::super::{BackendAddresses, Cached, Desired, Settings};
use super::*;

fn fixture(clusters: &[(&str, Value)]) -> Fixture {
    let fixture = Fixture::default()
        .with_template(template("s", &[("web", 80), ("more", 81)]))
        .with_binding("s", bound("s", clusters));
    let names = clusters.iter().map(|(name, _)| *name);
    let all = names.fold(fixture, |fixture, name| fixture.with_cluster(cluster(name)));
    Fixture {
        hosts: [(
            "lb.example.com".to_owned(),
            vec!["192.0.2.7".parse().unwrap()],
        )]
        .into(),
        ..all
    }
}

fn desired(fixture: &Fixture, addresses: BackendAddresses) -> Desired {
    let spec = ingress("i", &["s"], None).spec.ingress;
    let (key, status) = (Key::new("ns", "i"), MultiClusterIngressStatus::default());
    Desired::new(key, &spec, &status, addresses, fixture)
}

/// Returns `<cluster> <address>:<port>,…` for each endpoint.
fn endpoints(desired: &Desired) -> Vec<String> {
    let clusters = desired.backends[0].clusters.iter();
    let slices = clusters.flat_map(|c| c.slices.iter().map(|slice| (&c.cluster, slice)));
    let all = slices.flat_map(|(cluster, slice)| {
        let ports = slice.ports.iter().flatten().filter_map(|port| port.port);
        let ports: Vec<String> = ports.map(|port| port.to_string()).collect();
        let ports = ports.join(",");
        let endpoints = slice.endpoints.iter().flatten();
        let addresses = endpoints.flat_map(|endpoint| endpoint.addresses.clone());
        addresses.map(move |address| format!("{cluster} {address}:{ports}"))
    });
    all.collect()
}

fn unusable(desired: &Desired) -> Vec<String> {
    let all = desired.backends[0].unusable.iter();
    all.map(Unusable::to_string).collect()
}

/// A status takes addresses that a slice refuses, from any client: each of those is left out alone, with its reason.
#[test]
fn bad_entry_is_left_out_alone() {
    for (entry, expected) in [
        (json!({ "ip": "192.0.2.1" }), Ok("192.0.2.1:80,81")),
        (
            json!({ "ip": "192.0.2.1", "hostname": "lb.example.com" }),
            Ok("192.0.2.1:80,81"),
        ),
        (
            json!({ "hostname": "lb.example.com" }),
            Ok("192.0.2.7:80,81"),
        ),
        (
            json!({ "ip": null, "hostname": "LB.Example.com." }),
            Ok("192.0.2.7:80,81"),
        ),
        (json!({ "ip": "2001:DB8:0:0::A" }), Ok("2001:db8::a:80,81")),
        (
            json!({ "ip": "192.0.2.1", "newer": 7, "ports": "none" }),
            Ok("192.0.2.1:80,81"),
        ),
        (
            json!({ "ip": "192.0.2.1", "ports": [{ "port": 81, "error": "NoQuota" }, { "port": 80 }] }),
            Ok("192.0.2.1:80"),
        ),
        (
            json!({ "ip": "192.0.2.1", "ports": [{ "port": 81, "protocol": "UDP", "error": "NoQuota" }] }),
            Ok("192.0.2.1:80,81"),
        ),
        (
            json!({ "ip": "127.0.0.1" }),
            Err("127.0.0.1 of cluster m1 is a loopback address (127.0.0.1)"),
        ),
        (
            json!({ "ip": "192.0.2.300" }),
            Err("192.0.2.300 of cluster m1 is no IP address"),
        ),
        (
            json!({}),
            Err("an entry of cluster m1 has neither an address nor a host name"),
        ),
        (
            json!("text"),
            Err("an entry of cluster m1 has neither an address nor a host name"),
        ),
        (
            json!({ "hostname": "one" }),
            Err(
                "one of cluster m1 is a host name of one label, which means another host elsewhere",
            ),
        ),
        (
            json!({ "hostname": "a_b.example.com" }),
            Err("a_b.example.com of cluster m1 is no host name"),
        ),
    ] {
        let good = json!({ "ip": "198.51.100.1" });
        let fixture = fixture(&[("m1", json!([entry, good]))]);
        let desired = desired(&fixture, BackendAddresses::LoadBalancers);
        let mut found = endpoints(&desired);
        found.retain(|endpoint| endpoint != "m1 198.51.100.1:80,81");
        match expected {
            Ok(expected) => assert_eq!(found, [format!("m1 {expected}")], "{entry}"),
            Err(reason) => {
                assert_eq!(found, [""; 0], "{entry}");
                assert_eq!(unusable(&desired), [reason]);
            }
        }
        let whole = endpoints(&desired);
        assert!(
            whole.contains(&"m1 198.51.100.1:80,81".to_owned()),
            "{whole:?}"
        );
    }
}

fn refusing(ip: &str, protocol: &str) -> Value {
    json!({ "ip": ip, "ports": [{ "port": 80, "protocol": protocol, "error": "NoQuota" }] })
}

/// A port for UDP may have the number of one for TCP, as HTTP/3 has. A load balancer that refuses one keeps the other.
#[test]
fn protocols_share_a_number() {
    let mut service = template("s", &[("web", 80), ("quic", 80)]);
    let ports = service.spec.as_mut().unwrap().ports.as_mut().unwrap();
    ports[1].protocol = Some("UDP".to_owned());
    let entries = json!([refusing("192.0.2.1", "UDP"), refusing("192.0.2.2", "TCP")]);
    let fixture = fixture(&[("m1", entries)]).with_template(service);
    let found = desired(&fixture, BackendAddresses::LoadBalancers);
    assert_eq!(endpoints(&found), ["m1 192.0.2.1:80", "m1 192.0.2.2:80"]);
    let slices = found.backends[0].clusters[0].slices.iter();
    let names: Vec<_> = slices
        .filter_map(|slice| slice.metadata.name.as_deref())
        .collect();
    assert_eq!(names, ["status/s/IPv4/80", "status/s/IPv4/80/UDP"]);
    let expected = [
        "192.0.2.1 of cluster m1 does not serve port 80/UDP: NoQuota",
        "192.0.2.2 of cluster m1 does not serve port 80: NoQuota",
    ];
    assert_eq!(unusable(&found), expected);
}

/// A host name whose addresses are not known yet is asked for, one that has none is told, and one that is known may be of both
/// families.
#[test]
fn host_names_are_asked_for() {
    let unknown = json!([{ "hostname": "new.example.com" }, { "hostname": "lb.example.com" }]);
    let mut fixture = fixture(&[("m1", unknown)]);
    let found = desired(&fixture, BackendAddresses::LoadBalancers);
    assert_eq!(endpoints(&found), ["m1 192.0.2.7:80,81"]);
    let names = ["lb.example.com", "new.example.com"].map(str::to_owned);
    assert_eq!(found.names(), names.into());
    assert_eq!(found.backends[0].untold, ["m1".to_owned()].into());
    let mut know = |ips: &[&str]| {
        let known = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        fixture.hosts.insert("new.example.com".to_owned(), known);
        desired(&fixture, BackendAddresses::LoadBalancers)
    };
    let found = know(&[]);
    assert_eq!(endpoints(&found), ["m1 192.0.2.7:80,81"]);
    let told =
        "new.example.com of cluster m1 does not resolve to an address; it is looked up every 30 s";
    assert_eq!(unusable(&found), [told]);
    assert_eq!(found.backends[0].untold, [].into());
    let found = know(&["192.0.2.8", "2001:db8::8"]);
    let expected = [
        "m1 192.0.2.7:80,81",
        "m1 192.0.2.8:80,81",
        "m1 2001:db8::8:80,81",
    ];
    assert_eq!(endpoints(&found), expected);
}

/// A host name of which DNS has told nothing keeps the endpoints of its cluster, and a blocked one out. If there is
/// nothing of it, a blocked one serves on, as long as no other does.
#[test]
fn untold_name_keeps_endpoints() {
    let entries = [
        ("m1", json!([{ "ip": "192.0.2.1" }])),
        ("m2", json!([{ "hostname": "new.example.com" }])),
    ];
    let fixture = fixture(&entries).with_cluster(blocked("m1"));
    let settings = Settings {
        backend_addresses: BackendAddresses::LoadBalancers,
        ..Settings::new("example.com/ours".parse().unwrap())
    };
    for (held, serving, unread) in [
        (&["m1", "m2"][..], &["m2"][..], &["status/s"][..]),
        (&["m1"], &["m1", "m2"], &[]),
        (&[], &["m1", "m2"], &[]),
    ] {
        let held = held.iter().map(|&cluster| cluster.to_owned());
        let (key, ingress) = (Key::new("ns", "i"), ingress("i", &["s"], None));
        let found = crate::ingress::desired(&key, &ingress, &held.collect(), &fixture, &settings);
        let clusters = found.backends[0].clusters.iter();
        let served = clusters.filter(|cluster| cluster.admission.is_served());
        let served: Vec<&str> = served.map(|cluster| cluster.cluster.as_str()).collect();
        assert_eq!(served, serving);
        let kept: Vec<&str> = found.unread_slices.iter().map(String::as_str).collect();
        assert_eq!(kept, unread);
    }
}

/// A gateway that takes names gets those that are host names, without a look-up, in a slice of their own.
#[test]
fn gateway_takes_names() {
    let entries = json!([
        { "hostname": "LB.example.com." }, { "ip": "192.0.2.1" }, { "hostname": "one" },
        { "hostname": "other.example.com", "ports": [{ "port": 81, "error": "NoQuota" }] },
    ]);
    let fixture = Fixture {
        takes_names: true,
        ..fixture(&[("m1", entries)])
    };
    let found = desired(&fixture, BackendAddresses::LoadBalancers);
    assert_eq!(found.names(), [].into());
    let slices = found.backends[0].clusters[0].slices.iter();
    let types: Vec<&str> = slices.map(|slice| slice.address_type.as_str()).collect();
    assert_eq!(types, ["FQDN", "FQDN", "IPv4"]);
    let expected = [
        "m1 other.example.com:80",
        "m1 lb.example.com:80,81",
        "m1 192.0.2.1:80,81",
    ];
    assert_eq!(endpoints(&found), expected);
    assert_eq!(unusable(&found).len(), 2);
}

/// An ingress controller of a member serves every Service at its own port, in plain HTTP.
#[test]
fn ingress_controllers_serve_http() {
    let entries = json!([{ "ip": "192.0.2.1" }]);
    let mut fixture = fixture(&[("m1", json!([]))]);
    fixture.ingress_bindings = [("i".to_owned(), bound("i", &[("m1", entries)]))].into();
    let found = desired(&fixture, BackendAddresses::Ingresses);
    assert_eq!(endpoints(&found), ["m1 192.0.2.1:80,80"]);
    let Cached::Present(ports) = &found.backends[0].ports else {
        panic!("{found:?}");
    };
    assert!(
        ports
            .iter()
            .all(|port| port.app_protocol.as_deref() == Some("http"))
    );
}

/// Clusters are blocked as they are with endpoints, and one that has no address says so.
#[test]
fn blocks_are_the_same() {
    let [first, second] = ["192.0.2.1", "192.0.2.2"].map(|ip| json!([{ "ip": ip }]));
    let clusters = [("m1", first), ("m2", second)];
    let fixture = fixture(&clusters).with_cluster(blocked("m1"));
    let found = desired(&fixture, BackendAddresses::LoadBalancers);
    let served = found.backends[0].serving();
    assert_eq!(served.len(), 1);
    assert_eq!(served[0].name, "m2");
    let empty = self::fixture(&[("m1", json!([]))]);
    let problems = desired(&empty, BackendAddresses::LoadBalancers).problems();
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "Service s runs in m1, but no load balancer or ready node of it there has an address; give it the type LoadBalancer or NodePort"
        ]
    );
}

/// An unreadable object takes no address away.
#[test]
fn unread_binding_keeps_addresses() {
    let unread = Fixture {
        unread_bindings: ["s".to_owned()].into(),
        ..Fixture::default().with_template(template("s", &[("web", 80)]))
    };
    let found = desired(&unread, BackendAddresses::LoadBalancers);
    assert_eq!(found.unread_slices, ["status/s".to_owned()].into());
    let bare = Fixture {
        unread_templates: ["s".to_owned()].into(),
        ..fixture(&[("m1", json!([{ "ip": "192.0.2.1" }]))])
    };
    let bare = Fixture {
        templates: BTreeMap::new(),
        ..bare
    };
    let found = desired(&bare, BackendAddresses::LoadBalancers);
    assert_eq!(found.unread_slices, ["status/s".to_owned()].into());
}

/// Another condition of a member's copy is no news, and another address is.
#[test]
fn only_addresses_are_news() {
    let one = bound("s", &[("m1", json!([{ "ip": "192.0.2.1" }]))]);
    let mut same = one.clone();
    let item = &mut same
        .status
        .as_mut()
        .unwrap()
        .aggregated_status
        .as_mut()
        .unwrap()[0];
    item.health = Some("Healthy".to_owned());
    item.status.as_mut().unwrap()["conditions"] = json!([]);
    assert!(same_reports(&one, &same));
    let other = bound("s", &[("m1", json!([{ "ip": "192.0.2.2" }]))]);
    assert!(!same_reports(&one, &other));
    let status = same.status.as_mut().unwrap();
    let item = &mut status.aggregated_status.as_mut().unwrap()[0];
    item.status.as_mut().unwrap()["nodePorts"] = json!({ "web": 31_234 });
    assert!(!same_reports(&one, &same));
}

/// A slice has as many of a member's addresses as a gateway takes, and no more names are looked up than make sense.
#[test]
fn reports_are_bounded() {
    let addresses = (0..1200).map(|n| json!({ "ip": format!("10.0.{}.{}", n / 250, n % 250 + 1) }));
    let names = (0..105).map(|n| json!({ "hostname": format!("lb{n:03}.example.com") }));
    let entries: Vec<Value> = addresses.chain(names).collect();
    let fixture = fixture(&[("m1", json!(entries))]);
    let desired = desired(&fixture, BackendAddresses::LoadBalancers);
    assert_eq!(endpoints(&desired).len(), MOST_ADDRESSES);
    assert_eq!(desired.backends[0].names.len(), MOST_NAMES);
    let unusable = unusable(&desired);
    assert_eq!(unusable.len(), 5);
    assert!(unusable[0].ends_with("is one of more than 100 host names"));
}
