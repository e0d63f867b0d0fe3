use std::sync::Arc;

use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::discovery::v1::{EndpointConditions, EndpointSlice};

use super::super::{InvalidParameters, ServerParameters};
use super::*;
use crate::ingress::Cached;

/// Returns the servers that `fixture` wants for the Service `s`.
fn wanted(fixture: &Fixture) -> Vec<String> {
    let wanted = Wanted::new(&desired(fixture, &["s"]));
    let servers = wanted.backends.iter().flat_map(|(name, targets)| {
        targets.iter().map(move |(target, role)| {
            format!("{name} {} {} {role:?}", target.cluster, target.address)
        })
    });
    servers.collect()
}

fn change(fixture: &mut Fixture, edit: impl Fn(&mut EndpointSlice)) {
    for slice in &mut fixture.slices {
        edit(Arc::make_mut(slice));
    }
}

fn condition(cluster: &str, fixture: &mut Fixture, conditions: &EndpointConditions) {
    change(fixture, |slice| {
        if crate::endpoints::slice_cluster(slice) == Some(cluster) {
            for endpoint in slice.endpoints.iter_mut().flatten() {
                endpoint.conditions = Some(conditions.clone());
            }
        }
    });
}

/// Every ready address of an admitted cluster is a server, at the port of its slice.
#[test]
fn ready_addresses_are_servers() {
    assert_eq!(
        wanted(&fixture()),
        [
            "ns_i_s_80 m1 10.0.0.1:8080 Serves",
            "ns_i_s_80 m2 10.0.0.2:8080 Serves"
        ]
    );
}

fn conditions(
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
) -> EndpointConditions {
    EndpointConditions {
        ready,
        serving,
        terminating,
    }
}

/// An endpoint that ends keeps its connections, one that is not ready is no server, and the last that end still serve.
#[test]
fn conditions_decide() {
    let ends = conditions(Some(false), Some(true), Some(true));
    let mut fixture = fixture();
    condition("m1", &mut fixture, &ends);
    assert_eq!(
        wanted(&fixture),
        [
            "ns_i_s_80 m1 10.0.0.1:8080 Ends",
            "ns_i_s_80 m2 10.0.0.2:8080 Serves"
        ]
    );
    condition("m2", &mut fixture, &conditions(Some(false), None, None));
    assert_eq!(wanted(&fixture), ["ns_i_s_80 m1 10.0.0.1:8080 Serves"]);
}

/// Of two ports of one number that for TCP counts, whichever comes first: the other is HTTP/3's.
#[test]
fn tcp_port_counts() {
    let mut desired = desired(&fixture(), &["s"]);
    let Cached::Present(ports) = &mut desired.backends[0].ports else {
        panic!("no ports");
    };
    let udp = ServicePort {
        name: Some("http3".to_owned()),
        port: 80,
        protocol: Some("UDP".to_owned()),
        ..ServicePort::default()
    };
    ports.insert(0, udp);
    let wanted = Wanted::new(&desired);
    let servers: usize = wanted.backends.values().map(BTreeMap::len).sum();
    assert_eq!(servers, 2);
}

/// An address that two clusters share is one server.
#[test]
fn shared_address_is_once() {
    let mut fixture = fixture();
    change(&mut fixture, |slice| {
        for endpoint in slice.endpoints.iter_mut().flatten() {
            endpoint.addresses = vec!["10.9.9.9".to_owned()];
        }
    });
    assert_eq!(wanted(&fixture), ["ns_i_s_80 m1 10.9.9.9:8080 Serves"]);
    let not_ready = EndpointConditions {
        ready: Some(false),
        ..EndpointConditions::default()
    };
    condition("m1", &mut fixture, &not_ready);
    assert_eq!(wanted(&fixture), ["ns_i_s_80 m2 10.9.9.9:8080 Serves"]);
}

/// Host names, the unspecified address and ports that do not exist never reach HAProxy.
#[test]
fn bad_addresses_are_problems() {
    for (address, port, reason) in [
        ("lb.example.com", 80, "is no IP address"),
        (
            "0.0.0.0",
            80,
            "is the unspecified address, which is HAProxy's own machine",
        ),
        ("10.0.0.1", 70000, "has a port that does not exist"),
        ("10.0.0.1", 0, "has a port that does not exist"),
    ] {
        let mut fixture = fixture();
        change(&mut fixture, |slice| {
            for endpoint in slice.endpoints.iter_mut().flatten() {
                endpoint.addresses = vec![address.to_owned()];
            }
            for found in slice.ports.iter_mut().flatten() {
                found.port = Some(port);
            }
        });
        let wanted = Wanted::new(&desired(&fixture, &["s"]));
        assert_eq!(wanted.names().collect::<Vec<_>>(), ["ns_i_s_80"]);
        assert!(wanted.backends.values().all(BTreeMap::is_empty));
        let unusable = wanted.unusable["s"].first().unwrap().to_string();
        assert_eq!(unusable, format!("{address} of cluster m1 {reason}"));
    }
}

/// Parameters cannot be another command, and an agent's weights are not taken.
#[test]
fn parameters_are_no_command() {
    let parse = |text: &str| text.parse::<ServerParameters>();
    for text in [
        "check; show info",
        "check\nshow info",
        "check \\; x",
        "ssl <<",
    ] {
        assert_eq!(parse(text), Err(InvalidParameters::Command), "{text}");
    }
    assert_eq!(
        parse("agent-check agent-port 1"),
        Err(InvalidParameters::Agent)
    );
    let default = ServerParameters::default();
    assert_eq!(parse(&default.to_string()), Ok(default.clone()));
    assert!(default.checks() && !default.cut_requests());
    assert!(
        parse("on-marked-down shutdown-sessions")
            .unwrap()
            .cut_requests()
    );
}
