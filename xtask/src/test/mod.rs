//! `cargo xtask test`: builds the tests, runs them and adds up their results.
//!
//! - [`packages`] finds the packages to build for a name; [`executable`] has cargo build it.
//! - [`missing`] names the needs that the machine lacks, and builds the real parts.
//! - [`report`] reads libtest's output.

mod executable;
mod missing;
mod packages;
mod report;
mod selection;

use std::env;
use std::thread;

use anyhow::{Result, anyhow, bail, ensure};
use tools::cargo::PROGRAMS_BUILT;

use self::executable::Executable;
use self::missing::{Missing, ON_REAL_PARTS, is_on_real_parts};
use self::report::Report;
pub(crate) use self::selection::Selection;
use crate::phase::Phase;

/// The test binaries whose tests mostly wait, and how many of their tests run at once for each core. More of them
/// make each other late: a scenario of the sandbox has a fleet of its own, in real time, and so has a page.
const WAITING: [(&str, usize); 3] = [("built", 1), ("page", 1), ("pipeline", 2)];
/// The package with tests that print their findings.
const SIMULATION: &str = "simulation";
/// The number of slowest tests to print.
const SLOWEST: usize = 10;
/// Cargo's arguments for the tests in a browser, whose client takes a minute to compile.
pub(crate) const BROWSER: [&str; 2] = ["--features", "pipeline-tests/browser"];

/// Runs the tests. Where namespaces or, with `real`, tools or a browser are missing, the tests that need them are
/// counted as skipped; with `CI` set that is a failure.
pub(crate) fn run(selection: &Selection) -> Result<()> {
    missing::install_packages(selection);
    let (executables, missing) = thread::scope(|scope| {
        let missing = scope.spawn(|| look(selection));
        let phase = Phase::begin("tests: build", "6 min cold");
        let executables = build(selection);
        phase.end();
        let missing = missing
            .join()
            .map_err(|_| anyhow!("nobody looked for what is missing"))??;
        anyhow::Ok((executables?, missing))
    })?;
    let report = selection.test(&executables, &missing)?;
    selection.summarise(&report, &missing, &executables)
}

fn look(selection: &Selection) -> Result<Missing> {
    let phase = selection
        .real
        .then(|| Phase::begin("real parts: build", "20 min once"));
    let missing = Missing::look(selection);
    if let Some(phase) = phase {
        phase.end();
    }
    match missing.why.first() {
        Some(why) if env::var_os("CI").is_some() => bail!("{why:#}"),
        _ => Ok(missing),
    }
}

fn build(selection: &Selection) -> Result<Vec<Executable>> {
    let features: &[&str] = if selection.real { &BROWSER } else { &[] };
    if selection.names.is_empty() {
        return executable::build(None, features);
    }
    let packages = packages::with_tests(&selection.names)?;
    // Cargo knows a package's features by its name only where that package is built.
    let features = if packages.iter().any(|name| name == "pipeline-tests") {
        features
    } else {
        &[]
    };
    executable::build(Some(&packages), features)
}

impl Selection {
    /// Runs tests that compute, and then the tests that mostly wait: beside simulations these would be late.
    fn test(&self, executables: &[Executable], missing: &Missing) -> Result<Report> {
        let cores = thread::available_parallelism()?.get();
        let (mut computing, mut waiting) = (Vec::new(), Vec::new());
        for executable in executables {
            if missing.excludes(executable) {
                continue;
            }
            match WAITING.iter().find(|(name, _)| executable.name == *name) {
                Some((_, for_each_core)) => waiting.push((executable, cores * for_each_core)),
                None => computing.push((executable, cores)),
            }
        }
        let mut report = Report::default();
        for (name, expected, executables) in [
            ("tests: run what computes", "4 min", computing),
            ("tests: run what waits", "6 min", waiting),
        ] {
            let phase = Phase::begin(name, expected);
            for (executable, threads) in executables {
                report += self.run(executable, missing, threads)?;
            }
            phase.end();
        }
        Ok(report)
    }

    fn run(&self, executable: &Executable, missing: &Missing, threads: usize) -> Result<Report> {
        if !self.names.is_empty() && executable.list(&self.names)?.is_empty() {
            return Ok(Report::default());
        }
        let flag = format!("--test-threads={threads}");
        let mut arguments = vec![flag.as_str()];
        arguments.extend(self.names.iter().map(String::as_str));
        let left: &[_] = if self.real { &[] } else { &ON_REAL_PARTS };
        for part in left.iter().chain(missing.names()) {
            arguments.extend(["--skip", part]);
        }
        if executable.package == SIMULATION {
            arguments.push("--nocapture");
        }
        if self.long {
            arguments.push("--include-ignored");
        }
        // A build of the whole workspace has built the programs.
        let built = self.names.is_empty().then_some((PROGRAMS_BUILT, "1"));
        executable.run(&arguments, built.as_slice(), threads)
    }

    /// Prints the results.
    ///
    /// # Errors
    /// Fails if a test failed, or none ran.
    fn summarise(
        &self,
        report: &Report,
        missing: &Missing,
        executables: &[Executable],
    ) -> Result<()> {
        println!("the {SLOWEST} slowest tests:");
        for (time, name) in report.slowest(SLOWEST) {
            println!("{:>7.1} s  {name}", time.as_secs_f64());
        }
        for why in &missing.why {
            println!("{why:#}");
        }
        let (mut left, mut skipped) = (0, 0);
        for executable in executables {
            for test in executable.list(&self.names)? {
                if !self.real && is_on_real_parts(&test) {
                    left += 1;
                } else if missing.excludes(executable) || missing.skips(&test) {
                    skipped += 1;
                }
            }
        }
        let (passed, failed, ignored) = (report.passed, report.failed.len(), report.ignored);
        if left > 0 {
            println!(
                "{left} tests on real parts, and those in a browser, are left to `cargo xtask test --real`, which needs Go, curl, jq, openssl, Python and Chromium"
            );
        }
        if ignored > 0 {
            println!("{ignored} long tests are left to `--long`");
        }
        // At the end, where whoever sees a part of the output looks.
        for name in &report.failed {
            println!("FAILED {name}");
        }
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        ensure!(passed + failed > 0, "no test ran");
        ensure!(failed == 0, "{failed} tests failed");
        Ok(())
    }
}
