//! The embedded server does what a Kubernetes API must do.

use std::io::{Write, stderr};

use apiserver::ApiServer;
use kube::Client;

#[tokio::test]
async fn the_embedded_server_conforms() {
    let client = Client::new(ApiServer::new().service(), "default");
    let ran = api_conformance::run(client, "").await.unwrap();
    // Past libtest, which shows only what failed tests print.
    writeln!(stderr(), "{ran} cases ran on the embedded server").unwrap();
}
