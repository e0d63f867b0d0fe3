//! The program's output for invalid flags.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn run(flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ingress-controller"));
    for (name, _) in std::env::vars() {
        if name.starts_with("KARMADA_") || name == "KUBECONFIG" {
            command.env_remove(name);
        }
    }
    command.args(flags).output().unwrap()
}

/// Asserts that the program exits with code 2 and prints only `line`, on standard error.
#[track_caller]
fn assert_rejected(flags: &[&str], line: &str) {
    let output = run(flags);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(printed, format!("{line}\n"));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
}

/// A gateway has no use without a provider that writes there.
#[test]
fn gateway_needs_its_provider() {
    assert_rejected(
        &["--gateway-kubeconfig=/k"],
        "error: --gateway-kubeconfig has no use with --provider none; add --provider kubernetes or gateway-api, or leave it out",
    );
    assert_rejected(
        &["--provider=haproxy", "--fqdn-slices"],
        "error: --fqdn-slices has no use with --provider haproxy; add --provider kubernetes or gateway-api, or leave it out",
    );
    assert_rejected(
        &["--provider=none", "--gateway-ingress-class=web"],
        "error: --gateway-ingress-class has no use with --provider none; add --provider kubernetes, or leave it out",
    );
    assert_rejected(
        &["--provider=gateway-api", "--copy-tls-secrets"],
        "error: --copy-tls-secrets has no use with --provider gateway-api; add --provider kubernetes, or leave it out",
    );
    assert_rejected(
        &["--provider=kubernetes", "--gateway=infra/web"],
        "error: --gateway has no use with --provider kubernetes; add --provider gateway-api, or leave it out",
    );
}

/// A provider needs its gateway.
#[test]
fn provider_needs_its_gateway() {
    assert_rejected(
        &["--provider=kubernetes"],
        "error: --provider kubernetes needs --gateway-kubeconfig: name the kubeconfig of the cluster that serves the traffic",
    );
    assert_rejected(
        &["--provider=gateway-api", "--gateway-kubeconfig=/k"],
        "error: --provider gateway-api needs --gateway NAMESPACE/NAME: name the Gateway to which routes are attached",
    );
    assert_rejected(
        &["--provider=gateway-api", "--gateway=web"],
        "error: invalid value 'web' for '--gateway <NAMESPACE/NAME>': must be the Gateway's namespace and name, such as infra/web",
    );
}

/// The dns provider needs a cluster, and addresses that those who ask DNS reach.
#[test]
fn dns_needs_reachable_addresses() {
    assert_rejected(
        &["--provider=dns", "--backend-addresses=ingresses"],
        "error: --provider dns needs --dns-kubeconfig: name the kubeconfig of the cluster in which ExternalDNS runs",
    );
    assert_rejected(
        &["--provider=dns", "--dns-kubeconfig=/k"],
        "error: --provider dns needs --backend-addresses load-balancers or ingresses: those who ask DNS do not reach pods",
    );
}

/// A hub knows the endpoints of its members, and none of their other addresses.
#[test]
fn hub_has_endpoints_only() {
    assert_rejected(
        &[
            "--cluster-kind=MemberCluster",
            "--backend-addresses=ingresses",
        ],
        "error: --cluster-kind MemberCluster needs --backend-addresses endpoints: a hub does not know the addresses of load balancers in members",
    );
}

/// A program on a hub has no right to Secrets there, so that none could be copied.
#[test]
fn hub_copies_no_secrets() {
    assert_rejected(
        &[
            "--cluster-kind=MemberCluster",
            "--provider=kubernetes",
            "--gateway-kubeconfig=/k",
            "--copy-tls-secrets",
        ],
        "error: --copy-tls-secrets has no use with --cluster-kind MemberCluster: none is copied from a hub; leave it out",
    );
}

/// The webhook provider needs a program, and no other provider has a use for one.
#[test]
fn webhook_needs_its_program() {
    assert_rejected(
        &["--provider=webhook"],
        "error: --provider webhook needs --provider-url: name the URL of the program that serves the traffic",
    );
    assert_rejected(
        &["--provider-url=https://lb.example.com"],
        "error: --provider-url has no use with --provider none; add --provider webhook, or leave it out",
    );
}

/// The haproxy provider needs the socket of an HAProxy, at which it is named in full.
#[test]
fn haproxy_needs_its_socket() {
    assert_rejected(
        &["--provider=haproxy"],
        "error: --provider haproxy needs --haproxy-socket: name the Runtime API of the HAProxy that serves the traffic, such as unix:/run/haproxy/admin.sock",
    );
    assert_rejected(
        &["--provider=haproxy", "--haproxy-socket=/run/haproxy.sock"],
        "error: invalid value '/run/haproxy.sock' for '--haproxy-socket <[NAME=]SOCKET>': must be unix: and an absolute path, or tcp: and a host and port, such as unix:/run/haproxy/admin.sock",
    );
    assert_rejected(
        &["--provider=kubernetes", "--haproxy-socket=unix:/a"],
        "error: --haproxy-socket has no use with --provider kubernetes; add --provider haproxy, or leave it out",
    );
}

/// An unknown provider is rejected with the possible ones.
#[test]
fn unknown_provider_is_rejected() {
    assert_rejected(
        &["--provider=nginx"],
        "error: invalid value 'nginx' for '--provider <PROVIDER>' [possible values: none, kubernetes, gateway-api, haproxy, dns, webhook]",
    );
}

/// A controller name without a domain is rejected.
#[test]
fn controller_name_needs_domain() {
    assert_rejected(
        &["--ingress-class-controller=ours"],
        "error: invalid value 'ours' for '--ingress-class-controller <NAME>': must be a qualified name such as example.com/ingress-controller: a DNS name, a slash, and at most 63 letters, digits, '-', '_' or '.'",
    );
}

/// A kubeconfig that cannot be read is named.
#[test]
fn unreadable_kubeconfig_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").display().to_string();
    let karmada = format!("--kubeconfig={missing}");
    let output = run(&[&karmada]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.starts_with("error: cannot read kubeconfig "),
        "{printed}"
    );
    assert!(
        printed.contains(&missing) && printed.lines().count() == 1,
        "{printed}"
    );
    assert_eq!(output.status.code(), Some(2));
}
