//! Another writer of the same condition.

use std::sync::Arc;

use super::karmada::OTHER;
use super::*;

/// The time that a pause may end late by: an event arrives in the same instant, or in the next one.
const LATE: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn who_undoes_every_write_of_the_verdict_meets_growing_pauses() {
    let before = cluster(&[ready(), dns_true(), reporting()]);
    let karmada = Karmada::new(Some(before)).await;
    let log = tempfile::NamedTempFile::new().unwrap();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(Arc::new(log.reopen().unwrap()))
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let running = Running::start(&karmada, Some(unhealthy()));
    let begun = Instant::now();
    let mut written = Vec::new();
    for _ in 0..10 {
        karmada.until(DNS_READY, FALSE).await;
        written.push(begun.elapsed());
        // The other writer is quick, and never tires.
        karmada
            .edit(|status| status["conditions"][1] = dns_true())
            .await;
    }
    let pauses: Vec<_> = written
        .windows(2)
        .map(|two| two[1].saturating_sub(two[0]))
        .collect();
    // Those of up to four seconds pass within the period.
    let expected = [5, 5, 5, 5, 5, 8, 16, 32, 64].map(Duration::from_secs);
    for (pause, expected) in pauses.iter().zip(expected) {
        assert!((expected..expected + LATE).contains(pause), "{pauses:?}");
    }
    let log = std::fs::read_to_string(log.path()).unwrap();
    let warnings = log.lines().filter(|line| line.contains(" WARN "));
    let [warning] = warnings.collect::<Vec<_>>()[..] else {
        panic!("{log}");
    };
    for part in [
        "Another writer undoes every write of the condition",
        &format!("condition={DNS_READY:?}"),
        &format!("manager={OTHER:?}"),
    ] {
        assert!(warning.contains(part), "{warning}");
    }

    // Another verdict is no part of that quarrel.
    let (vote, changed) = (Vote::Healthy, Instant::now());
    karmada
        .edit(|status| status["conditions"][1]["status"] = json!(FALSE))
        .await;
    running.votes.send_replace(on_dns(Some(vote)));
    karmada.until(DNS_READY, TRUE).await;
    assert!(changed.elapsed() < PERIOD + LATE);
}
