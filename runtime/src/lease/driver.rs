//! Reads and writes the lease as the election asks, and tells the program whether it leads.

use std::time::Duration;

use futures::StreamExt;
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

use super::election::{Action, Election, Failed, Record};
use super::{DURATION, Leadership};
use crate::args::LeaderElectionArgs;
use crate::error::{BoxError, Chain};
use crate::program::Program;
use crate::watch::{Guarded, events};

/// The longest a read or write of the lease may take.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// Which lease, and who we are.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The lease's namespace. While it is missing we wait for it.
    pub namespace: String,
    /// The lease's name.
    pub name: &'static str,
    /// The host we run on; the holder is recorded as `<host>_<uuid>`.
    pub host: String,
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
    let own = Campaign {
        namespace: "karmada-system".to_owned(),
        name: program.name,
        host: gethostname::gethostname().to_string_lossy().into_owned(),
    };
    campaign(program, client, own)
}

/// Campaigns for a lease, in a task of `program`: seeks leadership until the program is stopping,
/// keeps it until the other tasks have ended, and then gives it back.
pub fn campaign(program: &mut Program, client: Client, campaign: Campaign) -> Leadership {
    let (held_until, receiver) = watch::channel(None);
    let driver = Driver {
        api: Api::namespaced(client.clone(), &campaign.namespace),
        watched: Api::namespaced(client, &campaign.namespace),
        election: Election::new(format!("{}_{}", campaign.host, Uuid::new_v4()), DURATION),
        campaign,
        held_until,
        metrics: LeaseMetrics::register(&mut program.registry),
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
    campaign: Campaign,
    election: Election,
    held_until: watch::Sender<Option<Instant>>,
    metrics: LeaseMetrics,
    /// The last failure warned of, so that a lasting one is told once.
    warned: Option<String>,
}

impl Driver {
    async fn run(
        mut self,
        stopping: CancellationToken,
        drained: CancellationToken,
    ) -> Result<(), BoxError> {
        let selected =
            watcher::Config::default().fields(&format!("metadata.name={}", self.campaign.name));
        let mut events = std::pin::pin!(events(self.watched.clone(), selected));
        while !drained.is_cancelled() {
            self.publish();
            let may_act = self.leads() || !stopping.is_cancelled();
            let action = if may_act {
                self.election.next(Instant::now())
            } else {
                Action::Wait(None)
            };
            let Action::Wait(until) = action else {
                self.act(action).await;
                continue;
            };
            tokio::select! {
                () = drained.cancelled() => {}
                () = stopping.cancelled(), if !stopping.is_cancelled() => {}
                () = wake(until) => {}
                Some(event) = events.next() => self.observe(event),
            }
        }
        self.release().await;
        Ok(())
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
        let creating = action == Action::Create;
        let call = perform(
            &self.api,
            self.campaign.name,
            self.election.holder(),
            action,
        );
        let result = tokio::time::timeout(CALL_LIMIT, call).await;
        let now = Instant::now();
        match result {
            Ok(Ok(Done::Read(lease))) => self.election.read(now, lease.as_ref().map(record)),
            Ok(Ok(Done::Wrote(lease))) => {
                self.warned = None;
                self.election.wrote(started, record(&lease));
            }
            Ok(Err(error)) => self.failed(now, creating, &error),
            Err(_) => {
                self.warn("no answer in time".to_owned());
                self.election.failed(now, Failed::Unreachable);
            }
        }
    }

    fn failed(&mut self, now: Instant, creating: bool, error: &kube::Error) {
        let why = why(creating, error);
        if why == Failed::Unreachable {
            self.warn(match error {
                kube::Error::Api(status) if status.code == 404 => format!(
                    "namespace {} does not exist; waiting for it",
                    self.campaign.namespace
                ),
                error => Chain(error).to_string(),
            });
        }
        self.election.failed(now, why);
    }

    fn warn(&mut self, error: String) {
        if self.warned.as_ref() != Some(&error) {
            let lease = format!("{}/{}", self.campaign.namespace, self.campaign.name);
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
            let lease = format!("{}/{}", self.campaign.namespace, self.campaign.name);
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
        let call = self.api.patch(self.campaign.name, &parameters, &patch);
        match tokio::time::timeout(CALL_LIMIT, call).await {
            Ok(Ok(_)) => tracing::info!("Gave the lease back"),
            Ok(Err(error)) => {
                tracing::warn!(error = %Chain(&error), "Could not give the lease back");
            }
            Err(_) => tracing::warn!("Could not give the lease back in time"),
        }
    }
}

/// What a failed call means. What is missing when the lease is created is its namespace; otherwise it
/// is the lease itself, deleted since it was last seen.
fn why(creating: bool, error: &kube::Error) -> Failed {
    match error {
        kube::Error::Api(status) if status.code == 409 => Failed::Stale,
        kube::Error::Api(status) if status.code == 404 && !creating => Failed::Stale,
        _ => Failed::Unreachable,
    }
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

async fn perform(api: &Api<Lease>, name: &str, holder: &str, action: Action) -> kube::Result<Done> {
    let now = MicroTime(Timestamp::now());
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
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_lease_deleted_unseen_is_looked_for_again_and_a_missing_namespace_waited_for() {
        let error =
            |code| kube::Error::Api(Status::failure("no", "Reason").with_code(code).boxed());
        assert_eq!(why(false, &error(404)), Failed::Stale);
        assert_eq!(why(true, &error(404)), Failed::Unreachable);
        for creating in [true, false] {
            assert_eq!(why(creating, &error(409)), Failed::Stale);
            assert_eq!(why(creating, &error(503)), Failed::Unreachable);
        }
    }
}
