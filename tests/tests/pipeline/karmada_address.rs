//! The agent reaches Karmada by a host name while the DNS on which it reports is dead.

use std::{
    ffi::OsString,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::coordination::v1::Lease;
use karmada_api::{condition::DNS_READY, execution_namespace};
use kube::Api;
use lab_parts::{
    dns::{Behaviour, DnsServer, KUBERNETES_IP, Received, Response},
    thresholds::ProbeTiming,
};
use pipeline_tests::{
    agents::{MEMBER, has_condition},
    control_plane::ApiKind,
    fleet::Fleet,
    netns, on_both,
    programs::{Binary, Profile, Running},
};
use serde_json::{Value, json};
use tokio::time::sleep;

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 244, 0, 53)), 53);
/// The interval between two requests of a leader.
const POLL: Duration = Duration::from_millis(500);
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
        let name = received.query.name().to_ascii();
        let is_karmada = name.trim_end_matches('.') == NAME;
        Response::Ipv4(if is_karmada { karmada } else { KUBERNETES_IP })
    });
    DnsServer::start_at(SERVER, behaviour)
        .await
        .with_context(|| format!("cannot serve DNS on {SERVER}"))
}

/// Creates a kubeconfig for the agent that names the API server by its host name.
fn by_name(fleet: &Fleet) -> Result<PathBuf> {
    let namespace = execution_namespace(&MEMBER.name());
    let user = format!("system:serviceaccount:{namespace}:cluster-health-agent");
    let path = fleet.karmada.kubeconfig_for(&user, None)?;
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

async fn agent(fleet: &Fleet, flags: &[String]) -> Result<Running> {
    let mut arguments: Vec<OsString> = vec![
        format!("--karmada-kubeconfig={}", by_name(fleet)?.display()).into(),
        format!("--cluster-name={}", MEMBER.name()).into(),
        "--host-name=n1".into(),
    ];
    arguments.extend(ProbeTiming::SHORT.flags().map(OsString::from));
    arguments.extend(flags.iter().map(Into::into));
    Running::start_unready(Binary::Agent, Profile::Debug, arguments).await
}

/// An agent that knew where Karmada is reports through dead DNS.
async fn known_address_outlives_dns(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&[])?;
    let mut fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(MEMBER).await?;
    let dns = dns(&fleet).await?;
    let agent = agent(&fleet, &[]).await?;
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

/// While a leader asks for its vote, an agent needs no connection to Karmada.
async fn follower_finds_karmada_without_dns(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&[])?;
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(MEMBER).await?;
    let dns = dns(&fleet).await?;
    let agent = agent(&fleet, &[]).await?;
    let leading = async {
        loop {
            if let Err(error) = agent.vote_for("n2", &MEMBER.name()).await {
                return error;
            }
            sleep(POLL).await;
        }
    };
    let vote = r#"karmada_cluster_health_agent_vote{vote="healthy"}"#;
    tokio::select! {
        error = leading => return Err(error),
        voted = agent.until_metric(vote, |is| is > 0.5) => voted?,
    }
    let namespace = execution_namespace(&MEMBER.name());
    let leases: Api<Lease> = Api::namespaced(fleet.karmada.client(), &namespace);
    let sought = leases.get_opt("cluster-health-agent").await?;
    assert!(sought.is_none(), "{sought:?}");

    dns.set(Response::Drop);
    has_condition(&fleet, DNS_READY, "False", "timeout from 10.244.0.53").await?;
    agent.stop().await
}

/// An agent with the address of Karmada needs no DNS.
async fn given_address_needs_no_dns(server: ApiKind) -> Result<()> {
    Fleet::lay_network(&[])?;
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(MEMBER).await?;
    let dns = dns(&fleet).await?;
    dns.set(Response::Drop);
    let karmada = fleet.karmada.address().ip();
    let agent = agent(&fleet, &[format!("--karmada-address={karmada}")]).await?;
    has_condition(&fleet, DNS_READY, "False", "timeout from 10.244.0.53").await?;
    agent.stop().await
}

on_both!(
    known_address_outlives_dns,
    follower_finds_karmada_without_dns,
    given_address_needs_no_dns,
);
