use proptest::prelude::*;

use super::*;
use crate::ingress::fixtures::blocked;

/// Returns the facts with these clusters blocked and these addresses in m1.
fn facts(m1: bool, m2: bool, last: u8) -> Fixture {
    let mut fixture = fixture();
    for (name, is_blocked) in [("m1", m1), ("m2", m2)] {
        if is_blocked {
            fixture = fixture.with_cluster(blocked(name));
        }
    }
    let address = format!("10.0.1.{last}");
    let others = fixture.slices.split_off(1);
    fixture.slices.clear();
    let mut fixture = fixture.with_slices(&[slice("s", "m1", "x", &[&address])]);
    fixture.slices.extend(others);
    fixture
}

proptest! {
    /// Whatever changes while connections come and go: HAProxy ends with the desired servers, a backend is never without a server
    /// in between, and no server is given another address.
    #[test]
    fn every_sequence_serves(steps in proptest::collection::vec(
        (any::<bool>(), any::<bool>(), 1u8..4, 0u32..2, 0u64..40), 1..12
    )) {
        let mut haproxy = Model::converged(&desired(&fixture(), &["s"]));
        for (m1, m2, last, connections, seconds) in steps {
            let desired = desired(&facts(m1, m2, last), &["s"]);
            for server in haproxy.state.backends.get_mut("ns_i_s_80").unwrap().values_mut() {
                server.connections = connections;
            }
            for _ in 0..5 {
                let plan = haproxy.plan(&desired);
                for line in plan.lines {
                    for command in line.commands {
                        haproxy.command(&command);
                        prop_assert!(!haproxy.served("ns_i_s_80").is_empty(), "{command}");
                    }
                }
            }
            prop_assert!(haproxy.plan(&desired).lines.is_empty());
            let (first, second) = (format!("10.0.1.{last}:8080"), "10.0.0.2:8080".to_owned());
            let expected: BTreeSet<String> = match (m1, m2) {
                (true, false) => [second].into(),
                (false, true) => [first].into(),
                _ => [first, second].into(),
            };
            prop_assert_eq!(haproxy.served("ns_i_s_80"), expected);
            haproxy.pass(Duration::from_secs(seconds));
        }
    }
}
