//! Keeps the addresses known that this agent needs while DNS is dead: the Karmada API server's, and those
//! of peers given by name. Any agent may have to lead then, also one that has never connected to either.

use std::time::Duration;

use karmada_runtime::client::Addresses;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::Program;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The interval of lookups, give or take a quarter.
const EVERY: Duration = Duration::from_mins(10);
/// The same while a name has never resolved.
const RETRY_DELAY: Duration = Duration::from_secs(30);

/// Spawns the lookups of the names in `addresses` as a task of `program`, at once and then from time to
/// time.
pub(crate) fn start(program: &mut Program, addresses: Addresses) {
    let unknown = program.registry.register(
        "unresolved_names",
        "Names of the Karmada API server and of peers that have never resolved since the start: without DNS this agent cannot reach them",
        Gauge::default(),
    );
    let task = run(addresses, unknown, program.stopping.clone());
    program.tasks.spawn("addresses", task);
}

async fn run(
    addresses: Addresses,
    unknown: Gauge,
    stopping: CancellationToken,
) -> Result<(), BoxError> {
    let looking_up = async {
        let mut warned = false;
        loop {
            let mut unresolved = Vec::new();
            // One after the other: nobody waits for these, and there may be many peers.
            for name in addresses.kept() {
                if !addresses.refresh(&name).await {
                    unresolved.push(name);
                }
            }
            unknown.set(i64::try_from(unresolved.len()).unwrap_or(i64::MAX));
            let rest = if unresolved.is_empty() {
                EVERY
            } else {
                RETRY_DELAY
            };
            if !unresolved.is_empty() && !std::mem::replace(&mut warned, true) {
                tracing::warn!(
                    names = ?unresolved,
                    "Could not look up Karmada or peers, trying again: without DNS this agent cannot reach them"
                );
            }
            // Spread, so that agents started together do not look names up together for ever.
            sleep(rest.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
        }
    };
    tokio::select! {
        biased;
        () = stopping.cancelled() => Ok(()),
        () = looking_up => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures::FutureExt;
    use tokio::time::{Instant, sleep_until};

    use super::*;

    /// A running task, with the names it has looked up and when.
    struct Running {
        lookups: Arc<Mutex<Vec<(String, Instant)>>>,
        resolves: Arc<Mutex<bool>>,
        addresses: Addresses,
        unknown: Gauge,
    }

    impl Running {
        fn start(names: &[&str], resolves: bool) -> Self {
            let lookups = Arc::<Mutex<Vec<_>>>::default();
            let resolves = Arc::new(Mutex::new(resolves));
            let (record, dns) = (Arc::clone(&lookups), Arc::clone(&resolves));
            let addresses = Addresses::by(move |name| {
                record.lock().unwrap().push((name, Instant::now()));
                let resolves = *dns.lock().unwrap();
                async move {
                    if resolves {
                        Ok(vec![[192, 0, 2, 1].into()])
                    } else {
                        Err(std::io::Error::other("dead"))
                    }
                }
                .boxed()
            });
            let unknown = Gauge::default();
            for name in names {
                addresses.keep(name);
            }
            let task = run(addresses.clone(), unknown.clone(), CancellationToken::new());
            tokio::spawn(task);
            Self {
                lookups,
                resolves,
                addresses,
                unknown,
            }
        }

        fn lookups(&self) -> Vec<(String, Instant)> {
            self.lookups.lock().unwrap().clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_name_is_looked_up_at_the_start_and_every_ten_minutes_with_a_spread() {
        let start = Instant::now();
        let running = Running::start(&["karmada.example", "agent-2"], true);
        sleep_until(start + Duration::from_hours(2)).await;
        let lookups = running.lookups();
        for name in ["karmada.example", "agent-2"] {
            let of = lookups.iter().filter(|(looked_up, _)| looked_up == name);
            let times: Vec<_> = of.map(|(_, at)| *at).collect();
            assert_eq!(times.first(), Some(&start));
            assert!((10..=16).contains(&times.len()), "{}", times.len());
            let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let bounds = EVERY.mul_f64(0.75)..=EVERY.mul_f64(1.25);
            assert!(gaps.iter().all(|gap| bounds.contains(gap)), "{gaps:?}");
            assert!(gaps.iter().any(|gap| *gap != gaps[0]), "{gaps:?}");
        }
        assert_eq!(running.unknown.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_has_never_resolved_is_looked_up_again_soon() {
        let start = Instant::now();
        let running = Running::start(&["karmada.example"], false);
        sleep_until(start + Duration::from_mins(5)).await;
        assert!(running.lookups().len() >= 8);
        assert_eq!(running.unknown.get(), 1);
        *running.resolves.lock().unwrap() = true;
        sleep_until(start + Duration::from_mins(6)).await;
        assert_eq!(running.unknown.get(), 0);
        // From now on the address is known, whatever becomes of DNS.
        *running.resolves.lock().unwrap() = false;
        assert!(running.addresses.refresh("karmada.example").await);
        sleep_until(start + Duration::from_hours(1)).await;
        assert_eq!(running.unknown.get(), 0);
    }
}
