//! The clusters of the Deployment: every one, or those of a primary group with a backup.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use karmada_api::{PropagationPolicy, ResourceBinding, names};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::objects::{NAMESPACE, WEB, WORKLOAD, in_one_line};

/// The policy with a backup in its placement.
const FAILOVER: &str = include_str!("../../../manifests/samples/failover/web.yaml");
/// The time for which the workload stays in a cluster with dead DNS, in place of the sample's minutes.
pub(crate) const TOLERATION: Duration = Duration::from_secs(10);

/// The clusters of the Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Placement {
    /// Every cluster.
    Everywhere,
    /// member1 and member2; member2 and member3 if DNS is dead in member1.
    WithBackup,
}

impl Placement {
    /// Returns the placement of the policy in the samples.
    fn sample(self) -> Result<Value> {
        let manifest = match self {
            Self::Everywhere => WORKLOAD,
            Self::WithBackup => FAILOVER,
        };
        let objects: Vec<DynamicObject> = serde_saphyr::from_multiple(manifest)?;
        let policy = objects.iter().find(|object| {
            let types = object.types.as_ref();
            types.is_some_and(|types| types.kind == "PropagationPolicy") && object.name_any() == WEB
        });
        let policy = policy.with_context(|| format!("no sample has a policy {WEB}"))?;
        let mut placement = policy.data["spec"]["placement"].clone();
        let seconds = placement.pointer_mut("/clusterTolerations/0/tolerationSeconds");
        if let Some(seconds) = seconds {
            *seconds = TOLERATION.as_secs().into();
        }
        Ok(placement)
    }
}

/// Gives the Deployment other clusters.
pub(crate) async fn place(karmada: &Client, placement: Placement) -> Result<()> {
    let policies: Api<PropagationPolicy> = Api::namespaced(karmada.clone(), NAMESPACE);
    // A merge would leave the members that go.
    let operations =
        json!([{ "op": "add", "path": "/spec/placement", "value": placement.sample()? }]);
    let patch = Patch::Json::<()>(serde_json::from_value(operations)?);
    in_one_line(policies.patch(WEB, &PatchParams::default(), &patch).await)
}

/// Has the scheduler choose the Deployment's clusters anew, as Karmada's `WorkloadRebalancer` does.
pub(crate) async fn reschedule(karmada: &Client) -> Result<()> {
    let bindings: Api<ResourceBinding> = Api::namespaced(karmada.clone(), NAMESPACE);
    // Times have whole seconds, and one that equals that of the last placement asks for nothing.
    let at = Timestamp::now() + SignedDuration::from_secs(1);
    let at = Timestamp::from_second(at.as_second())?;
    let patch = Patch::Merge(json!({ "spec": { "rescheduleTriggeredAt": at } }));
    let name = names::binding("Deployment", WEB);
    in_one_line(bindings.patch(&name, &PatchParams::default(), &patch).await)
}
