use std::net::{Ipv4Addr, SocketAddr};

use tokio::time::sleep;

use super::fake_api::{FakeApi, Health};
use super::*;

const LONG: Duration = Duration::from_hours(1);

/// A replica that campaigns for the lease of a fake API server.
struct Replica {
    program: Program,
    leadership: Leadership,
    seeking: watch::Sender<Seeking>,
}

impl Replica {
    fn start(api: &FakeApi, host: &str, seeking: Seeking) -> Self {
        let mut program = Program::new("test", SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (changed, seeking) = watch::channel(seeking);
        let own = Campaign {
            seeking,
            ..Campaign::always("default".to_owned(), "test", host.to_owned())
        };
        Self {
            leadership: campaign(&mut program, api.client(), own),
            program,
            seeking: changed,
        }
    }

    fn leads(&self) -> bool {
        self.leadership.held_until().is_some()
    }

    async fn stop(mut self) {
        self.program.stopping.cancel();
        assert!(self.program.tasks.drain(LONG).await);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_seek_sends_nothing() {
    let api = FakeApi::default();
    let replica = Replica::start(&api, "a", Seeking::No);
    sleep(LONG).await;
    assert_eq!(api.asked(), [""; 0]);
    replica.stop().await;
    assert_eq!(api.asked(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn one_that_finds_a_leader_costs_three_requests_and_then_none_while_it_watches() {
    let api = FakeApi::default();
    api.held_by(Some("other_1"));
    let renewed = api.clone();
    tokio::spawn(async move {
        loop {
            sleep(RETRY_EVERY).await;
            renewed.held_by(Some("other_1"));
        }
    });
    let replica = Replica::start(&api, "a", Seeking::Eagerly);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(api.asked(), ["read", "list", "watch"]);
    replica.seeking.send_replace(Seeking::No);
    sleep(Duration::from_mins(1)).await;
    assert_eq!((api.watchers(), api.asked().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn one_that_leads_goes_on_leading_although_it_no_longer_seeks() {
    let api = FakeApi::default();
    let replica = Replica::start(&api, "a", Seeking::Eagerly);
    replica.leadership.acquired().await;
    replica.seeking.send_replace(Seeking::No);
    sleep(LONG).await;
    assert!(replica.leads());
    replica.stop().await;
    assert_eq!(api.holder(), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_given_back_is_taken_in_the_same_moment() {
    let api = FakeApi::default();
    let first = Replica::start(&api, "a", Seeking::Eagerly);
    first.leadership.acquired().await;
    let second = Replica::start(&api, "b", Seeking::Eagerly);
    let idle = Replica::start(&api, "c", Seeking::No);
    sleep(LONG).await;
    let released = Instant::now();
    first.stop().await;
    second.leadership.acquired().await;
    assert_eq!(released.elapsed(), Duration::ZERO);
    assert!(!idle.leads());
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_dead_leader_is_taken_as_soon_as_it_has_run_out() {
    let api = FakeApi::default();
    let first = Replica::start(&api, "a", Seeking::Eagerly);
    first.leadership.acquired().await;
    let second = Replica::start(&api, "b", Seeking::Eagerly);
    sleep(LONG).await;
    let killed = Instant::now();
    drop(first);
    second.leadership.acquired().await;
    assert!(killed.elapsed() <= DURATION, "{:?}", killed.elapsed());
    assert_eq!(api.holder().as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_leading_before_another_may_begin() {
    for health in [Health::Failing, Health::Hanging] {
        let api = FakeApi::default();
        let replica = Replica::start(&api, "a", Seeking::Eagerly);
        replica.leadership.acquired().await;
        let cut_off = Instant::now();
        api.set(health);
        replica.leadership.lost().await;
        assert!(cut_off.elapsed() < DURATION, "{health:?}");
        assert!(!replica.leads());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_an_hour_is_asked_every_two_seconds_and_found_at_once() {
    let api = FakeApi::default();
    let replica = Replica::start(&api, "a", Seeking::Eagerly);
    replica.leadership.acquired().await;
    api.set(Health::Failing);
    api.asked();
    sleep(LONG).await;
    // The watch is tried again until the first renewal fails, after a random time each.
    let mut asked = api.asked();
    asked.retain(|what| *what != "watch");
    let asked = u64::try_from(asked.len()).unwrap();
    // At both ends of the hour a request may fall within it, depending on the spread.
    assert!(
        asked <= LONG.as_secs() / RETRY_EVERY.as_secs() + 2,
        "{asked}"
    );
    api.set(Health::Good);
    let back = Instant::now();
    replica.leadership.acquired().await;
    assert!(back.elapsed() <= RETRY_EVERY);
}

#[tokio::test(start_paused = true)]
async fn those_who_seek_together_spread_their_attempts() {
    let api = FakeApi::default();
    api.set(Health::Failing);
    let spread = Duration::from_mins(10);
    let replicas: Vec<_> = (0..100)
        .map(|_| Replica::start(&api, "a", Seeking::Spread(spread)))
        .collect();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(api.asked().len(), replicas.len());
    // Every five minutes on average; a hundred replicas that ask every two seconds ask 180,000 times.
    sleep(LONG).await;
    let asked = api.asked().len();
    assert!((1_000..2_000).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn one_that_becomes_eager_no_longer_waits_its_turn() {
    let api = FakeApi::default();
    api.set(Health::Failing);
    let replica = Replica::start(&api, "a", Seeking::Spread(24 * LONG));
    sleep(Duration::from_secs(1)).await;
    api.set(Health::Good);
    replica.seeking.send_replace(Seeking::Eagerly);
    let eager = Instant::now();
    replica.leadership.acquired().await;
    assert!(eager.elapsed() <= RETRY_EVERY);
}

#[tokio::test(start_paused = true)]
async fn of_many_who_seek_at_once_exactly_one_leads() {
    let api = FakeApi::default();
    let replicas: Vec<_> = (0..20)
        .map(|number| Replica::start(&api, &format!("host{number}"), Seeking::Eagerly))
        .collect();
    api.until(|api| api.holder().is_some()).await;
    for _ in 0..100 {
        sleep(Duration::from_secs(7)).await;
        let leaders = replicas.iter().filter(|replica| replica.leads()).count();
        assert_eq!(leaders, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_deleted_unseen_is_made_again_and_leadership_goes_on() {
    let api = FakeApi::default();
    let replica = Replica::start(&api, "a", Seeking::Eagerly);
    replica.leadership.acquired().await;
    sleep(LONG).await;
    api.asked();
    api.delete_unseen();
    api.until(|api| api.holder().is_some()).await;
    assert_eq!(api.asked(), ["patch", "read", "create"]);
    assert!(replica.leads());
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_waited_for() {
    let api = FakeApi::default();
    api.set(Health::NoNamespace);
    let replica = Replica::start(&api, "a", Seeking::Eagerly);
    sleep(LONG).await;
    let asked = u64::try_from(api.asked().len()).unwrap();
    assert!(
        asked <= LONG.as_secs() / RETRY_EVERY.as_secs() + 2,
        "{asked}"
    );
    api.set(Health::Good);
    replica.leadership.acquired().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_calls_every_write_a_conflict_is_not_asked_without_pause() {
    let api = FakeApi::default();
    api.held_by(None);
    api.set(Health::Conflicting);
    let _replica = Replica::start(&api, "a", Seeking::Eagerly);
    sleep(LONG).await;
    let asked = u64::try_from(api.asked().len()).unwrap();
    assert!(
        asked <= 4 * LONG.as_secs() / RETRY_EVERY.as_secs(),
        "{asked}"
    );
}
