//! A leader that reports on two signals.

use super::*;

/// A second signal, of which the report knows no more than of the first.
static LAN: Signal = Signal {
    name: "lan",
    subject: "LAN",
    metric_prefix: "lan_",
    condition: "LanReady",
    ready_reason: "LanReady",
    failed_reason: "LanFailed",
    reporter: REPORTER_READY,
    works: "it works",
    unobserved: "it is unknown",
    classes: &[],
    voters: Voters::Nodes,
};

/// A leader on both signals and the conditions that it has written.
struct Both {
    leader: Leader,
    conditions: Vec<Condition>,
}

impl Both {
    /// Starts a leader whose nodes have all voted healthy on both.
    fn healthy() -> Self {
        let mut leader = Leader::new();
        let quorums = [(&DNS, QUORUM), (&LAN, QUORUM)];
        leader.reporter = Reporter::new(PACE, &quorums.into_iter().collect(), leader.started);
        let mut both = Self {
            leader,
            conditions: Vec::new(),
        };
        both.act(0, nodes(10, 0, 0), nodes(10, 0, 0));
        both
    }

    /// Plans, applies the writes, and returns each as its type, status and message.
    fn act(&mut self, seconds: u64, dns: Tally, lan: Tally) -> Vec<(String, String, String)> {
        let tallies = PerTarget::from_iter([(&DNS, dns), (&LAN, lan)]);
        let now = self.leader.at(seconds);
        let reporter = &mut self.leader.reporter;
        let ReportPlan::Write(writes) = reporter.plan(&tallies, &self.conditions, now, time(NOW))
        else {
            return Vec::new();
        };
        for write in &writes {
            self.conditions
                .retain(|condition| condition.type_ != write.type_);
            self.conditions.push(write.clone());
            reporter.wrote(&write.type_, now);
        }
        let texts = writes.into_iter();
        texts
            .map(|write| (write.type_, write.status, write.message))
            .collect()
    }

    fn status(&self, kind: &str) -> &str {
        &find(&self.conditions, kind).unwrap().status
    }
}

/// A verdict on one leaves the condition of the other alone.
#[test]
fn each_has_its_own_verdict() {
    let mut both = Both::healthy();
    let (up, down) = (|| nodes(10, 0, 0), || nodes(0, 10, 0));
    for (second, dns, lan, expected) in [
        (10, down(), up(), (FALSE, TRUE)),
        (20, down(), down(), (FALSE, FALSE)),
        (30, up(), down(), (TRUE, FALSE)),
        (40, up(), up(), (TRUE, TRUE)),
    ] {
        both.act(second, dns, lan);
        assert_eq!((both.status(DNS_READY), both.status("LanReady")), expected);
        assert_eq!(both.status(REPORTER_READY), TRUE);
    }
}

/// One condition speaks for both, and says which of them has too few votes.
#[test]
fn stale_names_the_short_signal() {
    let mut both = Both::healthy();
    both.act(10, nodes(10, 0, 0), nodes(4, 0, 6));
    assert_eq!(both.status(REPORTER_READY), TRUE);
    let writes = both.act(40, nodes(10, 0, 0), nodes(4, 0, 6));
    let message = "LanReady: 4 of 10 nodes vote".to_owned();
    assert_eq!(
        writes,
        [(REPORTER_READY.to_owned(), FALSE.to_owned(), message)]
    );
    // The other one is judged as before.
    both.act(50, nodes(0, 10, 0), nodes(4, 0, 6));
    assert_eq!(
        (both.status(DNS_READY), both.status("LanReady")),
        (FALSE, TRUE)
    );
    let writes = both.act(110, nodes(0, 4, 6), nodes(4, 0, 6));
    let message =
        "ServiceDomainNameResolutionReady: 4 of 10 nodes vote; LanReady: 4 of 10 nodes vote";
    assert_eq!(writes[0].2, message);
    both.act(120, nodes(0, 10, 0), nodes(10, 0, 0));
    assert_eq!(both.status(REPORTER_READY), TRUE);
}

/// A leader that hears the nodes keeps the lease, even if none of them has a vote on one signal.
#[test]
fn only_shortage_of_all_resigns() {
    let mut both = Both::healthy();
    both.act(10, nodes(10, 0, 0), nodes(4, 0, 6));
    assert_eq!(both.leader.reporter.participation(), Participation::Enough);
    both.act(20, nodes(4, 0, 6), nodes(4, 0, 6));
    let since = both.leader.at(20);
    let participation = both.leader.reporter.participation();
    assert_eq!(participation, Participation::TooFew { since });
}

/// Agents that do not run it yet have no vote on it, and that makes nothing stale.
#[test]
fn rollout_of_signal_stays_quiet() {
    let mut both = Both::healthy();
    both.conditions
        .retain(|condition| condition.type_ != "LanReady");
    both.leader.reporter = Reporter::new(
        PACE,
        &PerTarget::from_iter([(&DNS, QUORUM), (&LAN, QUORUM)]),
        both.leader.started,
    );
    let mut few = nodes(0, 4, 0);
    few.absent = 6;
    for second in [10, 100, 1_000] {
        assert_eq!(both.act(second, nodes(10, 0, 0), few.clone()), []);
    }
    // Most run it: their votes count, and the others still count as known.
    let mut most = nodes(0, 5, 0);
    most.absent = 5;
    assert_eq!(both.act(1_010, nodes(10, 0, 0), most.clone()), []);
    let stale = both.act(1_040, nodes(10, 0, 0), most);
    let message = "LanReady: 5 of 10 nodes vote; 5 fail, not more than half of all";
    assert_eq!(stale[0].2, message);
    let mut all = nodes(0, 9, 0);
    all.absent = 1;
    both.act(1_050, nodes(10, 0, 0), all);
    assert_eq!(both.status("LanReady"), FALSE);
    assert_eq!(both.status(DNS_READY), TRUE);
}
