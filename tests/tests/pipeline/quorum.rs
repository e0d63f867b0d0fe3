//! Several agents of one cluster agree on a verdict.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

use anyhow::Result;
use karmada_api::condition::{DNS_READY, REPORTER_READY};
use pipeline_tests::{
    agents::{self, Agents, MEMBER, Others, PREFIX, has_condition},
    control_plane::ApiKind,
    fleet::{Fleet, Member},
    manifests, on_both,
    programs::Profile,
};

/// Starts a fleet with one cluster that has no verdict yet.
async fn fleet(server: ApiKind) -> Result<Fleet> {
    Fleet::lay_network(&[])?;
    let fleet = Fleet::start(server, Profile::Debug).await?;
    fleet.join(MEMBER).await?;
    Ok(fleet)
}

/// One node's broken DNS is named while the verdict stays.
async fn one_failing_node_is_named(server: ApiKind) -> Result<()> {
    let fleet = fleet(server).await?;
    let agents = Agents::start(&fleet, 5, Others::Named).await?;
    let leader = agents.leader().await?;
    agents.votes(leader, "healthy", 5).await?;
    has_condition(&fleet, DNS_READY, "True", "no node fails").await?;
    has_condition(&fleet, REPORTER_READY, "True", "enough nodes vote").await?;

    let broken = (leader + 1) % 5;
    agents.dns_works_on((0..5).filter(|node| *node != broken));
    agents.votes(leader, "unhealthy", 1).await?;
    let named = format!("{PREFIX}failing_node{{node=\"{}\"}}", agents::name(broken));
    let named = agents.on(leader)?.metric(&named).await?;
    assert!((named - 1.0).abs() < 0.5, "{named}");
    let verdict = format!("{PREFIX}verdict{{verdict=\"healthy\"}}");
    let healthy = agents.on(leader)?.metric(&verdict).await?;
    assert!((healthy - 1.0).abs() < 0.5, "{healthy}");
    // The message alone is rewritten once a minute.
    let named = "1 of 5 nodes fail: refused from 127.0.0.1:";
    has_condition(&fleet, DNS_READY, "True", named).await?;
    has_condition(
        &fleet,
        DNS_READY,
        "True",
        &format!("; {}", agents::name(broken)),
    )
    .await?;

    // Four of five are enough, three stay under the verdict, two are half at most.
    agents.dns_works_on([leader]);
    has_condition(&fleet, DNS_READY, "False", "4 of 5 nodes fail").await?;
    agents.dns_works_on([leader, broken]);
    agents.votes(leader, "unhealthy", 3).await?;
    has_condition(&fleet, DNS_READY, "False", "").await?;
    agents.dns_works_on([leader, broken, (leader + 2) % 5]);
    has_condition(&fleet, DNS_READY, "True", "").await?;
    agents.stop_all().await
}

/// Agents that lost the member's API go on with those they know.
async fn known_peers_outlive_the_api(server: ApiKind) -> Result<()> {
    let mut fleet = fleet(server).await?;
    let member = &fleet.gateway;
    member.namespace(agents::SERVICE.0).await?;
    manifests::apply_edited(
        &member.client(),
        "member/cluster-health-agent.yaml",
        |text| {
            let own = "metadata:\n  name: cluster-health-agent";
            text.replace(own, &format!("{own}\n  namespace: {}", agents::SERVICE.0))
        },
    )
    .await?;
    let account = format!(
        "system:serviceaccount:{}:{}",
        agents::SERVICE.0,
        agents::SERVICE.1
    );
    let kubeconfig = member.kubeconfig_for(&account, None)?;
    let mut agents = Agents::start(&fleet, 3, Others::Listed(kubeconfig)).await?;
    agents
        .on(0)?
        .until_output("lists an agent, waiting")
        .await?;
    let waiting = agents.on(0)?.readiness().await.unwrap_err().to_string();
    assert!(waiting.contains("peers"), "{waiting}");

    let writes = fleet.gateway.successful_writes().await?;
    agents::list(fleet.gateway.client(), 3).await?;
    let leader = agents.leader().await?;
    agents.votes(leader, "healthy", 3).await?;
    has_condition(&fleet, DNS_READY, "True", "no node fails").await?;
    let written = fleet.gateway.successful_writes().await?.since(&writes);
    assert_eq!(
        written.to_string(),
        "1 POST endpointslices.discovery.k8s.io"
    );

    // Agents list the others at random moments, and one without a list does not campaign.
    for node in 0..3 {
        let known = "karmada_cluster_health_agent_known_agents";
        agents
            .on(node)?
            .until_metric(known, |known| known > 2.5)
            .await?;
    }
    fleet.gateway.stop_api().await?;
    agents.dns_works_on([]);
    has_condition(&fleet, DNS_READY, "False", "3 of 3 nodes fail").await?;
    let leader = agents.leader().await?;
    agents.stop(leader).await?;
    agents.leader().await?;
    agents.dns_works_on(0..3);
    has_condition(&fleet, DNS_READY, "True", "").await?;
    agents.stop_all().await
}

/// An agent of another cluster is silent and logged once.
async fn foreign_agent_has_no_vote(server: ApiKind) -> Result<()> {
    let fleet = fleet(server).await?;
    let mut agents = Agents::start(&fleet, 3, Others::Named).await?;
    let leader = agents.leader().await?;
    agents.votes(leader, "healthy", 3).await?;
    let lost = (leader + 1) % 3;
    agents.kill(lost).await?;
    agents.restart_in(lost, Member(2)).await?;
    agents
        .on(leader)?
        .until_output("belongs to another cluster")
        .await?;
    agents.votes(leader, "silent", 1).await?;

    agents.dns_works_on([]);
    has_condition(&fleet, DNS_READY, "False", "2 of 3 nodes fail").await?;
    let output = agents.on(leader)?.output()?;
    assert_eq!(output.matches("belongs to another cluster").count(), 1);
    agents.stop_all().await
}

/// The failing leader of two nodes, one of them silent, must not fail the whole cluster.
async fn isolated_leader_resigns(server: ApiKind) -> Result<()> {
    let fleet = fleet(server).await?;
    let mut agents = Agents::start(&fleet, 2, Others::Named).await?;
    let leader = agents.leader().await?;
    let other = 1 - leader;
    has_condition(&fleet, DNS_READY, "True", "").await?;
    has_condition(&fleet, REPORTER_READY, "True", "").await?;
    // DNS that dies between a node's first success and its vote leaves it without a vote.
    let vote = format!("{PREFIX}vote{{vote=\"healthy\"}}");
    let votes = agents.on(leader)?;
    votes.until_metric(&vote, |value| value > 0.5).await?;
    agents.kill(other).await?;
    agents.votes(leader, "silent", 1).await?;
    agents.dns_works_on([other]);
    agents.votes(leader, "unhealthy", 1).await?;
    let half = "1 of 2 nodes vote; 1 fail, not more than half of all";
    has_condition(&fleet, REPORTER_READY, "False", half).await?;
    has_condition(&fleet, DNS_READY, "True", "").await?;
    let resignations = format!("{PREFIX}resignations_total");
    agents
        .on(leader)?
        .until_metric(&resignations, |value| value > 0.5)
        .await?;

    // The other one comes back, and takes over while the first one abstains.
    agents.restart(other).await?;
    has_condition(&fleet, REPORTER_READY, "True", "").await?;
    assert_eq!(agents.leader().await?, other);
    agents.votes(other, "unhealthy", 1).await?;
    has_condition(&fleet, DNS_READY, "True", "").await?;
    agents.dns_works_on([]);
    has_condition(&fleet, DNS_READY, "False", "2 of 2 nodes fail").await?;
    agents.stop_all().await
}

/// A peer with the leader's name is not the leader itself.
async fn shared_names_all_vote(server: ApiKind) -> Result<()> {
    let fleet = fleet(server).await?;
    let agents = Agents::start(&fleet, 3, Others::Namesakes).await?;
    let leader = agents.leader().await?;
    agents.votes(leader, "healthy", 3).await?;
    let warning = "Several agents have the same name";
    agents.on(leader)?.until_output(warning).await?;
    agents.dns_works_on((0..3).filter(|node| *node != leader));
    agents.votes(leader, "unhealthy", 1).await?;
    agents.dns_works_on([]);
    has_condition(&fleet, DNS_READY, "False", "3 of 3 nodes fail").await?;
    let output = agents.on(leader)?.output()?;
    assert_eq!(output.matches(warning).count(), 1);
    agents.stop_all().await
}

on_both!(
    long:
    one_failing_node_is_named,
    known_peers_outlive_the_api,
    foreign_agent_has_no_vote,
    isolated_leader_resigns,
    shared_names_all_vote,
);
