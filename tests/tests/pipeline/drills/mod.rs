//! Drills: faults as those who run a fleet meet them, and whether they are woken and find the cause.
//!
//! Each has the same three steps, by a [`Drill`]:
//!
//! 1. The fault is staged with real programs on real APIs. Their answers at `/metrics` are
//!    [recorded](Drill::record) before it, and during it.
//! 2. `alert`: the real promtool finds that the alert does not fire on the first record, and
//!    [fires](Drill::fires) on the others, by the rules that are shipped.
//! 3. `runbook`: the commands that its page lists under *Look* [name](Drill::names) the cause.
//!
//! | In `real` | The faults |
//! |---|---|
//! | `traffic` | a Remedy blocks every cluster; DNS flaps on one node; HAProxy is down |
//! | `members` | the token for a member has ended; a quota refuses a Work |
//! | `templates` | nobody schedules; a script leaves a template alone |
//! | `api` | an API answers 429; Karmada's controllers run again |

mod alert;
mod real;
mod runbook;

use anyhow::Result;
use pipeline_tests::control_plane::ControlPlane;
use serde_json::Value;

use alert::{Record, Target};

/// A drill of an alert.
struct Drill {
    alert: &'static str,
    /// The first is of the time before the fault.
    records: Vec<Record>,
}

impl Drill {
    /// Returns a drill of this alert.
    fn of(alert: &'static str) -> Self {
        let records = Vec::new();
        Self { alert, records }
    }

    /// Records the programs' current reports.
    async fn record(&mut self, targets: &[Target<'_>]) -> Result<()> {
        self.records.push(Record::of(targets).await?);
        Ok(())
    }

    /// Returns the value that a metric has in the last record.
    fn last(&self, metric: &str) -> Option<f64> {
        self.records.last()?.value(metric)
    }

    /// Asserts that the alert does not fire before the fault, and does so many minutes after the last record, with these
    /// labels and this summary and no other.
    fn fires(&self, minutes: usize, labels: &Value, summary: &str) -> Result<()> {
        alert::fires(self.alert, &self.records, minutes, labels, summary)
    }

    /// Asserts that the commands of the runbook show the cause: all of these words. They have these contexts, the first being
    /// the current one, and these values in their open places.
    async fn names(
        &self,
        contexts: &[(&str, &ControlPlane)],
        values: &[(&str, &str)],
        cause: &[&str],
    ) -> Result<()> {
        runbook::names(self.alert, contexts, values, cause).await
    }
}
