//! `cargo xtask test`: checks everything that must hold before a change lands.

mod executable;
mod missing;
mod report;

use std::env;
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow, bail, ensure};
use tools::cargo::PROGRAMS_BUILT;

use self::executable::Executable;
use self::missing::Missing;
use self::report::Report;
use crate::cargo;
use crate::deny::{self, Dependencies};

/// The test binaries whose tests mostly wait, and how many of their tests run at once for each core. More of them
/// make each other late: a scenario of the sandbox has a fleet of its own, in real time.
const WAITING: [(&str, usize); 2] = [("built", 1), ("pipeline", 2)];
/// The package whose tests print their findings.
const SIMULATION: &str = "simulation";
/// The number of slowest tests to print.
const SLOWEST: usize = 10;

/// The tests of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All but the long ones.
    EveryRun,
    /// The long ones, too, which `cargo test` ignores.
    Long,
}

/// Runs every check and the tests. Where namespaces, the tools for real parts or a browser are
/// missing, the tests that need them are counted as skipped; with `CI` set that is a failure.
pub(crate) fn run(extent: Extent) -> Result<()> {
    let missing = prepare()?;
    let begun = Instant::now();
    thread::scope(|scope| {
        let dependencies = scope.spawn(deny::check);
        check()?;
        phase("checks", begun);
        let executables = executable::build()?;
        phase("builds of tests", begun);
        let report = test(&executables, &missing, extent)?;
        phase("tests", begun);
        let dependencies = dependencies
            .join()
            .map_err(|_| anyhow!("no dependencies were checked"))?;
        summarise(&report, &missing, &executables, dependencies)
    })
}

/// Builds what is built once per machine, and looks for everything else that tests need of it.
fn prepare() -> Result<Missing> {
    let begun = Instant::now();
    missing::install_packages();
    let missing = Missing::look();
    if let Some(why) = missing.why.first()
        && env::var_os("CI").is_some()
    {
        bail!("{why:#}");
    }
    if let Err(why) = deny::install() {
        eprintln!("{why:#}");
    }
    phase("real parts and cargo-deny", begun);
    Ok(missing)
}

/// Prints the time at which a phase ended.
fn phase(name: &str, begun: Instant) {
    eprintln!("{name} done after {:.0} s", begun.elapsed().as_secs_f64());
}

/// Checks formatting and lints.
fn check() -> Result<()> {
    cargo::run(&["fmt", "--all", "--check"], &[])?;
    let lint = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "--deny=warnings",
    ];
    cargo::run(&lint, &[])
}

/// Builds the documentation, whose links must not be broken, and runs the examples in it.
fn document() -> Result<Report> {
    let docs = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ];
    let built = cargo::run(&docs, &[("RUSTDOCFLAGS", "--deny=warnings")]);
    let mut report = executable::documentation()?;
    // One run tells everything that is wrong, not only what is wrong first.
    if let Err(why) = built {
        println!("the documentation cannot be built: {why:#}");
        report.failed += 1;
    }
    Ok(report)
}

/// Runs what computes, and then the tests that mostly wait: beside compilers and simulations these would be late.
fn test(executables: &[Executable], missing: &Missing, extent: Extent) -> Result<Report> {
    let runnable = |executable: &&Executable| !missing.excludes(executable);
    let executables: Vec<_> = executables.iter().filter(runnable).collect();
    let waits = |executable: &Executable| WAITING.iter().any(|(name, _)| executable.name == *name);
    let cores = thread::available_parallelism()?.get();
    let skipped = missing.skips();
    let run = |executable: &Executable, threads: usize| {
        let flag = format!("--test-threads={threads}");
        let mut arguments = [&[flag.as_str()], skipped.as_slice()].concat();
        if executable.package == SIMULATION {
            arguments.push("--nocapture");
        }
        if extent == Extent::Long {
            arguments.push("--include-ignored");
        }
        // The programs are built, and a test that ran cargo would wait for `cargo doc`.
        executable.run(&arguments, &[(PROGRAMS_BUILT, "1")], threads)
    };
    let mut report = thread::scope(|scope| {
        let documenting = scope.spawn(document);
        let mut report = Report::default();
        for executable in executables.iter().filter(|executable| !waits(executable)) {
            report += run(executable, cores)?;
        }
        report += documenting
            .join()
            .map_err(|_| anyhow!("no documentation was built"))??;
        anyhow::Ok(report)
    })?;
    for (name, for_each_core) in WAITING {
        for executable in executables
            .iter()
            .filter(|executable| executable.name == name)
        {
            report += run(executable, cores * for_each_core)?;
        }
    }
    Ok(report)
}

/// Prints the results.
///
/// # Errors
/// Fails if a test failed, none ran, or a dependency was denied.
fn summarise(
    report: &Report,
    missing: &Missing,
    executables: &[Executable],
    dependencies: Dependencies,
) -> Result<()> {
    println!("the {SLOWEST} slowest tests:");
    for (time, name) in report.slowest(SLOWEST) {
        println!("{:>7.1} s  {name}", time.as_secs_f64());
    }
    for why in &missing.why {
        println!("{why:#}");
    }
    if let Dependencies::Unchecked(why) = &dependencies {
        println!("dependencies are not checked: {why:#}");
    }
    let skipped = missing.skipped(executables)?;
    let (passed, failed, ignored) = (report.passed, report.failed, report.ignored);
    if ignored > 0 {
        println!("{ignored} long tests are left to `cargo xtask test --long`");
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ensure!(passed > 0, "no test ran");
    ensure!(failed == 0, "{failed} tests failed");
    match dependencies {
        Dependencies::Denied(output) => bail!("`cargo deny` rejects dependencies:\n{output}"),
        Dependencies::Unchecked(_) | Dependencies::Allowed => Ok(()),
    }
}
