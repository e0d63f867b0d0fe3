use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::*;

/// The behaviour of the DNS server.
#[derive(Clone)]
enum Dns {
    Returns(&'static [u8]),
    Fails,
    Hangs,
}

const NAME: &str = "hub.example";

/// Addresses from a scripted DNS server.
struct Scripted {
    dns: watch::Sender<Dns>,
    lookups: Arc<AtomicUsize>,
    addresses: Addresses,
}

impl Scripted {
    fn new(dns: Dns) -> Self {
        let (dns, script) = watch::channel(dns);
        let lookups = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lookups);
        let addresses = Addresses::by(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut script = script.clone();
            async move {
                let answers = script.wait_for(|dns| !matches!(dns, Dns::Hangs)).await;
                let dns = answers.unwrap().clone();
                match dns {
                    Dns::Returns(hosts) => {
                        Ok(hosts.iter().map(|host| address(*host).ip()).collect())
                    }
                    _ => Err(io::Error::other("no such name")),
                }
            }
            .boxed()
        });
        Self {
            dns,
            lookups,
            addresses,
        }
    }

    async fn found(&self) -> Result<Vec<SocketAddr>, String> {
        self.found_for(NAME).await
    }

    async fn found_for(&self, name: &str) -> Result<Vec<SocketAddr>, String> {
        let mut addresses = self.addresses.clone();
        let found = addresses.call(name.parse().unwrap()).await;
        found
            .map(Iterator::collect)
            .map_err(|error| error.to_string())
    }

    fn lookups(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 0))
}

/// While DNS works its newest response counts.
#[tokio::test(start_paused = true)]
async fn newest_response_counts() {
    let scripted = Scripted::new(Dns::Returns(&[1]));
    assert_eq!(scripted.found().await, Ok(vec![address(1)]));
    scripted.dns.send_replace(Dns::Returns(&[2, 3]));
    assert_eq!(scripted.found().await, Ok(vec![address(2), address(3)]));
}

/// When DNS fails its last good response counts.
#[tokio::test(start_paused = true)]
async fn last_good_response_survives_failure() {
    let scripted = Scripted::new(Dns::Returns(&[1]));
    scripted.found().await.unwrap();
    for dns in [Dns::Fails, Dns::Returns(&[])] {
        scripted.dns.send_replace(dns);
        assert_eq!(scripted.found().await, Ok(vec![address(1)]));
    }
    scripted.dns.send_replace(Dns::Returns(&[2]));
    assert_eq!(scripted.found().await, Ok(vec![address(2)]));
}

/// When DNS hangs nobody waits longer than half a second and one lookup is in flight.
#[tokio::test(start_paused = true)]
async fn hanging_dns_delays_briefly() {
    let scripted = Scripted::new(Dns::Returns(&[1]));
    scripted.found().await.unwrap();
    scripted.dns.send_replace(Dns::Hangs);
    let started = Instant::now();
    for _ in 0..100 {
        let found = join_all((0..10).map(|_| scripted.found())).await;
        assert!(found.iter().all(|found| *found == Ok(vec![address(1)])));
    }
    assert_eq!(started.elapsed(), 100 * SERVE_STALE_AFTER);
    assert_eq!(scripted.lookups(), 2);
    scripted.dns.send_replace(Dns::Returns(&[2]));
    assert_eq!(scripted.found().await, Ok(vec![address(2)]));
    assert_eq!(scripted.lookups(), 2);
}

/// Without any good response the error names the server.
#[tokio::test(start_paused = true)]
async fn unresolved_name_is_in_error() {
    let scripted = Scripted::new(Dns::Fails);
    let error = scripted.found().await.unwrap_err();
    assert_eq!(error, "cannot resolve hub.example: no such name");
    scripted.dns.send_replace(Dns::Hangs);
    let error = scripted.found().await.unwrap_err();
    assert_eq!(
        error,
        "cannot resolve hub.example: no answer from DNS within 5s"
    );
}

/// An address that nobody connected to is known after a refresh.
#[tokio::test(start_paused = true)]
async fn refresh_learns_kept_names() {
    let scripted = Scripted::new(Dns::Fails);
    assert!(!scripted.addresses.refresh(NAME).await);
    scripted.dns.send_replace(Dns::Returns(&[1]));
    assert!(scripted.addresses.refresh(NAME).await);
    scripted.dns.send_replace(Dns::Returns(&[2]));
    assert!(scripted.addresses.refresh(NAME).await);
    scripted.dns.send_replace(Dns::Fails);
    assert!(scripted.addresses.refresh(NAME).await);
    assert_eq!(scripted.found().await, Ok(vec![address(2)]));
}

/// A refresh waits for an answer however long it takes.
#[tokio::test(start_paused = true)]
async fn refresh_waits_for_answer() {
    let scripted = Scripted::new(Dns::Hangs);
    let addresses = scripted.addresses.clone();
    let refreshing = tokio::spawn(async move { addresses.refresh(NAME).await });
    sleep(4 * LOOKUP_LIMIT).await;
    scripted.dns.send_replace(Dns::Returns(&[1]));
    assert!(refreshing.await.unwrap());
    scripted.dns.send_replace(Dns::Hangs);
    assert_eq!(scripted.found().await, Ok(vec![address(1)]));
}

/// Each name has addresses of its own.
#[tokio::test(start_paused = true)]
async fn names_do_not_share_addresses() {
    let addresses = Addresses::by(|name| {
        async move {
            match name.as_str() {
                "one" => Ok(vec![address(1).ip()]),
                "two" => Ok(vec![address(2).ip()]),
                _ => Err(io::Error::other("no such name")),
            }
        }
        .boxed()
    });
    let (dns, _) = watch::channel(Dns::Fails);
    let scripted = Scripted {
        dns,
        lookups: Arc::default(),
        addresses,
    };
    assert_eq!(scripted.found_for("one").await, Ok(vec![address(1)]));
    assert_eq!(scripted.found_for("two").await, Ok(vec![address(2)]));
    let error = scripted.found_for("three").await.unwrap_err();
    assert_eq!(error, "cannot resolve three: no such name");
}

/// One who gives up waiting leaves the lookup to the others.
#[tokio::test(start_paused = true)]
async fn lookup_survives_impatient_caller() {
    let scripted = Scripted::new(Dns::Hangs);
    let given_up = timeout(Duration::from_secs(1), scripted.found()).await;
    assert!(given_up.is_err());
    scripted.dns.send_replace(Dns::Returns(&[1]));
    assert_eq!(scripted.found().await, Ok(vec![address(1)]));
    assert_eq!(scripted.lookups(), 1);
}

/// A lookup that nobody waits for any more keeps its addresses.
#[tokio::test(start_paused = true)]
async fn abandoned_lookup_keeps_its_result() {
    let scripted = Scripted::new(Dns::Hangs);
    scripted.found().await.unwrap_err();
    scripted.dns.send_replace(Dns::Returns(&[1]));
    sleep(Duration::from_secs(1)).await;
    scripted.dns.send_replace(Dns::Hangs);
    let started = Instant::now();
    assert_eq!(scripted.found().await, Ok(vec![address(1)]));
    assert_eq!(started.elapsed(), SERVE_STALE_AFTER);
    // The second lookup is another one: the response to the first is no fresh one now.
    assert_eq!(scripted.lookups(), 2);
}

/// A lookup that panics is an error and the next one is another.
#[tokio::test]
async fn panicking_lookup_is_an_error() {
    let calls = AtomicUsize::new(0);
    let addresses = Addresses::by(move |_| {
        let first = calls.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            assert!(!first, "the first lookup panics");
            Ok(vec![address(1).ip()])
        }
        .boxed()
    });
    assert!(!addresses.refresh(NAME).await);
    assert!(addresses.refresh(NAME).await);
}

/// The addresses of a family without a response stay behind the new ones.
#[test]
fn missing_family_keeps_addresses() {
    let six: SocketAddr = "[2001:db8::1]:0".parse().unwrap();
    let other_six: SocketAddr = "[2001:db8::2]:0".parse().unwrap();
    let cases = [
        (vec![address(1), six], vec![address(1), six]),
        (vec![address(2)], vec![address(2), six]),
        (vec![other_six], vec![other_six, address(2)]),
        (vec![address(3), six], vec![address(3), six]),
    ];
    let mut state = State::default();
    for (found, kept) in cases {
        state.keep(found);
        assert_eq!(state.last_good, kept);
    }
}

#[tokio::test]
async fn fixed_addresses_need_no_dns() {
    let mut fixed = Addresses::fixed(&["192.0.2.7".parse().unwrap()]);
    let found = fixed.call("hub.invalid".parse().unwrap()).await;
    assert_eq!(found.unwrap().collect::<Vec<_>>(), [address(7)]);
}

#[tokio::test]
async fn the_system_knows_localhost() {
    let mut addresses = Addresses::by_system();
    let mut found = addresses.call("localhost".parse().unwrap()).await.unwrap();
    assert!(found.all(|address| address.ip().is_loopback()));
}
