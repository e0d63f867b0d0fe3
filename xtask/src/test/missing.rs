//! Tools and privileges that this machine lacks for some of the tests.

use std::env;
use std::process::Command;

use anyhow::{Result, anyhow};
use tools::{Tool, chromium, namespaces};

use super::executable::Executable;

/// The package whose tests need namespaces.
const IN_NAMESPACES: &str = "pipeline-tests";
/// Begins the names of the tests that need a browser.
const IN_CHROMIUM: &str = "in_chromium::";

/// The programs that the commands of the install pages need.
const OF_THE_PAGE: [&str; 2] = ["jq", "openssl"];

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
    /// Builds the tools, and looks for everything else.
    pub(super) fn look() -> Self {
        let mut missing = Self::default();
        if let Err(why) = namespaces::available() {
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
        missing
    }

    /// Returns `true` if no test of this executable can run.
    pub(super) fn excludes(&self, executable: &Executable) -> bool {
        self.package
            .is_some_and(|package| executable.package == package)
    }

    /// Returns libtest's arguments that leave out the tests that cannot run.
    pub(super) fn skips(&self) -> Vec<&'static str> {
        let skip = |name: &&'static str| ["--skip", *name];
        self.names.iter().flat_map(skip).collect()
    }

    /// Counts the tests that cannot run.
    pub(super) fn skipped(&self, executables: &[Executable]) -> Result<usize> {
        let mut skipped = 0;
        for executable in executables {
            if self.excludes(executable) {
                skipped += executable.count(&[])?;
            } else if !self.names.is_empty() {
                skipped += executable.count(&self.names)?;
            }
        }
        Ok(skipped)
    }
}

/// Installs what a bare distribution may lack, on a CI machine that permits it. Elsewhere the
/// report names what is missing.
pub(super) fn install_packages() {
    let mut packages = Vec::new();
    if !(there("ip") && there("unshare")) {
        packages.extend(["iproute2", "util-linux"]);
    }
    packages.extend(absent());
    if chromium::executable().is_err() {
        packages.extend(["chromium", "fonts-liberation"]);
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
