//! Tools and privileges that this machine lacks for some of the tests.

use std::env;
use std::process::Command;

use anyhow::{Error, Result, ensure};
use tools::{Tool, chromium, haproxy, namespaces, resolvers};

use super::executable::Executable;
use super::selection::Selection;

/// The package whose tests need namespaces.
const IN_NAMESPACES: &str = "pipeline-tests";
/// Parts of the names of the tests that need tools.
const WITH_TOOLS: [&str; 2] = ["real::", "with_tools::"];
/// Begins the names of the tests that need a browser.
const IN_CHROMIUM: &str = "in_chromium::";
/// A part of the names of the tests that need real resolvers, all of which are long.
const WITH_RESOLVERS: &str = "with_resolvers::";
/// The compilers of the resolvers, beside Go.
const COMPILERS: [&str; 2] = ["cc", "musl-gcc"];
/// A part of the names of the tests that need the interpreter of the example of a provider.
const WITH_PYTHON: &str = "with_python::";
/// That interpreter. Its package has the same name.
const PYTHON: &str = "python3";
/// A part of the names of the tests that need HAProxy.
const WITH_HAPROXY: &str = "with_haproxy::";
/// Parts of the names of the tests on real parts.
pub(super) const ON_REAL_PARTS: [&str; 6] = [
    WITH_TOOLS[0],
    WITH_TOOLS[1],
    IN_CHROMIUM,
    WITH_RESOLVERS,
    WITH_PYTHON,
    WITH_HAPROXY,
];

/// The programs that the commands of the install pages need. Their packages have the same names.
const OF_THE_PAGE: [&str; 3] = ["curl", "jq", "openssl"];

/// Parts of the names of the tests that run them all.
const WITH_THE_PAGE: [&str; 4] = [
    "clusters::with_tools::",
    "install::with_tools::",
    "placements::with_tools::",
    "takeover::with_tools::",
];

/// The things missing on this machine, and the tests that cannot run without them.
#[derive(Debug, Default)]
pub(super) struct Missing {
    pub(super) why: Vec<Error>,
    package: Option<&'static str>,
    /// Parts of their names.
    names: Vec<&'static str>,
}

impl Missing {
    /// Looks for the needs of every test and, for tests on real parts, builds the tools and looks for
    /// the rest.
    pub(super) fn look(selection: &Selection) -> Self {
        let mut missing = Self::default();
        if let Err(why) = namespaces::available() {
            let why = why.context("the tests of the pipeline cannot run");
            missing.why.push(why);
            missing.package = Some(IN_NAMESPACES);
            return missing;
        }
        if !selection.real {
            return missing;
        }
        let needed: Vec<Tool> = Tool::ALL
            .into_iter()
            .filter(|tool| selection.long || !tool.is_for_long_tests())
            .collect();
        let built = tools::build(&needed).map_err(Error::from);
        missing.require(built, "the tests on real parts", &WITH_TOOLS);
        if selection.long {
            let built = resolvers::build();
            missing.require(built, "the tests beside real resolvers", &[WITH_RESOLVERS]);
        }
        let found = on_the_path(&OF_THE_PAGE);
        missing.require(found, "the tests of the install pages", &WITH_THE_PAGE);
        let found = chromium::executable();
        missing.require(found, "the tests in a browser", &[IN_CHROMIUM]);
        let found = on_the_path(&[PYTHON]);
        let of_the_example = "the tests of the example of a provider";
        missing.require(found, of_the_example, &[WITH_PYTHON]);
        let found = haproxy::executable();
        missing.require(found, "the tests beside a real HAProxy", &[WITH_HAPROXY]);
        missing
    }

    /// Notes the error of a need of these tests. They have one of these parts in their names.
    fn require<T>(&mut self, found: Result<T>, tests: &str, names: &[&'static str]) {
        if let Err(why) = found {
            self.why.push(why.context(format!("{tests} cannot run")));
            self.names.extend(names);
        }
    }

    /// Returns `true` if no test of this executable can run.
    pub(super) fn excludes(&self, executable: &Executable) -> bool {
        self.package
            .is_some_and(|package| executable.package == package)
    }

    /// Returns `true` if this test of an executable cannot run.
    pub(super) fn skips(&self, test: &str) -> bool {
        self.names.iter().any(|name| test.contains(name))
    }

    /// Returns the parts of the names of tests that cannot run.
    pub(super) fn names(&self) -> &[&'static str] {
        &self.names
    }
}

/// Returns `true` if this is the name of a test on real parts, or in a browser.
pub(super) fn is_on_real_parts(test: &str) -> bool {
    ON_REAL_PARTS.iter().any(|part| test.contains(part))
}

/// Installs packages that a bare distribution may lack, on a CI machine that permits it. Elsewhere the
/// report names the missing ones.
pub(super) fn install_packages(selection: &Selection) {
    if env::var_os("CI").is_none() {
        return;
    }
    let mut packages = Vec::new();
    if !absent(&["ip", "unshare"]).is_empty() {
        packages.extend(["iproute2", "util-linux"]);
    }
    if selection.real {
        packages.extend(absent(&OF_THE_PAGE));
        packages.extend(absent(&[PYTHON]));
        if chromium::executable().is_err() {
            packages.extend(["chromium", "fonts-liberation"]);
        }
        if haproxy::executable().is_err() {
            packages.push("haproxy");
        }
        if selection.long && !absent(&COMPILERS).is_empty() {
            packages.extend(["gcc", "musl-tools"]);
        }
    }
    if packages.is_empty() {
        return;
    }
    let install = ["install", "--yes", "--no-install-recommends"];
    for arguments in [vec!["update", "--quiet"], [&install, &*packages].concat()] {
        // The caller reports needs that are still missing afterwards.
        drop(Command::new("apt-get").args(arguments).status());
    }
}

fn on_the_path(programs: &[&'static str]) -> Result<()> {
    let absent = absent(programs).join("` and no `");
    ensure!(
        absent.is_empty(),
        "there is no `{absent}` on the PATH, install it"
    );
    Ok(())
}

/// Returns those of these programs that this machine lacks.
fn absent(programs: &[&'static str]) -> Vec<&'static str> {
    let programs = programs.iter().copied();
    programs
        .filter(|program| Command::new(program).arg("--version").output().is_err())
        .collect()
}
