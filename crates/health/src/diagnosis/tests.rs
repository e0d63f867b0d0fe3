use proptest::prelude::*;

use super::*;
use crate::dns::DNS;

const SERVICE: &str = "10.96.0.10:53";
const PODS: [&str; 3] = ["10.244.0.2:53", "10.244.0.3:53", "10.244.0.4:53"];

/// Returns the check of a server: `.` works, `x` is silent, `u` is silent over UDP only, `t` over TCP only.
fn check(server: &str, sign: char) -> DirectCheck {
    let [udp, tcp] = ["xu", "xt"].map(|silent| {
        if silent.contains(sign) {
            Err(DnsClass::Timeout.class())
        } else {
            Ok(())
        }
    });
    DirectCheck {
        server: server.parse().unwrap(),
        udp,
        tcp,
    }
}

/// Returns the diagnosis of `round` with these checks of the Service and the pods.
fn located(round: Option<(FailureClass, SocketAddr)>, service: &str, pods: &str) -> String {
    let pods = PODS.into_iter().zip(pods.chars());
    let checks = DirectChecks {
        service: service.chars().next().map(|sign| check(SERVICE, sign)),
        pods: pods.map(|(server, sign)| check(server, sign)).collect(),
    };
    let diagnosis = checks.diagnose(round, Transport::Udp);
    diagnosis.map_or_else(|| "-".to_owned(), |found| found.to_string())
}

/// The failure, the Service, the pods, and the diagnosis. `-`: not checked, or not located.
const LOCATED: &str = "
    timeout   169.254.20.10:53  .  ..   node cache
    timeout   169.254.20.10:53  .  -    node cache
    timeout   169.254.20.10:53  x  ..   Service path
    timeout   169.254.20.10:53  x  -    DNS Service
    timeout   169.254.20.10:53  x  xx   every pod
    timeout   169.254.20.10:53  x  x    every pod
    timeout   169.254.20.10:53  t  t    node cache
    timeout   169.254.20.10:53  -  -    -
    truncated 169.254.20.10:53  t  tt   every pod, tcp only
    timeout   10.96.0.10:53     x  ..   Service path
    timeout   10.96.0.10:53     u  .    Service path, udp only
    timeout   10.96.0.10:53     -  ..   path to the pods
    timeout   10.96.0.10:53     x  .x   pod 10.244.0.3
    timeout   10.96.0.10:53     .  .x   pod 10.244.0.3
    timeout   10.96.0.10:53     x  x.x  some pods
    timeout   10.96.0.10:53     x  ux   every pod
    timeout   10.96.0.10:53     .  .    -
";

#[test]
fn a_failed_round_is_located_by_its_direct_checks() {
    for line in LOCATED.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap();
        let round = (DNS.class(word()), word().parse().unwrap());
        let [service, pods] = [word(), word()].map(|signs| signs.trim_start_matches('-'));
        let expected = words.collect::<Vec<_>>().join(" ");
        let shown = located(Some(round), service, pods);
        assert_eq!(shown, expected, "{line}");
    }
}

#[test]
fn a_masked_fault_is_diagnosed_although_the_round_succeeds() {
    let cases = [
        (".", "..", "-"),
        ("", "", "-"),
        ("x", "xx", "every pod"),
        (".", ".t", "pod 10.244.0.3, tcp only"),
        ("t", "..", "Service path, tcp only"),
        ("u", "", "DNS Service, udp only"),
    ];
    for (service, pods, expected) in cases {
        assert_eq!(located(None, service, pods), expected, "{service} {pods}");
    }
}

fn diagnoses() -> impl Strategy<Value = Diagnosis> {
    let pod = any::<SocketAddr>().prop_filter("no flow is shown", |pod| match pod {
        SocketAddr::V4(_) => true,
        SocketAddr::V6(pod) => pod.flowinfo() == 0,
    });
    let location = prop_oneof![
        Just(Location::NodeCache),
        Just(Location::ServicePath),
        Just(Location::Service),
        Just(Location::PathToPods),
        pod.prop_map(Location::Pod),
        Just(Location::SomePods),
        Just(Location::EveryPod),
    ];
    let only = prop::option::of(prop::sample::select(Transport::ALL.to_vec()));
    (location, only).prop_map(|(location, only)| Diagnosis { location, only })
}

proptest! {
    #[test]
    fn a_fault_is_read_as_it_is_written(fault in diagnoses()) {
        prop_assert_eq!(fault.to_string().parse(), Ok(fault));
        prop_assert!(Location::KINDS.contains(&fault.location.kind()));
    }

    #[test]
    fn no_text_makes_reading_a_fault_panic(text in ".*") {
        let read: Result<Diagnosis, UnknownDiagnosis> = text.parse();
        prop_assert!(read.is_err() || text.contains(' '));
    }
}
