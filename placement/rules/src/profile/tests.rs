use objects::write::Action;
use serde_json::from_value;

use super::*;
use crate::fixtures::{fixture, merged};

fn cluster() -> MemberCluster {
    from_value(fixture("membercluster")).unwrap()
}

fn facts<'a>(cluster: &'a MemberCluster, profile: Option<&'a ClusterProfile>) -> ProfileFacts<'a> {
    ProfileFacts {
        cluster,
        obstacle: None,
        profile,
        namespace: "fleet-system",
        now: Timestamp::UNIX_EPOCH,
    }
}

/// Returns the profile after a write.
fn after(profile: Option<&ClusterProfile>, write: &Write) -> ClusterProfile {
    match &write.action {
        Action::Create(created) => from_value(created.clone()).unwrap(),
        Action::Merge(_) => merged(profile.unwrap(), write),
        action => panic!("{action:?}"),
    }
}

/// Returns the profile to which all writes lead.
fn settled(cluster: &MemberCluster, mut profile: Option<ClusterProfile>) -> ClusterProfile {
    while let Some(write) = plan(&facts(cluster, profile.as_ref())) {
        profile = Some(after(profile.as_ref(), &write));
    }
    profile.unwrap()
}

fn say(cluster: &mut MemberCluster, name: &str, value: &str) {
    let property = json!({ "value": value, "observationTime": "2026-11-25T17:00:00Z" });
    let status = cluster.status.as_mut().unwrap();
    let property = from_value(property).unwrap();
    status.properties.insert(name.to_owned(), property);
}

/// Case F117: a cluster that has joined has a profile, by which others find it and reach it; a property without a value, or with
/// one that is too long, is left out.
#[test]
fn joined_cluster_has_a_profile() {
    let mut cluster = cluster();
    say(&mut cluster, VERSION_PROPERTY, "v1.36.3");
    say(&mut cluster, ENTRYPOINT_PROPERTY, "https://m1.example.com");
    say(&mut cluster, AUTHORITY_PROPERTY, "PEM");
    say(&mut cluster, "example.com/empty", "");
    say(&mut cluster, "example.com/long", &"x".repeat(1025));
    let profile = settled(&cluster, None);
    assert_eq!(
        profile.metadata.key().to_string(),
        "fleet-system/kind-cluster-1"
    );
    assert_eq!(profile.metadata.label(CLUSTER_MANAGER), Some("KubeFleet"));
    assert_eq!(profile.spec.cluster_manager.name, "KubeFleet");
    assert_eq!(profile.metadata.owners()[0].uid, cluster.metadata.uid());
    let status = json!(profile.status);
    assert_eq!(status["version"]["kubernetes"], "v1.36.3");
    let provider = json!({ "name": "KubeFleet", "cluster": {
        "server": "https://m1.example.com", "certificate-authority-data": "UEVN" } });
    assert_eq!(status["accessProviders"], json!([provider]));
    assert_eq!(status.get("credentialProviders"), None);
    let nodes = json!({ "name": "kubernetes-fleet.io/node-count", "value": "1",
        "lastObservedTime": "2026-11-25T16:44:09Z" });
    assert_eq!(status["properties"], json!([nodes]));
    assert_eq!(
        status["conditions"][0]["reason"],
        "MemberClusterAPIServerHealthy"
    );
    // The next heartbeat says the same, later.
    say(&mut cluster, "kubernetes-fleet.io/node-count", "1");
    assert_eq!(plan(&facts(&cluster, Some(&profile))), None);
}

/// Case F117: a cluster that is silent is not healthy; one that has not joined has no profile, and that of one which leaves goes.
#[test]
fn profile_follows_its_cluster() {
    let mut cluster = cluster();
    let mut profile = settled(&cluster, None);
    let silent = ProfileFacts {
        obstacle: Some(Obstacle::Silent),
        ..facts(&cluster, Some(&profile))
    };
    let told = after(Some(&profile), &plan(&silent).unwrap());
    let told = &told.status.unwrap().conditions[0];
    assert_eq!(
        [&*told.status, &told.reason],
        ["False", "MemberAgentHeartbeatLost"]
    );
    let mut other = cluster.clone();
    other.status = None;
    assert_eq!(plan(&facts(&other, None)), None);
    profile.metadata.uid = Some("p".to_owned());
    cluster.metadata = from_value(
        json!({ "name": "kind-cluster-1", "deletionTimestamp": "2026-11-25T17:00:00Z" }),
    )
    .unwrap();
    let deletion = plan(&facts(&cluster, Some(&profile))).unwrap();
    assert_eq!(
        (deletion.action, deletion.guard, deletion.object.uid),
        (Action::Delete, Guard::Uid, Some("p".to_owned()))
    );
    assert_eq!(plan(&facts(&cluster, None)), None);
}

fn theirs(name: &str) -> Value {
    json!({ "name": name, "cluster": { "server": "https://before" } })
}

/// Case F117: one that KubeFleet has written is gone on with, in the older field, too; one of another manager is left alone.
#[test]
fn existing_profile_is_kept() {
    let mut cluster = cluster();
    say(&mut cluster, ENTRYPOINT_PROPERTY, "https://m1.example.com");
    let mut profile: ClusterProfile = from_value(json!({
        "metadata": { "name": "kind-cluster-1", "namespace": "fleet-system" },
        "spec": { "displayName": "kind-cluster-1", "clusterManager": { "name": "KubeFleet" } },
        "status": { "credentialProviders": [theirs("KubeFleet"), theirs("other")] },
    }))
    .unwrap();
    let status = json!(settled(&cluster, Some(profile.clone())).status);
    let ours = json!({ "name": "KubeFleet", "cluster": { "server": "https://m1.example.com" } });
    assert_eq!(status["accessProviders"], json!([ours]));
    assert_eq!(
        status["credentialProviders"],
        json!([ours, theirs("other")])
    );
    profile.spec.cluster_manager.name = "other".to_owned();
    assert_eq!(plan(&facts(&cluster, Some(&profile))), None);
}
