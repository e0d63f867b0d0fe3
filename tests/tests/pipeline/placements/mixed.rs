//! Either of our programs beside KubeFleet's other one. That one is played: it writes the objects that a running one wrote.
//! `strategies`: the fields in a member while the way to write them changes.

use anyhow::Result;
use fleet_api::{
    AppliedWork, InternalMemberCluster, Work,
    names::{SPEC_HASH, WORK_FINALIZER, member_namespace},
};
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use pipeline_tests::{
    api::{create, merge, merge_status},
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    placement::{PlacementFleet, PlacementPrograms},
    programs::Running,
    wait::until,
};
use placement_rules::hash::of_manifest;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{KEY, MAP, Stage, maps, namespaces, registered, said};

const MEMBER: Member = Member(1);

/// The recorded objects: a placement, its content, and its Work.
const PLACEMENT: &str = "crp-all";
const PLACED: &str = "application-1";
const WORK: &str = "crp-all-work";

/// Returns an object as a running KubeFleet served it.
macro_rules! recorded {
    ($name:literal) => {{
        let text = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../placement/rules/src/fixtures/",
            $name,
            ".json"
        ));
        serde_json::from_str::<Value>(text).unwrap()
    }};
}

mod strategies;

fn channels(fleet: &PlacementFleet) -> Api<InternalMemberCluster> {
    let namespace = member_namespace(&MEMBER.name());
    Api::namespaced(fleet.hub.client(), &namespace)
}

/// Returns `true` if the agent is heard of, with this status and reason of `Joined`.
fn is_joined(channel: &InternalMemberCluster, joined: &str) -> bool {
    let agents = channel
        .status
        .iter()
        .flat_map(|status| &status.agent_status);
    let mut said_by = agents.flat_map(|agent| said(&agent.conditions));
    said_by.any(|one| one == joined)
}

/// The name by which KubeFleet's agent writes into a member.
const THEIR_MANAGER: &str = "work-api-agent";

/// Creates an object of a member in the name of KubeFleet's agent. Returns its UID.
async fn apply<K>(api: &Api<K>, mut object: Value, owner: &AppliedWork) -> Result<Option<String>>
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let of_server = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
    ];
    for field in of_server {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    object["metadata"]["ownerReferences"][0]["uid"] = json!(owner.uid());
    let params = PostParams {
        field_manager: Some(THEIR_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let object = serde_json::from_value(object)?;
    Ok(api.create(&params, &object).await?.uid())
}

/// KubeFleet's agent of the member.
struct TheirAgent<'a>(&'a PlacementFleet);

impl TheirAgent<'_> {
    /// Joins, and is alive from then on.
    async fn join(&self) -> Result<()> {
        let (channels, name) = (channels(self.0), MEMBER.name());
        until(&channels, &name, "there", |found| found.is_some()).await?;
        let mut status = recorded!("internalmembercluster")["status"].take();
        status["agentStatus"][0]["lastReceivedHeartbeat"] = json!(Timestamp::now());
        merge_status(&channels, &name, &status).await
    }

    /// Waits for this generation of the Work, and says that it begins with it.
    async fn begin(&self, generation: i64) -> Result<()> {
        let works = self.0.works(MEMBER);
        until(&works, WORK, "there", |work| {
            work.is_some_and(|work| work.metadata.generation == Some(generation))
        })
        .await?;
        let held = json!({ "metadata": { "finalizers": [WORK_FINALIZER] } });
        merge(&works, WORK, &held).await?;
        let mut status = recorded!("crp-all-work")["status"].take();
        status["conditions"] = json!([]);
        let preparing = recorded!("work-write-ahead");
        let preparing = &preparing["status"]["manifestConditions"][0]["conditions"];
        for manifest in status["manifestConditions"].as_array_mut().unwrap() {
            manifest["conditions"] = preparing.clone();
        }
        merge_status(&works, WORK, &status).await
    }

    /// Creates the placed objects.
    async fn create_placed(&self) -> Result<()> {
        let member = self.0.member(MEMBER);
        let owners: Api<AppliedWork> = Api::all(member.client());
        let recorded = recorded!("crp-all-appliedwork");
        let mut owner = json!({ "metadata": { "name": WORK }, "spec": recorded["spec"] });
        owner["spec"]["workNamespace"] = json!(member_namespace(&MEMBER.name()));
        create(&owners, owner).await?;
        let owner = owners.get(WORK).await?;
        let namespace = recorded!("crp-all-member-namespace");
        let map = recorded!("crp-all-member-configmap");
        let uids = [
            apply(&namespaces(member), namespace, &owner).await?,
            apply(&maps(member, PLACED), map, &owner).await?,
        ];
        let mut status = recorded["status"].clone();
        for (place, uid) in uids.into_iter().enumerate() {
            status["appliedResources"][place]["uid"] = json!(uid);
        }
        merge_status(&owners, WORK, &status).await
    }

    /// Changes the placed objects.
    async fn change_placed(&self, value: &str) -> Result<()> {
        let params = PatchParams {
            field_manager: Some(THEIR_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let works = self.0.works(MEMBER);
        let manifest = json!(works.get(WORK).await?.spec.workload.manifests[1]);
        let hash = of_manifest(&manifest)?;
        let change = Patch::Merge(json!({ "data": { KEY: value },
            "metadata": { "annotations": { SPEC_HASH: hash } } }));
        let maps = maps(self.0.member(MEMBER), PLACED);
        maps.patch(MAP, &params, &change).await?;
        Ok(())
    }

    /// Says that this generation of the Work is applied and available.
    async fn end(&self, generation: i64) -> Result<()> {
        let mut status = recorded!("crp-all-work")["status"].take();
        for condition in status["conditions"].as_array_mut().unwrap() {
            condition["observedGeneration"] = json!(generation);
        }
        merge_status(&self.0.works(MEMBER), WORK, &status).await
    }
}

impl<Programs> Stage<Programs> {
    /// Waits until the placement says that its only cluster has not ended yet.
    async fn until_pending(&self, pending: &str) -> Result<()> {
        self.until_status(PLACEMENT, pending, |status| {
            said(&status.conditions).contains(&pending.to_owned())
        })
        .await
    }
}

/// The conditions of a placement while its Works are applied.
const PENDING: &str = "Applied Unknown ApplyPending";

/// Starts a fleet with our controller, into whose member KubeFleet's agent has placed a namespace.
async fn placed_by_theirs(server: ApiKind) -> Result<Stage<Running>> {
    let fleet = registered(server, 1).await?;
    let controller = fleet.run_controller(&[]).await?;
    let stage = Stage {
        fleet,
        programs: controller,
    };
    let theirs = TheirAgent(&stage.fleet);
    theirs.join().await?;
    stage.until_joined(MEMBER).await?;
    stage.fill(PLACED).await?;
    let selector = json!({ "group": "", "version": "v1", "kind": "Namespace", "name": PLACED });
    let spec = json!({ "resourceSelectors": [selector], "strategy": { "type": "RollingUpdate" } });
    stage.fleet.place(PLACEMENT, spec).await?;
    theirs.begin(1).await?;
    stage.until_pending(PENDING).await?;
    theirs.create_placed().await?;
    theirs.end(1).await?;
    stage.until_complete(PLACEMENT).await?;
    Ok(stage)
}

/// Case F51: our controller goes by the reports of KubeFleet's agent; ours, which follows that one, writes nothing in the
/// member until something changes.
async fn controller_beside_their_agent(server: ApiKind) -> Result<()> {
    let stage = placed_by_theirs(server).await?;
    let theirs = TheirAgent(&stage.fleet);
    stage.edit(PLACED, "edited").await?;
    theirs.begin(2).await?;
    theirs.change_placed("edited").await?;
    theirs.end(2).await?;
    stage.until_complete_at(PLACEMENT, 1).await?;

    let member = stage.fleet.member(MEMBER);
    let before = member.successful_writes().await?;
    let ours = stage.fleet.run_agent(MEMBER).await?;
    let programs = PlacementPrograms {
        controller: stage.programs,
        agents: vec![ours],
    };
    programs.settled().await?;
    let written = member.successful_writes().await?.since(&before);
    assert_eq!(written.to_string(), "no writes");
    let stage = Stage {
        fleet: stage.fleet,
        programs,
    };
    let member = stage.fleet.member(MEMBER);
    stage.edit(PLACED, "by ours").await?;
    stage.until_value(MEMBER, PLACED, "by ours").await?;
    stage.until_complete_at(PLACEMENT, 2).await?;
    stage.remove(PLACEMENT).await?;
    until(&namespaces(member), PLACED, "gone", |found| found.is_none()).await?;
    stage.programs.stop().await
}

/// Makes the objects that KubeFleet's controller makes of a cluster: its namespace, the rights of its agent, and its channel.
async fn admit(fleet: &PlacementFleet) -> Result<()> {
    let name = MEMBER.name();
    fleet.register(MEMBER, json!({})).await?;
    let namespace = member_namespace(&name);
    fleet.hub.namespace(&namespace).await?;
    let in_namespace: Api<Role> = Api::namespaced(fleet.hub.client(), &namespace);
    let role = format!("fleet-role-{name}");
    let rules = recorded!("member-role")["rules"].take();
    create(
        &in_namespace,
        json!({ "metadata": { "name": role }, "rules": rules }),
    )
    .await?;
    let bindings: Api<RoleBinding> = Api::namespaced(fleet.hub.client(), &namespace);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": format!("fleet-rolebinding-{name}") },
        "roleRef": { "apiGroup": group, "kind": "Role", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "namespace": "fleet-system", "name": name }],
    });
    create(&bindings, binding).await?;
    let channel = json!({ "metadata": { "name": name },
        "spec": recorded!("internalmembercluster")["spec"] });
    create(&channels(fleet), channel).await
}

/// Returns the conditions of each manifest of a Work, and of the Work.
fn told(status: &Value) -> Vec<Value> {
    let manifests = status["manifestConditions"]
        .as_array()
        .into_iter()
        .flatten();
    let all = manifests.chain([status]).flat_map(|of| {
        let conditions = of["conditions"].as_array().into_iter().flatten();
        conditions.map(|one| json!([one["type"], one["status"], one["reason"]]))
    });
    all.collect()
}

/// Has our agent join KubeFleet's hub.
async fn join_theirs(fleet: &PlacementFleet) -> Result<Running> {
    admit(fleet).await?;
    let ours = fleet.run_agent(MEMBER).await?;
    until(&channels(fleet), &MEMBER.name(), "joined", |found| {
        found.is_some_and(|channel| is_joined(channel, "Joined True InternalMemberClusterJoined"))
    })
    .await?;
    Ok(ours)
}

/// Writes a Work as KubeFleet's controller does, and waits until it is available.
async fn write_work(fleet: &PlacementFleet) -> Result<()> {
    let recorded = recorded!("crp-all-work");
    let works = fleet.works(MEMBER);
    let metadata = json!({ "name": WORK, "labels": recorded["metadata"]["labels"],
        "annotations": recorded["metadata"]["annotations"] });
    let work = json!({ "metadata": metadata, "spec": recorded["spec"] });
    create(&works, work).await?;
    until(&works, WORK, "available", |work| {
        let status = work.map(|work| json!(work.status)).unwrap_or_default();
        told(&status) == told(&recorded["status"])
    })
    .await?;
    Ok(())
}

/// Case F51: our agent joins KubeFleet's hub, with the rights that it has there, applies its Works, says of them what its
/// own agent would, and leaves.
async fn agent_beside_their_controller(server: ApiKind) -> Result<()> {
    let fleet = PlacementFleet::start(server, 1).await?;
    let ours = join_theirs(&fleet).await?;
    let (channels, name) = (channels(&fleet), MEMBER.name());
    write_work(&fleet).await?;
    let (recorded, works) = (recorded!("crp-all-work"), fleet.works(MEMBER));
    let member = fleet.member(MEMBER);
    let placed = maps(member, PLACED).get(MAP).await?;
    assert_eq!(placed.data.unwrap_or_default()[KEY], "value");

    let mut spec = recorded["spec"].clone();
    spec["workload"]["manifests"][1]["data"][KEY] = json!("edited");
    let change = json!({ "spec": spec });
    merge(&works, WORK, &change).await?;
    until(
        &maps(member, PLACED),
        MAP,
        "edited",
        |map: Option<&ConfigMap>| {
            map.and_then(|map| map.data.as_ref())
                .is_some_and(|data| data[KEY] == "edited")
        },
    )
    .await?;
    works.delete(WORK, &DeleteParams::default()).await?;
    until(&works, WORK, "gone", |work: Option<&Work>| work.is_none()).await?;
    let left: Option<Namespace> = namespaces(member).get_opt(PLACED).await?;
    assert!(left.is_none(), "{left:?}");

    let leave = json!({ "spec": { "state": "Leave" } });
    merge(&channels, &name, &leave).await?;
    until(&channels, &name, "left", |found| {
        found.is_some_and(|channel| is_joined(channel, "Joined False InternalMemberClusterLeft"))
    })
    .await?;
    ours.stop().await
}

on_both!(controller_beside_their_agent, agent_beside_their_controller);
