//! The limit that `cargo xtask bench agent` measures the agent's memory against: a program with an
//! agent's parts (tokio, hyper, rustls, kube's client, the DNS codec) that holds one watch and queries
//! DNS, and decides nothing. It is not shipped.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use futures::StreamExt;
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use karmada_api::Cluster;
use karmada_runtime::client::{self, Source};
use karmada_runtime::error::BoxError;
use karmada_runtime::watch::events;
use kube::Api;
use kube::runtime::watcher;
use tokio::net::UdpSocket;
use tokio::time::{interval, timeout};

/// The agent's flags that matter here; all others are ignored, so that both programs take the same.
#[derive(Debug, Parser)]
struct Flags {
    #[arg(long)]
    karmada_kubeconfig: PathBuf,
    #[arg(long)]
    cluster_name: String,
    #[arg(long)]
    nameserver: SocketAddr,
    #[arg(long, value_parser = karmada_runtime::args::duration)]
    detect_period: Duration,
    #[arg(long)]
    probe_name: Name,
}

/// The longest wait for a response.
const LIMIT: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let ours = [
        "--karmada-kubeconfig",
        "--cluster-name",
        "--nameserver",
        "--detect-period",
        "--probe-name",
    ];
    let flags = std::env::args().enumerate().filter(|(index, flag)| {
        *index == 0 || ours.contains(&flag.split('=').next().unwrap_or_default())
    });
    let flags = Flags::parse_from(flags.map(|(_, flag)| flag));
    // The error means that a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let source = Source {
        kubeconfig: Some(flags.karmada_kubeconfig),
        ..Source::default()
    };
    let client = client::connect(&source, "agent-baseline").await?;
    let own = watcher::Config::default().fields(&format!("metadata.name={}", flags.cluster_name));
    let mut changes = std::pin::pin!(events::<Cluster>(Api::all(client), own));
    let mut rounds = interval(flags.detect_period);
    loop {
        tokio::select! {
            biased;
            _ = changes.next() => {}
            _ = rounds.tick() => {
                for kind in [RecordType::A, RecordType::AAAA] {
                    query(flags.nameserver, flags.probe_name.clone(), kind).await?;
                }
            }
        }
    }
}

/// Sends a query and returns the response, decoded so that the codec is linked in.
async fn query(server: SocketAddr, name: Name, kind: RecordType) -> Result<Message, BoxError> {
    let mut request = Message::query();
    request.add_query(Query::query(name, kind));
    let socket = UdpSocket::bind("0.0.0.0:0").await?;
    socket.connect(server).await?;
    socket.send(&request.to_vec()?).await?;
    let mut response = [0; 4096];
    let length = timeout(LIMIT, socket.recv(&mut response)).await??;
    Ok(Message::from_vec(&response[..length])?)
}
