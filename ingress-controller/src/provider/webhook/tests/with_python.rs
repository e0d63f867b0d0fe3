//! The contract on the example of the documentation, with the Python of this machine.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::stage::{self, Program, Stage};
use super::*;
use crate::provider::contract::provider_contract;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/provider.py");

struct Example {
    process: Child,
    url: String,
}

impl Program for Example {
    async fn start() -> Self {
        let mut process = Command::new("python3")
            .args([EXAMPLE, "--listen=127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = process.stderr.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").unwrap();
        let url = format!("http://{address}");
        Self { process, url }
    }

    fn source(&self) -> Source {
        source(self.url.clone())
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

provider_contract!(Stage<Example>);

#[tokio::test]
async fn foreign_ingress_is_a_clash() {
    stage::foreign_ingress_is_a_clash::<Example>().await;
}

/// A refusal of the example tells the owner of the ingress why.
#[tokio::test]
async fn refusal_has_its_reason() {
    let example = Example::start().await;
    let provider = provider(&example.source()).await;
    provider.list().await.unwrap();
    let mut desired = contract::desired("i", &["s"], &["m1"]);
    for rule in desired.routes.rules.iter_mut().flatten() {
        rule.http.as_mut().unwrap().paths[0].path_type = "Regex".to_owned();
    }
    let ensured = provider.ensure(&desired).await.unwrap();
    let messages: Vec<_> = ensured.obstacles.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        ["the provider refuses ns/i with 422 Unprocessable Entity: no path of type Regex"]
    );
}

/// The example is short enough to be read.
#[test]
fn example_is_short() {
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
    assert!(text.lines().count() <= 200);
}
