//! The program's output for invalid flags.

use lab_parts::flags;
use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;

#[track_caller]
fn rejected(flags: &[&str]) -> String {
    flags::rejected(env!("CARGO_BIN_EXE_cluster-controller"), &[], flags)
}

/// A kubeconfig that is missing or not named is asked for.
#[test]
fn missing_kubeconfig_is_named() {
    let line = rejected(&["--kubeconfig=/no/such/file"]);
    assert!(
        line.starts_with("error: cannot read kubeconfig /no/such/file: "),
        "{line}"
    );
    assert!(rejected(&[]).starts_with("error: no kubeconfig: name one with --kubeconfig"));
}

/// An address in use is named.
#[test]
fn used_address_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    kubeconfig::write(&path, &[&Access::open("here", CLOSED)]).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let line = rejected(&[
        &format!("--kubeconfig={}", path.display()),
        &format!("--listen-address={address}"),
    ]);
    assert!(
        line.starts_with(&format!("error: cannot listen on {address}: ")),
        "{line}"
    );
}

/// A taint that is none is refused with its form.
#[test]
fn bad_taint_shows_form() {
    for taint in [
        "DnsReady",
        "DnsReady=False",
        "example.com/DnsReady=False:NoExecute",
    ] {
        let line = rejected(&[&format!("--taint-on-condition={taint}")]);
        assert!(
            line.starts_with(&format!(
                "error: invalid value '{taint}' for '--taint-on-condition <TYPE=STATUS:EFFECT>': must be TYPE=STATUS:EFFECT such as "
            )),
            "{line}"
        );
    }
}

/// A length of time that is none is named.
#[test]
fn bad_duration_is_named() {
    for length in ["0s", "soon"] {
        let line = rejected(&[&format!("--taint-no-execute-after={length}")]);
        assert!(
            line.starts_with(&format!(
                "error: invalid value '{length}' for '--taint-no-execute-after <DURATION>': "
            )),
            "{line}"
        );
    }
}
