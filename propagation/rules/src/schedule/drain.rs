//! A cluster that is emptied for a while, by taints with the key [`DRAIN`]: whether the others have room for its workloads,
//! which of these are left, and how they come back.
//!
//! Nothing returns to a cluster by itself once it has another place. So each binding gets a note of its replicas in the
//! cluster before that is to leave; the note goes when the workload is back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::remedy::DRAIN;
use karmada_api::{ClusterView, ResourceBindingSpec, TargetCluster};
use objects::amounts::Amounts;
use objects::taint::{NO_EXECUTE, NO_SCHEDULE, first_untolerated};
use objects::write::{Guard, Write};
use objects::{Key, Metadata};
use serde_json::json;

use super::assumed::Assumed;
use super::assumptions::Assumptions;
use super::capacity::free;
use super::cycle::decide;
use super::eviction::{is_suspended, new_evictions, spec_after_eviction};
use super::facts::{Facts, KnownClusters, Pass, Room, Scheduler, UnhealthyThreshold};
use super::failure::message;
use super::pods::{of_components, request};
use super::trigger::is_requested;
use crate::binding_ref::BindingRef;

/// The beginning of the annotations of a binding that note the replicas which it had in a drained cluster. The name of
/// the cluster follows.
const NOTE: &str = "drain.karmada-rs.io/";

/// The requests to schedule a workload anew after which its scheduler's decision stands: the first may have overtaken
/// the news that the taint is gone.
const MOST_REQUESTS: usize = 3;

/// The room that the other clusters lack for the workloads of those that are drained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// The workloads that no other place is found for.
    pub homeless: Vec<Homeless>,
    /// The requests of the replicas that are divided and have to move, in their canonical texts.
    pub needed: BTreeMap<String, String>,
    /// The rest of these in the clusters that are neither drained nor otherwise closed.
    pub free: BTreeMap<String, String>,
}

/// A workload that no other place is found for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homeless {
    /// Its binding.
    pub binding: Key,
    /// The kind and name of its template.
    pub template: String,
    /// Its replicas in the drained clusters.
    pub replicas: i64,
    /// The reason, in the words of the scheduler.
    pub reason: String,
}

/// Returns the room that the rest of the fleet lacks if the clusters `drained` are emptied: each workload finds the room that
/// those before it leave.
pub fn shortage<'a>(
    bindings: impl IntoIterator<Item = BindingRef<'a>>,
    clusters: &[&ClusterView],
    drained: &BTreeSet<String>,
    now: Timestamp,
) -> Shortage {
    let emptied = clusters.iter().map(|cluster| emptied(cluster, drained));
    let emptied: Vec<ClusterView> = emptied.collect();
    let views: Vec<&ClusterView> = emptied.iter().collect();
    let fleet = KnownClusters {
        clusters: &views,
        complete: true,
    };
    let (mut assumed, mut needed) = (Assumed::default(), Amounts::default());
    let mut homeless = Vec::new();
    for binding in bindings {
        let pass = Pass {
            now,
            cluster_changed: false,
            affinity_groups: None,
            assumed: Some(&assumed),
            estimates: None,
        };
        let Some(moved) = moved(binding, fleet, pass) else {
            continue;
        };
        if moved.is_divided {
            for target in targets_in(binding, drained) {
                needed.add(&requests(binding.spec, target));
            }
        }
        match moved.found {
            Ok((spec, found)) => {
                let more = Assumptions::default().with(&spec, &found, now);
                assumed.extend(more.workloads());
            }
            Err(reason) => homeless.push(Homeless::new(binding, drained, reason)),
        }
    }
    let (needed, rest) = (needed.texts(), free_in(&views));
    let free = needed.keys().map(|name| (name.clone(), rest.text(name)));
    Shortage {
        homeless,
        free: free.collect(),
        needed,
    }
}

/// Returns the room that the workloads of the clusters `drained` lack once `closed` gets nothing new; none if they lack it
/// anyway.
pub fn shortage_without(
    closed: &str,
    bindings: &[BindingRef<'_>],
    clusters: &[&ClusterView],
    drained: &BTreeSet<String>,
    now: Timestamp,
) -> Shortage {
    let [before, after] = [None, Some(NO_SCHEDULE)].map(|effect| {
        let clusters = clusters.iter().map(|cluster| {
            if cluster.metadata.name() == closed {
                with_drain(cluster, effect)
            } else {
                (*cluster).clone()
            }
        });
        let clusters: Vec<ClusterView> = clusters.collect();
        let views: Vec<&ClusterView> = clusters.iter().collect();
        shortage(bindings.iter().copied(), &views, drained, now)
    });
    let known: Vec<_> = before.homeless.iter().map(|one| &one.binding).collect();
    let mut homeless = after.homeless.iter();
    if homeless.any(|one| !known.contains(&&one.binding)) {
        after
    } else {
        Shortage::default()
    }
}

impl Homeless {
    fn new(binding: BindingRef<'_>, drained: &BTreeSet<String>, reason: String) -> Self {
        let resource = &binding.spec.resource;
        let replicas = targets_in(binding, drained);
        let replicas = replicas.map(|target| i64::from(target.replicas.unwrap_or(0)));
        Self {
            binding: binding.key(),
            template: format!("{} {}", resource.kind, resource.name),
            replicas: replicas.sum(),
            reason,
        }
    }
}

/// Returns the room that clusters without taints have left together.
fn free_in(clusters: &[&ClusterView]) -> Amounts {
    let open = clusters
        .iter()
        .filter(|cluster| cluster.spec.taints.is_empty());
    let mut sum = Amounts::default();
    for summary in open.filter_map(|cluster| cluster.status.resource_summary.as_ref()) {
        sum.add(&free(summary, &[]));
    }
    sum
}

/// Returns the cluster as it is once it is drained, if it is one of these. Nothing tolerates that for a time only: who
/// leaves later needs room, too.
fn emptied(cluster: &ClusterView, drained: &BTreeSet<String>) -> ClusterView {
    if drained.contains(cluster.metadata.name()) {
        with_drain(cluster, Some(NO_EXECUTE))
    } else {
        cluster.clone()
    }
}

/// Returns the cluster with the taint of a drain that has this effect, and no other of a drain.
fn with_drain(cluster: &ClusterView, effect: Option<&str>) -> ClusterView {
    let mut cluster = cluster.clone();
    cluster.spec.taints.retain(|taint| taint.key != DRAIN);
    cluster.spec.taints.extend(effect.map(taint));
    cluster
}

fn taint(effect: &str) -> Taint {
    Taint {
        key: DRAIN.to_owned(),
        effect: effect.to_owned(),
        time_added: Some(Time(Timestamp::UNIX_EPOCH)),
        ..Taint::default()
    }
}

/// The move of a workload.
struct Move {
    is_divided: bool,
    /// The spec without the clusters that it leaves, and those that it gets; or the reason why it gets none.
    found: Result<(ResourceBindingSpec, Vec<TargetCluster>), String>,
}

/// Returns the move of a workload for the taints of clusters; `None` if it stays where it is.
fn moved(binding: BindingRef<'_>, fleet: KnownClusters<'_>, pass: Pass<'_>) -> Option<Move> {
    let scheduler = Scheduler {
        room: Room::Models,
        evicts: true,
        unhealthy_threshold: UnhealthyThreshold(1.0),
        ..Scheduler::default()
    };
    let placement = binding.placement()?;
    let facts = Facts::new(&scheduler, binding, &placement, fleet, pass).ok()?;
    let tasks = new_evictions(facts);
    if tasks.is_empty() {
        return None;
    }
    let spec = spec_after_eviction(binding, &tasks);
    let found = match decide(facts.with_spec(&spec)) {
        Ok(decision) => Ok(decision.clusters),
        Err(failures) => Err(message(&failures)),
    };
    Some(Move {
        is_divided: facts.strategy.divides(),
        found: found.map(|clusters| (spec, clusters)),
    })
}

/// Iterates over the targets of a binding that are drained.
fn targets_in<'a>(
    binding: BindingRef<'a>,
    drained: &BTreeSet<String>,
) -> impl Iterator<Item = &'a TargetCluster> {
    let targets = binding.targets();
    targets.filter(move |target| drained.contains(&target.name))
}

/// Returns the joint requests of the replicas of a target.
fn requests(spec: &ResourceBindingSpec, target: &TargetCluster) -> Amounts {
    let components = spec.components.as_deref().unwrap_or_default();
    let mut pods = of_components(components);
    if pods.is_empty() {
        let replicas = target.replicas.unwrap_or(0).max(0);
        let one = request(spec.replica_requirements.as_ref());
        pods.push((one, i128::from(replicas)));
    }
    let mut sum = Amounts::default();
    for (one, count) in pods {
        sum.add(&one.multiplied(count));
    }
    sum
}

/// The rest of a workload in a cluster that is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remaining {
    /// It is scheduled there: nobody has evicted it yet, or it has no other place.
    Scheduled,
    /// Its copy there stays until those elsewhere are healthy.
    Leaving,
    /// Dispatching to the cluster is suspended: it leaves at resume.
    Suspended,
    /// It tolerates the taint, or no policy schedules it.
    Staying,
}

impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheduled => "is scheduled there, and nobody has evicted it",
            Self::Leaving => "stays there until its copies elsewhere are healthy",
            Self::Suspended => "stays there while dispatching is suspended",
            Self::Staying => "stays there, for it tolerates the taint or no policy schedules it",
        })
    }
}

/// Returns the rest of a workload in a cluster that is drained.
pub fn remaining(binding: BindingRef<'_>, cluster: &str) -> Option<Remaining> {
    if !binding.has_target(cluster) {
        return is_leaving(binding, cluster).then_some(Remaining::Leaving);
    }
    let placement = binding.placement();
    let leaves = placement.is_some_and(|placement| {
        first_untolerated([&taint(NO_EXECUTE)], &placement.cluster_tolerations).is_some()
    });
    Some(if !leaves {
        Remaining::Staying
    } else if is_suspended(binding, cluster) {
        Remaining::Suspended
    } else {
        Remaining::Scheduled
    })
}

fn is_leaving(binding: BindingRef<'_>, cluster: &str) -> bool {
    let mut tasks = binding.spec.graceful_eviction_tasks.iter().flatten();
    tasks.any(|task| task.from_cluster == cluster)
}

/// Returns the write that notes the replicas of a workload in a cluster which is to be drained; `None` if it has none
/// there that may leave, or an earlier drain has noted it.
pub fn note(binding: BindingRef<'_>, cluster: &str) -> Option<Write> {
    let note = note_of(cluster);
    let has_note = binding.metadata.annotation(&note).is_some();
    let is_evictable = matches!(
        remaining(binding, cluster),
        Some(Remaining::Scheduled | Remaining::Suspended)
    );
    if has_note || !is_evictable {
        return None;
    }
    let replicas = replicas_in(binding, cluster)?.to_string();
    // Whatever else changes meanwhile, the note stays true.
    Some(noting(binding, &note, Some(&replicas)))
}

/// Returns the write that takes the note about a cluster away which is gone; `None` if nothing was noted.
pub fn forget(binding: BindingRef<'_>, cluster: &str) -> Option<Write> {
    let note = note_of(cluster);
    binding.metadata.annotation(&note)?;
    Some(noting(binding, &note, None))
}

fn note_of(cluster: &str) -> String {
    format!("{NOTE}{cluster}")
}

fn noting(binding: BindingRef<'_>, note: &str, replicas: Option<&str>) -> Write {
    let body = json!({ "metadata": { "annotations": { note: replicas } } });
    Write::merge("drain_note", binding.object(), body)
}

/// Returns the replicas that a binding has in a cluster; `None` if it is not there.
fn replicas_in(binding: BindingRef<'_>, cluster: &str) -> Option<i32> {
    let mut targets = binding.targets();
    let target = targets.find(|target| target.name == cluster)?;
    Some(target.replicas.unwrap_or(0))
}

/// The next step of a workload back to a cluster that is no longer drained.
#[derive(Clone, Debug, PartialEq)]
pub enum Return {
    /// None: its former copy is still there, and nothing returns before that is gone.
    Leaving,
    /// None: its scheduler has not decided yet.
    Scheduling,
    /// It is to be scheduled anew, by this write.
    Reschedule(Write),
    /// It has the replicas that it had, or those that its scheduler decides by now. This takes the note away.
    Settled {
        /// The write.
        write: Write,
        /// True if it is in the cluster.
        is_back: bool,
    },
}

/// Returns the next step of a workload back to a cluster that is no longer drained, after `requested` requests to schedule
/// it anew; `None` if nothing was noted.
pub fn next_return(
    binding: BindingRef<'_>,
    cluster: &str,
    requested: usize,
    now: Timestamp,
) -> Option<Return> {
    let note = note_of(cluster);
    let noted = binding.metadata.annotation(&note)?.parse().unwrap_or(0);
    let has = replicas_in(binding, cluster);
    let is_whole = has.is_some_and(|replicas| replicas >= noted);
    Some(if !is_whole && is_leaving(binding, cluster) {
        Return::Leaving
    } else if !is_whole && is_requested(binding) {
        Return::Scheduling
    } else if is_whole || (has.is_some() && requested > 0) || requested >= MOST_REQUESTS {
        Return::Settled {
            write: noting(binding, &note, None).guarded(Guard::Version),
            is_back: has.is_some(),
        }
    } else {
        Return::Reschedule(reschedule(binding, now))
    })
}

/// Returns the write that asks for a workload to be scheduled anew. Times have whole seconds, and one that equals
/// that of the last decision asks for nothing.
fn reschedule(binding: BindingRef<'_>, now: Timestamp) -> Write {
    let last = binding
        .status
        .and_then(|status| status.last_scheduled_time.as_ref());
    let earliest = last.map_or(i64::MIN, |last| last.0.as_second().saturating_add(1));
    let at = Timestamp::from_second(now.as_second().max(earliest)).unwrap_or(now);
    let body = json!({ "spec": { "rescheduleTriggeredAt": Time(at) } });
    Write::merge("reschedule", binding.object(), body).guarded(Guard::Version)
}

#[cfg(test)]
mod tests;
