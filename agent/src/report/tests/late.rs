//! A write of a leader that was cut off arrives when another one leads.

use super::*;

/// Longer than it takes another to lead.
const LATE: Duration = Duration::from_mins(1);

fn servfail() -> Vote {
    let server = "10.96.0.10:53".parse().unwrap();
    Vote::Unhealthy(Failure::new(DnsClass::ServFail, server))
}

#[tokio::test(start_paused = true)]
async fn a_late_write_of_a_leader_that_was_cut_off_fails() {
    let replacing = cluster(&[ready(), dns_true(), reporting()]);
    let inserting = cluster(&[ready()]);
    for before in [replacing, inserting] {
        let karmada = Karmada::new(Some(before)).await;
        let old = Running::elected(&karmada, "n1", None, Timestamp::now);
        sleep(PERIOD).await;
        let new = Running::elected(&karmada, "n2", None, Timestamp::now);
        sleep(PERIOD).await;

        old.connection.delay(LATE);
        old.votes.send_replace(on_dns(Some(unhealthy())));
        new.votes.send_replace(on_dns(Some(servfail())));
        karmada.until(DNS_READY, FALSE).await;
        let written = karmada.condition(DNS_READY).await;
        assert_eq!(
            written["message"],
            "1 of 1 nodes fail: servfail from 10.96.0.10 (1); n2"
        );

        old.connection.patched(1).await;
        sleep(LATE).await;
        let codes = old.connection.codes();
        assert!(codes.iter().all(|code| *code == 409), "{codes:?}");
        assert_eq!(karmada.condition(DNS_READY).await, written);
        assert_eq!(karmada.condition("Ready").await, ready());
    }
}
