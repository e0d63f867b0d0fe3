//! The way to write changes beside KubeFleet's other program: a field in a member has one owner, and is applied once.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use fleet_api::{Work, names::SPEC_HASH};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use pipeline_tests::{
    api::{merge, merge_status},
    control_plane::{ApiKind, ControlPlane},
    on_both,
    placement::PlacementFleet,
    wait::until,
};
use serde_json::{Value, json};

use super::{
    MEMBER, PENDING, PLACED, PLACEMENT, THEIR_MANAGER, TheirAgent, WORK, join_theirs,
    placed_by_theirs, told, write_work,
};
use crate::placements::{KEY, MAP, REPORTED, maps, said};

/// Returns a strategy as KubeFleet's controller writes it, with the defaults.
fn written_out(strategy: &Value) -> Value {
    let mut whole = json!({ "comparisonOption": "PartialComparison", "serverSideApplyConfig": null,
        "whenToApply": "Always", "whenToTakeOver": "Always" });
    for (field, value) in strategy.as_object().unwrap() {
        whole[field] = value.clone();
    }
    whole
}

/// Checks that every key of the map is a field of the name by which both agents write, and of no other entry.
fn assert_owned(map: &ConfigMap) {
    let entries = map.managed_fields();
    let writers: Vec<_> = entries
        .iter()
        .map(|entry| (entry.manager.as_deref(), entry.operation.as_deref()))
        .collect();
    assert_eq!(writers, [(Some(THEIR_MANAGER), Some("Apply"))]);
    let fields = json!(entries[0].fields_v1);
    let owned = fields["f:data"].as_object().into_iter().flatten();
    let owned: BTreeSet<_> = owned
        .filter_map(|(key, _)| key.strip_prefix("f:"))
        .collect();
    let data = map.data.iter().flatten();
    let data: BTreeSet<_> = data.map(|(key, _)| &**key).collect();
    assert_eq!(owned, data);
}

/// The number of writes to `ConfigMap`s of a member until now, by their verbs.
async fn map_writes(member: &ControlPlane) -> Result<BTreeMap<String, u64>> {
    let written = member.successful_writes().await?.0.into_iter();
    let of_maps = written.filter(|(write, _)| write.resource == "configmaps");
    Ok(of_maps.map(|(write, count)| (write.verb, count)).collect())
}

/// Returns `true` if a Work says this, as it is now.
fn is_told(work: &Work, expected: &[Value]) -> bool {
    let conditions = work.status.iter().flat_map(|status| &status.conditions);
    let generation = work.metadata.generation;
    let mut ages = conditions.map(|one| one.observed_generation);
    told(&json!(work.status)) == expected && ages.all(|observed| observed == generation)
}

/// Returns the report of an agent on a namespace and a map with which it has only compared its manifests.
fn compared(map: &str) -> Vec<Value> {
    ["NoDiffFound", map, "AllManifestsDiffReported"]
        .map(|reason: &str| json!(["DiffReported", "True", reason]))
        .into()
}

/// A change of a Work.
struct Change {
    strategy: Value,
    /// The value of its map.
    data: Value,
    /// The number of applications in the member that it takes.
    applied: u64,
}

impl Change {
    /// Makes the change as KubeFleet's controller does, and checks our agent's result.
    async fn make(&self, fleet: &PlacementFleet) -> Result<()> {
        let (works, member) = (fleet.works(MEMBER), fleet.member(MEMBER));
        let copies = maps(member, PLACED);
        let (had, before) = (copies.get(MAP).await?, map_writes(member).await?);
        let mut manifests = json!(works.get(WORK).await?.spec.workload.manifests);
        manifests[1]["data"] = self.data.clone();
        let spec = json!({ "applyStrategy": written_out(&self.strategy),
            "workload": { "manifests": manifests } });
        let change = json!({ "spec": spec });
        merge(&works, WORK, &change).await?;

        let is_reported = self.strategy["type"] == "ReportDiff";
        let is_same = json!(had.data) == self.data;
        let expected = match (is_reported, is_same) {
            (true, true) => compared("NoDiffFound"),
            (true, false) => compared("FoundDiff"),
            (false, _) => told(&recorded!("crp-all-work")["status"]),
        };
        until(&works, WORK, "as it is to be", |work| {
            work.is_some_and(|work| is_told(work, &expected))
        })
        .await?;
        let copy = copies.get(MAP).await?;
        let expected = if is_reported {
            json!(had.data)
        } else {
            self.data.clone()
        };
        assert_eq!(json!(copy.data), expected, "{}", self.strategy);
        assert_owned(&copy);
        let mut after = before;
        if self.applied > 0 {
            *after.entry("APPLY".to_owned()).or_default() += self.applied;
        }
        assert_eq!(map_writes(member).await?, after, "{}", self.strategy);
        Ok(())
    }
}

/// Case F51: KubeFleet's hub changes how a Work is written: our agent writes nothing for that alone, and news once;
/// parts that have left a manifest go, by whichever strategy it came.
async fn their_strategies_are_followed(server: ApiKind) -> Result<()> {
    let fleet = PlacementFleet::start(server, 1).await?;
    let ours = join_theirs(&fleet).await?;
    write_work(&fleet).await?;
    let client_side = json!({ "type": "ClientSideApply" });
    let server_side = json!({ "type": "ServerSideApply" });
    let forced = json!({ "type": "ServerSideApply", "serverSideApplyConfig": { "force": true } });
    let report = json!({ "type": "ReportDiff" });
    let (first, second) = (json!({ KEY: "value" }), json!({ "second": "2" }));
    let both = json!({ KEY: "value", "second": "2" });
    for (strategy, data, applied) in [
        (&server_side, &first, 0),
        (&server_side, &second, 1),
        (&report, &second, 0),
        (&report, &both, 0),
        (&client_side, &both, 1),
        (&forced, &first, 1),
        (&client_side, &first, 0),
        (&client_side, &second, 1),
    ] {
        let change = Change {
            strategy: strategy.clone(),
            data: data.clone(),
            applied,
        };
        change.make(&fleet).await?;
    }
    ours.stop().await
}

impl TheirAgent<'_> {
    /// Applies the placed objects, as its agent does where the server is to apply it.
    async fn apply_placed(&self) -> Result<()> {
        let copies = maps(self.0.member(MEMBER), PLACED);
        let copy = copies.get(MAP).await?;
        let metadata = json!({ "name": MAP,
            "annotations": { SPEC_HASH: copy.annotations().get(SPEC_HASH) },
            "ownerReferences": copy.owner_references() });
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": copy.data });
        let parameters = PatchParams::apply(THEIR_MANAGER);
        copies
            .patch(MAP, &parameters, &Patch::Apply(object))
            .await?;
        Ok(())
    }

    /// Says that it has compared this generation of the Work, and that nothing differs.
    async fn report(&self, generation: i64) -> Result<()> {
        let mut reported = recorded!("crp-diff-works")["items"][0]["status"].take();
        reported["conditions"][0]["observedGeneration"] = json!(generation);
        let same = reported["manifestConditions"][0]["conditions"].take();
        let mut status = recorded!("crp-all-work")["status"].take();
        status["conditions"] = reported["conditions"].take();
        for manifest in status["manifestConditions"].as_array_mut().unwrap() {
            manifest["conditions"] = same.clone();
        }
        merge_status(&self.0.works(MEMBER), WORK, &status).await
    }
}

/// Case F51: our controller hands each strategy on to KubeFleet's agent, and goes by its report. Ours follows it while it
/// only looks, that one follows ours, and ours again: the parts that either wrote go when they leave.
async fn agents_follow_each_other(server: ApiKind) -> Result<()> {
    let stage = placed_by_theirs(server).await?;
    let theirs = TheirAgent(&stage.fleet);
    let (works, member) = (stage.fleet.works(MEMBER), stage.fleet.member(MEMBER));
    let forced = json!({ "type": "ServerSideApply", "serverSideApplyConfig": { "force": true } });
    stage.apply_by(PLACEMENT, forced).await?;
    theirs.begin(2).await?;
    stage.until_pending(PENDING).await?;
    theirs.apply_placed().await?;
    theirs.end(2).await?;
    stage.until_complete(PLACEMENT).await?;

    let report = json!({ "type": "ReportDiff", "serverSideApplyConfig": null });
    stage.apply_by(PLACEMENT, report).await?;
    theirs.begin(3).await?;
    let strategy = json!(works.get(WORK).await?.spec.apply_strategy);
    let expected = json!({ "comparisonOption": "PartialComparison", "type": "ReportDiff",
        "whenToApply": "Always", "whenToTakeOver": "Always" });
    assert_eq!(strategy, expected);
    stage
        .until_pending("DiffReported Unknown DiffReportingPending")
        .await?;
    theirs.report(3).await?;
    stage
        .until_status(PLACEMENT, "reported", |status| {
            said(&status.conditions) == REPORTED
        })
        .await?;

    let before = map_writes(member).await?;
    let ours = stage.fleet.run_agent(MEMBER).await?;
    let work_loop = "karmada_placement_agent_reconciles_total";
    ours.until_metric(work_loop, |count| count > 0.0).await?;
    stage
        .apply_by(PLACEMENT, json!({ "type": "ClientSideApply" }))
        .await?;
    until(&works, WORK, "applied by ours", |work| {
        work.is_some_and(|work| is_told(work, &told(&recorded!("crp-all-work")["status"])))
    })
    .await?;
    let applied = |writes: &BTreeMap<String, u64>| writes.get("APPLY").copied().unwrap_or_default();
    let after = map_writes(member).await?;
    assert!(
        applied(&after) <= applied(&before) + 1,
        "{before:?} {after:?}"
    );
    change_key(&stage.fleet.hub, json!({ KEY: null, "second": "2" })).await?;
    until_data(member, json!({ "second": "2" })).await?;
    assert_owned(&maps(member, PLACED).get(MAP).await?);
    let end = map_writes(member).await?;
    assert_eq!(applied(&end), applied(&after) + 1);
    stage.until_complete_at(PLACEMENT, 1).await?;
    ours.stop().await?;

    stage.edit(PLACED, "by theirs").await?;
    theirs.begin(6).await?;
    stage.until_pending(PENDING).await?;
    theirs.change_placed("by theirs").await?;
    theirs.end(6).await?;
    stage.until_complete_at(PLACEMENT, 2).await?;
    let ours = stage.fleet.run_agent(MEMBER).await?;
    change_key(&stage.fleet.hub, json!({ KEY: null, "second": "3" })).await?;
    until_data(member, json!({ "second": "3" })).await?;
    stage.until_complete_at(PLACEMENT, 3).await?;
    assert_owned(&maps(member, PLACED).get(MAP).await?);
    ours.stop().await?;
    stage.programs.stop().await
}

/// Changes keys of the map on the hub.
async fn change_key(hub: &ControlPlane, data: Value) -> Result<()> {
    let change = json!({ "data": data });
    let maps = maps(hub, PLACED);
    merge(&maps, MAP, &change).await
}

/// Waits until the map in the member has this, and nothing else.
async fn until_data(member: &ControlPlane, data: Value) -> Result<()> {
    let copies = maps(member, PLACED);
    until(&copies, MAP, "as it is to be", |copy| {
        copy.is_some_and(|copy| json!(copy.data) == data)
    })
    .await?;
    Ok(())
}

on_both!(long: their_strategies_are_followed, agents_follow_each_other);
