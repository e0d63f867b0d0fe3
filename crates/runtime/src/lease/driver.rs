//! Reads and writes the lease as the election asks, and tells the program whether it leads.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::election::{Action, Election, RETRY_EVERY, Record};
use super::{DURATION, Leadership};
use crate::args::LeaderElectionArgs;
use crate::error::{BoxError, Chain};
use crate::program::Program;
use crate::watch::{Guarded, events};

/// The longest a read or write of the lease may take.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// Which lease, and who we are.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The lease's namespace. While it is missing we wait for it.
    pub namespace: String,
    /// The lease's name.
    pub name: &'static str,
    /// The host we run on; the holder is recorded as `<host>_<uuid>`.
    pub host: String,
    /// Whether to seek the lease.
    pub seeking: watch::Receiver<Seeking>,
}

/// Whether a replica seeks the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeking {
    /// No: it sends nothing, and watches nothing, unless it holds the lease.
    No,
    /// Yes, as one of many: a call that fails is made again after a random time up to this one.
    Spread(Duration),
    /// Yes, as one of few: a call that fails is made again soon.
    Eagerly,
}

impl Candidate {
    /// Seeks the lease for as long as the program runs, as one of few.
    pub fn always(namespace: String, name: &'static str, host: String) -> Self {
        Self {
            namespace,
            name,
            host,
            seeking: watch::channel(Seeking::Eagerly).1,
        }
    }
}

/// Whether this replica leads, and how often that changed.
#[derive(Debug, Default)]
struct LeaseMetrics {
    holder: Gauge,
    transitions: Counter,
}

impl LeaseMetrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "lease_holder",
            "1 while this replica leads",
            metrics.holder.clone(),
        );
        registry.register(
            "lease_transitions",
            "How often this replica began or ceased to lead",
            metrics.transitions.clone(),
        );
        metrics
    }
}

/// Leadership of a control-plane program: by the lease of its name in `karmada-system`, or, without
/// leader election, unconditional.
pub fn leadership(program: &mut Program, client: Client, args: &LeaderElectionArgs) -> Leadership {
    if !args.leader_elect {
        return Leadership::always();
    }
    let host = gethostname::gethostname().to_string_lossy().into_owned();
    let own = Candidate::always("karmada-system".to_owned(), program.name, host);
    campaign(program, client, own)
}

/// Campaigns for a lease, in a task of `program`: seeks leadership until the program is stopping,
/// keeps it until the other tasks have ended, and then gives it back.
pub fn campaign(program: &mut Program, client: Client, candidate: Candidate) -> Leadership {
    let (held_until, receiver) = watch::channel(None);
    let driver = Driver {
        api: Api::namespaced(client.clone(), &candidate.namespace),
        watched: Api::namespaced(client, &candidate.namespace),
        election: Election::new(format!("{}_{}", candidate.host, Uuid::new_v4()), DURATION),
        candidate,
        clock: program.clock,
        held_until,
        metrics: LeaseMetrics::register(&mut program.registry),
        reached: false,
        warned: None,
    };
    let stopping = program.stopping.clone();
    program
        .tasks
        .spawn_last("lease", |drained| driver.run(stopping, drained));
    Leadership {
        held_until: receiver,
    }
}

struct Driver {
    api: Api<Lease>,
    watched: Api<Guarded<Lease>>,
    candidate: Candidate,
    election: Election,
    /// For the times that the lease shows.
    clock: fn() -> Timestamp,
    held_until: watch::Sender<Option<Instant>>,
    metrics: LeaseMetrics,
    /// Whether the API answered the last call.
    reached: bool,
    /// The last failure warned of, so that a lasting one is told once.
    warned: Option<String>,
}

impl Driver {
    async fn run(
        mut self,
        stopping: CancellationToken,
        drained: CancellationToken,
    ) -> Result<(), BoxError> {
        let mut changes = None;
        while !drained.is_cancelled() {
            self.publish();
            let seeking = if stopping.is_cancelled() {
                Seeking::No
            } else {
                *self.candidate.seeking.borrow_and_update()
            };
            if seeking == Seeking::Eagerly {
                self.election.retry_by(Instant::now() + RETRY_EVERY);
            }
            let active = seeking != Seeking::No || self.leads();
            let action = if active {
                self.election.next(Instant::now())
            } else {
                self.election.forget();
                Action::Wait(None)
            };
            let Action::Wait(until) = action else {
                self.act(action).await;
                continue;
            };
            if !active || !self.reached {
                changes = None;
            } else if changes.is_none() {
                changes = Some(self.watch());
            }
            tokio::select! {
                biased;
                () = drained.cancelled() => {}
                () = stopping.cancelled(), if !stopping.is_cancelled() => {}
                Ok(()) = self.candidate.seeking.changed() => {}
                // Before the time is up: a renewal that is known already keeps us from taking over.
                event = next(&mut changes) => self.observe(event),
                () = wake(until) => {}
            }
        }
        self.release().await;
        Ok(())
    }

    fn watch(&self) -> Changes {
        let name = format!("metadata.name={}", self.candidate.name);
        let selected = watcher::Config::default().fields(&name);
        events(self.watched.clone(), selected).boxed()
    }

    fn observe(&mut self, event: Event<Guarded<Lease>>) {
        let seen = match event {
            Event::Apply(Guarded::Good(lease)) | Event::InitApply(Guarded::Good(lease)) => {
                Some(record(&lease))
            }
            Event::Delete(_) => None,
            _ => return,
        };
        self.election.watched(Instant::now(), seen);
    }

    async fn act(&mut self, action: Action) {
        let started = Instant::now();
        let missing_is_stale = matches!(action, Action::Take(_) | Action::Renew(_));
        let (name, holder) = (self.candidate.name, self.election.holder());
        let call = perform(&self.api, name, holder, action, MicroTime((self.clock)()));
        let result = tokio::time::timeout(CALL_LIMIT, call).await;
        let now = Instant::now();
        self.reached = matches!(result, Ok(Ok(_)));
        match result {
            Ok(Ok(Done::Read(lease))) => self.election.read(now, lease.as_ref().map(record)),
            Ok(Ok(Done::Wrote(lease))) => {
                self.warned = None;
                self.election.wrote(started, record(&lease));
            }
            Ok(Err(error)) => self.failed(now, missing_is_stale, &error),
            Err(_) => {
                self.warn("no answer in time".to_owned());
                self.election.unreachable(now, self.retry());
            }
        }
    }

    fn failed(&mut self, now: Instant, missing_is_stale: bool, error: &kube::Error) {
        let code = match error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        };
        if code == 409 || code == 404 && missing_is_stale {
            self.reached = true;
            self.election.stale(now);
            return;
        }
        self.warn(match code {
            404 => format!(
                "namespace {} does not exist; waiting for it",
                self.candidate.namespace
            ),
            _ => Chain(error).to_string(),
        });
        self.election.unreachable(now, self.retry());
    }

    /// How soon to try again what failed. One that leads has no time to lose; the others must not all
    /// ask a server that has just come back.
    fn retry(&self) -> Duration {
        let seeking = *self.candidate.seeking.borrow();
        match seeking {
            Seeking::Spread(spread) if !self.leads() => {
                spread.mul_f64(fastrand::f64()).max(RETRY_EVERY)
            }
            _ => RETRY_EVERY,
        }
    }

    fn warn(&mut self, error: String) {
        if self.warned.as_ref() != Some(&error) {
            let lease = format!("{}/{}", self.candidate.namespace, self.candidate.name);
            tracing::warn!(lease, error, "Cannot get or keep the lease, will retry");
            self.warned = Some(error);
        }
    }

    fn leads(&self) -> bool {
        self.election
            .held_until()
            .is_some_and(|until| Instant::now() < until)
    }

    fn publish(&mut self) {
        let leads = self.leads();
        let until = self.election.held_until().filter(|_| leads);
        let led = self.metrics.holder.get() == 1;
        if leads != led {
            self.metrics.holder.set(i64::from(leads));
            self.metrics.transitions.inc();
            let lease = format!("{}/{}", self.candidate.namespace, self.candidate.name);
            if leads {
                tracing::info!(lease, "Leading");
            } else {
                tracing::info!(lease, "No longer leading");
            }
        }
        self.held_until
            .send_if_modified(|held| std::mem::replace(held, until) != until);
    }

    async fn release(&mut self) {
        self.held_until.send_replace(None);
        let Some(record) = self.election.to_release() else {
            return;
        };
        let patch = json!({
            "metadata": { "resourceVersion": record.resource_version },
            "spec": { "holderIdentity": null, "leaseDurationSeconds": 1 },
        });
        let parameters = PatchParams::default();
        let patch = Patch::Merge(patch);
        let call = self.api.patch(self.candidate.name, &parameters, &patch);
        match tokio::time::timeout(CALL_LIMIT, call).await {
            Ok(Ok(_)) => tracing::info!("Gave the lease back"),
            Ok(Err(error)) => {
                tracing::warn!(error = %Chain(&error), "Could not give the lease back");
            }
            Err(_) => tracing::warn!("Could not give the lease back in time"),
        }
    }
}

/// What the watch of the lease tells.
type Changes = BoxStream<'static, Event<Guarded<Lease>>>;

/// The next change; never without a watch.
async fn next(changes: &mut Option<Changes>) -> Event<Guarded<Lease>> {
    if let Some(changes) = changes
        && let Some(event) = changes.next().await
    {
        return event;
    }
    std::future::pending().await
}

async fn wake(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

enum Done {
    Read(Option<Lease>),
    Wrote(Lease),
}

async fn perform(
    api: &Api<Lease>,
    name: &str,
    holder: &str,
    action: Action,
    now: MicroTime,
) -> kube::Result<Done> {
    let seconds = i32::try_from(DURATION.as_secs()).unwrap_or(i32::MAX);
    let patch = async |record: &Record, spec: serde_json::Value| {
        let patch =
            json!({ "metadata": { "resourceVersion": record.resource_version }, "spec": spec });
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map(Done::Wrote)
    };
    match action {
        Action::Wait(_) | Action::Read => api.get_opt(name).await.map(Done::Read),
        Action::Create => {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    ..ObjectMeta::default()
                },
                spec: Some(LeaseSpec {
                    holder_identity: Some(holder.to_owned()),
                    lease_duration_seconds: Some(seconds),
                    acquire_time: Some(now.clone()),
                    renew_time: Some(now),
                    lease_transitions: Some(0),
                    ..LeaseSpec::default()
                }),
            };
            api.create(&PostParams::default(), &lease)
                .await
                .map(Done::Wrote)
        }
        Action::Take(record) => {
            let spec = json!({
                "holderIdentity": holder,
                "leaseDurationSeconds": seconds,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": record.transitions.saturating_add(1),
            });
            patch(&record, spec).await
        }
        Action::Renew(record) => patch(&record, json!({ "renewTime": now })).await,
    }
}

fn record(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec
        .lease_duration_seconds
        .and_then(|s| u64::try_from(s).ok());
    Record {
        resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        duration: seconds.map_or(DURATION, Duration::from_secs),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
