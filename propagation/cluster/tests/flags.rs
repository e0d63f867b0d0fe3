//! The program's output for invalid flags.

use lab_parts::flags;
use lab_parts::kubeconfig::{self, Access};
use lab_parts::port::CLOSED;

#[track_caller]
fn rejected(flags: &[&str]) -> String {
    flags::rejected(env!("CARGO_BIN_EXE_cluster-controller"), &[], flags)
}

#[test]
fn a_kubeconfig_that_is_missing_or_not_named_is_asked_for() {
    let line = rejected(&["--kubeconfig=/no/such/file"]);
    assert!(
        line.starts_with("error: cannot read kubeconfig /no/such/file: "),
        "{line}"
    );
    assert!(rejected(&[]).starts_with("error: no kubeconfig: name one with --kubeconfig"));
}

#[test]
fn an_address_in_use_is_named() {
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

#[test]
fn a_taint_that_is_none_is_refused_with_its_form() {
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

#[test]
fn a_length_of_time_that_is_none_is_named() {
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
