//! Two rollouts as users make them.

use anyhow::{Context, Result};
use karmada_api::OverridePolicy;
use kube::Api;
use pipeline_tests::{
    api::{create, merge},
    control_plane::ApiKind,
    fleet::Member,
    on_both,
    propagation::{PropagationFleet, namespaced},
    wait::until,
};
use serde_json::{Value, json};

use super::record::{Record, ran};
use super::{
    WEB, deployed, deployments, has_image, running, set_image, suspend, until_work, work_has,
};

/// A new version is held everywhere, goes to one member, then to the next; it is taken back half-way, and
/// never reaches the last. Another one is taken back from the first member, and never reaches the others.
async fn roll_out(fleet: &PropagationFleet) -> Result<()> {
    let members = [Member(1), Member(2), Member(3)];
    suspend(fleet, json!({ "dispatching": true })).await?;
    for member in members {
        work_has(fleet, member, "Dispatching", "False", "web:1").await?;
    }
    set_image(fleet, "web:2").await?;
    for member in members {
        work_has(fleet, member, "Dispatching", "False", "web:2").await?;
        assert_eq!(running(fleet, member).await?, "web:1");
    }

    let paused = |names: &[&str]| json!({ "dispatching": null, "dispatchingOnClusters": { "clusterNames": names } });
    suspend(fleet, paused(&["member2", "member3"])).await?;
    has_image(fleet, Member(1), "web:2").await?;
    assert_eq!(running(fleet, Member(2)).await?, "web:1");
    suspend(fleet, paused(&["member3"])).await?;
    has_image(fleet, Member(2), "web:2").await?;
    assert_eq!(running(fleet, Member(3)).await?, "web:1");

    set_image(fleet, "web:1").await?;
    for member in [Member(1), Member(2)] {
        has_image(fleet, member, "web:1").await?;
    }
    work_has(fleet, Member(3), "Dispatching", "False", "web:1").await?;

    let others = [Member(2), Member(3)];
    suspend(fleet, paused(&["member2", "member3"])).await?;
    work_has(fleet, Member(2), "Dispatching", "False", "web:1").await?;
    for image in ["web:3", "web:1"] {
        set_image(fleet, image).await?;
        has_image(fleet, Member(1), image).await?;
        for member in others {
            work_has(fleet, member, "Dispatching", "False", image).await?;
            assert_eq!(running(fleet, member).await?, "web:1");
        }
    }
    suspend(fleet, Value::Null).await?;
    for member in others {
        work_has(fleet, member, "Dispatching", "True", "web:1").await?;
    }
    Ok(())
}

/// While paused, the template is scaled and an override made for each member; then all of it leaves.
async fn change_while_paused(fleet: &PropagationFleet) -> Result<()> {
    let members = [Member(1), Member(2)];
    suspend(fleet, json!({ "dispatching": true })).await?;
    let mut generations = Vec::new();
    for member in members {
        work_has(fleet, member, "Dispatching", "False", "web:1").await?;
        let copy = deployments(fleet.member(member)).get(WEB).await?;
        generations.push(copy.metadata.generation.unwrap());
    }
    let scale = json!({ "spec": { "replicas": 6 } });
    merge(&deployments(&fleet.karmada), WEB, &scale).await?;
    let tag = json!({ "component": "Tag", "operator": "replace", "value": "canary" });
    let rule = |member: Member, mut overriders: Value| {
        overriders["plaintext"] = json!([{ "path": PARTITION, "operator": "add",
            "value": partition(member) }]);
        json!({ "targetCluster": { "clusterNames": [member.name()] }, "overriders": overriders })
    };
    let rules = [
        rule(Member(1), json!({})),
        rule(Member(2), json!({ "imageOverrider": [tag] })),
    ];
    let selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB });
    let spec = json!({ "resourceSelectors": [selector], "overrideRules": rules });
    let overrides: Api<OverridePolicy> = namespaced(fleet.karmada.client());
    let canary = json!({ "metadata": { "name": WEB }, "spec": spec });
    create(&overrides, canary).await?;
    for (member, image) in members.into_iter().zip(["web:1", "web:canary"]) {
        work_has(fleet, member, "Dispatching", "False", image).await?;
        until_work(fleet, member, "Deployment", "scaled", |work| {
            let manifest = work.and_then(|work| work.spec.workload.manifests.first());
            manifest.is_some_and(|manifest| {
                manifest["spec"]["replicas"] == 3
                    && manifest.pointer(PARTITION) == Some(&partition(member).into())
            })
        })
        .await?;
    }

    // A merge patch leaves `suspension: {}`.
    suspend(fleet, json!({ "dispatching": null })).await?;
    for (member, image) in members.into_iter().zip(["web:1", "web:canary"]) {
        work_has(fleet, member, "Applied", "True", image).await?;
        has_replicas(fleet, member, 3).await?;
    }
    for (member, before) in members.into_iter().zip(generations) {
        let copy = deployments(fleet.member(member)).get(WEB).await?;
        let spec = copy.spec.unwrap();
        assert_eq!(spec.min_ready_seconds, Some(partition(member)));
        assert_eq!(copy.metadata.generation, Some(before + 1), "one change");
    }
    Ok(())
}

/// The field that stands for `partition` of a `StatefulSet`, a number for each cluster, in a Deployment.
const PARTITION: &str = "/spec/minReadySeconds";

fn partition(member: Member) -> i32 {
    i32::from(member.0)
}

async fn has_replicas(fleet: &PropagationFleet, member: Member, replicas: i32) -> Result<()> {
    let copies = deployments(fleet.member(member));
    let what = format!("{replicas} replicas");
    until(&copies, WEB, &what, |copy| {
        copy.is_some_and(|copy| ran(copy).1 == replicas)
    })
    .await?;
    Ok(())
}

/// A rollout, and the versions of each member meanwhile, with how many replicas more than at first.
struct Story {
    members: &'static [Member],
    ran: &'static [&'static [(&'static str, i32)]],
}

const ROLL_OUT: Story = Story {
    members: &[Member(1), Member(2), Member(3)],
    ran: &[
        &[
            ("web:1", 0),
            ("web:2", 0),
            ("web:1", 0),
            ("web:3", 0),
            ("web:1", 0),
        ],
        &[("web:1", 0), ("web:2", 0), ("web:1", 0)],
        &[("web:1", 0)],
    ],
};

const CHANGE_WHILE_PAUSED: Story = Story {
    members: &[Member(1), Member(2)],
    ran: &[
        &[("web:1", 0), ("web:1", 1)],
        &[("web:1", 0), ("web:canary", 1)],
    ],
};

impl Story {
    async fn play(
        &self,
        server: ApiKind,
        story: impl AsyncFnOnce(&PropagationFleet) -> Result<()>,
    ) -> Result<()> {
        let (fleet, programs) = deployed(server, self.members).await?;
        let records = self.record(&fleet);
        story(&fleet).await?;
        programs.settled().await?;
        self.ensure(&records).await
    }

    fn record(&self, fleet: &PropagationFleet) -> Vec<Record> {
        let members = self.members.iter();
        members
            .map(|member| Record::of(fleet.member(*member)))
            .collect()
    }

    async fn ensure(&self, records: &[Record]) -> Result<()> {
        for ((member, record), ran) in self.members.iter().zip(records).zip(self.ran) {
            let ensured = record.ensure_ran(ran).await;
            ensured.with_context(|| member.name())?;
        }
        Ok(())
    }
}

/// Case P16: a new version goes to one member, then to the next; the last never runs it.
async fn rollout_goes_member_by_member(server: ApiKind) -> Result<()> {
    ROLL_OUT.play(server, roll_out).await
}

/// Cases P17 and P18: the changes that a paused fleet holds can be read in its Works; each member gets it as one change at resume.
async fn paused_changes_arrive_at_resume(server: ApiKind) -> Result<()> {
    CHANGE_WHILE_PAUSED.play(server, change_while_paused).await
}

on_both!(
    long:
    rollout_goes_member_by_member,
    paused_changes_arrive_at_resume,
);
