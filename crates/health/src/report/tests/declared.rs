//! Signals that users declare and take back.

use karmada_api::condition::{DECLARED_FAILED_REASON, DECLARED_READY_REASON};

use super::*;

const DECLARED: Signal = Signal {
    name: "registry",
    subject: "registry",
    metric_prefix: "signal_",
    condition: "ImageRegistryReady",
    ready_reason: DECLARED_READY_REASON,
    failed_reason: DECLARED_FAILED_REASON,
    reporter: REPORTER_READY,
    works: "it works",
    unobserved: "it is unknown",
    classes: &[],
    voters: Voters::Nodes,
};
static REGISTRY: Signal = DECLARED;
/// The same name with another condition.
static RENAMED: Signal = Signal {
    condition: "RegistryReady",
    ..DECLARED
};
/// A signal on which the leader alone votes.
static ERRORS: Signal = Signal {
    name: "errors",
    condition: "ErrorRateLow",
    voters: Voters::Leader,
    ..DECLARED
};
const TERMS: Terms = Terms {
    quorum: QUORUM,
    patience: Duration::from_mins(5),
};

fn declared(signals: &[&'static Signal]) -> PerTarget<Terms> {
    signals.iter().map(|signal| (*signal, TERMS)).collect()
}

/// Returns the types of the conditions that a leader writes after so many seconds.
fn written(
    leader: &mut Leader,
    seconds: u64,
    tallies: &PerTarget<Tally>,
    conditions: &[Condition],
) -> Vec<(String, String)> {
    let now = leader.at(seconds);
    match leader.reporter.plan(tallies, conditions, now, time(NOW)) {
        ReportPlan::Write(writes) => writes
            .into_iter()
            .map(|write| (write.type_, write.reason))
            .collect(),
        ReportPlan::Unchanged | ReportPlan::Wait(_) => Vec::new(),
    }
}

fn registry(kind: &str, reason: &str) -> Condition {
    element(kind, TRUE, reason, "no node fails")
}

/// A condition is removed once it is known that its signal is declared no more, and not while the file cannot be read.
#[test]
fn undeclared_condition_is_obsolete() {
    let mut leader = Leader::new();
    let conditions = [
        dns_true(),
        element("Ready", TRUE, "ClusterReady", ""),
        registry("ImageRegistryReady", DECLARED_READY_REASON),
    ];
    assert_eq!(leader.reporter.obsolete(&conditions), None);
    leader.reporter.declare(&declared(&[&REGISTRY]));
    assert_eq!(leader.reporter.obsolete(&conditions), None);
    for now in [declared(&[]), declared(&[&RENAMED])] {
        leader.reporter.declare(&now);
        let obsolete = leader.reporter.obsolete(&conditions);
        assert_eq!(obsolete, Some("ImageRegistryReady"));
    }
}

/// Its verdict is written beside that of DNS, and none once it is taken back.
#[test]
fn declared_signal_has_its_verdict() {
    let mut leader = Leader::new();
    leader.reporter.declare(&declared(&[&REGISTRY]));
    let both = PerTarget::from_iter([(&DNS, nodes(5, 0, 0)), (&REGISTRY, nodes(0, 5, 0))]);
    let failed = (
        "ImageRegistryReady".to_owned(),
        DECLARED_FAILED_REASON.to_owned(),
    );
    assert_eq!(
        written(&mut leader, 0, &both, &[dns_true(), fresh()]),
        [failed]
    );
    leader.reporter.declare(&declared(&[]));
    assert_eq!(written(&mut leader, 10, &both, &[dns_true(), fresh()]), []);
    assert_eq!(leader.reporter.verdicts().iter().len(), 1);
}

/// A condition of this type that another writes stays as it is, until the other one removes it.
#[test]
fn anothers_condition_stays() {
    let mut leader = Leader::new();
    leader.reporter.declare(&declared(&[&REGISTRY]));
    let both = PerTarget::from_iter([(&DNS, nodes(5, 0, 0)), (&REGISTRY, nodes(0, 5, 0))]);
    let theirs = [
        dns_true(),
        fresh(),
        registry("ImageRegistryReady", "RegistryOperator"),
    ];
    assert_eq!(written(&mut leader, 0, &both, &theirs), []);
    let taken = leader.reporter.taken(&theirs);
    assert_eq!(taken, BTreeSet::from(["ImageRegistryReady"]));
    assert_eq!(leader.reporter.obsolete(&theirs), None);
    assert_eq!(written(&mut leader, 10, &both, &theirs[..2]).len(), 1);
    assert!(leader.reporter.taken(&theirs[..2]).is_empty());
}

/// A threshold that is longer than that of DNS leaves more time until a verdict without votes is stale.
#[test]
fn stale_after_its_own_patience() {
    let mut leader = Leader::new();
    leader.reporter.declare(&declared(&[&REGISTRY]));
    let both = PerTarget::from_iter([(&DNS, nodes(5, 0, 0)), (&REGISTRY, nodes(0, 0, 5))]);
    let conditions = [
        dns_true(),
        fresh(),
        registry("ImageRegistryReady", DECLARED_READY_REASON),
    ];
    for second in [0, 60, 299] {
        assert_eq!(written(&mut leader, second, &both, &conditions), []);
    }
    let stale = (
        REPORTER_READY.to_owned(),
        INSUFFICIENT_OBSERVATIONS_REASON.to_owned(),
    );
    assert_eq!(written(&mut leader, 300, &both, &conditions), [stale]);
}

/// While the file cannot be used, nobody votes on the signals that it has declared before: they are stale until the file is good.
#[test]
fn unusable_file_is_stale() {
    let mut leader = Leader::new();
    let votes = only(nodes(5, 0, 0));
    let left = registry("ImageRegistryReady", DECLARED_READY_REASON);
    let [insufficient, reporting] = [INSUFFICIENT_OBSERVATIONS_REASON, REPORTING_REASON]
        .map(|reason| [(REPORTER_READY.to_owned(), reason.to_owned())]);
    let conditions = [dns_true(), fresh(), left.clone()];
    assert_eq!(written(&mut leader, 29, &votes, &conditions), []);
    assert_eq!(written(&mut leader, 30, &votes, &conditions), insufficient);
    leader.reporter.declare(&declared(&[]));
    let conditions = [dns_true(), stale(INSUFFICIENT_OBSERVATIONS_REASON), left];
    assert_eq!(written(&mut leader, 40, &votes, &conditions), reporting);
}

/// The vote of the leader alone does not make it keep the lease where it hears too few nodes.
#[test]
fn leaders_vote_is_no_participation() {
    let mut leader = Leader::new();
    leader.reporter.declare(&declared(&[&ERRORS]));
    let both = PerTarget::from_iter([(&DNS, nodes(1, 0, 9)), (&ERRORS, nodes(1, 0, 0))]);
    written(&mut leader, 0, &both, &[dns_true(), fresh()]);
    let since = leader.at(0);
    let participation = leader.reporter.participation();
    assert_eq!(participation, Participation::TooFew { since });
}
