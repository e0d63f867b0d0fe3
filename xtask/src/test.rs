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

/// The package whose tests need namespaces.
const IN_NAMESPACES: &str = "pipeline-tests";

/// The package whose tests print what they found.
const SIMULATION: &str = "simulation";
/// Begins the names of the tests that need a browser.
const IN_CHROMIUM: &str = "in_chromium::";

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    passed: u64,
    failed: u64,
}

/// What is not here, and which tests cannot run without it.
#[derive(Debug, Default)]
struct Missing {
    why: Vec<anyhow::Error>,
    package: Option<&'static str>,
    /// What their names have in them.
    names: Vec<&'static str>,
}

/// Runs every check and every test. Where namespaces, the tools for real parts or a browser are
/// missing, the tests that need them are counted as skipped; with `CI` set that is a failure.
pub(crate) fn run() -> Result<()> {
    check()?;
    install_packages();
    let missing = Missing::look();
    if let Some(why) = missing.why.first()
        && env::var_os("CI").is_some()
    {
        bail!("{why:#}");
    }
    let workspace = [
        "test",
        "--workspace",
        "--exclude",
        SIMULATION,
        "--locked",
        "--no-fail-fast",
    ];
    let mut arguments = workspace.to_vec();
    if let Some(package) = missing.package {
        arguments.extend(["--exclude", package]);
    }
    arguments.push("--");
    arguments.extend(missing.names.iter().flat_map(|name| ["--skip", name]));
    let simulated = [
        "test",
        "--package",
        SIMULATION,
        "--locked",
        "--no-fail-fast",
        "--",
        "--nocapture",
    ];
    let all = [count(&arguments)?, count(&simulated)?];
    let passed: u64 = all.iter().map(|tally| tally.passed).sum();
    let failed: u64 = all.iter().map(|tally| tally.failed).sum();
    for why in &missing.why {
        println!("{why:#}");
    }
    let skipped = missing.skipped(&workspace)?;
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ensure!(failed == 0, "{failed} tests failed");
    Ok(())
}

impl Missing {
    /// Builds the tools, and sees what there is.
    fn look() -> Self {
        let mut missing = Self::default();
        if let Err(why) = netns::available() {
            let why = why.context("the tests of the pipeline cannot run");
            missing.why.push(why);
            missing.package = Some(IN_NAMESPACES);
            return missing;
        }
        if let Err(why) = tools::build(&Tool::ALL) {
            let why = anyhow::Error::from(why).context("the tests on real parts cannot run");
            missing.why.push(why);
            missing.names.extend(tools::NEEDED_BY);
        }
        if let Err(why) = chromium::available() {
            let why = why.context("the tests in a browser cannot run");
            missing.why.push(why);
            missing.names.push(IN_CHROMIUM);
        }
        missing
    }

    /// How many tests of the workspace cannot run.
    fn skipped(&self, workspace: &[&str]) -> Result<usize> {
        let of_package = self
            .package
            .map(|package| ["test", "--locked", "--package", package]);
        let selected = match &of_package {
            Some(of_package) => &of_package[..],
            None if self.names.is_empty() => return Ok(0),
            None => workspace,
        };
        let list = [selected, &["--", "--list"], &self.names].concat();
        let output = command(&list).output()?;
        ensure!(
            output.status.success(),
            "cannot list the tests that are skipped"
        );
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().filter(|line| line.ends_with(": test")).count())
    }
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
