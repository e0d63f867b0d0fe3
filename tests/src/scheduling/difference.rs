//! Where the schedulers differ, and why that may be.
//!
//! A reason is accepted only if it explains the difference: without its cause, ours decides as Karmada's did.

use std::fmt;

use anyhow::Result;
use karmada_api::names;
use serde_json::{Value, json};

use super::case::{Case, Decision, elements};
use super::karmada::Decided;
use super::ours;

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) what: What,
    /// Why it is one on purpose; none if it is a mistake.
    pub(super) reasons: Vec<Reason>,
}

/// The first part that differs, in this order: the rest follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// One schedules the binding, and the other does not.
    Success,
    Clusters,
    Replicas,
    Group,
    Reason,
    Message,
}

/// The reason why ours decides otherwise on purpose. Each has a row in `docs/propagation-limits.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// Nothing more comes to a cluster with a taint that the placement does not tolerate.
    Closed,
    /// Replicas in regions within their bounds stay there.
    RunningRegions,
    /// A request for another decision leads back to the first group.
    FirstGroup,
    /// The groups before the one in use are tried, too, and all of them count.
    EarlierGroups,
    /// A constraint without `maxGroups` has no upper bound.
    Unbounded,
    /// Replicas leave a cluster that is gone, whether or not it was seen being deleted.
    Gone,
    /// A list without a cluster takes nothing away.
    NoCluster,
    /// The message counts clusters that are being deleted.
    Deleted,
    /// Of several filters that a cluster fails, the same is always told.
    SeveralFilters,
}

impl Reason {
    /// All of them; the last compares messages as those before leave them.
    const ALL: [Self; 9] = [
        Self::Closed,
        Self::RunningRegions,
        Self::FirstGroup,
        Self::EarlierGroups,
        Self::Unbounded,
        Self::Gone,
        Self::NoCluster,
        Self::Deleted,
        Self::SeveralFilters,
    ];

    /// Returns the start of the row in `docs/propagation-limits.md`.
    pub(super) fn row(self) -> &'static str {
        match self {
            Self::Closed => {
                "A cluster that has the template gets a taint that the policy does not tolerate"
            }
            Self::RunningRegions => {
                "A template that is not divided runs within the bounds of its regions"
            }
            Self::FirstGroup => {
                "`rescheduleTriggeredAt` is set while a group after the first is in use"
            }
            Self::EarlierGroups => "The group in use and those after it do not fit",
            Self::Unbounded => "A spread constraint has no `maxGroups`",
            Self::Gone => "A cluster is gone that nobody saw being deleted",
            Self::NoCluster => "There is no cluster at all",
            Self::SeveralFilters => "No cluster fits, and one fails to for several reasons",
            Self::Deleted => "No cluster fits, and one is being deleted",
        }
    }

    /// Takes the cause that the reason names out of the case: as if our scheduler did as Karmada's, which `decided`.
    fn take_out_of(self, case: &mut Case, decided: &Decision) {
        match self {
            Self::Closed => {
                let targets: Vec<String> = case.targets().into_iter().map(str::to_owned).collect();
                for cluster in &mut case.clusters {
                    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
                    if targets.iter().any(|target| target == name) {
                        cluster["spec"]["taints"] = json!([]);
                    }
                }
            }
            Self::RunningRegions => {
                if let Some(annotations) = case.binding["metadata"]["annotations"].as_object_mut() {
                    annotations.remove(names::APPLIED_PLACEMENT);
                }
            }
            Self::FirstGroup => {
                let is_requested = case.binding["spec"]["rescheduleTriggeredAt"].is_string();
                if is_requested && decided.succeeds() {
                    leave_out_earlier_groups(case);
                }
            }
            Self::EarlierGroups => {
                leave_out_earlier_groups(case);
                let groups = case.placement().get_mut("clusterAffinities");
                if let Some(Value::Array(groups)) = groups
                    && !decided.succeeds()
                {
                    // The first of them alone is told of.
                    groups.truncate(1);
                }
            }
            // Nothing that ours could be told has Karmada's meaning.
            Self::Unbounded
            | Self::Gone
            | Self::NoCluster
            | Self::SeveralFilters
            | Self::Deleted => {}
        }
    }
}

/// Takes the groups before the one in use out of the placement.
fn leave_out_earlier_groups(case: &mut Case) {
    let in_use = case.binding["status"]["schedulerObservingAffinityName"].clone();
    let Some(Value::Array(groups)) = case.placement().get_mut("clusterAffinities") else {
        return;
    };
    let mut all = groups.iter();
    let start = all.position(|group| group["affinityName"] == in_use);
    groups.drain(..start.unwrap_or_default());
}

/// Returns where our decision about a case differs from Karmada's.
///
/// # Errors
/// The case cannot be decided.
pub(super) fn between(case: &Case, decided: &Decided) -> Result<Option<Difference>> {
    let karmada = Decision::of(&decided.binding);
    let Some(what) = what(&ours::decide(case)?, &karmada) else {
        return Ok(None);
    };
    let mut sets = subsets(&Reason::ALL);
    sets.sort_by_key(Vec::len);
    for reasons in sets {
        if explains(&reasons, case, &karmada)? {
            return Ok(Some(Difference { what, reasons }));
        }
    }
    // A mistake; or Karmada does not settle, and any decision is as good.
    let reasons = if decided.settles {
        Vec::new()
    } else {
        vec![Reason::RunningRegions]
    };
    Ok(Some(Difference { what, reasons }))
}

fn what(ours: &Decision, karmada: &Decision) -> Option<What> {
    let differs = [
        (What::Success, ours.succeeds() != karmada.succeeds()),
        (
            What::Clusters,
            !ours.clusters.keys().eq(karmada.clusters.keys()),
        ),
        (What::Replicas, ours.clusters != karmada.clusters),
        (What::Group, ours.group != karmada.group),
        (What::Reason, ours.reason != karmada.reason),
        (What::Message, ours.message != karmada.message),
    ];
    let mut differs = differs.into_iter();
    differs.find_map(|(what, differs)| differs.then_some(what))
}

/// Returns `true` if these reasons explain why ours decides otherwise.
fn explains(reasons: &[Reason], case: &Case, karmada: &Decision) -> Result<bool> {
    let mut without = case.clone();
    for reason in reasons {
        reason.take_out_of(&mut without, karmada);
    }
    let mut ours = ours::decide(&without)?;
    for reason in reasons {
        match reason {
            Reason::Closed
            | Reason::RunningRegions
            | Reason::FirstGroup
            | Reason::EarlierGroups => {}
            Reason::Unbounded => return Ok(is_unbounded(&mut without) && !karmada.succeeds()),
            Reason::Gone => return Ok(stays_where_gone(case, karmada)),
            Reason::NoCluster => {
                return Ok(case.clusters.is_empty() && karmada.reason == "NoClusterFit");
            }
            Reason::SeveralFilters => {
                let counted = counts(&ours.message);
                if counted.is_some() && counted == counts(&karmada.message) {
                    ours.message.clone_from(&karmada.message);
                }
            }
            Reason::Deleted => ours.message = without_deleted(&ours.message),
        }
    }
    Ok(what(&ours, karmada).is_none())
}

fn is_unbounded(case: &mut Case) -> bool {
    let placement = case.placement();
    elements(&placement["spreadConstraints"]).any(|constraint| constraint["maxGroups"].is_null())
}

/// Returns `true` if Karmada leaves the template where it is, in a cluster that is gone.
fn stays_where_gone(case: &Case, karmada: &Decision) -> bool {
    karmada.succeeds()
        && karmada.clusters == Decision::of(&case.binding).clusters
        && !case.targets().iter().all(|name: &&str| {
            let mut clusters = case.clusters.iter();
            clusters.any(|cluster| cluster["metadata"]["name"] == *name)
        })
}

/// Returns the start of the message of a binding that no cluster fits, and the number of clusters with a reason.
fn counts(message: &str) -> Option<(&str, u32)> {
    let (all, reasons) = message.split_once(" clusters are available: ")?;
    let counts = reasons.split(", ").map(|reason| {
        let (count, _) = reason.split_once(' ')?;
        count.parse::<u32>().ok()
    });
    Some((all, counts.sum::<Option<u32>>()?))
}

/// Takes the number of clusters that are being deleted out of a message.
fn without_deleted(message: &str) -> String {
    let Some((before, after)) = message.split_once(": ") else {
        return message.to_owned();
    };
    let reasons = after.trim_end_matches('.').split(", ");
    let told: Vec<_> = reasons
        .filter(|reason| !reason.ends_with("were being deleted"))
        .collect();
    match told.as_slice() {
        [] => format!("{before}: no cluster exists."),
        told => format!("{before}: {}.", told.join(", ")),
    }
}

fn subsets(of: &[Reason]) -> Vec<Vec<Reason>> {
    let mut all = vec![Vec::new()];
    for reason in of {
        let with = all.iter().map(|set| [set.as_slice(), &[*reason]].concat());
        let with: Vec<_> = with.collect();
        all.extend(with);
    }
    // Without a reason nothing is explained.
    all.retain(|set| !set.is_empty());
    all
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "one schedules it, the other does not",
            Self::Clusters => "other clusters",
            Self::Replicas => "other replicas",
            Self::Group => "another group",
            Self::Reason => "another reason",
            Self::Message => "another message",
        })
    }
}
