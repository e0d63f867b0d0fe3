//! The program's output for invalid flags.

use lab_parts::flags;

#[track_caller]
fn rejected(flags: &[&str]) -> String {
    flags::rejected(env!("CARGO_BIN_EXE_cluster-controller"), &[], flags)
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
