//! The requests that carry out an [`Action`].

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use objects::lease::Renewal;
use objects::patch::guarded;
use serde_json::json;

use super::DURATION;
use super::election::{Action, Record};

/// The response to an action.
pub(super) enum Response {
    Read(Option<Lease>),
    Written(Lease),
}

/// Performs `action` on the lease `name` for the replica `holder` of the program `manager`; `now` becomes its timestamps.
pub(super) async fn perform(
    api: &Api<Lease>,
    name: &str,
    manager: &str,
    holder: &str,
    action: Action,
    now: MicroTime,
) -> kube::Result<Response> {
    let seconds = i32::try_from(DURATION.as_secs()).unwrap_or(i32::MAX);
    match action {
        Action::Wait(_) | Action::Read => api.get_opt(name).await.map(Response::Read),
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
            let parameters = PostParams {
                field_manager: Some(manager.to_owned()),
                ..PostParams::default()
            };
            api.create(&parameters, &lease).await.map(Response::Written)
        }
        Action::Take(record) => {
            let spec = json!({
                "holderIdentity": holder,
                "leaseDurationSeconds": seconds,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": record.renewal.transitions.saturating_add(1),
            });
            patch(api, name, manager, &record, spec)
                .await
                .map(Response::Written)
        }
        Action::Renew(record) => patch(api, name, manager, &record, json!({ "renewTime": now }))
            .await
            .map(Response::Written),
    }
}

/// Releases the lease as client-go does with `ReleaseOnCancel`: without a holder, and with a duration
/// of 1 s for campaigners that ignore the missing holder.
pub(super) async fn release(
    api: &Api<Lease>,
    name: &str,
    manager: &str,
    record: &Record,
) -> kube::Result<Lease> {
    let spec = json!({ "holderIdentity": null, "leaseDurationSeconds": 1 });
    patch(api, name, manager, record, spec).await
}

/// Patches the lease. The resource version makes a lease that changed since `record` a 409, so that of
/// two campaigners only one takes it.
async fn patch(
    api: &Api<Lease>,
    name: &str,
    manager: &str,
    record: &Record,
    spec: serde_json::Value,
) -> kube::Result<Lease> {
    let patch = guarded(Some(&record.resource_version), json!({ "spec": spec }));
    let parameters = PatchParams::apply(manager);
    api.patch(name, &parameters, &Patch::Merge(patch)).await
}

impl From<&Lease> for Record {
    fn from(lease: &Lease) -> Self {
        Self {
            resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
            renewal: lease.spec.as_ref().map(Renewal::from).unwrap_or_default(),
        }
    }
}
