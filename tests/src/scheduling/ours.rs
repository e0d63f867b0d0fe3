//! Our scheduler: its rules, and an API that takes their writes.

use anyhow::{Result, anyhow, bail};
use jiff::Timestamp;
use karmada_api::{ClusterView, ResourceBinding};
use objects::Metadata;
use objects::patch::{self, JsonPatch};
use propagation_rules::schedule::{
    Estimates, KnownClusters, Pass, Room, SchedulePlan, Scheduler, SpecWrite, StatusWrite,
    clusters_to_ask, plan,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::case::{Case, Decision, ESTIMATE};

/// The decisions after which nothing changes any more.
const MOST_ROUNDS: usize = 3;

/// Decides about a case, and then again after its own writes.
///
/// # Errors
/// A cluster or the binding cannot be read, or the writes do not end.
pub(super) fn decide(case: &Case) -> Result<Decision> {
    let clusters: Result<Vec<_>, _> = case.clusters.iter().map(ClusterView::deserialize).collect();
    let clusters = clusters?;
    let scheduler = Scheduler {
        name: "default-scheduler".to_owned(),
        keeps_empty: case.keeps_empty,
        room: Room::Models,
        ..Scheduler::default()
    };
    let mut binding = case.binding.clone();
    for _ in 0..MOST_ROUNDS {
        let before = ResourceBinding::deserialize(&binding)?;
        let SchedulePlan::Write { spec, status } = planned(&scheduler, &before, &clusters) else {
            return Ok(Decision::of(&binding));
        };
        if let Some(spec) = spec {
            write_spec(&mut binding, &spec)?;
        }
        if let Some(status) = status {
            write_status(&mut binding, &status)?;
            if matches!(status, StatusWrite::Failed { .. }) {
                return Ok(Decision::of(&binding));
            }
        }
    }
    bail!("our scheduler writes again and again: {binding:#}")
}

fn planned(
    scheduler: &Scheduler,
    binding: &ResourceBinding,
    clusters: &[ClusterView],
) -> SchedulePlan {
    let clusters: Vec<_> = clusters.iter().collect();
    let fleet = KnownClusters {
        clusters: &clusters,
        complete: true,
    };
    let pass = Pass {
        now: Timestamp::now(),
        cluster_changed: false,
        affinity_groups: None,
        assumed: None,
        estimates: None,
    };
    let asked = clusters_to_ask(scheduler, binding.into(), fleet, pass);
    let estimates = asked.into_iter().filter_map(|cluster| {
        let estimate = cluster.metadata.annotation(ESTIMATE)?.parse::<i32>().ok()?;
        Some((cluster.metadata.name().to_owned(), estimate))
    });
    let estimates: Estimates = estimates.collect();
    let pass = Pass {
        estimates: Some(&estimates),
        ..pass
    };
    plan(scheduler, binding.into(), fleet, pass)
}

/// Writes the clusters as an API does, which counts the changes of the spec.
fn write_spec(binding: &mut Value, write: &SpecWrite) -> Result<()> {
    let (before, spec) = (
        ResourceBinding::deserialize(&*binding)?,
        binding["spec"].clone(),
    );
    apply(&write.patch((&before).into()), binding)?;
    if binding["spec"] != spec {
        let generation = before.metadata.generation.unwrap_or_default();
        binding["metadata"]["generation"] = json!(generation + 1);
    }
    Ok(())
}

fn write_status(binding: &mut Value, write: &StatusWrite) -> Result<()> {
    let before = ResourceBinding::deserialize(&*binding)?;
    let patch = write.patch(before.status.as_ref(), before.metadata.generation);
    apply(&patch, binding)
}

fn apply(patch: &JsonPatch, binding: &mut Value) -> Result<()> {
    let applied = patch::apply(patch.operations(), binding);
    applied.map_err(|error| anyhow!("our patch does not fit: {error}"))
}
