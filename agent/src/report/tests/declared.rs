//! The condition of a signal that users declare: it comes and goes with the declaration.

use health::failure::FailureClass;
use health::signal::{Signal, Voters};
use karmada_api::condition::{DECLARED_FAILED_REASON, DECLARED_READY_REASON};

use super::*;

static REGISTRY: Signal = Signal {
    name: "registry",
    subject: "registry",
    metric_prefix: "signal_",
    condition: CONDITION,
    ready_reason: DECLARED_READY_REASON,
    failed_reason: DECLARED_FAILED_REASON,
    reporter: REPORTER_READY,
    works: "it works",
    unobserved: "it is unknown",
    classes: &[REFUSED],
    voters: Voters::Nodes,
};
const CONDITION: &str = "ImageRegistryReady";
const REFUSED: FailureClass = FailureClass::new(0, "refused");

/// Lets the agent declare the signal, on which it votes so.
fn declare(running: &Running, vote: Option<Vote>) {
    let terms = Terms {
        quorum: QUORUM,
        patience: THRESHOLD,
    };
    let declared = PerTarget::from_iter([(&REGISTRY, terms)]);
    running.declared.send_replace(Some(declared));
    running
        .votes
        .send_modify(|votes| votes.insert(&REGISTRY, vote));
}

fn refused() -> Vote {
    Vote::Unhealthy(Failure::new(REFUSED, ([10, 0, 0, 7], 443).into()))
}

/// Waits until the Cluster has conditions of these types.
async fn until_types(karmada: &Karmada, expected: &[&str]) {
    let seen = async {
        loop {
            let cluster = karmada.cluster().await;
            let conditions = cluster.data["status"]["conditions"].as_array().cloned();
            let conditions = conditions.unwrap_or_default();
            let types: Vec<_> = conditions
                .iter()
                .filter_map(|one| one["type"].as_str())
                .collect();
            if types == expected {
                return;
            }
            sleep(PERIOD).await;
        }
    };
    timeout(LONG, seen).await.unwrap();
}

/// A user declares a signal, it fails and works again, and its condition goes with the declaration.
#[tokio::test(start_paused = true)]
async fn condition_goes_with_declaration() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let running = Running::start(&karmada, Some(Vote::Healthy));
    declare(&running, Some(refused()));
    karmada.until(CONDITION, FALSE).await;
    let condition = karmada.condition(CONDITION).await;
    let message = "1 of 1 nodes fail: refused from 10.0.0.7:443 (1); n1";
    assert_eq!(condition["message"], message);
    assert_eq!(condition["reason"], DECLARED_FAILED_REASON);
    declare(&running, Some(Vote::Healthy));
    karmada.until(CONDITION, TRUE).await;

    running.declared.send_replace(Some(PerTarget::default()));
    running.votes.send_modify(|votes| votes.remove(&REGISTRY));
    until_types(&karmada, &["Ready", DNS_READY, REPORTER_READY]).await;
    assert_eq!(karmada.condition("Ready").await, ready());
}

/// The file was emptied while no agent ran: the next leader removes the old conditions, and no sooner than it has read the file.
#[tokio::test(start_paused = true)]
async fn left_over_condition_is_removed() {
    let left = element(CONDITION, FALSE, DECLARED_FAILED_REASON, "all fail");
    let karmada = Karmada::new(Some(cluster(&[left, dns_true(), reporting()]))).await;
    let running = Running::start(&karmada, Some(Vote::Healthy));
    sleep(THRESHOLD).await;
    until_types(&karmada, &[CONDITION, DNS_READY, REPORTER_READY]).await;
    running.declared.send_replace(Some(PerTarget::default()));
    until_types(&karmada, &[DNS_READY, REPORTER_READY]).await;
}

/// A condition of the same type that another program writes is not taken over, and the agents' Lease says so once.
#[tokio::test(start_paused = true)]
async fn anothers_condition_stays() {
    let theirs = element(CONDITION, TRUE, "RegistryOperator", "fine");
    let before = cluster(&[theirs.clone(), dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let running = Running::start(&karmada, Some(Vote::Healthy));
    declare(&running, Some(refused()));
    sleep(2 * THRESHOLD).await;
    assert_eq!(karmada.condition(CONDITION).await, theirs);
    let events = karmada.events().await;
    let reasons: Vec<_> = events.iter().map(|event| event.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("ConditionTaken")]);
}
