//! The heartbeat of a member: a Lease in the control plane.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference};
use karmada_api::ClusterView;
use karmada_api::names::CLUSTER_NAMESPACE;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::write::WriteError;
use kube::core::ObjectMeta;
use kube::{Api, Client, Resource};
use objects::write::{ObjectRef, Write};
use parking_lot::Mutex;
use propagation_rules::cluster::{LEASE, RENEWAL};
use serde_json::json;
use tokio::time::Instant;

/// The time after which a renewal that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Renews the Lease, from the first time that the member was found ready.
pub(crate) struct Heartbeat {
    leases: Api<Lease>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// As the last renewal left it.
    lease: Option<Lease>,
    /// The time of the next one; absent before the first.
    due: Option<Instant>,
}

impl Heartbeat {
    pub(crate) fn new(karmada: Client) -> Self {
        Self {
            leases: Api::namespaced(karmada, CLUSTER_NAMESPACE),
            last: Mutex::default(),
        }
    }

    /// Renews the Lease of `cluster`, if that is due.
    pub(crate) async fn renew(
        &self,
        committer: &Committer,
        cluster: &impl Resource,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let started = Instant::now();
        let known = {
            let mut last = self.last.lock();
            if last.due.is_some_and(|due| started < due) {
                return Ok(());
            }
            last.due = Some(started + RETRY);
            // After a failure it is read again.
            last.lease.take()
        };
        let name = cluster.meta().name.as_deref().unwrap_or_default();
        let known = match known {
            Some(known) => Some(known),
            None => self.leases.get_opt(name).await?,
        };
        let mut lease = renewed(known.as_ref(), cluster, now);
        // Karmada grants its agents no patch.
        let write = match known {
            Some(_) => Write::replace("cluster_lease", ObjectRef::of(&lease, &()), json!(lease)),
            None => Write::create("cluster_lease", &lease, &()),
        };
        match committer.write(&write, None).await? {
            Outcome::Stored(stored) => lease.metadata.resource_version = stored.version,
            Outcome::Exists(error) | Outcome::Gone(error) => return Err(error),
            Outcome::Unchanged | Outcome::DryRun | Outcome::Contended(_) => {}
        }
        *self.last.lock() = Last {
            lease: Some(lease),
            due: Some(started + RENEWAL),
        };
        Ok(())
    }

    /// Returns the time of the next attempt, once there was one.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.last.lock().due
    }
}

/// Returns the Lease as Karmada's agent writes it. It goes with its Cluster.
fn renewed(known: Option<&Lease>, cluster: &impl Resource, now: Timestamp) -> Lease {
    let (metadata, name) = (cluster.meta(), cluster.meta().name.clone());
    let owner = OwnerReference {
        api_version: ClusterView::api_version(&()).into_owned(),
        kind: ClusterView::kind(&()).into_owned(),
        name: name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let known = known.cloned().unwrap_or_default();
    Lease {
        metadata: ObjectMeta {
            name: name.clone(),
            owner_references: Some(vec![owner]),
            namespace: Some(CLUSTER_NAMESPACE.to_owned()),
            ..known.metadata
        },
        spec: Some(LeaseSpec {
            holder_identity: name,
            lease_duration_seconds: i32::try_from(LEASE.as_secs()).ok(),
            renew_time: Some(MicroTime(now)),
            ..known.spec.unwrap_or_default()
        }),
    }
}
