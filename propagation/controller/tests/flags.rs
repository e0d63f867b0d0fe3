//! The program's output for invalid flags.

use lab_parts::flags;

#[track_caller]
fn rejected(flags: &[&str]) -> String {
    flags::rejected(env!("CARGO_BIN_EXE_propagation-controller"), &[], flags)
}

/// A pattern of namespaces that is none is named.
#[test]
fn broken_pattern_is_named() {
    let line = rejected(&["--skipped-propagating-namespaces=kube-.*,("]);
    assert!(
        line.starts_with("error: invalid value '(' for '--skipped-propagating-namespaces"),
        "{line}"
    );
}
