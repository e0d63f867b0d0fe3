//! Tools and privileges that this machine lacks for some of the tests.

use std::env;
use std::process::Command;

use anyhow::anyhow;
use tools::{Tool, chromium, haproxy, namespaces, resolvers};

use super::executable::Executable;

/// The package whose tests need namespaces.
const IN_NAMESPACES: &str = "pipeline-tests";
/// Begins the names of the tests that need a browser.
const IN_CHROMIUM: &str = "in_chromium::";

/// A part of the names of the tests that need real resolvers.
const WITH_RESOLVERS: &str = "with_resolvers::";
/// A part of the names of the tests that need the interpreter of the example of a provider.
const WITH_PYTHON: &str = "with_python::";
/// That interpreter. Its package has the same name.
const PYTHON: &str = "python3";
/// A part of the names of the tests that need HAProxy.
const WITH_HAPROXY: &str = "with_haproxy::";
/// Parts of the names of the tests on real parts.
pub(super) const ON_REAL_PARTS: [&str; 6] = [
    tools::NEEDED_BY[0],
    tools::NEEDED_BY[1],
    IN_CHROMIUM,
    WITH_RESOLVERS,
    WITH_PYTHON,
    WITH_HAPROXY,
];

/// The programs that the commands of the install pages need.
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
    pub(super) why: Vec<anyhow::Error>,
    package: Option<&'static str>,
    /// Parts of their names.
    names: Vec<&'static str>,
}

impl Missing {
    /// Looks for what every test needs of the machine and, for tests on real parts, builds the tools and looks for
    /// the rest.
    pub(super) fn look(real: bool) -> Self {
        let mut missing = Self::default();
        if let Err(why) = namespaces::available() {
            let why = why.context("the tests of the pipeline cannot run");
            missing.why.push(why);
            missing.package = Some(IN_NAMESPACES);
            return missing;
        }
        if !real {
            return missing;
        }
        if let Err(why) = tools::build(&Tool::ALL) {
            let why = anyhow::Error::from(why).context("the tests on real parts cannot run");
            missing.why.push(why);
            missing.names.extend(tools::NEEDED_BY);
        }
        let absent: Vec<_> = absent().collect();
        if !absent.is_empty() {
            let absent = absent.join("` and no `");
            let why = anyhow!("there is no `{absent}` on the PATH, install it");
            let why = why.context("the tests of the install pages cannot run");
            missing.why.push(why);
            missing.names.extend(WITH_THE_PAGE);
        }
        if let Err(why) = chromium::executable() {
            let why = why.context("the tests in a browser cannot run");
            missing.why.push(why);
            missing.names.push(IN_CHROMIUM);
        }
        if let Err(why) = resolvers::build() {
            let why = why.context("the tests beside real resolvers cannot run");
            missing.why.push(why);
            missing.names.push(WITH_RESOLVERS);
        }
        if !there(PYTHON) {
            let why = anyhow!("there is no `{PYTHON}` on the PATH, install it");
            let why = why.context("the tests of the example of a provider cannot run");
            missing.why.push(why);
            missing.names.push(WITH_PYTHON);
        }
        if let Err(why) = haproxy::executable() {
            let why = why.context("the tests beside a real HAProxy cannot run");
            missing.why.push(why);
            missing.names.push(WITH_HAPROXY);
        }
        missing
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

    /// Returns the parts of names whose tests cannot run.
    pub(super) fn names(&self) -> &[&'static str] {
        &self.names
    }
}

/// Returns `true` if this is the name of a test on real parts, or in a browser.
pub(super) fn is_on_real_parts(test: &str) -> bool {
    ON_REAL_PARTS.iter().any(|part| test.contains(part))
}

/// Installs what a bare distribution may lack, on a CI machine that permits it. Elsewhere the
/// report names what is missing.
pub(super) fn install_packages(real: bool) {
    let mut packages = Vec::new();
    if !(there("ip") && there("unshare")) {
        packages.extend(["iproute2", "util-linux"]);
    }
    if real {
        packages.extend(absent());
    }
    if real && chromium::executable().is_err() {
        packages.extend(["chromium", "fonts-liberation"]);
    }
    if real && resolvers::build().is_err() {
        packages.extend(["gcc", "musl-tools"]);
    }
    if real && !there(PYTHON) {
        packages.push(PYTHON);
    }
    if real && haproxy::executable().is_err() {
        packages.push("haproxy");
    }
    if env::var_os("CI").is_none() || packages.is_empty() {
        return;
    }
    let install = ["install", "--yes", "--no-install-recommends"];
    for arguments in [vec!["update", "--quiet"], [&install, &*packages].concat()] {
        // The caller reports what is still missing afterwards.
        drop(Command::new("apt-get").args(arguments).status());
    }
}

/// Returns the programs that the page needs and this machine lacks. Their packages have the same names.
fn absent() -> impl Iterator<Item = &'static str> {
    OF_THE_PAGE.into_iter().filter(|program| !there(program))
}

fn there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
