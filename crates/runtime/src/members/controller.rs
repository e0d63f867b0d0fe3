//! One reconcile loop per member cluster, so that a slow or dead one never holds up another.

mod outage;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use futures::stream::FuturesUnordered;
use futures::{StreamExt, future};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::conflicts::{Conflicts, Failed};
use crate::error::{BoxError, Chain};
use crate::lease::Leadership;
use crate::metrics::LoopMetrics;
use crate::panics::caught;
use crate::permits::Permits;
use crate::program::Program;
use crate::queue::{Queue, QueueKey};
use crate::readiness::Readiness;

use self::outage::{Outage, Phase, Reach, Turn};

/// The number of keys of one member that are reconciled concurrently.
const IN_FLIGHT: usize = 2;

/// Brings objects in member clusters to their desired state, one key of one member at a time.
pub trait MemberController: Send + Sync + 'static {
    /// The key of an object.
    type Key: QueueKey;

    /// Returns every known object with its member; called each time leadership begins.
    fn keys(&self) -> Vec<(String, Self::Key)>;

    /// Forgets all that only the leader may know; called each time leadership is lost.
    fn end_term(&self) {}

    /// Reads the object from the caches, decides, and applies the decision. A failed key is requeued with
    /// backoff.
    fn reconcile(
        &self,
        member: &str,
        key: &Self::Key,
    ) -> impl Future<Output = Result<Contact, ReconcileError>> + Send;

    /// Shows on an object that its member, which other keys did not reach for this reason, is waited for: as one is
    /// tried at a time, its own turn may come late. Called once per key and outage, and again if the key is added anew.
    fn show_outage(
        &self,
        _member: &str,
        _key: &Self::Key,
        _reason: &(dyn Error + Send + Sync + 'static),
    ) -> impl Future<Output = ()> + Send {
        future::ready(())
    }
}

/// The contact with its member that a reconcile had which succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    /// The member answered.
    Made,
    /// Nothing was learned of the member.
    None,
}

/// Errors of a reconcile by whom they concern.
#[derive(Debug)]
pub enum ReconcileError {
    /// The member was not reached: the others of its keys wait.
    Unreachable(BoxError),
    /// Only this key failed.
    OfKey(BoxError),
}

impl<E: Error + Send + Sync + 'static> From<E> for ReconcileError {
    fn from(error: E) -> Self {
        Self::OfKey(error.into())
    }
}

/// A work queue per member, shared by its clones.
#[derive(Debug)]
pub struct MemberQueues<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    queues: Mutex<BTreeMap<String, OfMember<K>>>,
    added: Notify,
}

#[derive(Debug)]
struct OfMember<K> {
    queue: Queue<K>,
    /// Ends a pause.
    hurry: Arc<Notify>,
    gone: CancellationToken,
}

impl<K> Clone for OfMember<K> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            hurry: Arc::clone(&self.hurry),
            gone: self.gone.clone(),
        }
    }
}

impl<K> Clone for MemberQueues<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: QueueKey> Default for MemberQueues<K> {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                queues: Mutex::default(),
                added: Notify::new(),
            }),
        }
    }
}

impl<K: QueueKey> MemberQueues<K> {
    /// Returns the queue of a member.
    pub fn of(&self, member: &str) -> Queue<K> {
        let mut queues = self.shared.queues.lock();
        if let Some(known) = queues.get(member) {
            return known.queue.clone();
        }
        let new = OfMember {
            queue: Queue::default(),
            hurry: Arc::new(Notify::new()),
            gone: CancellationToken::new(),
        };
        let queue = new.queue.clone();
        queues.insert(member.to_owned(), new);
        drop(queues);
        self.shared.added.notify_one();
        queue
    }

    /// Ends the pause of a member that was not reached: something about it has changed.
    pub fn hurry(&self, member: &str) {
        let queues = self.shared.queues.lock();
        let known = queues.get(member).cloned();
        drop(queues);
        if let Some(known) = known {
            known.hurry.notify_one();
        }
    }

    /// Drops the queue of a member, with the reconciles in progress.
    pub fn remove(&self, member: &str) {
        let known = self.shared.queues.lock().remove(member);
        if let Some(known) = known {
            known.gone.cancel();
        }
    }

    /// Returns the number of keys that are queued, being processed, or waiting for a retry.
    pub fn len(&self) -> usize {
        let queues = self.shared.queues.lock();
        queues.values().map(|known| known.queue.len()).sum()
    }

    /// Returns `true` if no key is queued, being processed, or waiting for a retry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn clear(&self) {
        for known in self.shared.queues.lock().values() {
            known.queue.clear();
        }
    }

    /// Returns the queues that `started` does not have.
    fn others(&self, started: &BTreeMap<String, CancellationToken>) -> Vec<(String, OfMember<K>)> {
        let queues = self.shared.queues.lock();
        let new = queues.iter().filter(|(member, _)| {
            let stop = started.get(*member);
            stop.is_none_or(CancellationToken::is_cancelled)
        });
        new.map(|(member, known)| (member.clone(), known.clone()))
            .collect()
    }
}

/// Spawns the reconcile loops of `controller`, one for each queue, as the task `name` of `program`. Like
/// [`controller::spawn`](crate::controller::spawn) they wait for readiness and leadership.
pub fn spawn<C: MemberController>(
    program: &mut Program,
    name: &'static str,
    controller: C,
    queues: MemberQueues<C::Key>,
    leadership: Leadership,
) {
    let none = Readiness::default();
    spawn_after(program, none, name, controller, queues, leadership);
}

/// Spawns loops like [`spawn`], which start only once the gates `also` are open too.
pub fn spawn_after<C: MemberController>(
    program: &mut Program,
    also: Readiness,
    name: &'static str,
    controller: C,
    queues: MemberQueues<C::Key>,
    leadership: Leadership,
) {
    let counted = queues.clone();
    let loops = Loops {
        controller,
        queues,
        metrics: program.loop_metrics(name, move || counted.len()),
        conflicts: Conflicts::default(),
        activity: program.activity.clone(),
        stopping: program.stopping.clone(),
    };
    let readiness = program.readiness.clone();
    program.tasks.spawn(name, async move {
        let stopping = loops.stopping.clone();
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            () = async {
                readiness.opened().await;
                also.opened().await;
            } => {}
        }
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = leadership.acquired() => {}
            }
            loops.queues.clear();
            loops.conflicts.clear();
            for (member, key) in loops.controller.keys() {
                loops.queues.of(&member).add(key);
            }
            tokio::select! {
                // Losing the lease drops the reconciles in progress, so that none writes beside the next
                // leader.
                biased;
                () = leadership.lost() => loops.controller.end_term(),
                () = loops.run() => {}
            }
        }
    });
}

struct Loops<C: MemberController> {
    controller: C,
    queues: MemberQueues<C::Key>,
    metrics: LoopMetrics,
    conflicts: Conflicts<(String, C::Key)>,
    activity: Activity,
    stopping: CancellationToken,
}

impl<C: MemberController> Loops<C> {
    /// Runs the loops of all members until the program stops.
    async fn run(&self) {
        let mut running = FuturesUnordered::new();
        let mut started = BTreeMap::new();
        loop {
            for (member, known) in self.queues.others(&started) {
                started.insert(member.clone(), known.gone.clone());
                running.push(self.run_member(member, known));
            }
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => break,
                () = self.queues.shared.added.notified() => {}
                Some(()) = running.next() => {}
            }
        }
        while let Some(()) = running.next().await {}
    }

    async fn run_member(&self, member: String, known: OfMember<C::Key>) {
        let OfMember { queue, hurry, gone } = known;
        let permits = Permits::default();
        let mut running = FuturesUnordered::new();
        let mut outage: Option<Outage<C::Key>> = None;
        loop {
            let phase = outage.as_ref().map_or(Phase::Normal, Outage::phase);
            if let (Phase::Trying(_), Some(outage), true) = (phase, &mut outage, running.is_empty())
            {
                outage.release_changed(&queue);
            }
            let limit = match phase {
                // It shows whether the member is back; others would only time out beside it.
                Phase::Trying(_) => 1,
                Phase::Normal | Phase::Showing(_) => IN_FLIGHT,
            };
            let due = async {
                match phase {
                    Phase::Normal => Some(queue.next().await),
                    Phase::Trying(after) => {
                        sleep_until(after).await;
                        Some(queue.next().await)
                    }
                    Phase::Showing(until) => timeout_at(until, queue.next()).await.ok(),
                }
            };
            tokio::select! {
                biased;
                () = gone.cancelled() => return,
                () = self.stopping.cancelled() => break,
                () = hurry.notified() => if let Some(outage) = &mut outage {
                    outage.try_now();
                },
                Some(reach) = running.next() => Outage::note(&mut outage, reach, &queue),
                () = permits.freed() => {}
                key = due, if permits.taken(running.len()) < limit => if let Some(key) = key {
                    let turn = match (phase, &mut outage) {
                        (Phase::Showing(_), Some(outage)) => outage.turn(&key),
                        _ => Some(Turn::Reconcile),
                    };
                    if let Some(turn) = turn {
                        running.push(permits.scope(self.take(&member, &queue, key, turn)));
                    }
                },
            }
        }
        while running.next().await.is_some() {}
    }

    async fn take(
        &self,
        member: &str,
        queue: &Queue<C::Key>,
        key: C::Key,
        turn: Turn,
    ) -> Reach<C::Key> {
        let _in_progress = self.activity.begin();
        match turn {
            Turn::Reconcile => self.reconcile_one(member, queue, key).await,
            Turn::Show(reason) => {
                let shown = caught(self.controller.show_outage(member, &key, &*reason)).await;
                if let Err(panicked) = shown {
                    tracing::error!(member, ?key, error = %panicked, "Outage not shown");
                }
                Reach::Shown(key)
            }
        }
    }

    async fn reconcile_one(
        &self,
        member: &str,
        queue: &Queue<C::Key>,
        key: C::Key,
    ) -> Reach<C::Key> {
        let started = Instant::now();
        let result = caught(self.controller.reconcile(member, &key)).await;
        let result = result.unwrap_or_else(|panicked| Err(panicked.into()));
        let error = match &result {
            Ok(_) => None,
            Err(ReconcileError::OfKey(error) | ReconcileError::Unreachable(error)) => {
                Some(&**error as _)
            }
        };
        let of_member = (member.to_owned(), key.clone());
        let outcome = (self.conflicts).outcome(&of_member, error, Instant::now());
        self.metrics.reconciled(started.elapsed(), outcome.label());
        let controller = self.metrics.name;
        match result {
            Ok(contact) => {
                queue.done(&key);
                match contact {
                    Contact::Made => Reach::Reached,
                    Contact::None => Reach::Unknown,
                }
            }
            Err(ReconcileError::OfKey(error)) => {
                let failed = Failed {
                    controller,
                    member: Some(member),
                    key: &key,
                    error: &error,
                    delay: queue.retry(&key),
                };
                failed.log(outcome);
                Reach::Unknown
            }
            Err(ReconcileError::Unreachable(error)) => {
                // Behind the others, so that each of them gets a turn and reports the outage.
                tracing::warn!(controller, member, ?key, error = %Chain(&*error), "Member not reached, will retry");
                queue.give_back(&key);
                Reach::Failed(error, started)
            }
        }
    }
}

#[cfg(test)]
mod tests;
