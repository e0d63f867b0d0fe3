//! The writes to a binding in a rollout.

use fleet_api::Binding;
use fleet_api::binding::BindingState;
use fleet_api::conditions::{BEEN_AVAILABLE, ROLLOUT_NOT_STARTED, ROLLOUT_STARTED};
use fleet_api::names::OVERRIDES_DIGEST;
use fleet_api::placement::ApplyStrategy;
use jiff::Timestamp;
use objects::Metadata;
use objects::condition::{Condition, FALSE, TRUE, find, transition, upsert};
use objects::write::{Guard, ObjectRef, Write};
use serde::Serialize;
use serde_json::{Value, json};

use crate::condition::{been_available, condition};
use crate::deletion::with_work_finalizer;
use crate::overrides::Applicable;
use crate::strategy::change;

/// Deletes a binding as it is: its cluster may lose the placement.
pub(crate) fn delete(binding: &Binding) -> Write {
    let deletion = Write::delete("binding", ObjectRef::of(binding, &binding.scope()));
    deletion.guarded(Guard::Version)
}

/// Changes how the objects are written, and gives the binding the latest, if it is to have that.
pub(crate) fn give(
    binding: &Binding,
    latest: Option<Latest<'_>>,
    strategy: &ApplyStrategy,
) -> Write {
    let mut spec = json!({});
    if let Some(change) = change(binding.spec.apply_strategy.as_ref(), Some(strategy)) {
        spec["applyStrategy"] = change;
    }
    let mut body = json!({});
    if let Some(latest) = latest {
        spec["state"] = json!(BindingState::Bound);
        spec["resourceSnapshotName"] = json!(latest.snapshot);
        if let Some(overrides) = latest.overrides {
            list_overrides(&mut spec, binding, overrides);
            if binding.metadata.annotation(OVERRIDES_DIGEST) != latest.digest.as_deref() {
                body["metadata"]["annotations"][OVERRIDES_DIGEST] = json!(latest.digest);
            }
        }
        // Works are about to follow: it waits for those with the same write.
        if let Some(finalizers) = with_work_finalizer(binding) {
            body["metadata"]["finalizers"] = json!(finalizers);
        }
    }
    body["spec"] = spec;
    let object = ObjectRef::of(binding, &binding.scope());
    Write::merge("binding", object, body).guarded(Guard::Version)
}

/// The content that a binding gets.
#[derive(Clone, Debug)]
pub(crate) struct Latest<'a> {
    /// The latest snapshot.
    pub(crate) snapshot: &'a str,
    /// The overrides for its cluster, if that is known.
    pub(crate) overrides: Option<&'a Applicable>,
    /// The digest of these.
    pub(crate) digest: Option<String>,
}

/// Writes to a patch of the spec which overrides a binding lists, as far as it lists others.
fn list_overrides(spec: &mut Value, binding: &Binding, overrides: &Applicable) {
    let before = &binding.spec;
    if before.cluster_resource_override_snapshots != overrides.cluster_scoped {
        spec["clusterResourceOverrideSnapshots"] = list(&overrides.cluster_scoped);
    }
    if before.resource_override_snapshots != overrides.namespaced {
        spec["resourceOverrideSnapshots"] = list(&overrides.namespaced);
    }
}

/// Returns a list as a patch has it: null takes one away.
fn list<T: Serialize>(items: &[T]) -> Value {
    match items {
        [] => Value::Null,
        items => json!(items),
    }
}

/// Returns the write that says whether a binding gets the latest, and whether it has ever served, unless that
/// is said already.
pub(super) fn started(binding: &Binding, state: RolloutState, now: Timestamp) -> Option<Write> {
    let (status, reason, message) = if state.is_held {
        let message =
            "The resources cannot be updated to the latest because of the rollout strategy";
        (FALSE, ROLLOUT_NOT_STARTED, message)
    } else {
        let message = "Detected the new changes on the resources and started the rollout process";
        (TRUE, ROLLOUT_STARTED, message)
    };
    let mut started = condition((ROLLOUT_STARTED, status), reason, message);
    started.observed_generation = binding.metadata.generation;
    let mut conditions = vec![started];
    let before = binding.status.as_ref();
    let been = before.and_then(|status| find(&status.conditions, BEEN_AVAILABLE));
    if state.has_served && been.is_some_and(|been| been.status == FALSE) {
        conditions.push(been_available(TRUE));
    }
    if state.is_first && !state.is_held && been.is_none() {
        conditions.push(been_available(FALSE));
    }
    write_conditions(binding, conditions, now)
}

/// Where a binding stands in a rollout.
#[derive(Clone, Copy, Debug)]
pub(super) struct RolloutState {
    /// True if the latest is kept from it.
    pub(super) is_held: bool,
    /// True if it serves, as far as anybody can say.
    pub(super) has_served: bool,
    /// True if there is nothing in its cluster yet.
    pub(super) is_first: bool,
}

/// Returns the write of these conditions, unless the binding has them.
pub(crate) fn write_conditions(
    binding: &Binding,
    new: Vec<Condition>,
    now: Timestamp,
) -> Option<Write> {
    let status = binding.status.as_ref();
    let before = status.map_or(&[][..], |status| &status.conditions);
    let mut conditions = before.to_vec();
    for mut condition in new {
        let old = find(before, &condition.type_);
        condition.last_transition_time = Some(transition(old, &condition.status, now));
        upsert(&mut conditions, condition);
    }
    (conditions != before).then(|| {
        let object = ObjectRef::of(binding, &binding.scope());
        let body = json!({ "status": { "conditions": conditions } });
        let write = Write::merge("binding_status", object, body);
        write.of_status().guarded(Guard::Version)
    })
}
