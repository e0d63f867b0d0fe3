//! Jumps of the system clock, forwards and backwards.

use std::cell::Cell;

use jiff::ToSpan;

use super::*;

thread_local! {
    static CLOCK: Cell<Timestamp> = const { Cell::new(Timestamp::UNIX_EPOCH) };
}

/// Returns a time that advances a little with each call.
fn clock() -> Timestamp {
    CLOCK.set(CLOCK.get() + 1.millisecond());
    CLOCK.get()
}

const BEGAN: &str = "2026-11-21T10:00:00Z";
const JUMPS: [i64; 5] = [10, -10, 24 * 365, -24 * 365, 0];

fn jump(hours: i64) {
    let began: Timestamp = BEGAN.parse().unwrap();
    CLOCK.set(began + hours.hours());
}

/// Returns `true` if the condition's transition time is the clock's, to the second.
async fn changed_now(karmada: &Karmada, kind: &str) -> bool {
    let changed = &karmada.condition(kind).await["lastTransitionTime"];
    let changed: Timestamp = changed.as_str().unwrap().parse().unwrap();
    changed.as_second() == CLOCK.get().as_second()
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_changes_no_verdict_and_loses_no_lease() {
    jump(0);
    let karmada = Karmada::new(Some(cluster(&[]))).await;
    let running = Running::elected(&karmada, "n1", Some(Vote::Healthy), clock);
    let standby = Running::elected(&karmada, "n2", Some(Vote::Healthy), clock);
    karmada.until(REPORTER_READY, TRUE).await;
    assert!(changed_now(&karmada, DNS_READY).await);
    let before = karmada.cluster().await;
    for hours in JUMPS {
        jump(hours);
        sleep(LONG).await;
        let after = karmada.cluster().await;
        let versions = [&after, &before].map(|c| &c.metadata.resource_version);
        assert_eq!(versions[0], versions[1], "after {hours} hours");
    }
    assert_eq!(running.connection.codes(), [200, 200]);
    assert_eq!(standby.connection.codes(), [0_u16; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_verdict_changes_in_time_and_is_dated_by_the_clock_as_it_is_then() {
    jump(0);
    let karmada = Karmada::new(Some(cluster(&[]))).await;
    let running = Running::elected(&karmada, "n1", Some(Vote::Healthy), clock);
    karmada.until(REPORTER_READY, TRUE).await;
    let reporting = karmada.condition(REPORTER_READY).await;
    for (hours, round) in JUMPS.into_iter().zip(0..) {
        sleep(LONG).await;
        jump(hours);
        let (vote, status) = match round % 2 {
            0 => (unhealthy(), FALSE),
            _ => (Vote::Healthy, TRUE),
        };
        running.votes.send_replace(on_dns(Some(vote)));
        let voted = Instant::now();
        karmada.until(DNS_READY, status).await;
        assert_eq!(voted.elapsed(), Duration::ZERO, "after {hours} hours");
        assert!(
            changed_now(&karmada, DNS_READY).await,
            "after {hours} hours"
        );
    }
    assert_eq!(karmada.condition(REPORTER_READY).await, reporting);
}
