//! The crates that a newcomer waits for.

use std::collections::BTreeSet;
use std::process::Command;

/// The programs whose builds are watched, and the most crates that each may compile. A new dependency is weighed
/// against those who wait for it: whoever needs one more raises the number here, and says why in the commit.
const BUDGETS: [(&str, usize); 2] = [("cluster-health-agent", 238), ("sandbox", 311)];

/// Every crate that a program is built of counts, ours and those that only a build script uses among them.
#[test]
fn builds_stay_within_budget() {
    for (package, most) in BUDGETS {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--locked", "--package", package])
            .args([
                "--edges",
                "normal,build",
                "--prefix",
                "none",
                "--format",
                "{p}",
            ])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        // A repeated crate is marked, and one of ours has its folder.
        let crates: BTreeSet<_> = text.lines().map(|line| line.split(" (").next()).collect();
        assert!(
            crates.len() <= most,
            "{package} is built of {} crates, more than {most}",
            crates.len()
        );
    }
}
