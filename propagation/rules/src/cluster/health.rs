//! The health of a cluster's API, which changes only with several probes in agreement.

use std::time::{Duration, Instant};

use karmada_api::condition::{FALSE, TRUE};

use super::Report;

/// The time for which probes must agree before the published health changes.
const THRESHOLD: Duration = Duration::from_secs(30);

/// The outcome of one probe of a cluster's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It is ready.
    Healthy,
    /// It answers, but not that it is ready.
    Unhealthy(String),
    /// It does not answer, or there is no way to it.
    Unreachable(String),
}

/// The recent probes of one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    streak: Option<Streak>,
}

/// Probes in a row with the same outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Streak {
    healthy: bool,
    since: Instant,
    last: Instant,
}

impl Health {
    /// Takes in a probe, and returns the report that follows from it. There is none while the probes have
    /// not contradicted the `published` status of `Ready` for long enough.
    pub fn judge(
        &mut self,
        probe: &Probe,
        published: Option<&str>,
        now: Instant,
    ) -> Option<Report> {
        let healthy = *probe == Probe::Healthy;
        let streak = match self.streak {
            // Nobody knows the health between two probes that are too far apart.
            Some(streak)
                if streak.healthy == healthy && now.duration_since(streak.last) < THRESHOLD =>
            {
                Streak {
                    last: now,
                    ..streak
                }
            }
            _ => Streak {
                healthy,
                since: now,
                last: now,
            },
        };
        self.streak = Some(streak);
        let contradicted = if healthy { FALSE } else { TRUE };
        let waits = published == Some(contradicted) && now.duration_since(streak.since) < THRESHOLD;
        (!waits).then(|| probe.report())
    }
}

impl Probe {
    fn report(&self) -> Report {
        let (status, reason, message) = match self {
            Self::Healthy => (
                TRUE,
                "ClusterReady",
                "cluster is healthy and ready to accept workloads".to_owned(),
            ),
            Self::Unhealthy(answer) => (
                FALSE,
                "ClusterNotReady",
                format!("cluster is reachable but health endpoint responded without ok: {answer}"),
            ),
            Self::Unreachable(error) => (
                FALSE,
                "ClusterNotReachable",
                format!("cluster is not reachable: {error}"),
            ),
        };
        Report {
            status,
            reason,
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn down() -> Probe {
        Probe::Unreachable("connection refused".to_owned())
    }

    /// The first probe of a cluster without a verdict counts at once.
    #[test]
    fn first_probe_counts_at_once() {
        for published in [None, Some("Unknown"), Some("")] {
            for (probe, reason) in [
                (Probe::Healthy, "ClusterReady"),
                (Probe::Unhealthy("500".to_owned()), "ClusterNotReady"),
                (down(), "ClusterNotReachable"),
            ] {
                let report = Health::default().judge(&probe, published, Instant::now());
                assert_eq!(report.unwrap().reason, reason, "{published:?}");
            }
        }
    }

    /// A published verdict changes after half a minute of agreement.
    #[test]
    fn verdict_needs_lasting_agreement() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for (probe, published) in [(down(), TRUE), (Probe::Healthy, FALSE)] {
            let mut health = Health::default();
            for seconds in [0, 10, 20, 29] {
                let report = health.judge(&probe, Some(published), at(seconds));
                assert_eq!(report, None, "{published} after {seconds}s");
            }
            assert!(health.judge(&probe, Some(published), at(30)).is_some());
        }
    }

    /// One probe of the other kind and a gap begin the count anew.
    #[test]
    fn contrary_probe_restarts_count() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut health = Health::default();
        assert_eq!(health.judge(&down(), Some(TRUE), at(0)), None);
        assert!(health.judge(&Probe::Healthy, Some(TRUE), at(10)).is_some());
        assert_eq!(health.judge(&down(), Some(TRUE), at(20)), None);
        assert_eq!(health.judge(&down(), Some(TRUE), at(40)), None);
        assert_eq!(health.judge(&down(), Some(TRUE), at(300)), None);
    }

    /// A reason changes at once while the status stays.
    #[test]
    fn reason_changes_at_once() {
        let mut health = Health::default();
        let unhealthy = Probe::Unhealthy("500".to_owned());
        let report = health.judge(&unhealthy, Some(FALSE), Instant::now());
        assert_eq!(report.unwrap().reason, "ClusterNotReady");
    }

    proptest! {
        /// A flip needs half a minute without a probe to the contrary.
        #[test]
        fn flip_needs_agreement(
            probes in prop::collection::vec((any::<bool>(), 1_u64..15), 1..40),
        ) {
            let start = Instant::now();
            let (mut health, mut published, mut now) = (Health::default(), true, start);
            let mut last_agreement = start;
            for (healthy, pause) in probes {
                now += Duration::from_secs(pause);
                let probe = if healthy { Probe::Healthy } else { down() };
                let status = if published { TRUE } else { FALSE };
                if healthy == published {
                    last_agreement = now;
                }
                if let Some(report) = health.judge(&probe, Some(status), now) {
                    prop_assert_eq!(report.status == TRUE, healthy);
                    if healthy != published {
                        prop_assert!(now - last_agreement >= THRESHOLD);
                        published = healthy;
                        last_agreement = now;
                    }
                }
            }
        }
    }
}
