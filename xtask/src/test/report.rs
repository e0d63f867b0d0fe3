//! The output of test executables, added up.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// The results and durations of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) passed: usize,
    /// The names of those that failed.
    pub(super) failed: Vec<String>,
    pub(super) ignored: usize,
    times: Vec<(Duration, String)>,
}

impl Report {
    /// Returns the slowest tests, the slowest first.
    pub(super) fn slowest(&self, count: usize) -> Vec<&(Duration, String)> {
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        times.truncate(count);
        times
    }
}

impl AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.ignored += other.ignored;
        self.times.extend(other.times);
    }
}

/// Reads libtest's output in one run of an executable.
///
/// libtest on a stable toolchain does not print times, only that a test has ended. It starts tests
/// in the order of their names, the next one whenever one ends: so the moment at which each started
/// follows from those at which others ended.
#[derive(Debug)]
pub(super) struct Lines {
    threads: usize,
    begun: Option<Instant>,
    ended: Vec<(Instant, String, Outcome)>,
    /// True once the output of failed tests follows, in which anything may be printed.
    over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// It had its place in the order, too.
    Ignored,
}

impl Lines {
    /// Begins to read the output of a run with so many threads.
    pub(super) fn new(threads: usize) -> Self {
        Self {
            threads,
            begun: None,
            ended: Vec::new(),
            over: false,
        }
    }

    /// Reads a line that came at this moment.
    pub(super) fn read(&mut self, line: &str, at: Instant) {
        if self.over {
            return;
        }
        if self.begun.is_none() {
            let running = line.starts_with("running ") && line.contains(" test");
            self.begun = running.then_some(at);
            return;
        }
        if line == "failures:" {
            self.over = true;
            return;
        }
        let Some((name, outcome)) = line
            .strip_prefix("test ")
            .and_then(|line| line.rsplit_once(" ... "))
        else {
            return;
        };
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        let outcome = match outcome.split(',').next() {
            Some("ok") => Outcome::Passed,
            Some("FAILED") => Outcome::Failed,
            Some("ignored") => Outcome::Ignored,
            _ => return,
        };
        self.ended.push((at, name.to_owned(), outcome));
    }

    /// Adds the results up.
    pub(super) fn report(self, executable: &str) -> Report {
        let mut names: Vec<&str> = self.ended.iter().map(|(_, name, _)| &**name).collect();
        names.sort_unstable();
        let mut report = Report::default();
        for (at, name, outcome) in &self.ended {
            let full = format!("{executable}: {name}");
            if let Some(started) = self.started(&names, name) {
                let time = at.saturating_duration_since(started);
                report.times.push((time, full.clone()));
            }
            match outcome {
                Outcome::Passed => report.passed += 1,
                Outcome::Failed => report.failed.push(full),
                Outcome::Ignored => report.ignored += 1,
            }
        }
        report
    }

    /// Returns the moment at which a test started. `names` are those of all tests, sorted.
    fn started(&self, names: &[&str], name: &str) -> Option<Instant> {
        let nth = names.binary_search(&name).ok()?;
        match nth.checked_sub(self.threads) {
            Some(earlier) => self.ended.get(earlier).map(|(at, ..)| *at),
            None => self.begun,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(threads: usize, lines: &[(u64, &str)]) -> Report {
        let begun = Instant::now();
        let mut reading = Lines::new(threads);
        for (second, line) in lines {
            reading.read(line, begun + Duration::from_secs(*second));
        }
        reading.report("lib")
    }

    fn seconds(report: &Report) -> Vec<(u64, &str)> {
        let slowest = report.slowest(10).into_iter();
        slowest
            .map(|(time, name)| (time.as_secs(), &**name))
            .collect()
    }

    /// A test takes from the end of an earlier one to its own.
    #[test]
    fn times_follow_from_ends() {
        let report = read(
            2,
            &[
                (0, "running 4 tests"),
                (1, "test b ... ok"),
                (4, "test c - should panic ... ok"),
                (6, "test d ... FAILED"),
                (9, "test a ... ok"),
            ],
        );
        assert_eq!((report.passed, report.failed.len()), (3, 1));
        // `a` and `b` started at once, `c` when `b` ended, `d` when `c` did.
        let expected = [(9, "lib: a"), (3, "lib: c"), (2, "lib: d"), (1, "lib: b")];
        assert_eq!(seconds(&report), expected);
    }

    /// The output of a failed test is not counted.
    #[test]
    fn output_of_failures_is_ignored() {
        let report = read(
            1,
            &[
                (0, "running 1 test"),
                (2, "test outer ... FAILED"),
                (2, "failures:"),
                (2, "running 1 test"),
                (2, "test outer ... FAILED"),
                (2, "test result: FAILED. 0 passed; 1 failed"),
                (2, "test result: FAILED. 0 passed; 1 failed"),
            ],
        );
        assert_eq!(report.failed, ["lib: outer"]);
        assert_eq!(report.passed, 0);
    }

    /// Ignored tests have no time, and other lines are passed over.
    #[test]
    fn ignored_tests_are_counted() {
        let report = read(
            1,
            &[
                (0, "test early ... ok"),
                (0, "running 2 tests"),
                (1, "test a ... ignored, needs a network"),
                (1, "converged: 10 sequences"),
                (3, "test b ... ok"),
            ],
        );
        assert_eq!((report.passed, report.ignored), (1, 1));
        assert_eq!(report.failed, [""; 0]);
        assert_eq!(report.slowest(1)[0].0, Duration::from_secs(2));
    }
}
