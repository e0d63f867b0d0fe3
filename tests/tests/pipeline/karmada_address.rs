//! The agent reaches Karmada by a host name while the DNS on which it reports is dead.

use std::{
    ffi::OsString,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use anyhow::{Context, Result, bail};
use karmada_api::{condition::DNS_READY, execution_namespace};
use lab_parts::{
    dns::{Behaviour, DnsServer, KUBERNETES_IP, Received, Response},
    thresholds::ProbeTiming,
};
use pipeline_tests::{
    agents::{self, MEMBER, has_condition},
    control_plane::ApiKind,
    fleet::Fleet,
    netns, on_both,
    programs::{Binary, Profile, Running},
};
use serde_json::{Value, json};

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 244, 0, 53)), 53);
/// The name of Karmada's API server.
const NAME: &str = "karmada.test";

/// Starts the cluster's DNS, the server of this namespace's resolv.conf, which also knows the name
/// of Karmada's API server.
async fn dns(fleet: &Fleet) -> Result<DnsServer> {
    netns::add_address(SERVER.ip())?;
    netns::mount_resolv_conf(&format!("nameserver {}\n", SERVER.ip()))?;
    let IpAddr::V4(karmada) = fleet.karmada.address().ip() else {
        bail!("it is at an IPv6 address");
    };
    let behaviour = Behaviour::new(move |received: &Received| {
        let ip = if is_for_karmada(received) {
            karmada
        } else {
            KUBERNETES_IP
        };
        Response::Ipv4(ip)
    });
    DnsServer::start_at(SERVER, behaviour)
        .await
        .with_context(|| format!("cannot serve DNS on {SERVER}"))
}

fn is_for_karmada(received: &Received) -> bool {
    let name = received.query.name().to_ascii();
    name.trim_end_matches('.') == NAME
}

/// Creates a kubeconfig for the agent that names the API server by its host name.
fn by_name(fleet: &Fleet) -> Result<PathBuf> {
    let namespace = execution_namespace(&MEMBER.name());
    let karmada = &fleet.karmada;
    let path = karmada.account_kubeconfig(&namespace, "cluster-health-agent")?;
    let mut kubeconfig: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
    let address = fleet.karmada.address().ip().to_string();
    let cluster = &mut kubeconfig["clusters"][0]["cluster"];
    let server = cluster["server"].as_str().context("no server")?;
    cluster["server"] = json!(server.replace(&address, NAME));
    // Its certificate is not for a name of the test's.
    cluster["tls-server-name"] = json!(address);
    let path = path.with_file_name("by-name");
    fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}

async fn agent(fleet: &Fleet) -> Result<Running> {
    let mut arguments: Vec<OsString> = vec![
        format!("--karmada-kubeconfig={}", by_name(fleet)?.display()).into(),
        format!("--cluster-name={}", MEMBER.name()).into(),
        "--host-name=n1".into(),
    ];
    arguments.extend(ProbeTiming::SHORT.flags().map(OsString::from));
    Running::start_unready(Binary::Agent, Profile::Debug, arguments).await
}

/// An agent that knew where Karmada is reports through dead DNS.
async fn known_address_outlives_dns(server: ApiKind) -> Result<()> {
    let mut fleet = agents::fleet(server).await?;
    let dns = dns(&fleet).await?;
    let agent = agent(&fleet).await?;
    has_condition(&fleet, DNS_READY, "True", "no node fails").await?;

    // The agent's connection ends, and it has to make another one.
    dns.set(Response::Drop);
    fleet.karmada.stop_api().await?;
    fleet.karmada.start_api().await?;
    has_condition(&fleet, DNS_READY, "False", "timeout from 10.244.0.53").await?;
    let output = agent.output()?;
    let warned = output.matches("using its last addresses").count();
    assert_eq!(warned, 1, "{output}");
    agent
        .stop()
        .await
        .context("a lookup that hangs holds it up")
}

on_both!(long: known_address_outlives_dns);
