//! Long outages of the Karmada API.

use super::*;

/// Starts a Karmada API and a report that has written a healthy verdict.
async fn healthy() -> (Karmada, Running) {
    let karmada = Karmada::new(Some(cluster(&[]))).await;
    let running = Running::elected(&karmada, "n1", Some(Vote::Healthy), Timestamp::now);
    karmada.until(REPORTER_READY, TRUE).await;
    (karmada, running)
}

#[tokio::test(start_paused = true)]
async fn an_api_that_was_away_for_an_hour_gets_the_verdict_within_a_period_of_its_return() {
    for fault in [Fault::Disconnect, Fault::Unavailable, Fault::Silence] {
        let (karmada, running) = healthy().await;
        let outage = karmada.server.faults().inject(fault.clone());
        sleep(LONG / 2).await;
        running.votes.send_replace(on_dns(Some(unhealthy())));
        sleep(LONG / 2).await;
        karmada.server.faults().remove(outage);
        let back = Instant::now();
        karmada.until(DNS_READY, FALSE).await;
        assert!(back.elapsed() <= PERIOD, "{fault:?}: {:?}", back.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_for_long_is_retried_every_period() {
    let (karmada, running) = healthy().await;
    let fault = Fault::Unavailable.kind("clusters").verbs([Verb::Patch]);
    let fault = karmada.server.faults().inject(fault);
    running.votes.send_replace(on_dns(Some(unhealthy())));
    sleep(LONG).await;
    karmada.server.faults().remove(fault);
    let back = Instant::now();
    karmada.until(DNS_READY, FALSE).await;
    assert!(back.elapsed() <= PERIOD, "{:?}", back.elapsed());
}
