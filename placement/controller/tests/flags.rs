//! The program's output for invalid flags.

use lab_parts::flags;

#[track_caller]
fn rejected(flags: &[&str]) -> String {
    flags::rejected(env!("CARGO_BIN_EXE_placement-controller"), &[], flags)
}

/// A time that is out of bounds is named in one line.
#[test]
fn unbounded_force_is_named() {
    let line = rejected(&["--force-leave-after=2h"]);
    assert!(
        line.trim_end().ends_with("must be from 30s to 1h"),
        "{line}"
    );
}
