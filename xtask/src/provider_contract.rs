//! The contract of providers, on a program that runs already.

use std::path::{Path, PathBuf, absolute};

use anyhow::Result;
use clap::Args;

use crate::cargo;

/// The tests, one after the other: they share the program.
const TESTS: [&str; 10] = [
    "test",
    "--locked",
    "--package",
    "ingress-controller",
    "--features",
    "provider-contract",
    "--lib",
    "--",
    "--test-threads=1",
    "provider::webhook::tests::at_url",
];

/// The program, as the flags of the ingress-controller name it.
#[derive(Debug, Args)]
pub(crate) struct Provider {
    /// URL of the program, which must hold nothing of anybody's in the namespace `ns`
    #[arg(long)]
    url: String,
    /// File of the certificates by which it is known
    #[arg(long, value_name = "PATH")]
    certificate_authority: Option<PathBuf>,
    /// File of the bearer token for it
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
}

/// Runs the contract.
///
/// # Errors
/// Fails if the program does not keep it.
pub(crate) fn run(provider: &Provider) -> Result<()> {
    let ca = file(provider.certificate_authority.as_deref())?;
    let token = file(provider.token_file.as_deref())?;
    let variables = [
        ("PROVIDER_URL", &*provider.url),
        ("PROVIDER_CERTIFICATE_AUTHORITY", &ca),
        ("PROVIDER_TOKEN_FILE", &token),
    ];
    cargo::run(&TESTS, &variables)
}

/// Returns the path of a file for the tests, which run in another folder. It is empty without a file.
fn file(path: Option<&Path>) -> Result<String> {
    let path = path.map(absolute).transpose()?;
    Ok(path.as_deref().map_or_else(String::new, shown))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
