//! The agents' timing.

use std::time::Duration;

/// The timing of an agent's probe and of its votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTiming {
    /// The time from the start of a round to the start of the next.
    pub period: Duration,
    /// The time for which DNS must fail, or resolve again, until a node changes its vote.
    pub threshold: Duration,
}

impl ProbeTiming {
    /// The defaults of the agent's flags.
    pub const DEFAULT: Self = Self {
        period: Duration::from_secs(5),
        threshold: Duration::from_secs(30),
    };

    /// The timing of every test and of the sandbox, as short as is still like [`Self::DEFAULT`]:
    /// six rounds to a threshold, and a probe timeout (0.4 of the period, 200 ms) that a busy
    /// machine meets over loopback.
    pub const SHORT: Self = Self {
        period: Duration::from_millis(500),
        threshold: Duration::from_secs(3),
    };

    /// Returns the agent's flags for this timing.
    pub fn flags(self) -> [String; 3] {
        let (period, threshold) = (self.period.as_millis(), self.threshold.as_millis());
        [
            format!("--detect-period={period}ms"),
            format!("--detect-failure-threshold={threshold}ms"),
            format!("--detect-success-threshold={threshold}ms"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_give_both_thresholds_in_milliseconds() {
        let expected = [
            "--detect-period=500ms",
            "--detect-failure-threshold=3000ms",
            "--detect-success-threshold=3000ms",
        ];
        assert_eq!(ProbeTiming::SHORT.flags(), expected);
    }
}
