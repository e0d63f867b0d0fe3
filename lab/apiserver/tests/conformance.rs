//! The embedded server conforms to the Kubernetes API.

use std::io::{Write, stderr};

use embedded_apiserver::ApiServer;
use kube::Client;

#[tokio::test]
async fn the_embedded_server_conforms() {
    let client = Client::new(ApiServer::new().service(), "default");
    let ran = api_conformance::run(client, "").await.unwrap();
    // Past libtest, which shows the output of failed tests only.
    writeln!(stderr(), "{ran} cases ran on the embedded server").unwrap();
}

/// The page names every case that this server fails, and nothing else.
#[tokio::test]
async fn page_lists_every_difference() {
    let page = include_str!("../README.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: Vec<&str> = rows
        .filter_map(|row| Some(row.split_once('`')?.0))
        .collect();
    let client = Client::new(ApiServer::new().service(), "default");
    let results = api_conformance::run_not_embedded(client).await.unwrap();
    let cases: Vec<&str> = results.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, cases);
    let passed = results.iter().filter(|(_, result)| result.is_ok());
    let passed: Vec<&str> = passed.map(|(name, _)| *name).collect();
    assert_eq!(passed, Vec::<&str>::new(), "no longer a difference");
}

/// The example that the page shows is the one that is built.
#[test]
fn page_shows_the_example() {
    let page = include_str!("../README.md");
    let example = include_str!("../examples/config_map.rs");
    assert!(page.contains(&format!("```rust\n{example}```")));
}
