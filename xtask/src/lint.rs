//! `cargo xtask lint`: the checks of a reader of the code: formatting, lints, documentation and its examples, and the
//! licences of dependencies.

use std::thread;

use anyhow::{Result, anyhow, bail, ensure};

use crate::cargo;
use crate::deny::{self, Dependencies};
use crate::phase::Phase;
use crate::test::BROWSER;

/// Runs every check, and names all that fail.
pub(crate) fn run() -> Result<()> {
    thread::scope(|scope| {
        let dependencies = scope.spawn(|| {
            deny::install()?;
            deny::check()
        });
        let failed: Vec<_> = [
            check("formatting", "a second", format),
            check("lints", "6 min cold", clippy),
            check("documentation", "3 min", document),
        ]
        .into_iter()
        .filter_map(Result::err)
        .collect();
        let dependencies = dependencies
            .join()
            .map_err(|_| anyhow!("no dependencies were checked"))?;
        for why in &failed {
            eprintln!("{why:#}");
        }
        match dependencies {
            Ok(Dependencies::Denied(output)) => {
                bail!("`cargo deny` rejects dependencies:\n{output}")
            }
            Ok(Dependencies::Allowed) => {}
            Err(why) if std::env::var_os("CI").is_some() => return Err(why),
            Err(why) => eprintln!("dependencies are not checked: {why:#}"),
        }
        ensure!(failed.is_empty(), "{} of the checks failed", failed.len());
        Ok(())
    })
}

fn check(name: &'static str, expected: &str, check: fn() -> Result<()>) -> Result<()> {
    let phase = Phase::begin(name, expected);
    let result = check();
    phase.end();
    result
}

fn format() -> Result<()> {
    cargo::run(&["fmt", "--all", "--check"], &[])
}

fn clippy() -> Result<()> {
    let targets = ["clippy", "--workspace", "--all-targets", "--locked"];
    cargo::run(
        &[&targets, &BROWSER[..], &["--", "--deny=warnings"]].concat(),
        &[],
    )
}

/// Builds the documentation, whose links must not be broken, and runs the examples in it.
fn document() -> Result<()> {
    let docs = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ];
    cargo::run(
        &[&docs, &BROWSER[..]].concat(),
        &[("RUSTDOCFLAGS", "--deny=warnings")],
    )?;
    cargo::run(
        &["test", "--workspace", "--locked", "--doc", "--no-fail-fast"],
        &[],
    )
}
