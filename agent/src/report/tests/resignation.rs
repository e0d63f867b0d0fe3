//! A leader that hears too few nodes gives the lease back.

use karmada_runtime::lease::{CampaignMode, DURATION};

use super::*;
use crate::campaign::{self, Facts};

/// Starts the agent on `node`, which campaigns for the lease as one of two and hears nothing from so many
/// others.
fn agent(karmada: &Karmada, node: &str, vote: Option<Vote>, silent_peers: u16) -> Running {
    Running::of(
        node,
        karmada,
        vote,
        silent_peers,
        |program, client, abstentions| {
            let (seeking, mode) = watch::channel(CampaignMode::Off);
            let facts = Facts {
                contacts: watch::channel(None).1,
                known: watch::channel(Some(2)).1,
                abstentions,
            };
            campaign::start(program, facts, seeking);
            let config = LeaseConfig {
                mode,
                ..LeaseConfig::eager(
                    karmada_api::execution_namespace("member1"),
                    crate::identity::NAME,
                    node.to_owned(),
                )
            };
            lease::campaign(program, client, config)
        },
    )
}

fn shows(agent: &Running, line: &str) -> bool {
    let text = agent.program.registry.encode().unwrap();
    text.lines().any(|shown| shown.ends_with(line))
}

/// If it renewed for ever, a real outage would go unreported.
#[tokio::test(start_paused = true)]
async fn a_leader_with_too_few_votes_makes_way_for_one_that_has_enough() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let deaf = agent(&karmada, "n1", Some(unhealthy()), 1);
    deaf.leadership.acquired().await;
    let led = Instant::now();
    let other = agent(&karmada, "n2", Some(unhealthy()), 0);

    karmada.until(REPORTER_READY, FALSE).await;
    let stale = karmada.condition(REPORTER_READY).await;
    assert_eq!(stale["reason"], INSUFFICIENT_OBSERVATIONS_REASON);
    assert_eq!(karmada.condition(DNS_READY).await, dns_true());
    karmada.until(DNS_READY, FALSE).await;
    assert!(led.elapsed() >= THRESHOLD);
    assert!(led.elapsed() < THRESHOLD + DURATION, "{:?}", led.elapsed());
    karmada.until(REPORTER_READY, TRUE).await;
    assert!(shows(&deaf, "resignations_total 1"));

    // It stays with the one that hears enough.
    sleep(LONG).await;
    assert!(other.leadership.held_until().is_some());
    assert_eq!(deaf.connection.codes(), [200]);
    assert_eq!(other.connection.codes(), [200, 200]);
}

#[tokio::test(start_paused = true)]
async fn two_leaders_that_hear_too_few_take_turns_ever_more_slowly_and_mark_the_verdict_once() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let one = agent(&karmada, "n1", None, 3);
    one.leadership.acquired().await;
    let two = agent(&karmada, "n2", Some(Vote::Healthy), 4);
    karmada.until(REPORTER_READY, FALSE).await;
    let marked = karmada.condition(REPORTER_READY).await;

    let (mut leads, mut changes) = (true, 0);
    let ends = Instant::now() + LONG;
    let mut free = Instant::now();
    while Instant::now() < ends {
        let now_leads = one.leadership.held_until().is_some();
        if now_leads || two.leadership.held_until().is_some() {
            free = Instant::now();
        }
        // The lease is never free for as long as a reporter may be silent.
        assert!(free.elapsed() < 3 * DURATION);
        changes += u32::from(now_leads != leads);
        leads = now_leads;
        sleep(Duration::from_millis(100)).await;
    }
    // One led for 30 s, then 60 s, 2, 4, 8 and 10 minutes, and so did the other in between.
    assert!((6..=12).contains(&changes), "{changes}");
    assert_eq!(karmada.condition(REPORTER_READY).await, marked);
    let writes = [one.connection.codes(), two.connection.codes()].concat();
    assert_eq!(writes, [200]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whom_nobody_relieves_leads_again_and_a_lone_one_never_stops() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let agent_of_two = agent(&karmada, "n1", None, 1);
    agent_of_two.leadership.acquired().await;
    timeout(LONG, agent_of_two.leadership.lost()).await.unwrap();
    let resigned = Instant::now();
    agent_of_two.leadership.acquired().await;
    let away = resigned.elapsed();
    assert!((2 * DURATION..3 * DURATION).contains(&away), "{away:?}");

    let karmada = Karmada::new(Some(cluster(&[dns_true(), reporting()]))).await;
    let alone = agent(&karmada, "n1", None, 0);
    alone.leadership.acquired().await;
    assert!(
        timeout(LONG, alone.leadership.lost()).await.is_err(),
        "a lone agent gave the lease back"
    );
}
