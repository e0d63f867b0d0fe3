//! The writes that a decision leads to.

use std::collections::BTreeMap;

use karmada_api::{GracefulEvictionTask, Placement, TargetCluster, condition, names};
use objects::Metadata;
use objects::write::Write;

use super::cycle::Decision;
use super::facts::Pass;
use super::failure::{AffinityFailure, NO_CLUSTER_FIT, message, reason};
use super::trigger;
use super::write::{SpecWrite, StatusWrite};
use crate::binding_ref::BindingRef;

/// The writes that a binding needs. They are no [`objects::write::Plan`]: the status names the generation that the write of
/// the clusters makes, and the next decisions count the clusters before either is stored.
#[derive(Clone, Debug, PartialEq)]
pub enum SchedulePlan {
    /// None.
    Unchanged,
    /// None: its placement asks for something that this scheduler does not do, and running copies go on.
    LeftAlone {
        /// The reason.
        message: String,
    },
    /// The end of the evictions that are over.
    EndEvictions(Write),
    /// The clusters, then the status.
    Write {
        /// The write of the clusters.
        spec: Option<SpecWrite>,
        /// The write of the status.
        status: Option<StatusWrite>,
    },
}

/// Plans the writes of a binding that needs no decision.
pub(super) fn observed(binding: BindingRef<'_>, placement: &Placement) -> SchedulePlan {
    let has_groups = !placement.cluster_affinities.is_empty();
    let group = binding.observed_group().filter(|_| has_groups);
    if binding.is_observed() && group == binding.mirrored_group() {
        return SchedulePlan::Unchanged;
    }
    let group = group.map(str::to_owned);
    SchedulePlan::Write {
        spec: None,
        status: Some(StatusWrite::Observed { group }),
    }
}

/// Plans the writes of a binding that gets these clusters, and leaves others gracefully.
pub(super) fn scheduled(
    binding: BindingRef<'_>,
    decision: Decision,
    evictions: Vec<GracefulEvictionTask>,
    pass: Pass<'_>,
) -> SchedulePlan {
    let Decision { clusters, group } = decision;
    let moved = by_name(binding.targets()) != by_name(&clusters);
    let is_applied = trigger::applied_placement(binding) == binding.spec.placement;
    // Without groups only the annotation counts: the status alone may have a name left by Karmada.
    let in_use = match &group {
        Some(_) => binding.observed_group(),
        None => binding.metadata.annotation(names::SCHEDULED_AFFINITY),
    };
    let spec = (moved || !is_applied || in_use != group.as_deref()).then(|| SpecWrite {
        clusters: moved.then_some(clusters),
        group: group.clone(),
        evictions,
    });
    let settled = spec.is_none()
        && binding.is_observed()
        && !trigger::is_requested(binding)
        && !pass.cluster_changed
        && binding.mirrored_group() == group.as_deref()
        && binding.scheduled().is_some_and(|condition| {
            condition.status == condition::TRUE && condition.reason == "Success"
        });
    if settled {
        return SchedulePlan::Unchanged;
    }
    // A trigger that were later than the time of its own success would fire for ever.
    let trigger = binding.spec.reschedule_triggered_at.as_ref();
    let at = trigger.map_or(pass.now, |trigger| trigger.0.max(pass.now));
    let status = Some(StatusWrite::Scheduled { group, at });
    SchedulePlan::Write { spec, status }
}

/// Returns the replicas of each cluster, and of each component there. None given is as zero.
fn by_name<'a>(
    targets: impl IntoIterator<Item = &'a TargetCluster>,
) -> BTreeMap<&'a str, (i32, BTreeMap<&'a str, i32>)> {
    let targets = targets.into_iter().map(|target| {
        let components = target.components.iter().flatten();
        let components = components.map(|component| (component.name.as_str(), component.replicas));
        let replicas = target.replicas.unwrap_or(0);
        (target.name.as_str(), (replicas, components.collect()))
    });
    targets.collect()
}

/// Plans the writes of a binding that has no result. Running copies are only taken away if no cluster of any
/// group fits.
pub(super) fn failed(
    binding: BindingRef<'_>,
    failures: &[AffinityFailure],
    pass: Pass<'_>,
) -> SchedulePlan {
    let runs = binding.targets().next().is_some();
    let mut unsupported = failures
        .iter()
        .filter(|failure| matches!(failure, AffinityFailure::Unsupported(_)));
    if runs && let Some(failure) = unsupported.next() {
        let message = failure.to_string();
        return SchedulePlan::LeftAlone { message };
    }
    let reason = reason(failures);
    let spec = (reason == NO_CLUSTER_FIT && runs).then(|| SpecWrite {
        clusters: Some(Vec::new()),
        group: binding
            .metadata
            .annotation(names::SCHEDULED_AFFINITY)
            .map(str::to_owned),
        evictions: Vec::new(),
    });
    let status = StatusWrite::Failed {
        reason,
        message: message(failures),
        at: pass.now,
    };
    let status = (!status.is_shown(binding)).then_some(status);
    if spec.is_none() && status.is_none() {
        return SchedulePlan::Unchanged;
    }
    SchedulePlan::Write { spec, status }
}
