//! What a Kubernetes API must do: one suite of cases, run against any.
//!
//! Each case says what kube-apiserver 1.36 does, and was tried on it. A case works in a namespace
//! of its own, and on cluster-scoped objects that begin with its name; nothing is cleaned up.

#[macro_use]
mod check;

mod cases;
mod definitions;
mod server;
mod watch;

use anyhow::{Result, bail};
use futures::{StreamExt, stream};
use kube::Client;

use crate::server::Server;

/// How many cases run at once.
const AT_ONCE: usize = 8;

/// How many cases there are.
pub fn count() -> usize {
    cases::all().len()
}

/// Runs every case whose name contains `filter`, and says how many there were.
///
/// # Errors
/// Names each case that failed, with the reason.
pub async fn run(client: Client, filter: &str) -> Result<usize> {
    definitions::install(&Server::new(client.clone(), "suite")).await?;
    let cases: Vec<_> = cases::all()
        .into_iter()
        .filter(|case| case.name.contains(filter))
        .collect();
    let results: Vec<_> = stream::iter(&cases)
        .map(|case| async {
            let server = Server::new(client.clone(), case.name);
            (case.name, (case.run)(server).await)
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
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
