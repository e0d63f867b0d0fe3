//! The program's output for invalid flags, its own and those that every controller has.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use lab_parts::flags;
use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;
use serde_json::Value;

#[track_caller]
fn rejected(flags: &[&str]) -> String {
    rejected_in(&[], flags)
}

/// Like [`rejected`], with these variables in the environment.
#[track_caller]
fn rejected_in(environment: &[(&str, &str)], flags: &[&str]) -> String {
    flags::rejected(env!("CARGO_BIN_EXE_remedy-controller"), environment, flags)
}

/// A kubeconfig with one context, `here`.
fn kubeconfig(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("kubeconfig");
    kubeconfig::write(&path, &[&Access::open("here", CLOSED)]).unwrap();
    format!("--kubeconfig={}", path.display())
}

#[test]
fn a_missing_kubeconfig_is_named() {
    let line = rejected(&["--kubeconfig=/no/such/file"]);
    assert!(
        line.starts_with("error: cannot read kubeconfig /no/such/file: "),
        "{line}"
    );
}

#[test]
fn a_missing_context_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let line = rejected(&[&kubeconfig(&folder), "--context=elsewhere"]);
    assert!(line.contains("elsewhere"), "{line}");
}

/// Without any kubeconfig the error names the flag.
#[test]
fn missing_kubeconfig_names_flag() {
    assert!(rejected(&[]).starts_with("error: no kubeconfig: name one with --kubeconfig"));
}

/// An address in use is named.
#[test]
fn used_address_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let flag = format!("--listen-address={address}");
    let line = rejected(&[&kubeconfig(&folder), &flag]);
    assert!(
        line.starts_with(&format!("error: cannot listen on {address}: ")),
        "{line}"
    );
}

/// A proxy of the environment that is none by HTTP is refused, unless the server is exempt.
#[test]
fn environment_proxy_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    // Nothing is sent there: the program ends first, or on the address in use.
    let far = Access::open("far", ([192, 0, 2, 1], 443).into());
    kubeconfig::write(&path, &[&far]).unwrap();
    let kubeconfig = format!("--kubeconfig={}", path.display());
    let proxy = ("HTTP_PROXY", "socks5://proxy:1080");
    assert_eq!(
        rejected_in(&[proxy], &[&kubeconfig]),
        "error: cannot use the proxy of HTTP_PROXY: write http://[USER:PASSWORD@]HOST[:PORT]\n"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let flag = format!("--listen-address={}", taken.local_addr().unwrap());
    for exempt in [("NO_PROXY", "192.0.2.0/24"), ("HTTPS_PROXY", "http://p")] {
        let environment = [proxy, exempt];
        let environment = &environment[usize::from(exempt.0 == "HTTPS_PROXY")..];
        let line = rejected_in(environment, &[&kubeconfig, &flag]);
        assert!(line.starts_with("error: cannot listen on "), "{line}");
    }
}

/// A proxy in the kubeconfig that is none by HTTP is refused.
#[test]
fn kubeconfig_proxy_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let flag = kubeconfig(&folder);
    let path = folder.path().join("kubeconfig");
    let mut text: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    text["clusters"][0]["cluster"]["proxy-url"] = "https://user:secret@proxy:3128".into();
    fs::write(&path, text.to_string()).unwrap();
    assert_eq!(
        rejected(&[&flag]),
        "error: cannot use the proxy of the kubeconfig's proxy-url: write http://[USER:PASSWORD@]HOST[:PORT]\n"
    );
}

/// A bound that is neither a number nor a percentage is refused.
#[test]
fn bad_bound_is_refused() {
    for bad in ["half", "101%", "-1"] {
        let line = rejected(&[&format!("--max-blocked-clusters={bad}")]);
        assert!(line.contains("a percentage from 0% to 100%"), "{line}");
    }
}
