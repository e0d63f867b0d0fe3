//! Traffic, and the verdicts that move it.

use anyhow::ensure;
use karmada_api::{TRAFFIC_CONTROL, condition::DNS_READY};
use pipeline_tests::{
    agents::{Agents, MEMBER, PREFIX, has_condition, name},
    control_plane::ApiKind,
    fleet::{Fleet, INGRESS, Member, isolated},
    haproxy::Haproxy,
    programs::{Binary, Profile},
    test_name,
};
use serde_json::json;

use crate::drills::{Drill, alert::Target};

/// Somebody means to take one cluster out, and forgets to name it: a Remedy without clusters and conditions takes all.
#[test]
fn remedy_blocks_every_cluster() {
    isolated(test_name!(), async || {
        let members = [Member(1), Member(2)];
        let fleet = Fleet::with_members(ApiKind::Real, Profile::Debug, &members).await?;
        let controller = fleet.remedy_controller().await?;
        let blocked = "karmada_remedy_controller_traffic_blocked";
        controller.rests("karmada_remedy_controller").await?;
        let mut drill = Drill::of("KarmadaRsAllClustersBlocked");
        let targets = [Target::on_host(Binary::RemedyController, &controller)];
        drill.record(&targets).await?;
        ensure!(drill.last(blocked) == Some(0.0), "no cluster is known");

        let everywhere = json!({ "actions": [TRAFFIC_CONTROL] });
        fleet.create_remedy("new-kernel", everywhere).await?;
        controller
            .until_metric(blocked, |value| value > 1.0)
            .await?;
        drill.record(&targets).await?;
        let labels = json!({ "severity": "critical" });
        drill.fires(2, &labels, "Every cluster of the fleet is blocked")?;
        let contexts = [("karmada", &fleet.karmada)];
        let cause = "is blocked by Remedy new-kernel (it names no condition)";
        drill
            .names(&contexts, &[("CLUSTER", "member1")], &[cause])
            .await
    });
}

/// DNS fails and recovers on one node of three, over and over: its pods wait, and the verdict stays.
#[test]
fn dns_flaps_on_one_node() {
    isolated(test_name!(), async || {
        Fleet::lay_network(&[])?;
        let fleet = Fleet::start(ApiKind::Real, Profile::Debug).await?;
        fleet.join(MEMBER).await?;
        let agents = Agents::start(&fleet, 3).await?;
        let leader = agents.leader().await?;
        agents.votes(leader, "healthy", 3).await?;
        has_condition(&fleet, DNS_READY, "True", "no node fails").await?;
        let flapping = (leader + 1) % 3;
        let node = name(flapping);
        let mut drill = Drill::of("KarmadaRsNodeFlapping");
        let mut targets = Vec::new();
        for number in 0..3 {
            targets.push(Target::on_node(MEMBER, &name(number), agents.on(number)?));
        }
        drill.record(&targets).await?;

        let vote = |vote: &str| format!("{PREFIX}vote{{vote=\"{vote}\"}}");
        let agent = agents.on(flapping)?;
        for is_well in [false, true, false, true, false] {
            agents.dns_works_on((0..3).filter(|number| is_well || *number != flapping));
            let answer = vote(if is_well { "healthy" } else { "unhealthy" });
            agent.until_metric(&answer, |value| value > 0.0).await?;
            drill.record(&targets).await?;
        }
        let pod = format!("agent-{node}");
        let labels = json!({ "cluster": "member1", "namespace": "karmada-rs", "job": "cluster-health-agent",
            "pod": pod, "instance": pod, "vote": "unhealthy", "severity": "warning" });
        let summary = format!("DNS flaps on the node of pod {pod} in member1");
        drill.fires(1, &labels, &summary)?;
        // The message alone is rewritten once a minute.
        let named = "1 of 3 nodes fail: refused from 127.0.0.1:";
        has_condition(&fleet, DNS_READY, "True", named).await?;
        let contexts = [("karmada", &fleet.karmada), ("member1", &fleet.gateway)];
        let cause = [named, &format!("(1); {node}")];
        drill
            .names(&contexts, &[("CLUSTER", "member1")], &cause)
            .await?;
        agents.stop_all().await
    });
}

mod with_haproxy {
    use super::*;

    /// Case T3: HAProxy dies, and stays dead until somebody starts it, as the page of the alert says. Then it has its servers again,
    /// and how long that took is counted. The page's command for it is typed on its own machine.
    #[test]
    fn haproxy_is_down() {
        isolated(test_name!(), async || {
            let members = [Member(1), Member(2)];
            let fleet = Fleet::with_members(ApiKind::Real, Profile::Debug, &members).await?;
            let haproxy = Haproxy::start("127.0.0.1:8080".parse()?, &[INGRESS.to_owned()])?;
            let socket = haproxy.socket();
            let controller = fleet.ingress_controller_at_haproxy(&socket, &[]).await?;
            let backends = members.map(Member::backend);
            haproxy.becomes(&backends).await?;
            let mut drill = Drill::of("KarmadaRsLoadBalancerSilent");
            let targets = [Target::on_host(Binary::IngressController, &controller)];
            drill.record(&targets).await?;
            let waiting = "karmada_ingress_controller_waiting_for_load_balancer";
            ensure!(drill.last(waiting) == Some(0.0), "an ingress waits");

            haproxy.kill()?;
            controller
                .until_metric(waiting, |value| value > 0.0)
                .await?;
            drill.record(&targets).await?;
            let labels = json!({ "severity": "critical" });
            let summary = "1 ingresses wait for the gateway, which does not answer";
            drill.fires(3, &labels, summary)?;

            haproxy.revive()?;
            haproxy.becomes(&backends).await?;
            let repairs = "karmada_ingress_controller_haproxy_repair_duration_seconds_count";
            controller
                .until_metric(repairs, |value| value > 0.0)
                .await?;
            controller.stop().await
        });
    }
}
