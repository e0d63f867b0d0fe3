//! The reconcile loop of a controller: takes keys from its queue and reconciles them while leading.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::future::Future;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::conflicts::{Conflicts, Failed};
use crate::error::BoxError;
use crate::lease::Leadership;
use crate::metrics::LoopMetrics;
use crate::panics::caught;
use crate::permits::Permits;
use crate::program::Program;
use crate::queue::{Queue, QueueKey};
use crate::readiness::Readiness;

/// The number of keys reconciled concurrently. More of them do not raise the API server's throughput.
const CONCURRENCY: usize = 8;

/// Brings objects of one kind to their desired state, one key at a time.
pub trait Controller: Send + Sync + 'static {
    /// The key of an object.
    type Key: QueueKey;

    /// Returns every known object; called each time leadership begins, to reconcile them all.
    fn keys(&self) -> Vec<Self::Key>;

    /// Returns the time until which nothing is decided about a key, because a watch has still to show the writes for
    /// it.
    fn held_until(&self, _: &Self::Key) -> Option<Instant> {
        None
    }

    /// Reads the object from the caches, decides, and applies the decision. A failed key is requeued
    /// with backoff.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// Spawns the reconcile loop of `controller` on `queue` as the task `name` of `program`.
///
/// It starts once every readiness gate is open and reconciles only while leading, never the same key
/// twice at once. The metrics of the loop carry the label `controller=name`; by the convention of
/// controller-runtime that is the lower-case kind of the objects it reconciles.
pub fn spawn<C: Controller>(
    program: &mut Program,
    name: &'static str,
    controller: C,
    queue: Queue<C::Key>,
    leadership: Leadership,
) {
    let none = Readiness::default();
    spawn_after(program, none, name, controller, queue, leadership);
}

/// Spawns a loop like [`spawn`], which starts only once the gates `also` are open too.
pub fn spawn_after<C: Controller>(
    program: &mut Program,
    also: Readiness,
    name: &'static str,
    controller: C,
    queue: Queue<C::Key>,
    leadership: Leadership,
) {
    let counted = queue.clone();
    let environment = Environment {
        readiness: program.readiness.clone(),
        also,
        leadership,
        stopping: program.stopping.clone(),
        metrics: program.loop_metrics(name, move || counted.len()),
        conflicts: Conflicts::default(),
        activity: program.activity.clone(),
        queue,
    };
    program.tasks.spawn(name, run(controller, environment));
}

/// The loop's surroundings.
struct Environment<K> {
    queue: Queue<K>,
    readiness: Readiness,
    /// The gates that only this loop waits for.
    also: Readiness,
    leadership: Leadership,
    /// Ends the loop after the reconciles in progress.
    stopping: CancellationToken,
    metrics: LoopMetrics,
    conflicts: Conflicts<K>,
    activity: Activity,
}

async fn run<C: Controller>(
    controller: C,
    environment: Environment<C::Key>,
) -> Result<(), BoxError> {
    let stopping = environment.stopping.clone();
    tokio::select! {
        biased;
        () = stopping.cancelled() => return Ok(()),
        () = async {
            environment.readiness.opened().await;
            environment.also.opened().await;
        } => {}
    }
    loop {
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            () = environment.leadership.acquired() => {}
        }
        // Another leader may have undone or made anything meanwhile: keys and backoff from an earlier
        // term mean nothing, and every object is due.
        environment.queue.clear();
        environment.conflicts.clear();
        environment.queue.add_all(controller.keys());
        lead(&controller, &environment).await;
    }
}

/// Reconciles until leadership is lost or the program stops.
async fn lead<C: Controller>(controller: &C, environment: &Environment<C::Key>) {
    let Environment {
        queue,
        leadership,
        stopping,
        ..
    } = environment;
    let permits = Permits::default();
    let mut running = FuturesUnordered::new();
    let mut lost = std::pin::pin!(leadership.lost());
    loop {
        tokio::select! {
            // Losing the lease comes first: it drops the reconciles in progress at their next await,
            // so that none writes beside the next leader. A shutdown lets them finish, because the
            // lease is released only after this task.
            biased;
            () = &mut lost => return,
            () = stopping.cancelled() => break,
            Some(()) = running.next() => {}
            () = permits.freed() => {}
            key = queue.next(), if permits.taken(running.len()) < CONCURRENCY => {
                match controller.held_until(&key) {
                    Some(until) => queue.hold(&key, until),
                    None => running.push(permits.scope(reconcile_one(controller, environment, key))),
                }
            }
        }
    }
    while let Some(()) = running.next().await {}
}

async fn reconcile_one<C: Controller>(
    controller: &C,
    environment: &Environment<C::Key>,
    key: C::Key,
) {
    let Environment { queue, metrics, .. } = environment;
    // Until the key is released: with the next one taken at once, there is no gap between the two.
    let _in_progress = environment.activity.begin();
    let started = Instant::now();
    let result = caught(controller.reconcile(&key)).await;
    let result = result.unwrap_or_else(|panicked| Err(panicked.into()));
    let error = result.as_ref().err().map(|error| &**error as _);
    let outcome = (environment.conflicts).outcome(&key, error, Instant::now());
    metrics.reconciled(started.elapsed(), outcome.label());
    let Err(error) = result else {
        return queue.done(&key);
    };
    let failed = Failed {
        controller: metrics.name,
        member: None,
        key: &key,
        error: &error,
        delay: queue.retry(&key),
    };
    failed.log(outcome);
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;
    use std::time::Duration;

    use crate::metrics::Registry;
    use parking_lot::Mutex;
    use tokio::sync::watch;

    use super::*;
    use crate::metrics::SharedMetrics;
    use crate::program::Identity;

    /// A controller that fails each key once and records the keys it receives.
    struct Recorder {
        seen: Mutex<Vec<u8>>,
        calls: watch::Sender<usize>,
    }

    impl Controller for Arc<Recorder> {
        type Key = u8;

        fn keys(&self) -> Vec<u8> {
            vec![1, 2]
        }

        async fn reconcile(&self, key: &u8) -> Result<(), BoxError> {
            let first = {
                let mut seen = self.seen.lock();
                let first = !seen.contains(key);
                seen.push(*key);
                first
            };
            self.calls.send_modify(|calls| *calls += 1);
            if first { Err("once".into()) } else { Ok(()) }
        }
    }

    fn start(
        leadership: Leadership,
        readiness: Readiness,
    ) -> (Arc<Recorder>, Queue<u8>, CancellationToken) {
        let (queue, stopping) = (Queue::default(), CancellationToken::new());
        let recorder = Arc::new(Recorder {
            seen: Mutex::default(),
            calls: watch::Sender::new(0),
        });
        let environment = Environment {
            queue: queue.clone(),
            readiness,
            also: Readiness::default(),
            leadership,
            stopping: stopping.clone(),
            conflicts: Conflicts::default(),
            activity: Activity::new(),
            metrics: SharedMetrics::default().controller(&mut Registry::default(), "test", || 0),
        };
        tokio::spawn(run(Arc::clone(&recorder), environment));
        (recorder, queue, stopping)
    }

    /// Succeeds with every key.
    struct Idle(&'static [u8]);

    impl Controller for Idle {
        type Key = u8;

        fn keys(&self) -> Vec<u8> {
            self.0.to_vec()
        }

        async fn reconcile(&self, _: &u8) -> Result<(), BoxError> {
            Ok(())
        }
    }

    /// Two controllers of one program have figures of their own.
    #[tokio::test(start_paused = true)]
    async fn controllers_have_separate_metrics() {
        let mut program = Program::new(
            Identity::for_tests(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        );
        let queues = [Queue::default(), Queue::default()];
        for (name, keys, queue) in [
            ("cluster", &[1_u8][..], &queues[0]),
            ("remedy", &[1, 2, 3][..], &queues[1]),
        ] {
            let leadership = Leadership::always();
            spawn(&mut program, name, Idle(keys), queue.clone(), leadership);
        }
        // Virtual time advances only once every task is idle.
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The program's tasks do not run before the next await: this key stays in the queue.
        queues[1].add(9);
        let text = program.registry.encode().unwrap();
        for line in [
            r#"acme_test_program_reconciles_total{controller="cluster",result="success"} 1"#,
            r#"acme_test_program_reconciles_total{controller="remedy",result="success"} 3"#,
            r#"acme_test_program_reconcile_duration_seconds_count{controller="cluster"} 1"#,
            r#"acme_test_program_reconcile_duration_seconds_count{controller="remedy"} 3"#,
            r#"acme_test_program_queue_length{controller="cluster"} 0"#,
            r#"acme_test_program_queue_length{controller="remedy"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        for family in ["reconciles", "reconcile_duration_seconds", "queue_length"] {
            let description = format!("# TYPE acme_test_program_{family} ");
            assert_eq!(text.matches(&description).count(), 1, "{text}");
        }
        program.stopping.cancel();
        assert!(program.tasks.drain(Duration::from_secs(1)).await);
    }

    /// Every key is reconciled when leadership begins and again after a failure.
    #[tokio::test(start_paused = true)]
    async fn leader_reconciles_every_key() {
        let (recorder, queue, stopping) = start(Leadership::always(), Readiness::default());
        let mut calls = recorder.calls.subscribe();
        calls.wait_for(|calls| *calls == 4).await.unwrap();
        assert_eq!(*recorder.seen.lock(), [1, 2, 1, 2]);
        queue.add(7);
        calls.wait_for(|calls| *calls == 6).await.unwrap();
        assert_eq!(recorder.seen.lock()[4..], [7, 7]);
        stopping.cancel();
    }

    /// Holds the key 1 back for a minute.
    struct Holding {
        until: Instant,
        seen: watch::Sender<Vec<u8>>,
    }

    impl Controller for Holding {
        type Key = u8;

        fn keys(&self) -> Vec<u8> {
            vec![1, 2]
        }

        fn held_until(&self, key: &u8) -> Option<Instant> {
            (*key == 1 && Instant::now() < self.until).then_some(self.until)
        }

        async fn reconcile(&self, key: &u8) -> Result<(), BoxError> {
            self.seen.send_modify(|seen| seen.push(*key));
            Ok(())
        }
    }

    /// A key that is held back is not reconciled however often it is added, and hinders no other.
    #[tokio::test(start_paused = true)]
    async fn held_key_waits() {
        let (seen, mut watched) = watch::channel(Vec::new());
        let mut program = Program::new(
            Identity::for_tests(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        );
        let (queue, until) = (Queue::default(), Instant::now() + Duration::from_mins(1));
        let (holding, leadership) = (Holding { until, seen }, Leadership::always());
        spawn(&mut program, "holding", holding, queue.clone(), leadership);
        drop(watched.wait_for(|seen| *seen == [2]).await.unwrap());
        queue.add_all([1, 2]);
        drop(watched.wait_for(|seen| *seen == [2, 2]).await.unwrap());
        let seen = watched.wait_for(|seen| seen.len() == 3).await.unwrap();
        assert_eq!(*seen, [2, 2, 1]);
        assert_eq!(Instant::now(), until);
        drop(seen);
        program.stopping.cancel();
        assert!(program.tasks.drain(Duration::from_secs(1)).await);
    }

    /// Panics with the key 1, the first time.
    struct Faulty(watch::Sender<Vec<u8>>);

    impl Controller for Faulty {
        type Key = u8;

        fn keys(&self) -> Vec<u8> {
            vec![1, 2]
        }

        async fn reconcile(&self, key: &u8) -> Result<(), BoxError> {
            let is_known = self.0.borrow().contains(key);
            self.0.send_modify(|seen| seen.push(*key));
            assert!(is_known || *key != 1, "deliberate");
            Ok(())
        }
    }

    /// A panic at one object is a failure of it: the others are reconciled, and it is tried again.
    #[tokio::test(start_paused = true)]
    async fn panic_fails_one_key() {
        let (seen, mut watched) = watch::channel(Vec::new());
        let mut program = Program::new(
            Identity::for_tests(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        );
        let (queue, leadership) = (Queue::default(), Leadership::always());
        spawn(&mut program, "faulty", Faulty(seen), queue, leadership);
        let all = watched.wait_for(|seen| seen.len() == 3).await.unwrap();
        assert_eq!(*all, [1, 2, 1]);
        drop(all);
        program.stopping.cancel();
        assert!(program.tasks.drain(Duration::from_secs(1)).await);
    }

    /// Nothing is reconciled before every gate is open.
    #[tokio::test(start_paused = true)]
    async fn closed_gate_holds_reconciles() {
        let readiness = Readiness::default();
        let (first, second) = (readiness.gate("first"), readiness.gate("second"));
        let (recorder, ..) = start(Leadership::always(), readiness);
        first.open();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(recorder.seen.lock().is_empty());
        second.open();
        recorder
            .calls
            .subscribe()
            .wait_for(|calls| *calls == 4)
            .await
            .unwrap();
    }

    /// Only a loop that needs another API waits for its gates.
    #[tokio::test(start_paused = true)]
    async fn only_dependent_loop_waits() {
        let mut program = Program::new(
            Identity::for_tests(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        );
        let gate = program.elsewhere.gate("elsewhere");
        let also = program.elsewhere.clone();
        let [waiting, other] = [(); 2].map(|()| {
            Arc::new(Recorder {
                seen: Mutex::default(),
                calls: watch::Sender::new(0),
            })
        });
        let (leadership, controller) = (Leadership::always(), Arc::clone(&waiting));
        let queue = Queue::default();
        spawn_after(&mut program, also, "waiting", controller, queue, leadership);
        let (leadership, controller) = (Leadership::always(), Arc::clone(&other));
        let queue = Queue::default();
        spawn(&mut program, "other", controller, queue, leadership);
        let mut calls = other.calls.subscribe();
        calls.wait_for(|calls| *calls == 4).await.unwrap();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(waiting.seen.lock().is_empty());
        assert_eq!(program.readiness.closed(), [""; 0]);
        gate.open();
        let mut calls = waiting.calls.subscribe();
        calls.wait_for(|calls| *calls == 4).await.unwrap();
    }

    /// A key added without leadership is not reconciled.
    #[tokio::test(start_paused = true)]
    async fn follower_reconciles_nothing() {
        let (leadership, held_until) = Leadership::for_tests();
        let (recorder, queue, _) = start(leadership, Readiness::default());
        queue.add(7);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(recorder.seen.lock().is_empty());
        let until = Instant::now() + Duration::from_mins(1);
        held_until.send_if_modified(|held| held.replace(until).is_none());
        recorder
            .calls
            .subscribe()
            .wait_for(|calls| *calls == 4)
            .await
            .unwrap();
        assert_eq!(*recorder.seen.lock(), [1, 2, 1, 2]);
        tokio::time::sleep(Duration::from_secs(61)).await;
        queue.add(7);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(recorder.seen.lock().len(), 4, "leadership ran out");
    }
}
