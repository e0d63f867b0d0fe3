//! The number of Events that a program may write.

use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

/// A number of Events at once, and so many each second after that: the flags of the programs that record Events.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventBudget {
    /// Events that may be written at once. Beyond that and --events-per-second, warnings wait, and others are dropped and counted.
    #[arg(long = "events-burst", default_value_t = 300, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub burst: u32,
    /// Events that may be written each second after that.
    #[arg(long = "events-per-second", default_value_t = 20, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub per_second: u32,
}

/// The rest of a budget.
#[derive(Debug)]
pub(super) struct Allowance {
    budget: EventBudget,
    /// The instant at which all of it is left again: each Event puts it off.
    full_at: Instant,
}

impl Allowance {
    pub(super) fn of(budget: EventBudget) -> Self {
        Self {
            budget,
            full_at: Instant::now(),
        }
    }

    /// Takes an Event out of the budget, or returns when there is one to be taken.
    pub(super) fn take(&mut self) -> Result<(), Instant> {
        let one = Duration::from_secs(1) / self.budget.per_second.max(1);
        let now = Instant::now();
        let full_at = self.full_at.max(now) + one;
        let free_at = full_at.checked_sub(one * self.budget.burst.max(1));
        match free_at {
            Some(free_at) if now < free_at => Err(free_at),
            _ => {
                self.full_at = full_at;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst is free, then each second has its share, and the unused rest is there for the next burst.
    #[tokio::test(start_paused = true)]
    async fn budget_fills_again() {
        let mut allowance = Allowance::of(EventBudget {
            burst: 3,
            per_second: 2,
        });
        let mut counts = Vec::new();
        for seconds in [0, 1, 1, 60] {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            counts.push((0..10).filter(|_| allowance.take().is_ok()).count());
        }
        assert_eq!(counts, [3, 2, 2, 3]);
    }
}
