use clap::{CommandFactory, Parser};

use hickory_proto::rr::Name;

use super::*;

const REQUIRED: [&str; 3] = ["agent", "--karmada-kubeconfig=k", "--cluster-name=member1"];

fn config(flags: &[&str]) -> Result<Config, String> {
    let flags = REQUIRED.iter().chain(flags);
    let args = Args::try_parse_from(flags).map_err(|error| error.to_string())?;
    Config::try_from(args).map_err(|error| error.to_string())
}

#[test]
fn the_flags_are_well_formed() {
    Args::command().debug_assert();
}

#[test]
fn every_flag_can_come_from_the_environment() {
    for argument in crate::identity::IDENTITY.command::<Args>().get_arguments() {
        let id = argument.get_id();
        // Flags that are not in the help have no effect.
        if ["help", "version"].contains(&id.as_str()) || argument.is_hide_set() {
            continue;
        }
        let flag = argument.get_long().unwrap();
        let flag = flag.strip_prefix("karmada-").unwrap_or(flag);
        let variable = format!("KARMADA_{}", flag.to_uppercase().replace('-', "_"));
        assert_eq!(argument.get_env().unwrap().to_str(), Some(&*variable));
    }
}

#[test]
fn the_default_durations_are_those_of_karmada() {
    let config = config(&[]).unwrap();
    let seconds = Duration::from_secs;
    assert_eq!(config.probes.period, seconds(5));
    let dns = config.probes.dns.unwrap();
    assert_eq!(dns.timeout, seconds(2));
    assert_eq!(dns.names, [Name::from_ascii("kubernetes.default").unwrap()]);
    assert_eq!(config.thresholds.failure, seconds(30));
    assert_eq!(config.thresholds.success, seconds(30));
    assert_eq!(config.thresholds.silence, seconds(30));
    assert_eq!(config.pace.patience, seconds(40));
    assert!(config.leader_elect);
    assert!(!config.node.is_empty());
    assert_eq!(config.ignored, Vec::<&str>::new());
}

#[test]
fn a_term_without_votes_lasts_as_long_as_the_longer_threshold_and_two_periods() {
    for (failure, success, seconds) in [("1m", "30s", 70), ("30s", "2m", 130)] {
        let flags = [
            format!("--detect-failure-threshold={failure}"),
            format!("--detect-success-threshold={success}"),
        ];
        let config = config(&flags.each_ref().map(String::as_str)).unwrap();
        assert_eq!(config.pace.patience, Duration::from_secs(seconds));
    }
}

#[test]
fn a_round_takes_at_most_0_4_of_a_short_period() {
    let config = config(&["--detect-period=2s"]).unwrap();
    assert_eq!(
        config.probes.dns.unwrap().timeout,
        Duration::from_millis(800)
    );
}

#[test]
fn a_node_is_not_silent_between_two_rounds() {
    let config = config(&["--detect-period=1m"]).unwrap();
    assert_eq!(config.thresholds.silence, Duration::from_mins(2));
}

#[test]
fn names_and_servers_may_be_repeated_and_listed() {
    let config = config(&[
        "--probe-name=a.b",
        "--probe-name=c.,d",
        "--nameserver=10.96.0.10",
        "--nameserver=[fd00::a]:5353",
    ])
    .unwrap();
    let dns = config.probes.dns.unwrap();
    let names = dns.names.iter();
    let names: Vec<_> = names.map(ToString::to_string).collect();
    assert_eq!(names, ["a.b", "c.", "d"]);
    let servers = ["10.96.0.10:53", "[fd00::a]:5353"].map(|server| server.parse().unwrap());
    assert_eq!(dns.nameservers, servers);
}

#[test]
fn the_default_address_is_every_one_and_karmadas_flags_replace_either_half() {
    let cases: [(&[&str], &str); 4] = [
        (&[], "[::]:8080"),
        (&["--healthz-port=10357"], "[::]:10357"),
        (&["--bind-address=0.0.0.0"], "0.0.0.0:8080"),
        (
            &["--bind-address=fd00::7", "--healthz-port=1"],
            "[fd00::7]:1",
        ),
    ];
    for (flags, address) in cases {
        let config = config(flags).unwrap();
        assert_eq!(config.listen_address, address.parse().unwrap(), "{flags:?}");
    }
}

#[test]
fn karmadas_argument_list_works() {
    let config = config(&[
        "--host-name=",
        "--bind-address=127.0.0.1",
        "--healthz-port=8081",
        "--detectors=*",
        "--coredns-detect-period=10s",
        "--coredns-success-threshold=1m0s",
        "--coredns-failure-threshold=20s",
        "--coredns-stale-threshold=60s",
        "--leader-elect=false",
        "--leader-elect-resource-name=cluster-problem-detector",
        "--leader-elect-resource-namespace=kube-system",
    ])
    .unwrap();
    assert_eq!(config.listen_address, "127.0.0.1:8081".parse().unwrap());
    assert_eq!(config.probes.period, Duration::from_secs(10));
    assert_eq!(config.thresholds.success, Duration::from_mins(1));
    assert_eq!(config.thresholds.failure, Duration::from_secs(20));
    assert!(!config.leader_elect);
    assert!(!config.node.is_empty());
    let ignored = [
        "coredns-stale-threshold",
        "leader-elect-resource-name",
        "leader-elect-resource-namespace",
    ];
    assert_eq!(config.ignored, ignored);
}

#[test]
fn every_flag_of_klog_is_accepted_and_ignored() {
    let config = config(&[
        "--v=4",
        "-v",
        "2",
        "--vmodule=detector=5",
        "--logtostderr",
        "--alsologtostderr=false",
        "--stderrthreshold=2",
        "--log-backtrace-at=a.go:1",
        "--log_dir=/var/log",
        "--log-file=/var/log/a",
        "--log_file_max_size",
        "1800",
        "--add-dir-header",
        "--one_output=true",
        "--skip_headers",
        "--skip-log-headers",
    ])
    .unwrap();
    let ignored = [
        "log-backtrace-at",
        "log-dir",
        "log-file",
        "log-file-max-size",
        "stderrthreshold",
        "v",
        "vmodule",
        "add-dir-header",
        "alsologtostderr",
        "logtostderr",
        "one-output",
        "skip-headers",
        "skip-log-headers",
    ];
    assert_eq!(config.ignored, ignored);
}

#[test]
fn detectors_are_enabled_and_disabled_as_in_karmada() {
    let on = [
        "*",
        "coredns-detector",
        "other,*",
        "coredns-detector,-coredns-detector",
    ];
    let off = ["-coredns-detector", "*,-coredns-detector", "other", ""];
    for detectors in on {
        assert!(
            config(&[&format!("--detectors={detectors}")]).is_ok(),
            "{detectors}"
        );
    }
    for detectors in off {
        let error = config(&[&format!("--detectors={detectors}")]).unwrap_err();
        assert!(error.contains("--detectors"), "{error}");
    }
}

/// `*` and the name of Karmada's detector keep their meaning, whatever else this program can probe.
#[test]
fn service_network_takes_its_name() {
    for (detectors, runs) in [
        ("*", [true, false]),
        ("coredns-detector", [true, false]),
        ("*,service-network", [true, true]),
        ("coredns-detector,service-network", [true, true]),
        ("service-network", [false, true]),
        ("*,-service-network", [true, false]),
        ("service-network,-coredns-detector", [false, true]),
    ] {
        let probes = config(&[&format!("--detectors={detectors}")])
            .unwrap()
            .probes;
        let found = [probes.dns.is_some(), probes.service_network.is_some()];
        assert_eq!(found, runs, "{detectors}");
    }
}

#[test]
fn flag_spares_the_member_api() {
    let flags = ["--detectors=*,service-network"];
    assert!(config(&flags).unwrap().probes.needs_member());
    let given = [flags[0], "--service-network-address=10.96.0.20:80"];
    assert!(!config(&given).unwrap().probes.needs_member());
    let error = config(&[flags[0], "--service-network-address=10.96.0.20"]);
    assert!(error.unwrap_err().contains("--service-network-address"));
}

/// Returns the configuration of an agent on a node of a gateway.
fn gateway(flags: &[&str]) -> Result<Config, String> {
    let flags = REQUIRED[..2].iter().chain(flags);
    let args = Args::try_parse_from(flags).map_err(|error| error.to_string())?;
    Config::try_from(args).map_err(|error| error.to_string())
}

/// Agents on the nodes of a gateway are about the members, and need no cluster of their own.
#[test]
fn reachability_runs_alone() {
    let own = gateway(&["--detectors=reachability"]).unwrap();
    assert_eq!(
        (&*own.cluster, &own.subject),
        ("gateway", &Subject::Members)
    );
    assert!(own.probes.dns.is_none() && own.probes.needs_member());
    let flags = [
        "--detectors=reachability",
        "--reachability-address=m1=10.0.0.7:443",
    ];
    assert!(!gateway(&flags).unwrap().probes.needs_member());
    for (flags, words) in [
        (
            ["--detectors=*,reachability", "--host-name=g1"],
            "--detectors=reachability",
        ),
        (
            ["--detectors=reachability", "--cluster-kind=MemberCluster"],
            "leave --cluster-kind out",
        ),
    ] {
        let error = gateway(&flags).err().unwrap_or_default();
        assert!(error.contains(words), "{flags:?}: {error}");
    }
    let flags = [
        "--detectors=reachability",
        "--member-kubeconfig=k",
        "--node-condition",
    ];
    assert!(gateway(&flags).unwrap_err().contains("--node-condition"));
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let cases: [(&[&str], &str); 18] = [
        (&["--detect-period=0s"], "--detect-period"),
        (&["--detect-period=10ms"], "at least 100ms"),
        (&["--detect-period=5"], "5s or 1m30s"),
        (&["--detect-failure-threshold=2days"], "longer than a day"),
        (&["--probe-timeout=5s"], "shorter than --detect-period"),
        (
            &["--probe-timeout=2s", "--detect-period=1s"],
            "shorter than --detect-period",
        ),
        (&["--nameserver=dns.example"], "10.96.0.10:53"),
        (&["--probe-name="], "kubernetes.default"),
        (&["--probe-name=."], "kubernetes.default"),
        (&["--probe-name=a..b"], "kubernetes.default"),
        (&["--host-name=two words"], "host's name"),
        (
            &["--host-name=$(NODE_NAME)"],
            "$(NODE_NAME) is not expanded",
        ),
        (&["--host-name=a-$(NODE)-b"], "a-$(NODE)-b is not expanded"),
        (
            &["--listen-address=127.0.0.1:1", "--healthz-port=2"],
            "--healthz-port",
        ),
        (
            &["--detect-period=5s", "--coredns-detect-period=5s"],
            "multiple times",
        ),
        (&["--leader-elect=perhaps"], "perhaps"),
        (
            &["--leader-elect=false", "--peer=10.0.0.7"],
            "--leader-elect=false is for an agent without peers",
        ),
        (
            &["--leader-elect=false", "--member-kubeconfig=k"],
            "--leader-elect=false is for an agent without peers",
        ),
    ];
    for (flags, expected) in cases {
        let error = config(flags).unwrap_err();
        assert!(error.contains(expected), "{flags:?}: {error}");
    }
}
