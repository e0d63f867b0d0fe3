mod plan;
mod targets;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use karmada_api::{DnsEndpoint, MultiClusterIngress};
use objects::Key;
use serde_json::{Value, json};

use super::*;
use crate::ingress::fixtures::{Fixture, blocked, bound, cluster, ingress, template};
use crate::ingress::{BackendAddresses, Desired, Settings, WhenAllBlocked, desired};

const HOST: &str = "example.com";

fn publisher() -> Publisher {
    let controller = "example.com/ours".parse().unwrap();
    let ttl = Duration::from_secs(30);
    Publisher::new(&controller, "dns".to_owned(), ttl, String::new())
}

/// Returns the facts of Services whose load balancers report these entries in each cluster.
fn fixture(services: &[(&str, &[(&str, Value)])]) -> Fixture {
    let mut fixture = Fixture::default();
    for (service, clusters) in services {
        for (name, _) in *clusters {
            fixture = fixture.with_cluster(cluster(name));
        }
        fixture = fixture
            .with_template(template(service, &[("web", 80)]))
            .with_binding(service, bound(service, clusters));
    }
    fixture
}

fn ips(all: &[&str]) -> Value {
    let all = all.iter().map(|ip| json!({ "ip": ip }));
    all.collect()
}

fn names(all: &[&str]) -> Value {
    let all = all.iter().map(|name| json!({ "hostname": name }));
    all.collect()
}

/// Returns the desired state of an ingress with one host for all of `services`.
fn wanted_of(fixture: &Fixture, services: &[&str]) -> Desired {
    desired_of(
        fixture,
        &ingress("i", services, None),
        WhenAllBlocked::FailOpen,
    )
}

fn desired_of(
    fixture: &Fixture,
    ingress: &MultiClusterIngress,
    when_all_blocked: WhenAllBlocked,
) -> Desired {
    let settings = Settings {
        backend_addresses: BackendAddresses::LoadBalancers,
        when_all_blocked,
        ..Settings::new("example.com/ours".parse().unwrap())
    };
    let name = ingress.metadata.name.clone().unwrap();
    let (key, nothing) = (Key::new("ns", name), BTreeSet::new());
    desired(&key, ingress, &nothing, fixture, &settings)
}

/// Returns the records, as `<type> <name> <targets>`.
fn records(endpoints: &[DnsEndpoint]) -> Vec<String> {
    let records = endpoints
        .iter()
        .flat_map(|endpoint| &endpoint.spec.endpoints);
    records
        .map(|record| {
            let targets = record.targets.join(",");
            format!("{} {} {targets}", record.record_type, record.dns_name)
        })
        .collect()
}

fn texts(problems: &BTreeSet<DnsProblem>) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn arcs(endpoints: &[DnsEndpoint]) -> Vec<Arc<DnsEndpoint>> {
    endpoints.iter().cloned().map(Arc::new).collect()
}

fn record(kind: &str, target: &str) -> Value {
    json!({ "dnsName": "example.com", "recordType": kind, "recordTTL": 2, "targets": [target],
        "setIdentifier": "eu", "providerSpecific": [{ "name": "aws/weight", "value": "10" }] })
}

/// The object has all that `ExternalDNS` needs, and the name of its ingress.
#[test]
fn object_is_complete() {
    let fixture = fixture(&[("s", &[("m1", ips(&["192.0.2.1", "2001:DB8::1"]))])]);
    let mut desired = wanted_of(&fixture, &["s"]);
    for (key, value) in [("aws-weight", "10"), ("ttl", "5"), ("hostname", "other")] {
        let key = format!("external-dns.alpha.kubernetes.io/{key}");
        desired.annotations.insert(key, value.to_owned());
    }
    let controller = "example.com/ours".parse().unwrap();
    let ttl = Duration::from_millis(1_500);
    let second = Publisher::new(&controller, "dns".to_owned(), ttl, "eu".to_owned());
    let wanted = second.wanted(&desired, &[]);
    let mut object = json!(wanted.endpoints[0]);
    let name = object["metadata"]["name"].take();
    assert!(name.as_str().unwrap().starts_with("example.com-"), "{name}");
    assert_ne!(Some(name), publisher_name(&fixture));
    let targets = object["metadata"]["annotations"]["karmada-rs.io/dns-targets"].take();
    assert!(
        targets.as_str().unwrap().contains("status/s/IPv4/80"),
        "{targets}"
    );
    let expected = json!({
        "apiVersion": "externaldns.k8s.io/v1alpha1",
        "kind": "DNSEndpoint",
        "metadata": {
            "name": null,
            "namespace": "dns",
            "labels": { "app.kubernetes.io/managed-by": "example.com_ours" },
            "annotations": { "karmada-rs.io/multi-cluster-ingress": "ns/i", "karmada-rs.io/dns-targets": null },
        },
        "spec": { "endpoints": [record("A", "192.0.2.1"), record("AAAA", "2001:db8::1")] },
    });
    assert_eq!(object, expected);
}

fn publisher_name(fixture: &Fixture) -> Option<Value> {
    let wanted = publisher().wanted(&wanted_of(fixture, &["s"]), &[]);
    wanted.endpoints[0].metadata.name.clone().map(Value::String)
}

/// Names are written as `ExternalDNS` compares them, and an invalid one is left out with a word about it.
#[test]
fn hosts_are_written_as_compared() {
    let fixture = fixture(&[("s", &[("m1", ips(&["192.0.2.1"]))])]);
    let mut many = ingress("i", &["s"], None);
    let rules = many.spec.ingress.rules.as_mut().unwrap();
    let rule = rules.remove(0);
    for host in [
        "Shop.Example.COM.",
        "*.example.com",
        "a..b",
        "localhost",
        "",
    ] {
        let mut rule = rule.clone();
        rule.host = Some(host.to_owned());
        rules.push(rule);
    }
    let wanted = publisher().wanted(&desired_of(&fixture, &many, WhenAllBlocked::FailOpen), &[]);
    assert_eq!(
        records(&wanted.endpoints),
        ["A *.example.com 192.0.2.1", "A shop.example.com 192.0.2.1"]
    );
    assert_eq!(
        texts(&wanted.problems),
        [
            "\"a..b\" is no DNS name and is not published",
            "\"localhost\" is no DNS name and is not published"
        ]
    );
    for endpoint in &wanted.endpoints {
        let name = endpoint.metadata.name.as_ref().unwrap();
        assert!(objects::qualified_name::is_subdomain(name), "{name}");
    }
    for rule in many.spec.ingress.rules.as_mut().unwrap() {
        rule.host = None;
    }
    let wanted = publisher().wanted(&desired_of(&fixture, &many, WhenAllBlocked::FailOpen), &[]);
    assert_eq!(wanted.problems, [DnsProblem::NoHost].into());
}

/// `ExternalDNS` says of every record that it is done: the answer of resolvers counts, once it may.
#[test]
fn resolving_acknowledges() {
    let ttl = Duration::from_secs(30);
    assert!(!is_due(Duration::from_secs(89), ttl) && is_due(Duration::from_secs(90), ttl));
    let all =
        |list: &[&str]| -> BTreeSet<IpAddr> { list.iter().map(|ip| ip.parse().unwrap()).collect() };
    for (published, found, is_alias, expected) in [
        (&["192.0.2.1"][..], &["192.0.2.1"][..], false, true),
        (&["192.0.2.1", "2001:db8::1"], &["2001:db8::1"], false, true),
        (&["192.0.2.1"], &["192.0.2.1", "192.0.2.9"], false, false),
        (&["192.0.2.1"], &["192.0.2.9"], false, false),
        (&["192.0.2.1"], &[], false, false),
        (&["192.0.2.1"], &["64:ff9b::192.0.2.1"], false, true),
        (&["192.0.2.1"], &["64:ff9b::192.0.2.9"], false, false),
        (
            &["192.0.2.1", "192.0.2.2"],
            &["192.0.2.2", "192.0.2.3"],
            true,
            true,
        ),
        (&["192.0.2.1"], &["192.0.2.9"], true, false),
    ] {
        let lookup = Lookup {
            published: all(published),
            found: all(found),
            is_alias,
        };
        assert_eq!(is_served(&lookup), expected, "{lookup:?}");
    }
}
