//! The clusters of a fleet on its hub: the objects of each there, and the words of its agent.
//!
//! ```text
//! MemberCluster → namespace, Role, RoleBinding, channel → agent → status of the channel → status of the MemberCluster
//! ```
//!
//! The channel is the cluster's `InternalMemberCluster`. A cluster that leaves keeps its objects: its agent is asked to
//! let go first, and only then its Works, its namespace and at last itself go from the hub.
//!
//! - `facts`: the facts that decide.
//! - `hub_resources`: the objects of a cluster on the hub.
//! - `report`: its status.

mod facts;
mod hub_resources;
mod report;

use fleet_api::member::LEAVE;
use fleet_api::names::{
    MEMBER_FINALIZER, MEMBER_NAME, PROFILE_FINALIZER, WORK_FINALIZER, member_namespace,
};
use fleet_api::{InternalMemberCluster, MemberCluster, Work};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::Metadata;
use objects::condition::find;
use objects::write::{Guard, ObjectRef, Plan, Write};
use serde_json::json;

pub use facts::MembershipFacts;

use hub_resources::HubResources;
use report::{Readiness, joined};

use objects::condition_taint::desired_taints;

/// Plans the writes for a cluster of the fleet, in their order.
pub fn plan(facts: &MembershipFacts<'_>) -> Plan {
    if facts.cluster.metadata.is_deleting() {
        return leave(facts);
    }
    let mut plan = Plan::default();
    if let Some(reason) = refusal(facts.cluster) {
        let write = report::write(facts, Readiness::Refused(reason));
        plan.writes.extend(write);
        return plan;
    }
    let mark = mark(facts);
    let is_marked = mark.is_none();
    plan.writes.extend(mark);
    // One that an earlier cluster of the name has left is not ours yet.
    if !facts.namespace.is_some_and(Metadata::is_deleting) {
        plan.writes.extend(HubResources::of(facts).writes());
        // The status is guarded by the version that this pass replaces.
        if is_marked {
            plan.writes.extend(report::write(facts, Readiness::Ready));
        }
    }
    plan
}

/// Returns why the hub can have nothing for a cluster, if it cannot.
fn refusal(cluster: &MemberCluster) -> Option<&'static str> {
    // The longest name of a namespace, which has no dots.
    const LONGEST: usize = 63;
    let name = cluster.metadata.name();
    (name.contains('.') || member_namespace(name).len() > LONGEST).then_some(
        "its namespace is called fleet-member-NAME, so NAME has at most 50 characters and no dot",
    )
}

/// Returns the write that gives a cluster our finalizer, the label by which it is selected, and the taints that follow
/// from its conditions.
fn mark(facts: &MembershipFacts<'_>) -> Option<Write> {
    let MembershipFacts {
        cluster,
        condition_taints,
        ..
    } = facts;
    let metadata = &cluster.metadata;
    let mut body = json!({});
    if metadata.label(MEMBER_NAME) != Some(metadata.name()) {
        body["metadata"]["labels"] = json!({ MEMBER_NAME: metadata.name() });
    }
    if let Some(finalizers) = metadata.with_finalizers(&[MEMBER_FINALIZER]) {
        body["metadata"]["finalizers"] = json!(finalizers);
    }
    let conditions = cluster.status.as_ref().map(|status| &*status.conditions);
    let conditions = conditions.unwrap_or_default();
    let taints: Vec<_> = cluster.spec.taints.iter().map(|one| json!(one)).collect();
    let desired = desired_taints(&taints, condition_taints, |kind| {
        find(conditions, kind).into()
    });
    if desired != taints {
        body["spec"]["taints"] = json!(desired);
    }
    let is_complete = body.as_object().is_some_and(serde_json::Map::is_empty);
    let write = Write::merge("member", ObjectRef::of(*cluster, &()), body);
    (!is_complete).then(|| write.guarded(Guard::Version))
}

fn leave(facts: &MembershipFacts<'_>) -> Plan {
    let mut plan = Plan::default();
    let metadata = &facts.cluster.metadata;
    let Some(rest) = metadata.without_finalizers(&[MEMBER_FINALIZER, PROFILE_FINALIZER]) else {
        return plan;
    };
    if let Some(channel) = facts.channel
        && channel.spec.state != LEAVE
    {
        let (object, patch) = (
            ObjectRef::of(channel, &()),
            json!({ "spec": { "state": LEAVE } }),
        );
        plan.writes
            .push(Write::merge("internalmember", object, patch));
    }
    plan.writes.extend(report::write(facts, Readiness::Leaving));
    let deleted_at = metadata.deletion_timestamp.as_ref();
    let forced_at = deleted_at.and_then(|time| time.0.checked_add(facts.force_after).ok());
    let is_forced = forced_at.is_none_or(|at| facts.now >= at);
    if !is_forced && !has_left(facts.channel) {
        plan.wake_at = forced_at;
        return plan;
    }
    let Some(namespace) = facts.namespace else {
        let cluster = ObjectRef::of(facts.cluster, &());
        let released = Write::finalizers("member", cluster, &rest);
        plan.writes.push(released);
        return plan;
    };
    let works = facts.waiting_works.iter();
    plan.writes.extend(works.filter_map(|work| release(work)));
    if !namespace.is_deleting() {
        // One that was made again meanwhile is another cluster's.
        let namespace = ObjectRef::of_metadata::<Namespace>(namespace, &());
        let deletion = Write::delete("namespace", namespace);
        plan.writes.push(deletion.guarded(Guard::Uid));
    }
    plan
}

/// Returns the write that takes the finalizer of its agent from a Work, if it has that.
fn release(work: &ObjectMeta) -> Option<Write> {
    let rest = work.without_finalizers(&[WORK_FINALIZER])?;
    let body = json!({ "metadata": { "finalizers": rest } });
    let object = ObjectRef::of_metadata::<Work>(work, &());
    Some(Write::merge("work_finalizer", object, body))
}

/// Returns `true` if no agent holds on to anything: it has let go, or there never was one.
fn has_left(channel: Option<&InternalMemberCluster>) -> bool {
    let status = channel.and_then(|channel| channel.status.as_ref());
    let agents = status.map_or(&[][..], |status| &status.agent_status);
    agents.is_empty() || joined(agents).is_some_and(|joined| joined.status == "False")
}
