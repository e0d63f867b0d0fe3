//! The `ClusterProfile` of a cluster of the fleet, by which programs of others find it.
//!
//! It has the names and words of KubeFleet's, so that either controller goes on with the objects of the other.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fleet_api::ClusterProfile;
use fleet_api::MemberCluster;
use fleet_api::cluster_profile::{
    CLUSTER_MANAGER, CONTROL_PLANE_HEALTHY, ClusterManager, ClusterProfileSpec,
    ClusterProfileStatus, ClusterProperty,
};
use fleet_api::member::{MEMBER_AGENT, MemberClusterStatus};
use fleet_api::names::{AUTHORITY_PROPERTY, ENTRYPOINT_PROPERTY, VERSION_PROPERTY};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use objects::Metadata;
use objects::condition::{Condition, FALSE, TRUE, find};
use objects::write::{Guard, ObjectRef, Write};
use serde_json::{Value, json};

use super::condition::{condition, put};
use super::eligible::Obstacle;

/// The manager of the clusters.
const MANAGER: &str = "KubeFleet";
/// The most characters of the name and of the value of a property: with one that is longer, or without a value, the whole
/// status is refused.
const LONGEST: [usize; 2] = [253, 1024];

/// The facts that decide about the profile of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct ProfileFacts<'a> {
    /// The cluster.
    pub cluster: &'a MemberCluster,
    /// Why it may not be given anything.
    pub obstacle: Option<Obstacle>,
    /// Its profile.
    pub profile: Option<&'a ClusterProfile>,
    /// The namespace of profiles.
    pub namespace: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// Returns the next write of the profile of a cluster that has joined, or leaves; each leads to the next. One of another
/// manager is left alone.
pub fn plan(facts: &ProfileFacts<'_>) -> Option<Write> {
    const TARGET: &str = "cluster_profile";
    let profile = facts.profile.filter(|one| !one.metadata.is_deleting());
    if facts.profile.is_some_and(|one| !is_ours(one)) {
        return None;
    }
    if facts.cluster.metadata.is_deleting() {
        let deletion = Write::delete(TARGET, ObjectRef::of(profile?, &()));
        return Some(deletion.guarded(Guard::Uid));
    }
    let status = facts.cluster.status.clone().unwrap_or_default();
    let joined = find(&status.conditions, "Joined");
    if joined.is_none_or(|joined| joined.status != TRUE) {
        return None;
    }
    let Some(profile) = profile else {
        return facts
            .profile
            .is_none()
            .then(|| Write::create(TARGET, &created(facts), &()));
    };
    let object = ObjectRef::of(profile, &());
    if let Some(body) = marked(facts, profile) {
        let write = Write::merge(TARGET, object, body);
        return Some(write.guarded(Guard::Version));
    }
    let before = profile.status.clone().unwrap_or_default();
    let after = observed(facts, &status, profile, &before);
    Write::status_between("cluster_profile_status", object, &before, &after)
}

fn is_ours(profile: &ClusterProfile) -> bool {
    profile.spec.cluster_manager.name == MANAGER
}

fn owner(cluster: &MemberCluster) -> OwnerReference {
    OwnerReference {
        api_version: MemberCluster::API_VERSION.to_owned(),
        kind: MemberCluster::KIND.to_owned(),
        name: cluster.metadata.name().to_owned(),
        uid: cluster.metadata.uid().to_owned(),
        controller: None,
        block_owner_deletion: None,
    }
}

fn created(facts: &ProfileFacts<'_>) -> ClusterProfile {
    let name = facts.cluster.metadata.name();
    ClusterProfile {
        api_version: ClusterProfile::API_VERSION.to_owned(),
        kind: ClusterProfile::KIND.to_owned(),
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(facts.namespace.to_owned()),
            labels: Some([(CLUSTER_MANAGER.to_owned(), MANAGER.to_owned())].into()),
            owner_references: Some(vec![owner(facts.cluster)]),
            ..ObjectMeta::default()
        },
        spec: ClusterProfileSpec {
            display_name: name.to_owned(),
            cluster_manager: ClusterManager {
                name: MANAGER.to_owned(),
            },
        },
        status: None,
    }
}

/// Returns the parts that a profile lacks: its name, the label, and the owner with which it goes.
fn marked(facts: &ProfileFacts<'_>, profile: &ClusterProfile) -> Option<Value> {
    let mut body = json!({});
    let name = facts.cluster.metadata.name();
    if profile.metadata.label(CLUSTER_MANAGER) != Some(MANAGER) {
        body["metadata"]["labels"] = json!({ CLUSTER_MANAGER: MANAGER });
    }
    if profile.spec.display_name != name {
        body["spec"]["displayName"] = json!(name);
    }
    let owner = owner(facts.cluster);
    let mut owners = profile.metadata.owner_references.clone();
    let owners = owners.get_or_insert_default();
    if !owners.iter().any(|one| one.uid == owner.uid) {
        // That of an earlier cluster of the name goes.
        owners.retain(|one| one.kind != owner.kind);
        owners.push(owner);
        body["metadata"]["ownerReferences"] = json!(owners);
    }
    (body != json!({})).then_some(body)
}

fn observed(
    facts: &ProfileFacts<'_>,
    status: &MemberClusterStatus,
    profile: &ClusterProfile,
    before: &ClusterProfileStatus,
) -> ClusterProfileStatus {
    let mut after = before.clone();
    let generation = profile.metadata.generation;
    let healthy = healthy(status, facts.obstacle);
    put(&mut after.conditions, [healthy], (generation, facts.now));
    if let Some(version) = property(status, VERSION_PROPERTY) {
        version.clone_into(&mut after.version.kubernetes);
    }
    after.properties = properties(status, &before.properties);
    provide(status, &mut after);
    after
}

/// Returns the value of a property that is known.
fn property<'a>(status: &'a MemberClusterStatus, name: &str) -> Option<&'a str> {
    let value = &*status.properties.get(name)?.value;
    (!value.is_empty()).then_some(value)
}

/// Returns the properties that a profile can have, but for those that it has elsewhere. When a value was read is told once: it
/// is read with every heartbeat.
fn properties(status: &MemberClusterStatus, before: &[ClusterProperty]) -> Vec<ClusterProperty> {
    let elsewhere = [VERSION_PROPERTY, ENTRYPOINT_PROPERTY, AUTHORITY_PROPERTY];
    let all = status.properties.iter();
    let properties = all.filter(|(name, property)| {
        let lengths = [name.len(), property.value.len()];
        let fit = lengths
            .iter()
            .zip(LONGEST)
            .all(|(length, most)| (1..=most).contains(length));
        fit && !elsewhere.contains(&&***name)
    });
    let properties = properties.map(|(name, property)| {
        let mut before = before.iter();
        let same = before.find(|one| one.name == *name && one.value == property.value);
        same.cloned().unwrap_or_else(|| ClusterProperty {
            name: name.clone(),
            value: property.value.clone(),
            last_observed_time: property.observation_time.clone(),
        })
    });
    properties.collect()
}

/// Says how the API of a cluster is reached, once that is known: in the field of today, for readers of the older one there,
/// too, where somebody has written that. Other providers stay.
fn provide(status: &MemberClusterStatus, after: &mut ClusterProfileStatus) {
    let Some(server) = property(status, ENTRYPOINT_PROPERTY) else {
        return;
    };
    let mut cluster = json!({ "server": server });
    if let Some(authority) = property(status, AUTHORITY_PROPERTY) {
        cluster["certificate-authority-data"] = STANDARD.encode(authority).into();
    }
    let patch = json!({ "cluster": cluster });
    if let Some(ours) = our_provider(&mut after.credential_providers) {
        json_patch::merge(ours, &patch);
    }
    match our_provider(&mut after.access_providers) {
        Some(ours) => json_patch::merge(ours, &patch),
        None => after
            .access_providers
            .push(json!({ "name": MANAGER, "cluster": cluster })),
    }
}

fn our_provider(providers: &mut [Value]) -> Option<&mut Value> {
    providers.iter_mut().find(|one| one["name"] == MANAGER)
}

/// Returns whether the API of a cluster answers, as its agent says.
fn healthy(status: &MemberClusterStatus, obstacle: Option<Obstacle>) -> Condition {
    let mut agents = status.agent_status.iter();
    let agent = agents.find(|agent| agent.type_ == MEMBER_AGENT);
    let said = agent.and_then(|agent| find(&agent.conditions, "Healthy"));
    let (status, reason, message) = match (agent, said) {
        (None, _) => (
            "Unknown",
            "MemberAgentReportedNoStatus",
            "The Fleet member agent has not reported its status yet",
        ),
        (_, None) => (
            "Unknown",
            "MemberAgentReportedNoHealthInfo",
            "The Fleet member agent has reported its status, but the health condition is missing",
        ),
        _ if obstacle == Some(Obstacle::Silent) => (
            FALSE,
            "MemberAgentHeartbeatLost",
            "The Fleet member agent has lost its heartbeat connection to the Fleet hub cluster",
        ),
        (_, Some(said)) if said.status == TRUE => (
            TRUE,
            "MemberClusterAPIServerHealthy",
            "The Fleet member agent reports that the API server is healthy",
        ),
        (_, Some(said)) if said.status == FALSE => (
            FALSE,
            "MemberClusterAPIServerUnhealthy",
            "The Fleet member agent reports that the API server is unhealthy",
        ),
        _ => (
            "Unknown",
            "MemberAgentReportedNoHealthInfo",
            "The Fleet member agent health check result is out of date or unknown",
        ),
    };
    condition((CONTROL_PLANE_HEALTHY, status), reason, message)
}

#[cfg(test)]
mod tests;
