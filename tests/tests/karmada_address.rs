//! The agent reaches Karmada by a host name although the DNS it reports on is dead.

use std::{
    ffi::OsString,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result};
use api::{condition::DNS_READY, execution_namespace};
use hickory_proto::{
    op::{Message, MessageType},
    rr::{RData, Record, RecordType, rdata::A},
};
use pipeline_tests::{
    agents::{MEMBER, says},
    fleet::{Fleet, isolated},
    netns,
    programs::{Profile, Program, Running},
    test_name,
};
use serde_json::{Value, json};
use tokio::net::UdpSocket;

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 244, 0, 53)), 53);
/// The name of Karmada's API server.
const NAME: &str = "karmada.test";

/// The cluster's DNS, which also knows the name of Karmada's API server.
struct Dns {
    works: Arc<AtomicBool>,
}

impl Dns {
    /// Starts it, as the server of this namespace's resolv.conf.
    async fn start(karmada: IpAddr) -> Result<Self> {
        netns::add_address(SERVER.ip())?;
        netns::mount_resolv_conf(&format!("nameserver {}\n", SERVER.ip()))?;
        let socket = UdpSocket::bind(SERVER).await?;
        let works = Arc::new(AtomicBool::new(true));
        let answers = Arc::clone(&works);
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                if answers.load(Ordering::Relaxed)
                    && let Some(answer) = answer(&buffer[..length], karmada)
                {
                    // A question whose asker is gone needs no answer.
                    drop(socket.send_to(&answer, from).await);
                }
            }
        });
        Ok(Self { works })
    }

    /// From now on it loses every question.
    fn die(&self) {
        self.works.store(false, Ordering::Relaxed);
    }
}

fn answer(question: &[u8], karmada: IpAddr) -> Option<Vec<u8>> {
    let mut message = Message::from_vec(question).ok()?;
    message.metadata.message_type = MessageType::Response;
    let asked = message.queries.first()?.clone();
    let IpAddr::V4(karmada) = karmada else {
        return None;
    };
    if asked.query_type() == RecordType::A {
        let named = asked.name().to_ascii().trim_end_matches('.') == NAME;
        let address = if named {
            karmada
        } else {
            Ipv4Addr::new(10, 96, 0, 1)
        };
        let record = Record::from_rdata(asked.name().clone(), 1, RData::A(A(address)));
        message.add_answer(record);
    }
    message.to_vec().ok()
}

/// A kubeconfig of the agent's that names the API server by its host name.
fn by_name(fleet: &Fleet) -> Result<PathBuf> {
    let namespace = execution_namespace(&MEMBER.name());
    let user = format!("system:serviceaccount:{namespace}:cluster-health-agent");
    let path = fleet.karmada.kubeconfig_for(&user, None)?;
    let mut kubeconfig: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
    let address = fleet.karmada.address();
    let cluster = &mut kubeconfig["clusters"][0]["cluster"];
    cluster["server"] = json!(format!("https://{NAME}:{}", address.port()));
    // Its certificate is not for a name of the test's.
    cluster["tls-server-name"] = json!(address.ip().to_string());
    let path = path.with_file_name("by-name");
    fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}

fn agent(fleet: &Fleet, flags: &[String]) -> Result<Running> {
    let mut arguments: Vec<OsString> = vec![
        format!("--karmada-kubeconfig={}", by_name(fleet)?.display()).into(),
        format!("--cluster-name={}", MEMBER.name()).into(),
        "--host-name=n1".into(),
        "--detect-period=500ms".into(),
        "--detect-failure-threshold=2s".into(),
        "--detect-success-threshold=2s".into(),
    ];
    arguments.extend(flags.iter().map(Into::into));
    Running::start_unready(Program::Agent, Profile::Debug, arguments)
}

#[test]
fn an_agent_that_knew_where_karmada_is_reports_through_dead_dns() {
    isolated(test_name!(), async || {
        Fleet::lay_network(&[])?;
        let mut fleet = Fleet::start(Profile::Debug).await?;
        fleet.join(MEMBER).await?;
        let dns = Dns::start(fleet.karmada.address().ip()).await?;
        let agent = agent(&fleet, &[])?;
        says(&fleet, DNS_READY, "True", "0 of 1 nodes fail").await?;

        // The agent's connection ends, and it has to make another one.
        dns.die();
        fleet.karmada.stop_api().await?;
        fleet.karmada.start_api().await?;
        says(&fleet, DNS_READY, "False", "timeout from 10.244.0.53").await?;
        let output = agent.output()?;
        let warned = output.matches("using its last addresses").count();
        assert_eq!(warned, 1, "{output}");
        agent
            .stop()
            .await
            .context("a lookup that hangs holds it up")
    });
}

#[test]
fn an_agent_that_is_told_where_karmada_is_needs_no_dns() {
    isolated(test_name!(), async || {
        Fleet::lay_network(&[])?;
        let fleet = Fleet::start(Profile::Debug).await?;
        fleet.join(MEMBER).await?;
        let karmada = fleet.karmada.address().ip();
        Dns::start(karmada).await?.die();
        let agent = agent(&fleet, &[format!("--karmada-address={karmada}")])?;
        says(&fleet, DNS_READY, "False", "timeout from 10.244.0.53").await?;
        agent.stop().await
    });
}
