//! A condition that the API refuses.

use super::*;

/// The agents may write no Event about a Cluster: their Lease tells the refusal once, and by whom.
#[tokio::test(start_paused = true)]
async fn refusal_is_on_lease() {
    let before = cluster(&[dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    karmada.accept_only_short_messages();
    let running = Running::start(&karmada, Some(unhealthy()));
    running.connection.patched(2 * TRIES_IN_A_MINUTE).await;
    let events = karmada.events().await;
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &events[0];
    let lease = event.regarding.as_ref().unwrap();
    let about = [&lease.kind, &lease.namespace, &lease.name].map(Option::as_deref);
    let namespace = karmada_api::execution_namespace("member1");
    let expected = ["Lease", &namespace, "cluster-health-agent"].map(Some);
    assert_eq!(about, expected);
    assert_eq!(event.reason.as_deref(), Some("ConditionRefused"));
    let note = event.note.as_deref().unwrap();
    let begins = format!("the API refuses every write of the condition {DNS_READY} of member1: ");
    assert!(
        note.starts_with(&begins) && note.contains("Too long"),
        "{note}"
    );
}
