//! The resolvers of pods: one small program that looks a name up, built with glibc, with musl, and with Go's
//! own resolver.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cache;

/// Advice for machines that lack a compiler.
const HELP: &str = "real resolvers are built with cc, musl-gcc and go: install the packages `gcc` and \
    `musl-tools`, and Go";

/// The programs, each with the name to look up as its argument.
#[derive(Clone, Debug)]
pub struct Lookups {
    /// With glibc.
    pub glibc: PathBuf,
    /// With musl.
    pub musl: PathBuf,
    /// With Go's own resolver.
    pub go: PathBuf,
}

impl Lookups {
    /// Returns the programs, which must have been [built](build) before.
    pub fn built() -> Result<Self> {
        let lookups = Self::paths()?;
        let Self { glibc, musl, go } = &lookups;
        ensure!(
            [glibc, musl, go].iter().all(|program| program.is_file()),
            "the resolvers are not built: run `cargo xtask tools`"
        );
        Ok(lookups)
    }

    fn paths() -> Result<Self> {
        let folder = cache()?.join("resolvers");
        let [glibc, musl, go] = ["glibc", "musl", "go"].map(|name| folder.join(name));
        Ok(Self { glibc, musl, go })
    }
}

/// Builds the programs.
///
/// # Errors
/// There is no compiler for one of them; the error has advice.
pub fn build() -> Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("resolvers");
    let Lookups { glibc, musl, go } = &Lookups::paths()?;
    if let Some(folder) = glibc.parent() {
        fs::create_dir_all(folder)?;
    }
    let [c, in_go] = ["lookup.c", "lookup.go"].map(|name| source.join(name));
    compile(Command::new("cc").arg("-o"), glibc, &c)?;
    compile(Command::new("musl-gcc").args(["-static", "-o"]), musl, &c)?;
    let mut build = Command::new("go");
    build.env("CGO_ENABLED", "0").env("GOWORK", "off");
    compile(build.args(["build", "-o"]), go, &in_go)
}

/// Has a compiler write `program`. It moves into place, so that one that runs is not written to.
fn compile(compiler: &mut Command, program: &Path, source: &Path) -> Result<()> {
    let building = program.with_extension(std::process::id().to_string());
    compiler.args([building.as_os_str(), source.as_ref() as &OsStr]);
    let output = compiler.output().context(HELP)?;
    ensure!(
        output.status.success(),
        "{HELP}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(fs::rename(building, program)?)
}
