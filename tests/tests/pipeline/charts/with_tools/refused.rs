//! Values that are wrong.

use super::super::rendering::{chart, helm};

/// The chart, the values, and their refusal.
const WRONG: [(&str, &str, &str); 22] = [
    (
        "karmada-rs",
        "enabled=false",
        "- at '/enabled': value must be true",
    ),
    (
        "karmada-rs",
        "scheduler.replica=3",
        "- at '/scheduler': additional properties 'replica' not allowed",
    ),
    (
        "karmada-rs",
        "scheduler.replicas=-1",
        "- at '/scheduler/replicas': minimum: got -1, want 0",
    ),
    (
        "karmada-rs",
        "scheduler.enabled=on",
        "- at '/scheduler/enabled': got string, want boolean",
    ),
    (
        "karmada-rs",
        "loadBalancer=nginx",
        "- at '/loadBalancer': value must be one of 'kubernetes', 'gateway-api', 'haproxy', 'dns', 'webhook', 'none'",
    ),
    (
        "karmada-rs",
        "registry=registry.example.com/",
        "- at '/registry': 'registry.example.com/' does not match pattern",
    ),
    (
        "karmada-rs",
        "scheduler.flags={observe-only}",
        "- at '/scheduler/flags/0': 'observe-only' does not match pattern",
    ),
    (
        "karmada-rs",
        "scheduler.digest=0123abcd",
        "- at '/scheduler/digest': '0123abcd' does not match pattern",
    ),
    (
        "karmada-rs",
        "scheduler.resources.limit.memory=1Gi",
        "- at '/scheduler/resources': additional properties 'limit' not allowed",
    ),
    (
        "karmada-rs",
        "scheduler.tolerations[0].operator=Is",
        "- at '/scheduler/tolerations/0/operator': value must be one of 'Exists', 'Equal'",
    ),
    (
        "karmada-rs-agent",
        "pull.enabled=true",
        "clusterName: the programs of mode Pull cannot know it by a token; give it",
    ),
    (
        "karmada-rs-agent",
        "renew.enabled=true",
        "renew: the token of the agent on every node is renewed from outside; set this where placement or pull is enabled",
    ),
    (
        "karmada-rs-agent",
        "agent.enabled=false",
        "- at '': additional properties 'agent' not allowed",
    ),
    (
        "karmada-rs-agent",
        "pullSecrets=one",
        "- at '/pullSecrets': got string, want array",
    ),
    (
        "karmada-rs-rights",
        "place=host",
        "- at '/place': value must be one of 'karmada', 'fleet', 'gateway', 'dns', 'hub'",
    ),
    (
        "karmada-rs-rights",
        "place=gateway,agents={member1}",
        "agents: none reports to a gateway cluster; give them where place is karmada, fleet or hub",
    ),
    (
        "karmada-rs-rights",
        "place=karmada,placement={member1}",
        "placement: nothing is placed from here; give them where place is hub",
    ),
    (
        "karmada-rs",
        "loadBalancer=gateway-api,copyTlsSecrets=true",
        "copyTlsSecrets: only an ingress controller of a gateway cluster needs copies; set this where loadBalancer is kubernetes",
    ),
    (
        "karmada-rs-rights",
        "place=hub,copyTlsSecrets=true",
        "copyTlsSecrets: none is copied from a hub; give it where place is karmada, fleet or gateway",
    ),
    (
        "karmada-rs-rights",
        "place=karmada,gatewayApi=true",
        "gatewayApi: no Gateway is here; give it where place is gateway",
    ),
    (
        "karmada-rs-rights",
        "place=hub,propagation.enabled=true",
        "propagation.enabled: nothing is propagated here; give it where place is karmada or fleet",
    ),
    (
        "karmada-rs-rights",
        "place=karmada,propagation.rebalance=true",
        "propagation.rebalance: a Karmada does that itself; give it where place is fleet",
    ),
];

/// Each is told in one line, with its place and a good value.
#[test]
fn wrong_values_are_named() {
    for (name, values, expected) in WRONG {
        let output = helm(&["template", "--set", values], &chart(name)).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name} {values}");
        let lines: Vec<_> = errors
            .lines()
            .filter(|line| line.starts_with("- at ") || line.starts_with("Error: execution "))
            .collect();
        assert!(
            matches!(lines[..], [line] if line.contains(expected)),
            "{name} {values}: {errors}"
        );
    }
}
