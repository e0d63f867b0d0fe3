//! A placement on a hub becomes objects in the members, and a status. docs/cases.md lists the cases.
//!
//! - `fleet_wide`: a placement in three members.
//! - `in_member`: a placement in one of them.
//! - `health`: members that get nothing because their health is bad. `ingresses`: those that get no requests.
//! - `scoped`: placements out of one namespace.
//! - `many_kinds`: a hub of more kinds than a connection carries watches.
//! - `envelopes`: objects that are placed without an effect on the hub.
//! - `mixed`: whether either program works beside KubeFleet's other one.
//! - `website`: whether a site goes on serving meanwhile, by requests through real proxies.
//! - `admission`: refusals at the write. `with_tools`: the page for users. `deployments` plays the members' own controllers.
//!
//! On the embedded API each story has a fleet of its own. On the real one they follow each other on one fleet, for its
//! start takes longer than all of them: each has a namespace of its own.
#![expect(clippy::unwrap_used, reason = "a test fails so")]

mod admission;
mod deployments;
mod envelopes;
mod fleet_wide;
mod health;
mod in_member;
pub(crate) mod ingresses;
mod many_kinds;
mod mixed;
mod scoped;
mod website;
mod with_tools;

use anyhow::Result;
use fleet_api::{
    AppliedWork, Binding, Placement, PolicySnapshot, ResourceSnapshot, placement::PlacementStatus,
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use karmada_api::Condition;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams},
};
use objects::Scope;
use pipeline_tests::{
    api::{create, merge},
    control_plane::{ApiKind, ControlPlane},
    fleet::Member,
    placement::{PlacementFleet, PlacementPrograms},
    wait::until,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Makes a test of each of these stories on the embedded API, and a long one of all of them on the real one.
macro_rules! stories {
    ($members:literal: $($story:ident),+ $(,)?) => {
        mod embedded {
            use pipeline_tests::{both, control_plane::ApiKind, test_name};

            use crate::placements::Stage;

            $(#[test]
            fn $story() {
                both::run(test_name!(), ApiKind::Embedded, async |server| {
                    let mut stage = Stage::start(server, $members).await?;
                    super::$story(&mut stage).await?;
                    stage.programs.stop().await
                });
            })+
        }

        mod real {
            use anyhow::Context;
            use pipeline_tests::{both, control_plane::ApiKind, test_name};

            use crate::placements::Stage;

            #[test]
            #[ignore = "long"]
            fn stories_follow_each_other() {
                both::run(test_name!(), ApiKind::Real, async |server| {
                    let mut stage = Stage::start(server, $members).await?;
                    $(super::$story(&mut stage).await.context(stringify!($story))?;)+
                    stage.programs.stop().await
                });
            }
        }
    };
}
use stories;

/// The `ConfigMap` that is placed, and its key.
const MAP: &str = "app-config-1";
const KEY: &str = "key";

/// The region and the environment of each member.
const LABELS: [[&str; 2]; 3] = [["east", "prod"], ["east", "canary"], ["west", "prod"]];

/// The conditions of a placement that is available in all of its clusters.
const COMPLETE: [&str; 6] = [
    "Scheduled True SchedulingPolicyFulfilled",
    "RolloutStarted True RolloutStarted",
    "Overridden True NoOverrideSpecified",
    "WorkSynchronized True WorkSynchronized",
    "Applied True ApplySucceeded",
    "Available True ResourceAvailable",
];

/// The conditions of a placement that has only looked.
const REPORTED: [&str; 5] = [
    "Scheduled True SchedulingPolicyFulfilled",
    "RolloutStarted True RolloutStarted",
    "Overridden True NoOverrideSpecified",
    "WorkSynchronized True WorkSynchronized",
    "DiffReported True DiffReportingCompleted",
];

/// A fleet and its programs.
pub(crate) struct Stage<Programs = PlacementPrograms> {
    pub(crate) fleet: PlacementFleet,
    pub(crate) programs: Programs,
}

impl Stage {
    /// Starts a fleet whose members have joined.
    pub(crate) async fn start(server: ApiKind, members: u8) -> Result<Self> {
        let fleet = registered(server, members).await?;
        let programs = fleet.run().await?;
        let stage = Self { fleet, programs };
        for member in stage.fleet.members() {
            stage.until_joined(member).await?;
        }
        Ok(stage)
    }

    /// Has other programs take over, and checks that they write nothing but heartbeats.
    async fn hand_over(&mut self) -> Result<()> {
        self.programs.settled().await?;
        let members = self.fleet.members().map(|member| self.fleet.member(member));
        let apis: Vec<_> = [&self.fleet.hub].into_iter().chain(members).collect();
        let before = try_join_all(apis.iter().map(|api| api.successful_writes())).await?;
        let next = self.fleet.run().await?;
        std::mem::replace(&mut self.programs, next).stop().await?;
        self.programs.settled().await?;
        for (api, before) in apis.into_iter().zip(&before) {
            let written = api.successful_writes().await?.since(before);
            let mut others = written.clone();
            others.0.retain(|write, _| {
                let is_cluster = HEARTBEATS.contains(&&*write.resource);
                !(is_cluster && write.subresource == "status")
            });
            assert_eq!(others.to_string(), "no writes", "{written}");
        }
        Ok(())
    }
}

/// The kinds that show a member's heartbeats: its agent's, and the controller's.
const HEARTBEATS: [&str; 2] = ["internalmemberclusters", "memberclusters"];

/// Starts a fleet with its clusters, and no program.
async fn registered(server: ApiKind, members: u8) -> Result<PlacementFleet> {
    let fleet = PlacementFleet::start(server, members).await?;
    for (member, [region, env]) in fleet.members().zip(LABELS) {
        let labels = json!({ "region": region, "env": env });
        fleet.register(member, labels).await?;
    }
    Ok(fleet)
}

impl<Programs> Stage<Programs> {
    async fn until_joined(&self, member: Member) -> Result<()> {
        until(&self.fleet.clusters(), &member.name(), "joined", |found| {
            let status = found.and_then(|cluster| cluster.status.as_ref());
            let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
            conditions.any(|one| one.type_ == "Joined" && one.status == "True")
        })
        .await?;
        Ok(())
    }

    /// Creates a namespace on the hub with the `ConfigMap` in it.
    pub(crate) async fn fill(&self, namespace: &str) -> Result<()> {
        self.fleet.hub.namespace(namespace).await?;
        let map = json!({ "metadata": { "name": MAP }, "data": { KEY: "value" } });
        create(&maps(&self.fleet.hub, namespace), map).await
    }

    /// Places a namespace with all that is in it, by a placement of its name.
    pub(crate) async fn place(&self, namespace: &str, policy: Value) -> Result<()> {
        let selector =
            json!({ "group": "", "version": "v1", "kind": "Namespace", "name": namespace });
        let strategy = json!({ "type": "RollingUpdate",
            "rollingUpdate": { "unavailablePeriodSeconds": 1 } });
        let spec =
            json!({ "resourceSelectors": [selector], "policy": policy, "strategy": strategy });
        self.fleet.place(namespace, spec).await
    }

    /// Has the objects of a placement be written so from now on; `apply` names every field.
    async fn apply_by(&self, placement: &str, apply: Value) -> Result<()> {
        let patch = json!({ "spec": { "strategy": { "applyStrategy": apply } } });
        merge(&self.fleet.placements(), placement, &patch).await
    }

    /// Fills a namespace, places it in every member, and waits until it is available there.
    async fn placed(&self, namespace: &str) -> Result<()> {
        self.fill(namespace).await?;
        self.place(namespace, json!({ "placementType": "PickAll" }))
            .await?;
        self.until_complete(namespace).await
    }

    /// Waits until the newest snapshot of a placement is available in all of its clusters.
    pub(crate) async fn until_complete(&self, placement: &str) -> Result<()> {
        self.until_status(placement, "complete", |status| {
            said(&status.conditions) == COMPLETE
        })
        .await
    }

    /// Waits until this snapshot of a placement is available in all of its clusters.
    async fn until_complete_at(&self, placement: &str, snapshot: u8) -> Result<()> {
        let snapshot = snapshot.to_string();
        self.until_status(placement, "complete with it", |status| {
            status.observed_resource_index == snapshot && said(&status.conditions) == COMPLETE
        })
        .await
    }

    /// Waits until the status of a placement is as wanted.
    async fn until_status(
        &self,
        placement: &str,
        what: &str,
        is: impl Fn(&PlacementStatus) -> bool,
    ) -> Result<()> {
        until_status(&self.fleet.placements(), placement, what, is).await
    }

    async fn status(&self, placement: &str) -> Result<PlacementStatus> {
        let found = self.fleet.placements().get(placement).await?;
        Ok(found.status.unwrap_or_default())
    }

    /// Changes the `ConfigMap` on the hub.
    async fn edit(&self, namespace: &str, value: &str) -> Result<()> {
        let patch = json!({ "data": { KEY: value } });
        let maps = maps(&self.fleet.hub, namespace);
        merge(&maps, MAP, &patch).await
    }

    /// Waits until the `ConfigMap` of a member has this value.
    async fn until_value(&self, member: Member, namespace: &str, value: &str) -> Result<()> {
        let maps = maps(self.fleet.member(member), namespace);
        until(&maps, MAP, value, |map| {
            let data = map.and_then(|map| map.data.as_ref());
            data.and_then(|data| data.get(KEY)).map(String::as_str) == Some(value)
        })
        .await?;
        Ok(())
    }

    /// Has a member leave the fleet, and waits until its cluster is gone.
    async fn leave(&self, member: Member) -> Result<()> {
        let (clusters, name) = (self.fleet.clusters(), member.name());
        clusters.delete(&name, &DeleteParams::default()).await?;
        until(&clusters, &name, "gone", |found| found.is_none()).await?;
        Ok(())
    }

    /// Deletes a placement, waits until it is gone, and checks that nothing of it is left.
    async fn remove(&self, placement: &str) -> Result<()> {
        self.fleet
            .placements()
            .delete(placement, &DeleteParams::default())
            .await?;
        self.until_removed(placement).await
    }

    /// Waits until a placement that was deleted is gone, and checks that nothing of it is left.
    async fn until_removed(&self, placement: &str) -> Result<()> {
        let placements = self.fleet.placements();
        until(&placements, placement, "gone", |found| found.is_none()).await?;
        let hub = &self.fleet.hub;
        let of =
            ListParams::default().labels(&format!("kubernetes-fleet.io/parent-CRP={placement}"));
        assert_eq!(names::<Binding>(hub, &of).await?, [""; 0]);
        assert_eq!(names::<ResourceSnapshot>(hub, &of).await?, [""; 0]);
        assert_eq!(names::<PolicySnapshot>(hub, &of).await?, [""; 0]);
        for member in self.fleet.members() {
            let works = self.fleet.works(member).list(&of).await?;
            assert!(works.items.is_empty(), "{works:?}");
            let member = self.fleet.member(member);
            let namespace = namespaces(member).get_opt(placement).await?;
            assert!(namespace.is_none(), "{namespace:?}");
            let owners = names::<AppliedWork>(member, &ListParams::default()).await?;
            let of = format!("{placement}-work");
            assert!(!owners.contains(&of), "{owners:?}");
        }
        Ok(())
    }
}

/// Waits until the status of one of these placements is as wanted.
async fn until_status(
    placements: &Api<Placement>,
    name: &str,
    what: &str,
    is: impl Fn(&PlacementStatus) -> bool,
) -> Result<()> {
    until(placements, name, what, |found| {
        let status = found.and_then(|found| found.status.as_ref());
        status.is_some_and(&is)
    })
    .await?;
    Ok(())
}

/// Returns the status and the reason of each condition, without the prefix of a placement's.
fn said(conditions: &[Condition]) -> Vec<String> {
    let conditions = conditions.iter().map(|one| {
        let mut kinds = [Scope::Cluster, Scope::Namespaced]
            .map(Placement::kind_of)
            .into_iter();
        let step = kinds.find_map(|kind| one.type_.strip_prefix(kind));
        format!(
            "{} {} {}",
            step.unwrap_or(&one.type_),
            one.status,
            one.reason
        )
    });
    conditions.collect()
}

async fn names<K>(api: &ControlPlane, of: &ListParams) -> Result<Vec<String>>
where
    K: Resource<DynamicType: Default> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let list = Api::<K>::all(api.client()).list(of).await?;
    Ok(list.iter().map(ResourceExt::name_any).collect())
}

fn namespaces(api: &ControlPlane) -> Api<Namespace> {
    Api::all(api.client())
}

fn maps(api: &ControlPlane, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(api.client(), namespace)
}
