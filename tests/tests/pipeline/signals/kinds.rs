//! The kinds of probes, each on a server of its own: it alone fails, it cannot be asked, and it works again.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use karmada_api::condition::{DNS_READY, REPORTER_READY};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use lab_parts::{
    grpc::{self, Says},
    tls::Authority,
};
use parking_lot::Mutex;
use pipeline_tests::{
    agents::{self, Agents, MEMBER, has_condition},
    api::merge_status,
    control_plane::{ApiKind, ControlPlane},
    fleet::Fleet,
    grpc_health::GrpcHealth,
    manifests,
    netns::{add_address, prohibit, remove_address},
    on_both,
    prometheus::Prometheus,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

const NODES: u8 = 3;
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Works,
    Fails,
}

/// The protocol of a server of ours, over TLS.
#[derive(Clone, Copy)]
enum Protocol {
    Http,
    Grpc,
}

/// The server that a probe asks.
enum Server {
    /// Ours, which says that it is in this state.
    Ours(Arc<Mutex<State>>),
    /// A port with the tasks that accept its connections, if it is open.
    Port(SocketAddr, JoinSet<()>),
    /// The nodes of the cluster, which are ready, or not.
    Nodes(Api<Node>),
    Grpc(GrpcHealth),
    Prometheus(Prometheus),
}

/// A signal, and the server of its probe.
pub(super) struct Probed {
    /// Its name, and that of its condition.
    name: &'static str,
    probe: Value,
    /// The address of the server, unless the API of the cluster is asked.
    ip: Option<IpAddr>,
    server: Server,
}

impl Server {
    async fn turn(&mut self, state: State) -> Result<()> {
        match self {
            Self::Ours(now) => *now.lock() = state,
            Self::Port(at, accepting) => {
                // It is closed before it is bound again.
                accepting.shutdown().await;
                if state == State::Works {
                    *accepting = open(*at).await?;
                }
            }
            Self::Nodes(nodes) => report(nodes, state).await?,
            Self::Grpc(server) => {
                let service = match state {
                    State::Works => "shop=SERVING",
                    State::Fails => "shop=NOT_SERVING",
                };
                server.restart(&[service]).await?;
            }
            Self::Prometheus(server) => {
                let jobs: &[&str] = match state {
                    State::Works => &["kept", "gone"],
                    State::Fails => &["kept"],
                };
                server.reload(jobs)?;
            }
        }
        Ok(())
    }
}

impl Probed {
    /// Returns a server of gRPC in Go.
    pub(super) async fn by_grpc(number: u8) -> Result<Self> {
        let at = reachable(number)?;
        Ok(Self {
            name: "shop",
            probe: json!({ "grpc": { "address": at.to_string(), "service": "shop" } }),
            ip: Some(at.ip()),
            server: Server::Grpc(GrpcHealth::start(at, &["shop=SERVING"]).await?),
        })
    }

    /// Returns a Prometheus, whose value holds while it has two jobs.
    pub(super) async fn by_prometheus(number: u8) -> Result<Self> {
        let at = reachable(number)?;
        Ok(Self {
            name: "jobs",
            probe: query(at, "count(up) - 1"),
            ip: Some(at.ip()),
            server: Server::Prometheus(Prometheus::start(at, &["kept", "gone"]).await?),
        })
    }

    /// Has no agent observe anything: its node may not send there, as a firewall says, or there is no node.
    async fn silence(&self) -> Result<()> {
        if let Some(ip) = self.ip {
            remove_address(ip)?;
        }
        if let Server::Nodes(nodes) = &self.server {
            for number in 0..NODES {
                let name = agents::name(number);
                nodes.delete(&name, &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }

    /// Has it be asked again, and work.
    async fn mend(&mut self) -> Result<()> {
        if let Some(ip) = self.ip {
            add_address(ip)?;
        }
        self.server.turn(State::Works).await
    }

    /// Breaks it, has it be silent, and mends it. Its condition is False, stale, and True, and the others stay as they are.
    async fn fails_alone(&mut self, fleet: &Fleet) -> Result<()> {
        let name = self.name;
        let mut before = others(fleet, name).await?;
        self.server.turn(State::Fails).await?;
        has_condition(fleet, name, "False", "").await?;
        let broken = others(fleet, name).await?;
        ensure!(broken == before, "broken: {broken:?}; before: {before:?}");

        self.silence().await?;
        let stale = format!("{name}: ");
        has_condition(fleet, REPORTER_READY, "False", &stale).await?;
        has_condition(fleet, name, "False", "").await?;

        self.mend().await?;
        has_condition(fleet, name, "True", "").await?;
        has_condition(fleet, REPORTER_READY, "True", "").await?;
        let mut mended = others(fleet, name).await?;
        for all in [&mut before, &mut mended] {
            all.remove(REPORTER_READY);
        }
        ensure!(mended == before, "mended: {mended:?}; before: {before:?}");
        Ok(())
    }
}

/// Has the agents of a cluster probe all of these by one file, and breaks one after the other.
pub(super) async fn each_fails_alone(fleet: &Fleet, mut all: Vec<Probed>) -> Result<()> {
    let member = &fleet.gateway;
    manifests::apply(&member.client(), "member/signals/rights.yaml").await?;
    let access = member.account_kubeconfig("karmada-rs", "cluster-health-agent")?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("signals.yaml");
    let probes = all.iter().map(|one| (one.name, &one.probe));
    fs::write(&path, declaring(probes))?;
    let agents = Agents::start_with(fleet, NODES, |_| {
        vec![
            format!("--signals-file={}", path.display()),
            format!("--member-kubeconfig={}", access.display()),
        ]
    })
    .await?;
    agents.leader().await?;
    let names = all.iter().map(|one| one.name);
    for name in names.chain([DNS_READY, REPORTER_READY]) {
        has_condition(fleet, name, "True", "").await?;
    }
    for one in &mut all {
        one.fails_alone(fleet).await.context(one.name)?;
    }
    agents.stop_all().await
}

/// Returns a file that declares these probes, each as the signal of its name and the condition of the same.
pub(super) fn declaring<'a>(probes: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let signals = probes
        .map(|(name, probe)| json!({ "name": name, "condition": name, "probe": probe }))
        .collect::<Vec<_>>();
    json!({ "signals": signals }).to_string()
}

/// Returns a probe that succeeds if the value is 1.
pub(super) fn query(server: SocketAddr, query: &str) -> Value {
    let url = format!("http://{server}");
    json!({ "prometheus": { "url": url, "query": query, "holds": "value == 1", "maxAge": "3s" } })
}

/// Returns the status of every condition but this one, and since when it has it.
async fn others(fleet: &Fleet, name: &str) -> Result<BTreeMap<String, String>> {
    let cluster = fleet.clusters().get(&MEMBER.name()).await?;
    let others = cluster.conditions().iter().filter(|one| one.type_ != name);
    let others = others.map(|one| {
        let since = format!("{} since {:?}", one.status, one.last_transition_time);
        (one.type_.clone(), since)
    });
    Ok(others.collect())
}

/// Returns the address of a server, which has a way there, and without it is prohibited.
fn reachable(number: u8) -> Result<SocketAddr> {
    let ip = IpAddr::from(Ipv4Addr::new(10, 244, 200, number));
    add_address(ip)?;
    prohibit(ip)?;
    Ok(SocketAddr::new(ip, 9_443))
}

/// Opens a port. Without somebody who accepts, the kernel takes no more connections than fit into its queue.
async fn open(at: SocketAddr) -> Result<JoinSet<()>> {
    let listener = TcpListener::bind(at).await?;
    let mut accepting = JoinSet::new();
    accepting.spawn(async move { while listener.accept().await.is_ok() {} });
    Ok(accepting)
}

/// Starts a server of ours.
async fn serve(authority: &Authority, at: SocketAddr, protocol: Protocol) -> Result<Server> {
    let alpn = match protocol {
        Protocol::Http => "http/1.1",
        Protocol::Grpc => "h2",
    };
    let acceptor = authority.acceptor(&[&at.ip().to_string()], &[alpn]);
    let listener = TcpListener::bind(at).await?;
    let state = Arc::new(Mutex::new(State::Works));
    let now = Arc::clone(&state);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (acceptor, state) = (acceptor.clone(), *now.lock());
            // Whoever closes early wants no answer.
            tokio::spawn(async move { answer(connection, acceptor, protocol, state).await.ok() });
        }
    });
    Ok(Server::Ours(state))
}

/// Answers one request, or the checks of one connection.
async fn answer(
    connection: TcpStream,
    acceptor: TlsAcceptor,
    protocol: Protocol,
    state: State,
) -> Result<()> {
    let mut secured = acceptor.accept(connection).await?;
    match (protocol, state) {
        (Protocol::Grpc, State::Works) => grpc::serve(secured, Says::SERVING).await,
        (Protocol::Grpc, State::Fails) => grpc::serve(secured, Says::NOT_SERVING).await,
        (Protocol::Http, _) => {
            let status = match state {
                State::Works => "204 No Content",
                State::Fails => "503 Service Unavailable",
            };
            let mut request = [0; 1024];
            ensure!(secured.read(&mut request).await? > 0, "no request");
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            secured.write_all(response.as_bytes()).await?;
            secured.shutdown().await?;
        }
    }
    Ok(())
}

/// Keeps the nodes of a cluster, all of which are ready, or none.
async fn report(nodes: &Api<Node>, state: State) -> Result<()> {
    let ready = match state {
        State::Works => "True",
        State::Fails => "False",
    };
    for number in 0..NODES {
        let name = agents::name(number);
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        let by = PatchParams::apply("kubelet");
        nodes.patch(&name, &by, &Patch::Apply(node)).await?;
        let conditions = json!([{ "type": "Ready", "status": ready }]);
        let status = json!({ "conditions": conditions });
        merge_status(nodes, &name, &status).await?;
    }
    Ok(())
}

/// Starts a server of each kind that needs no tool.
async fn ours(member: &ControlPlane, folder: &Path) -> Result<Vec<Probed>> {
    let authority = Authority::generate();
    let ca = folder.join("ca.crt");
    fs::write(&ca, authority.pem())?;
    let (site, payments, port) = (reachable(1)?, reachable(2)?, reachable(3)?);
    let nodes: Api<Node> = Api::all(member.client());
    report(&nodes, State::Works).await?;
    let row = |name, ip, probe, server| Probed {
        name,
        probe,
        ip,
        server,
    };
    Ok(vec![
        row(
            "site",
            Some(site.ip()),
            json!({ "http": { "url": format!("https://{site}/healthz"), "ca": ca } }),
            serve(&authority, site, Protocol::Http).await?,
        ),
        row(
            "payments",
            Some(payments.ip()),
            json!({ "grpc": { "address": payments.to_string(), "service": "shop", "ca": ca } }),
            serve(&authority, payments, Protocol::Grpc).await?,
        ),
        row(
            "port",
            Some(port.ip()),
            json!({ "tcp": { "address": port.to_string() } }),
            Server::Port(port, open(port).await?),
        ),
        row(
            "ready-nodes",
            None,
            json!({ "nodes": { "readyShare": 0.7 } }),
            Server::Nodes(nodes),
        ),
    ])
}

/// A website and a service of gRPC by TLS, a port, and the nodes of the cluster: each fails, nobody can tell how it is, and it
/// works again, while the others stay as they are. Case S11.
async fn each_kind_fails_alone(server: ApiKind) -> Result<()> {
    let fleet = agents::fleet(server).await?;
    let folder = tempfile::tempdir()?;
    let all = ours(&fleet.gateway, folder.path()).await?;
    each_fails_alone(&fleet, all).await
}

on_both!(both long: each_kind_fails_alone);
