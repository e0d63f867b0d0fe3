//! Runs the suite against the API of `$KUBECONFIG`: `against [part of a case's name]`.

use anyhow::Result;
use kube::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let ran = api_conformance::run(Client::try_default().await?, &filter).await?;
    #[expect(clippy::print_stdout, reason = "this is a command")]
    {
        println!("{ran} cases ran");
    }
    Ok(())
}
