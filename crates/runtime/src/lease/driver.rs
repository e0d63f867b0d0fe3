//! The task that campaigns for a lease: performs the actions of the election and publishes whether
//! this replica leads.

use std::time::Duration;

use crate::metrics::Registry;
use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::{CampaignMode, LeaseConfig};
use super::election::{Action, Election, MARGIN, RETRY_EVERY, Record};
use super::request::{self, Response};
use super::{DURATION, Leadership, candidacy};
use crate::args::LeaderElectionArgs;
use crate::error::{BoxError, Chain, LastError};
use crate::fair_watch::FairWatch;
use crate::program::Program;
use crate::watch::{Decoded, events};

/// The longest duration of a read or write of the lease.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// The metrics of a campaign.
#[derive(Debug)]
struct LeaseMetrics {
    holder: Gauge,
    transitions: Counter,
}

impl LeaseMetrics {
    fn register(registry: &mut Registry) -> Self {
        Self {
            holder: registry.register(
                "lease_holder",
                "1 while this replica leads",
                Gauge::default(),
            ),
            transitions: registry.register(
                "lease_transitions",
                "Times this replica became or ceased to be the leader",
                Counter::default(),
            ),
        }
    }
}

/// Returns the leadership of a control-plane program: that of the lease with its name, held only while this replica can
/// read, or an unconditional one without leader election. The lease is in the namespace of the flag, or of the program's
/// [`Identity`](crate::program::Identity).
pub fn leadership(program: &mut Program, client: Client, args: &LeaderElectionArgs) -> Leadership {
    let name = program.identity.name.to_owned();
    leadership_by(program, client, args, name)
}

/// Returns the leadership of a control-plane program like [`leadership`], by the lease `name`.
pub fn leadership_by(
    program: &mut Program,
    client: Client,
    args: &LeaderElectionArgs,
    name: String,
) -> Leadership {
    if !args.leader_elect {
        return Leadership::always();
    }
    let host = gethostname::gethostname().to_string_lossy().into_owned();
    let namespace = args.leader_elect_resource_namespace.clone();
    let namespace = namespace.unwrap_or_else(|| program.identity.lease_namespace.to_owned());
    let config = LeaseConfig {
        mode: candidacy::start(program),
        ..LeaseConfig::eager(namespace, name, host)
    };
    campaign(program, client, config)
}

/// Spawns a task of `program` that campaigns for a lease until the program is stopping, holds it until
/// the other tasks have ended, and then releases it.
pub fn campaign(program: &mut Program, client: Client, config: LeaseConfig) -> Leadership {
    let held_until = FairWatch::default();
    let driver = Driver {
        api: Api::namespaced(client.clone(), &config.namespace),
        watched: Api::namespaced(client, &config.namespace),
        election: Election::new(format!("{}_{}", config.host, config.id), DURATION),
        config,
        manager: program.identity.name,
        clock: program.clock,
        held_until: held_until.clone(),
        metrics: LeaseMetrics::register(&mut program.registry),
        reached: false,
        last_error: LastError::default(),
    };
    let stopping = program.stopping.clone();
    program
        .tasks
        .spawn_last("lease", |drained| driver.run(stopping, drained));
    Leadership { held_until }
}

struct Driver {
    api: Api<Lease>,
    watched: Api<Decoded<Lease>>,
    config: LeaseConfig,
    /// The name by which the API knows the writer of the lease: that of the program, whatever the lease is called.
    manager: &'static str,
    election: Election,
    /// The clock of the lease's timestamps.
    clock: fn() -> Timestamp,
    held_until: FairWatch<Option<Instant>>,
    metrics: LeaseMetrics,
    /// Set if the API server responded to the last request.
    reached: bool,
    last_error: LastError,
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
            // While stopping, a leader renews until its last writes are done, but nobody campaigns.
            let mode = if stopping.is_cancelled() {
                CampaignMode::Off
            } else {
                *self.config.mode.borrow_and_update()
            };
            if mode == CampaignMode::Eager {
                self.election.retry_by(Instant::now() + RETRY_EVERY);
            }
            if mode == CampaignMode::Withdrawn {
                self.give_back().await;
            }
            let campaigns = !matches!(mode, CampaignMode::Off | CampaignMode::Withdrawn);
            let active = campaigns || self.leads();
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
            // A watch has retries of its own, which would double the load on an unreachable server.
            if !active || !self.reached {
                changes = None;
            } else if changes.is_none() {
                changes = Some(self.watch());
            }
            tokio::select! {
                biased;
                () = drained.cancelled() => {}
                () = stopping.cancelled(), if !stopping.is_cancelled() => {}
                Ok(()) = self.config.mode.changed() => {}
                // Before the deadline: a renewal that has already arrived prevents a takeover.
                event = next(&mut changes) => self.observe(event),
                () = sleep_until(until) => {}
            }
        }
        // First stop leading: another replica may lead as soon as the release is stored.
        self.held_until
            .send_if_modified(|held| held.take().is_some());
        if let Some(record) = self.record_to_release().await {
            self.release(&record).await;
        }
        Ok(())
    }

    /// Stops leading while the program runs, and gives the lease back.
    async fn give_back(&mut self) {
        // Before the read, which may take time.
        self.held_until
            .send_if_modified(|held| held.take().is_some());
        let record = self.record_to_release().await;
        self.election.forget();
        self.publish();
        if let Some(record) = record {
            // A write that was on its way when leadership ended must not meet the next leader's.
            tokio::time::sleep(MARGIN).await;
            self.release(&record).await;
        }
    }

    /// Returns the record to release, if this replica may hold the lease. It is read if its state is
    /// unknown: a conflict, or an event out of order, does not show that another holds it.
    async fn record_to_release(&mut self) -> Option<Record> {
        if self.election.is_unknown_after_holding() {
            self.act(Action::Read).await;
        }
        self.election.to_release().cloned()
    }

    fn watch(&self) -> Changes {
        let name = format!("metadata.name={}", self.config.name);
        let selected = watcher::Config::default().fields(&name);
        events(self.watched.clone(), selected).boxed()
    }

    fn observe(&mut self, event: Event<Decoded<Lease>>) {
        let seen = match event {
            Event::Apply(Decoded::Valid(lease)) | Event::InitApply(Decoded::Valid(lease)) => {
                Some(Record::from(&lease))
            }
            Event::Delete(_) => None,
            _ => return,
        };
        self.election.watched(Instant::now(), seen);
    }

    async fn act(&mut self, action: Action) {
        let started = Instant::now();
        let missing_is_stale = matches!(action, Action::Take(_) | Action::Renew(_));
        let (name, holder) = (&self.config.name, self.election.holder());
        let time = MicroTime((self.clock)());
        let request = request::perform(&self.api, name, self.manager, holder, action, time);
        let result = tokio::time::timeout(REQUEST_LIMIT, request).await;
        let now = Instant::now();
        self.reached = matches!(result, Ok(Ok(_)));
        match result {
            Ok(Ok(Response::Read(lease))) => {
                self.election.read(now, lease.as_ref().map(Record::from));
            }
            Ok(Ok(Response::Written(lease))) => {
                self.last_error.clear();
                self.election.wrote(started, Record::from(&lease));
            }
            Ok(Err(error)) => self.failed(now, missing_is_stale, &error),
            Err(_) => {
                self.warn("no answer in time");
                self.election.unreachable(now, self.retry_delay());
            }
        }
    }

    fn failed(&mut self, now: Instant, missing_is_stale: bool, error: &kube::Error) {
        let code = match error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        };
        // 409: the lease changed, or exists already. 404 to a patch: it was deleted. Neither is an
        // error: another replica was faster. A 404 to a creation, however, is a missing namespace.
        if code == 409 || code == 404 && missing_is_stale {
            self.reached = true;
            self.election.stale(now);
            return;
        }
        self.warn(&match code {
            404 => format!(
                "namespace {} does not exist; waiting for it",
                self.config.namespace
            ),
            _ => Chain(error).to_string(),
        });
        self.election.unreachable(now, self.retry_delay());
    }

    /// Returns the delay before a failed request is retried. A leader must not lose time; the
    /// others must not all query a server that has just come back.
    fn retry_delay(&self) -> Duration {
        let mode = *self.config.mode.borrow();
        match mode {
            CampaignMode::Spread(spread) if !self.leads() => {
                spread.mul_f64(fastrand::f64()).max(RETRY_EVERY)
            }
            _ => RETRY_EVERY,
        }
    }

    fn warn(&mut self, error: &str) {
        if self.last_error.replace(error) {
            let lease = format!("{}/{}", self.config.namespace, self.config.name);
            tracing::warn!(lease, error, "Cannot get or keep the lease, will retry");
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
            let lease = format!("{}/{}", self.config.namespace, self.config.name);
            if leads {
                tracing::info!(lease, "Leading");
            } else {
                tracing::info!(lease, "No longer leading");
            }
        }
        self.held_until
            .send_if_modified(|held| std::mem::replace(held, until) != until);
    }

    async fn release(&self, record: &Record) {
        let request = request::release(&self.api, &self.config.name, self.manager, record);
        match tokio::time::timeout(REQUEST_LIMIT, request).await {
            Ok(Ok(_)) => tracing::info!("Gave the lease back"),
            Ok(Err(error)) => {
                tracing::warn!(error = %Chain(&error), "Could not give the lease back");
            }
            Err(_) => tracing::warn!("Could not give the lease back in time"),
        }
    }
}

/// The events of the watch of the lease.
type Changes = BoxStream<'static, Event<Decoded<Lease>>>;

/// Waits for the next event, forever without a watch.
async fn next(changes: &mut Option<Changes>) -> Event<Decoded<Lease>> {
    if let Some(changes) = changes
        && let Some(event) = changes.next().await
    {
        return event;
    }
    std::future::pending().await
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
