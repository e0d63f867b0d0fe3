//! The test executables that cargo builds, and their runs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::report::{Lines, Report};
use crate::cargo;

/// One test binary of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Executable {
    pub(super) package: String,
    /// The name of the library, the program or the integration test.
    pub(super) name: String,
    path: PathBuf,
    /// The package's folder, in which cargo runs its tests.
    folder: PathBuf,
}

/// Builds the tests of these packages, or of the whole workspace, and the programs that tests start.
pub(super) fn build(selected: Option<&[String]>, features: &[&str]) -> Result<Vec<Executable>> {
    // `cargo test` builds only the programs of packages that have a folder of tests.
    let mut arguments = vec![
        "build",
        "--tests",
        "--bins",
        "--locked",
        "--message-format=json-render-diagnostics",
    ];
    arguments.extend(features);
    match selected {
        // One build of all packages: with fewer of them, dependencies would have fewer features, and
        // be built once more.
        None => arguments.push("--workspace"),
        Some(packages) => arguments.extend(packages.iter().flat_map(|name| ["--package", name])),
    }
    eprintln!("cargo {}", arguments.join(" "));
    let mut child = cargo::command(&arguments).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut executables = Vec::new();
    for line in BufReader::new(output).lines() {
        executables.extend(built(&line?));
    }
    ensure!(child.wait()?.success(), "the tests cannot be built");
    ensure!(!executables.is_empty(), "cargo has built no test");
    executables.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(executables)
}

/// Reads the test executable out of a
/// [message](https://doc.rust-lang.org/cargo/reference/external-tools.html#artifact-messages), if
/// the message is about one.
fn built(message: &str) -> Option<Executable> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let id = message["package_id"].as_str()?;
    let (source, version) = id.rsplit_once('#')?;
    // A package that is named as its folder has no name after the `#`.
    let package = match version.split_once('@') {
        Some((name, _)) => name,
        None => source.rsplit('/').next()?,
    };
    Some(Executable {
        package: package.to_owned(),
        name: message["target"]["name"].as_str()?.to_owned(),
        path: message["executable"].as_str()?.into(),
        folder: folder.to_owned(),
    })
}

impl Executable {
    /// Runs the tests, and passes on their output.
    pub(super) fn run(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
        threads: usize,
    ) -> Result<Report> {
        let Self { package, name, .. } = self;
        println!("\n{package}: {name}");
        let mut lines = Lines::new(threads);
        let mut command = self.command();
        command.args(arguments).envs(variables.iter().copied());
        let success = show(&mut command, |line| lines.read(line, Instant::now()))?;
        let mut report = lines.report(&format!("{package}: {name}"));
        if !success && report.failed.is_empty() {
            let ended = format!("{package}: {name} ended before it had run all of its tests");
            report.failed.push(ended);
        }
        Ok(report)
    }

    /// Returns the names of the tests that have one of these in them; without any, of all tests.
    pub(super) fn list(&self, names: &[String]) -> Result<Vec<String>> {
        let output = self.command().arg("--list").args(names).output()?;
        ensure!(
            output.status.success(),
            "cannot list the tests of {}",
            self.package
        );
        let text = String::from_utf8(output.stdout)?;
        let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(tests.map(str::to_owned).collect())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Runs a command, prints its standard output and has every line of it read.
fn show(command: &mut Command, mut read: impl FnMut(&str)) -> Result<bool> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().context("no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        read(&line);
    }
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": id,
            "manifest_path": "/rs/tests/Cargo.toml",
            "target": { "name": "pipeline" },
            "profile": { "test": test },
            "executable": "/rs/target/debug/deps/pipeline-0",
        })
        .to_string()
    }

    /// A test executable is found with its package.
    #[test]
    fn test_executable_is_found() {
        let named = "path+file:///rs/tests#pipeline-tests@0.1.0";
        let found = built(&message(named, true)).unwrap();
        assert_eq!(
            (&*found.package, &*found.name),
            ("pipeline-tests", "pipeline")
        );
        assert_eq!(found.folder, Path::new("/rs/tests"));
        let as_folder = "path+file:///rs/lab/simulation#0.1.0";
        assert_eq!(
            built(&message(as_folder, true)).unwrap().package,
            "simulation"
        );
    }

    /// A message about anything but a test executable is passed over.
    #[test]
    fn other_messages_are_skipped() {
        assert_eq!(
            built(&message("path+file:///rs/tests#a@0.1.0", false)),
            None
        );
        assert_eq!(built(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(built("no json"), None);
    }
}
