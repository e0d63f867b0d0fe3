//! Who interprets a kind, operation by operation: first who knows the kinds of other projects, then the rules of
//! Kubernetes' own.

use objects::health::{self, Health};
use serde_json::Value;

use super::components::Component;
use super::members::MemberStatus;
use super::replicas::Replicas;
use super::thirdparty::{self, Aggregation, Needs};

/// Returns the replicas of a template, and the needs of each.
pub fn replicas(template: &Value) -> Replicas {
    let known = thirdparty::of(template).and_then(|known| known.replicas);
    known.map_or_else(|| Replicas::of(template), |replicas| replicas(template))
}

/// Returns the parts of a template whose Pods differ, and `None` for a kind without.
pub fn components(template: &Value) -> Option<Vec<Component>> {
    let components = thirdparty::of(template)?.components?;
    Some(components(template))
}

/// Sets the replicas of a manifest. Kinds without replicas stay as they are.
pub fn revise(manifest: &mut Value, replicas: i32) {
    match thirdparty::of(manifest).and_then(|known| known.revise) {
        Some(revise) => revise(manifest, replicas),
        None => super::revise::revise(manifest, replicas),
    }
}

/// Keeps in `body`, which is to replace `object`, the fields that programs in its cluster have set.
pub fn retain(body: &mut Value, object: &Value) {
    if let Some(retain) = thirdparty::of(body).and_then(|known| known.retain) {
        retain(body, object);
    }
}

/// Returns the health of an object in a member. One of a kind without a rule is healthy.
pub fn health(object: &Value) -> Health {
    match thirdparty::of(object).and_then(|known| known.is_healthy) {
        Some(is_healthy) if is_healthy(object) => Health::Healthy,
        Some(_) => Health::Unhealthy,
        None => health::health(object),
    }
}

/// Returns the status of an object in a member as it is reported to the control plane, and `None` if it has none.
pub fn reflect(object: &Value) -> Option<Value> {
    let status = object.get("status").filter(|status| !status.is_null())?;
    match thirdparty::of(object).and_then(|known| known.reflect) {
        Some(reflect) => Some(reflect(object)),
        None => super::reflect::reflect(object, status),
    }
}

/// Returns the merge patch (RFC 7396) of the status of `template`, and `None` if its status is up to date or
/// its kind has none that could be put together.
///
/// `rebuilt` is true if every manifest is made from the template as it is now. Only then may
/// `observedGeneration` become the template's.
pub fn template_status(
    template: &Value,
    members: &[MemberStatus<'_>],
    rebuilt: bool,
) -> Option<Value> {
    match thirdparty::of(template).and_then(|known| known.aggregate) {
        Some(aggregate) => Aggregation::new(template, members, rebuilt).patch(aggregate),
        None => super::aggregate::template_status(template, members, rebuilt),
    }
}

/// Returns the objects that a template of another project's kind needs beside it, and `None` for any other kind.
pub(crate) fn needs(template: &Value) -> Option<Needs<'_>> {
    let needs = thirdparty::of(template)?.needs?;
    Some(needs(template))
}
