//! A signal that users declare, from the file to the traffic.

use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Result, ensure};
use karmada_api::{
    Cluster, TRAFFIC_CONTROL,
    condition::{DNS_READY, REPORTER_READY},
};
use parking_lot::Mutex;
use pipeline_tests::{
    agents::{self, Agents, MEMBER, Others, PREFIX, has_condition},
    control_plane::ApiKind,
    fleet::{Fleet, on_failure_of},
    on_both,
    programs::Profile,
    wait::until,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

mod kinds;
mod with_tools;

const NODES: u8 = 5;
const CONDITION: &str = "SiteReady";
/// The port of the website on every node.
const PORT: u16 = 9_000;
/// As a `ConfigMap` has it.
const FILE: &str = r#"signals:
- name: site
  condition: SiteReady
  probe: {http: {url: "http://$(NODE_IP):9000/healthz"}}
"#;

/// A website on every node, which fails on some.
#[derive(Clone, Default)]
struct Website {
    failing: Arc<Mutex<BTreeSet<IpAddr>>>,
}

impl Website {
    async fn start() -> Result<Self> {
        let website = Self::default();
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
        let serving = website.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let website = serving.clone();
                // Whoever closes early wants no answer.
                tokio::spawn(async move { website.answer(connection).await.ok() });
            }
        });
        Ok(website)
    }

    async fn answer(&self, mut connection: TcpStream) -> Result<()> {
        let node = connection.local_addr()?.ip();
        let mut request = [0; 1024];
        ensure!(connection.read(&mut request).await? > 0, "no request");
        let status = if self.failing.lock().contains(&node) {
            "503 Service Unavailable"
        } else {
            "200 OK"
        };
        let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        connection.write_all(response.as_bytes()).await?;
        Ok(())
    }

    /// Makes it fail on these nodes and on no other.
    fn fails_on(&self, nodes: impl IntoIterator<Item = u8>) {
        let nodes = nodes.into_iter();
        *self.failing.lock() = nodes.map(|node| agents::address(node).ip()).collect();
    }
}

/// Starts a fleet with one cluster that has no verdict yet.
async fn fleet(server: ApiKind) -> Result<Fleet> {
    Fleet::lay_network(&[])?;
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(MEMBER).await?;
    Ok(fleet)
}

/// A cluster whose agents read one file of signals.
struct Declared {
    fleet: Fleet,
    agents: Agents,
    website: Website,
    file: PathBuf,
    leader: u8,
}

impl Declared {
    /// Starts a healthy one.
    async fn start(server: ApiKind) -> Result<Self> {
        let fleet = fleet(server).await?;
        let website = Website::start().await?;
        let file = tempfile::tempdir()?.keep().join("signals.yaml");
        fs::write(&file, FILE)?;
        let agents = Agents::start_with(&fleet, NODES, Others::Named, |node| {
            vec![
                format!("--signals-file={}", file.display()),
                format!("--node-ip={}", agents::address(node).ip()),
            ]
        })
        .await?;
        let leader = agents.leader().await?;
        let declared = Self {
            fleet,
            agents,
            website,
            file,
            leader,
        };
        declared.has(CONDITION, "True", "no node fails").await?;
        declared.has(DNS_READY, "True", "no node fails").await?;
        declared
            .has(REPORTER_READY, "True", "enough nodes vote")
            .await?;
        Ok(declared)
    }

    async fn has(&self, kind: &str, status: &str, text: &str) -> Result<()> {
        has_condition(&self.fleet, kind, status, text).await
    }

    /// Waits until a metric of the leader is 1, or 0.
    async fn shows(&self, metric: &str, value: f64) -> Result<()> {
        let name = format!("{PREFIX}{metric}");
        let leader = self.agents.on(self.leader)?;
        leader
            .until_metric(&name, |shown| (shown - value).abs() < 0.5)
            .await
    }

    /// Breaks the website on all nodes but the leader's, and waits until traffic goes elsewhere.
    async fn breaks(&self) -> Result<()> {
        let leader = self.leader;
        self.website
            .fails_on((0..NODES).filter(|node| *node != leader));
        let message = "4 of 5 nodes fail: server-error from 10.244.100.";
        self.has(CONDITION, "False", message).await?;
        self.fleet
            .has_actions(MEMBER, &[TRAFFIC_CONTROL])
            .await
            .map(drop)
    }

    /// Waits until the condition is gone.
    async fn is_gone(&self) -> Result<()> {
        let is = |cluster: Option<&Cluster>| {
            cluster.is_some_and(|cluster| cluster.condition(CONDITION).is_none())
        };
        let what = format!("without {CONDITION}");
        until(&self.fleet.clusters(), &MEMBER.name(), &what, is)
            .await
            .map(drop)
    }
}

/// A user declares a signal and a Remedy on it. It fails on one node, then on most, and works again; a wrong file changes
/// nothing; and when the `ConfigMap` is deleted, its condition and what the Remedy did go, too.
async fn declared_signal_moves_traffic(server: ApiKind) -> Result<()> {
    let declared = Declared::start(server).await?;
    let fleet = &declared.fleet;
    fleet
        .create_remedy("site", on_failure_of(CONDITION))
        .await?;
    let controller = fleet.remedy_controller().await?;

    let broken = (declared.leader + 1) % NODES;
    declared.website.fails_on([broken]);
    let node = agents::name(broken);
    let failing = format!("signal_failing_node{{signal=\"site\",node=\"{node}\"}}");
    declared.shows(&failing, 1.0).await?;
    declared.has(CONDITION, "True", "").await?;
    fleet.has_actions(MEMBER, &[]).await?;

    declared.breaks().await?;
    declared.has(DNS_READY, "True", "").await?;
    declared.has(REPORTER_READY, "True", "").await?;
    fs::write(&declared.file, "signals: [")?;
    declared.shows("signals_file_invalid", 1.0).await?;
    declared.has(CONDITION, "False", "4 of 5").await?;
    declared.website.fails_on([]);
    declared.has(CONDITION, "True", "").await?;
    fleet.has_actions(MEMBER, &[]).await?;

    fs::write(&declared.file, FILE)?;
    declared.shows("signals_file_invalid", 0.0).await?;
    declared.breaks().await?;
    fs::remove_file(&declared.file)?;
    declared.is_gone().await?;
    fleet.has_actions(MEMBER, &[]).await?;
    declared.has(REPORTER_READY, "True", "").await?;
    controller.stop().await?;
    declared.agents.stop_all().await
}

on_both!(long: declared_signal_moves_traffic,);
