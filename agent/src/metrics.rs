//! The agent's metrics, but for those of each probe. Labels are closed sets; the only names are those of
//! the few failing nodes that the condition's message names. The metrics of a signal other than DNS have its
//! prefix before their names, and the label `member` where it is about other clusters. The signals that users declare share
//! metrics with the label `signal`, since there are few, and they come and go.

mod gauges;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use health::quorum::Tally;
use health::signal::{PerTarget, Signal};
use health::threshold::Vote;
use karmada_runtime::metrics::Registry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

use self::gauges::{Gauges, name};
pub(crate) use self::gauges::{OfMember, OfSignal};

/// The one label of a metric of a declared signal that has no other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SignalLabels {
    signal: &'static str,
}

/// Shows this node's vote on one signal.
#[derive(Clone, Debug)]
pub(crate) struct VoteMetrics {
    vote: Gauges<VoteLabels>,
    hold: Gauge<f64, AtomicU64>,
}

/// Shows this node's votes on the signals that users declare.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredVoteMetrics {
    vote: Family<OfSignal<VoteLabels>, Gauge>,
    hold: Family<SignalLabels, Gauge<f64, AtomicU64>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VoteLabels {
    vote: &'static str,
}

/// Every value of that label.
const VOTES: [&str; 3] = ["first_success", "healthy", "unhealthy"];

impl VoteMetrics {
    pub(crate) fn register(registry: &mut Registry, signal: &Signal) -> Self {
        let subject = signal.subject;
        let metrics = Self {
            vote: Gauges::register(
                registry,
                signal,
                "vote",
                &format!(
                    "1 for this node's current vote on the cluster's {subject}; 0 for all others, and for all while it has no vote"
                ),
            ),
            hold: Gauge::default(),
        };
        // Of each of many clusters there would be one.
        if signal.is_of_own_cluster() {
            registry.register_with_unit(
                &name(signal, "recovery_hold"),
                &format!("Duration for which {subject} must work on this node before it votes healthy; longer after repeated failures"),
                Unit::Seconds,
                metrics.hold.clone(),
            );
        }
        metrics.set(None, None);
        metrics
    }

    /// Shows the vote on the agents' own cluster, or on another one.
    pub(crate) fn set(&self, cluster: Option<&Arc<str>>, vote: Option<Vote>) {
        let current = vote.map(|vote| match vote {
            Vote::FirstSuccess => "first_success",
            Vote::Healthy | Vote::Partial(_) => "healthy",
            Vote::Unhealthy(_) => "unhealthy",
        });
        // Every value of the label, so that the one shown before goes back to 0.
        for vote in VOTES {
            let is = i64::from(current == Some(vote));
            self.vote.set(cluster, VoteLabels { vote }, is);
        }
    }

    /// Shows how long successes must last for a healthy vote.
    pub(crate) fn set_hold(&self, hold: Duration) {
        self.hold.set(hold.as_secs_f64());
    }
}

impl DeclaredVoteMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            vote: registry.register(
                "signal_vote",
                "1 for this node's current vote on a declared signal; 0 for all others, and for all while it has no vote",
                Family::default(),
            ),
            hold: registry.register_with_unit(
                "signal_recovery_hold",
                "Duration for which a declared signal must work on this node before it votes healthy; longer after repeated failures",
                Unit::Seconds,
                Family::default(),
            ),
        }
    }

    /// Returns the metrics of one signal.
    pub(crate) fn of(&self, signal: &'static Signal) -> VoteMetrics {
        let labels = SignalLabels {
            signal: signal.name,
        };
        let metrics = VoteMetrics {
            vote: Gauges::Declared(signal.name, self.vote.clone()),
            hold: self.hold.get_or_create(&labels).clone(),
        };
        metrics.set(None, None);
        metrics
    }

    /// Removes the series of a signal that is declared no more.
    pub(crate) fn remove(&self, signal: &'static Signal) {
        let signal = signal.name;
        self.hold.remove(&SignalLabels { signal });
        for vote in VOTES {
            let labels = VoteLabels { vote };
            self.vote.remove(&OfSignal { signal, labels });
        }
    }
}

/// Shows the votes that a leader counts, and its requests for them.
#[derive(Clone, Debug)]
pub(crate) struct PeerMetrics {
    known: Gauge,
    namesakes: Gauge,
    requests: Family<RequestLabels, Counter>,
    duration: Histogram,
    tallies: PerTarget<TallyMetrics>,
    declared: DeclaredTallyMetrics,
}

/// Shows the votes on declared signals that a leader counts.
#[derive(Clone, Debug)]
struct DeclaredTallyMetrics {
    nodes: Family<OfSignal<BallotLabels>, Gauge>,
    failing: Family<OfSignal<NodeLabels>, Gauge>,
}

/// Shows the votes on one signal that a leader counts.
#[derive(Clone, Debug)]
struct TallyMetrics {
    nodes: Gauges<BallotLabels>,
    failing: Family<NodeLabels, Gauge>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BallotLabels {
    answer: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    node: String,
}

impl NodeLabels {
    fn of(node: &str) -> Self {
        Self {
            node: node.to_owned(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    outcome: &'static str,
}

impl PeerMetrics {
    /// Registers the metrics of an agent that votes on the signals of `signals`.
    pub(crate) fn register<T>(registry: &mut Registry, signals: &PerTarget<T>) -> Self {
        let metrics = Self {
            tallies: signals.map(|target, _| TallyMetrics::register(registry, target.signal)),
            declared: DeclaredTallyMetrics::register(registry),
            known: registry.register(
                "known_agents",
                "Known agents of this cluster, this one included; 0 until the list is known",
                Gauge::default(),
            ),
            namesakes: registry.register(
                "namesakes",
                "Other agents that report the node name of another or of this one; 0 while this agent does not lead",
                Gauge::default(),
            ),
            requests: registry.register(
                "peer_requests",
                "Requests to other agents, by outcome: answered, timed_out, failed, unusable, other_cluster",
                Family::default(),
            ),
            duration: registry.register_with_unit(
                "peer_request_duration",
                "Duration of a request to another agent",
                Unit::Seconds,
                Histogram::new(exponential_buckets(0.0005, 2.0, 12)),
            ),
        };
        // Series that start at 0 let `rate()` see their first increase.
        for outcome in [
            "answered",
            "timed_out",
            "failed",
            "unusable",
            "other_cluster",
        ] {
            let labels = RequestLabels { outcome };
            metrics.requests.get_or_create(&labels).inc_by(0);
        }
        metrics
    }

    pub(crate) fn set_known(&self, agents: usize) {
        self.known.set(whole(agents));
    }

    /// Counts a request; `error` is the reason why it returned no vote.
    pub(crate) fn record_request(&self, took: Duration, error: Option<&'static str>) {
        let outcome = error.unwrap_or("answered");
        self.requests
            .get_or_create(&RequestLabels { outcome })
            .inc();
        self.duration.observe(took.as_secs_f64());
    }

    /// Shows the number of agents that have the name of another.
    pub(crate) fn set_namesakes(&self, agents: usize) {
        self.namesakes.set(whole(agents));
    }

    /// Shows the tallies; `None` while this agent does not lead.
    pub(crate) fn set_tallies(&self, tallies: Option<&PerTarget<Tally>>) {
        self.declared.set(tallies);
        let none = Tally::default();
        for (target, metrics) in self.tallies.iter() {
            let signal = target.signal;
            if signal.is_of_own_cluster() {
                let tally = tallies.and_then(|tallies| tallies.get(signal));
                metrics.set(tally.unwrap_or(&none));
                continue;
            }
            // Those that are there no more go with their series.
            metrics.nodes.clear_members();
            let all = tallies.into_iter().flat_map(PerTarget::iter);
            for (target, tally) in all.filter(|(target, _)| target.signal == signal) {
                metrics.set_nodes(target.cluster.as_ref(), tally);
            }
        }
    }
}

impl DeclaredTallyMetrics {
    fn register(registry: &mut Registry) -> Self {
        Self {
            nodes: registry.register(
                "signal_nodes",
                "Nodes by their last ballot on a declared signal: healthy, unhealthy, no_vote or silent; none while this agent does not lead",
                Family::default(),
            ),
            failing: registry.register(
                "signal_failing_node",
                "1 for each node on which a declared signal fails and that the condition's message names, at most three; none while this agent does not lead",
                Family::default(),
            ),
        }
    }

    /// Shows the votes on every declared signal. Those that are there no more go with their series.
    fn set(&self, tallies: Option<&PerTarget<Tally>>) {
        self.nodes.clear();
        self.failing.clear();
        for (target, tally) in tallies.into_iter().flat_map(PerTarget::iter) {
            if !target.signal.is_declared() {
                continue;
            }
            let signal = target.signal.name;
            for (answer, count) in ballots(tally) {
                let labels = BallotLabels { answer };
                let gauge = self.nodes.get_or_create(&OfSignal { signal, labels });
                gauge.set(whole(count));
            }
            for node in tally.named() {
                let labels = NodeLabels::of(node);
                let gauge = self.failing.get_or_create(&OfSignal { signal, labels });
                gauge.set(1);
            }
        }
    }
}

/// Returns the number of nodes by their last ballot.
fn ballots(tally: &Tally) -> [(&'static str, usize); 4] {
    [
        ("healthy", tally.healthy + tally.first_success),
        ("unhealthy", tally.failing.len()),
        ("no_vote", tally.no_vote + tally.absent),
        ("silent", tally.silent),
    ]
}

impl TallyMetrics {
    fn register(registry: &mut Registry, signal: &Signal) -> Self {
        let metrics = Self {
            nodes: Gauges::register(
                registry,
                signal,
                "nodes",
                "Nodes by their last ballot: healthy, unhealthy, no_vote or silent; all 0 while this agent does not lead",
            ),
            failing: Family::default(),
        };
        // Of another cluster, the condition's message alone names nodes: a series for each would be many.
        if signal.is_of_own_cluster() {
            registry.register(
                &name(signal, "failing_node"),
                "1 for each failing node that the condition's message names, at most three; none while this agent does not lead",
                metrics.failing.clone(),
            );
        }
        metrics.set(&Tally::default());
        metrics
    }

    /// Shows the votes on the agents' own cluster.
    fn set(&self, tally: &Tally) {
        self.set_nodes(None, tally);
        // Removed rather than set to 0: there may be as many series as nodes otherwise.
        self.failing.clear();
        for node in tally.named() {
            self.failing.get_or_create(&NodeLabels::of(node)).set(1);
        }
    }

    fn set_nodes(&self, cluster: Option<&Arc<str>>, tally: &Tally) {
        for (answer, count) in ballots(tally) {
            self.nodes
                .set(cluster, BallotLabels { answer }, whole(count));
        }
    }
}

/// Shows the leader's verdicts.
#[derive(Clone, Debug)]
pub(crate) struct VerdictMetrics {
    verdicts: PerTarget<Gauges<VerdictLabels>>,
    declared: Family<OfSignal<VerdictLabels>, Gauge>,
    resignations: Counter,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    verdict: &'static str,
}

impl VerdictMetrics {
    /// Registers the metrics of an agent that reports on the signals of `signals`.
    pub(crate) fn register<T>(registry: &mut Registry, signals: &PerTarget<T>) -> Self {
        let verdicts = signals.map(|target, _| {
            let help = "1 for the cluster's verdict by the votes: healthy or unhealthy; 0 for both without one, or while this agent does not lead";
            Gauges::register(registry, target.signal, "verdict", help)
        });
        let metrics = Self {
            verdicts,
            declared: registry.register(
                "signal_verdict",
                "1 for the cluster's verdict on a declared signal by the votes: healthy or unhealthy; 0 for both without one, none while this agent does not lead",
                Family::default(),
            ),
            resignations: registry.register(
                "resignations",
                "Times this agent gave the lease back because too few nodes voted for too long",
                Counter::default(),
            ),
        };
        metrics.clear();
        metrics
    }

    pub(crate) fn count_resignation(&self) {
        self.resignations.inc();
    }

    /// Shows the verdicts on one cluster, of which `true` stands for healthy.
    pub(crate) fn set(&self, verdicts: &PerTarget<Option<bool>>) {
        // Those that are declared no more go with their series.
        self.declared.clear();
        for (target, healthy) in verdicts.iter() {
            let metric = match self.verdicts.get(target.signal) {
                Some(metric) => metric.clone(),
                None => Gauges::Declared(target.signal.name, self.declared.clone()),
            };
            for (verdict, is) in [("healthy", true), ("unhealthy", false)] {
                let is = i64::from(*healthy == Some(is));
                metric.set(target.cluster.as_ref(), VerdictLabels { verdict }, is);
            }
        }
    }

    /// Shows no verdict, as while this agent does not lead.
    pub(crate) fn clear(&self) {
        self.set(&self.verdicts.map(|_, _| None));
        self.verdicts.values().for_each(Gauges::clear_members);
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use health::dns::{DNS, DnsClass};
    use health::observation::Failure;
    use health::quorum::Ballot;

    use super::*;

    fn line(node: &str) -> String {
        format!("failing_node{{node=\"{node}\"}} 1")
    }

    #[test]
    fn only_failing_nodes_that_the_message_names_have_series() {
        let mut registry = Registry::default();
        let metrics = TallyMetrics::register(&mut registry, &DNS);
        let failure = Failure::new(DnsClass::Timeout, ([10, 96, 0, 10], 53).into());
        let shown = |failing: &[&str]| {
            let mut tally = Tally::default();
            for node in failing {
                tally.count(node, Ballot::Vote(Vote::Unhealthy(failure)));
            }
            metrics.set(&tally);
            let text = registry.encode().unwrap();
            let lines = text
                .lines()
                .filter(|line| line.starts_with("failing_node{"));
            let mut lines: Vec<_> = lines.map(ToOwned::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(shown(&["n4"]), [line("n4")]);
        let first = ["n1", "n2", "n3"].map(line);
        assert_eq!(shown(&["n3", "n5", "n2", "n4", "n1"]), first);
        assert_eq!(shown(&["n4"]), [line("n4")]);
        assert_eq!(shown(&[]), [""; 0]);
    }
}
