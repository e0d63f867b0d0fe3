use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::provider::contract::provider_contract;

/// The server of somebody else in the backend of an ingress.
const FOREIGN: &str = "ns_i_s_80/web1";
/// The grace, which no test of the contract waits for.
const GRACE: Duration = Duration::from_mins(10);

/// An HAProxy, and a relay before its Runtime API that counts changes and fails on demand.
struct Relayed {
    haproxy: Arc<Process>,
    relay: Arc<Relay>,
    address: SocketAddr,
}

#[derive(Default)]
struct Relay {
    changes: AtomicUsize,
    fails: AtomicBool,
}

impl Relay {
    async fn serve(&self, haproxy: &Process, mut stream: TcpStream) -> std::io::Result<()> {
        let mut line = String::new();
        BufReader::new(&mut stream).read_line(&mut line).await?;
        if self.fails.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let commands = line.trim().split("; ");
        let changes = commands.filter(|command| !command.starts_with("show "));
        self.changes.fetch_add(changes.count(), Ordering::SeqCst);
        let answer = haproxy.ask(line.trim()).await;
        stream.write_all(answer.as_bytes()).await
    }
}

impl contract::Stage for Relayed {
    type Provider = Haproxy;

    /// The configuration has no backend for the Service `t`: that is refused.
    async fn new() -> Self {
        let services = (1..=200).map(|n| format!("s{n}"));
        let services = services.chain(["s", "nowhere", "empty"].map(str::to_owned));
        let mut backends: Vec<String> = services.map(|s| format!("ns_i_{s}_80")).collect();
        backends.push("ns_j_s_80".to_owned());
        let haproxy = Arc::new(Process::start(&backends));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let relay = Arc::<Relay>::default();
        let (relaying, behind) = (Arc::clone(&relay), Arc::clone(&haproxy));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client may have left.
                drop(relaying.serve(&behind, stream).await);
            }
        });
        Self {
            haproxy,
            relay,
            address,
        }
    }

    async fn provider(&self) -> Haproxy {
        let provider = provider(Socket::Tcp(self.address.to_string()), GRACE, false);
        self.catch_up(&provider).await;
        provider
    }

    async fn catch_up(&self, provider: &Haproxy) {
        provider.servers.look().await.unwrap();
    }

    /// Reads the servers of the one backend to which its configuration would send the request. Nobody listens at the
    /// addresses of the contract.
    async fn served(&self, host: &str) -> BTreeSet<String> {
        let mut names = host.split('.');
        let (service, ingress) = (names.next().unwrap(), names.next().unwrap());
        let state = self.haproxy.state().await;
        let servers = state.backends.get(&format!("ns_{ingress}_{service}_80"));
        let servers = servers
            .into_iter()
            .flatten()
            .filter(|(name, _)| *name != "web1");
        let serving = servers.filter(|(_, server)| server.takes_requests());
        serving
            .map(|(_, server)| server.address.unwrap().ip().to_string())
            .collect()
    }

    fn changes(&self) -> usize {
        self.relay.changes.swap(0, Ordering::SeqCst)
    }

    fn fail_once(&self) {
        self.relay.fails.store(true, Ordering::SeqCst);
    }

    fn refuse_routes(&self, _: &Key) {}

    async fn add_foreign(&self) {
        let add = format!("add server {FOREIGN} 192.0.2.1:80; set server {FOREIGN} state ready");
        self.haproxy.ask(&add).await;
    }

    async fn is_foreign_intact(&self) -> bool {
        let state = self.haproxy.state().await;
        let server = state.backends["ns_i_s_80"].get("web1");
        server.is_some_and(|server| {
            server.takes_requests() && server.address == "192.0.2.1:80".parse().ok()
        })
    }
}

provider_contract!(Relayed);
