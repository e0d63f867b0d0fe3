//! `cargo xtask test`: everything that must hold before a change lands.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use pipeline_tests::{
    chromium, netns,
    tools::{self, Tool},
};

use crate::generate;

/// The package whose tests need real parts.
const REAL_PARTS: &str = "pipeline-tests";

/// The package whose tests run too often for an unoptimised build, and its profile.
const SIMULATION: &str = "simulation";
/// Begins the names of those of its tests that need a browser.
const IN_CHROMIUM: &str = "in_chromium::";

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    passed: u64,
    failed: u64,
}

/// Runs every check and every test. Where the tools for real parts or a browser are missing, the
/// tests that need them are counted as skipped; with `CI` set that is a failure.
pub(crate) fn run() -> Result<()> {
    check()?;
    install_packages();
    let missing = match (real_parts(), chromium::available()) {
        (Err(why), _) => Some((why.context("the tests on real parts cannot run"), "")),
        (_, Err(why)) => Some((
            why.context("the tests in a browser cannot run"),
            IN_CHROMIUM,
        )),
        _ => None,
    };
    let mut arguments = vec![
        "test",
        "--workspace",
        "--exclude",
        SIMULATION,
        "--locked",
        "--no-fail-fast",
    ];
    match &missing {
        Some((why, _)) if env::var_os("CI").is_some() => bail!("{why:#}"),
        Some((_, "")) => arguments.extend(["--exclude", REAL_PARTS]),
        Some((_, names)) => arguments.extend(["--", "--skip", names]),
        None => {}
    }
    let simulated = [
        "test",
        "--package",
        SIMULATION,
        "--profile",
        SIMULATION,
        "--locked",
        "--no-fail-fast",
        "--",
        "--nocapture",
    ];
    let all = [count(&arguments)?, count(&simulated)?];
    let passed: u64 = all.iter().map(|tally| tally.passed).sum();
    let failed: u64 = all.iter().map(|tally| tally.failed).sum();
    match missing {
        None => println!("{passed} passed, {failed} failed"),
        Some((why, names)) => {
            let skipped = listed(names)?;
            println!("{why:#}");
            println!("{passed} passed, {failed} failed, {skipped} skipped");
        }
    }
    ensure!(failed == 0, "{failed} tests failed");
    Ok(())
}

/// What needs no test to run: generated files, formatting, lints, documentation.
fn check() -> Result<()> {
    generate::run(true)?;
    cargo(&["fmt", "--all", "--check"], &[])?;
    let lint = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "--deny=warnings",
    ];
    cargo(&lint, &[])?;
    let docs = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ];
    cargo(&docs, &[("RUSTDOCFLAGS", "--deny=warnings")])
}

/// Builds the tools and makes sure that namespaces can be made.
fn real_parts() -> Result<()> {
    netns::available()?;
    tools::build(&Tool::ALL)?;
    Ok(())
}

/// On a CI machine that lets us, installs what a bare distribution may lack; elsewhere what is
/// missing is reported.
fn install_packages() {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let mut packages = Vec::new();
    if !(there("ip") && there("unshare")) {
        packages.extend(["iproute2", "util-linux"]);
    }
    if chromium::available().is_err() {
        packages.extend(["chromium", "fonts-liberation"]);
    }
    if env::var_os("CI").is_none() || packages.is_empty() {
        return;
    }
    let install = ["install", "--yes", "--no-install-recommends"];
    for arguments in [vec!["update", "--quiet"], [&install, &*packages].concat()] {
        // What is still missing afterwards is reported in one line by the caller.
        drop(Command::new("apt-get").args(arguments).status());
    }
}

fn cargo(arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    eprintln!("cargo {}", arguments.join(" "));
    let status = command(arguments)
        .envs(variables.iter().copied())
        .status()?;
    ensure!(status.success(), "`cargo {}` failed", arguments.join(" "));
    Ok(())
}

/// Runs tests, shows what they print, and adds up what every test binary says at its end.
fn count(arguments: &[&str]) -> Result<Tally> {
    eprintln!("cargo {}", arguments.join(" "));
    let mut child = command(arguments).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut tally = Tally::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if let Some(result) = line.strip_prefix("test result: ") {
            tally.passed += number_before(result, "passed")?;
            tally.failed += number_before(result, "failed")?;
        }
    }
    let status = child.wait()?;
    ensure!(
        status.success() || tally.failed > 0,
        "`cargo test` failed before it ran all tests"
    );
    ensure!(tally.passed > 0, "no test ran");
    Ok(tally)
}

/// How many tests need real parts, of those whose names have this in them.
fn listed(names: &str) -> Result<usize> {
    let list = [
        "test",
        "--package",
        REAL_PARTS,
        "--locked",
        "--",
        "--list",
        names,
    ];
    let output = command(&list).output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter(|line| line.ends_with(": test")).count())
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(crate::root());
    command
}

fn number_before(text: &str, word: &str) -> Result<u64> {
    let mut parts = text.split([';', '.']).map(str::trim);
    let part = parts.find_map(|part| part.strip_suffix(word));
    part.and_then(|number| number.trim().parse().ok())
        .with_context(|| format!("cannot count the tests in {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::number_before;

    #[test]
    fn the_last_line_of_a_test_binary_is_counted() {
        let line =
            "FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s";
        assert_eq!(number_before(line, "passed").unwrap(), 12);
        assert_eq!(number_before(line, "failed").unwrap(), 3);
        assert!(number_before("all is well", "passed").is_err());
    }
}
