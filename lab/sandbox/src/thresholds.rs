//! The agents' timing.

use std::time::Duration;

use clap::ValueEnum;

/// The agents' timing, as a flag of the sandbox names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Thresholds {
    /// A round every 500 ms, thresholds of 3 s
    Short,
    /// The agent's own defaults: a round every 5 s, thresholds of 30 s
    Default,
}

impl Thresholds {
    /// Between the starts of two rounds of an agent.
    pub(crate) fn period(self) -> Duration {
        match self {
            Self::Short => Duration::from_millis(500),
            Self::Default => Duration::from_secs(5),
        }
    }

    /// How long DNS must fail until a node votes unhealthy.
    pub(crate) fn failure(self) -> Duration {
        match self {
            Self::Short => Duration::from_secs(3),
            Self::Default => Duration::from_secs(30),
        }
    }

    /// How long DNS must work again until a node votes healthy.
    pub(crate) fn success(self) -> Duration {
        self.failure()
    }

    /// An answer that takes this long comes too late for an agent's round, and for any pod.
    pub(crate) fn too_late(self) -> Duration {
        self.period().max(Duration::from_secs(1))
    }

    /// The agent's flags that say so.
    pub(crate) fn flags(self) -> Vec<String> {
        let millis = |duration: Duration| format!("{}ms", duration.as_millis());
        match self {
            Self::Default => Vec::new(),
            Self::Short => vec![
                format!("--detect-period={}", millis(self.period())),
                format!("--detect-failure-threshold={}", millis(self.failure())),
                format!("--detect-success-threshold={}", millis(self.success())),
            ],
        }
    }
}
