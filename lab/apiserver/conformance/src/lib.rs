//! A conformance suite for Kubernetes APIs, which runs against any of them.
//!
//! Each case describes the behaviour of kube-apiserver 1.36 and was verified against it. A case
//! works in its own namespace and on cluster-scoped objects with its name as a prefix, and does not
//! clean up.

#[macro_use]
mod check;

mod cases;
mod definitions;
mod server;
mod watch;

use anyhow::{Result, bail};
use futures::{StreamExt, stream};
use kube::Client;

use crate::cases::Case;
use crate::server::Server;

/// The limit of cases that run concurrently.
const AT_ONCE: usize = 8;

/// Returns the number of cases that every server passes.
pub fn count() -> usize {
    cases::all().len()
}

/// Runs the cases that the embedded server does not pass, and returns the result of each by its name.
///
/// # Errors
/// Returns an error if the cases cannot be prepared.
pub async fn run_not_embedded(client: Client) -> Result<Vec<(&'static str, Result<()>)>> {
    definitions::install(&Server::new(client.clone(), "suite")).await?;
    Ok(results(&client, &cases::not_embedded()).await)
}

/// Runs every case whose name contains `filter`, except those that the embedded server does not pass, and
/// returns their number.
///
/// # Errors
/// Returns an error with the name and reason of each failed case.
pub async fn run(client: Client, filter: &str) -> Result<usize> {
    definitions::install(&Server::new(client.clone(), "suite")).await?;
    let cases: Vec<_> = cases::all()
        .into_iter()
        .filter(|case| case.name.contains(filter))
        .collect();
    let results = results(&client, &cases).await;
    let failures: Vec<_> = results
        .iter()
        .filter_map(|(name, result)| Some(format!("{name}: {:#}", result.as_ref().err()?)))
        .collect();
    if !failures.is_empty() {
        bail!(
            "{} of {} cases failed:\n{}",
            failures.len(),
            cases.len(),
            failures.join("\n")
        );
    }
    Ok(cases.len())
}

/// Runs cases, and returns the result of each by its name.
async fn results(client: &Client, cases: &[Case]) -> Vec<(&'static str, Result<()>)> {
    stream::iter(cases)
        .map(|case| async {
            let server = Server::new(client.clone(), case.name);
            (case.name, (case.run)(server).await)
        })
        .buffered(AT_ONCE)
        .collect()
        .await
}
