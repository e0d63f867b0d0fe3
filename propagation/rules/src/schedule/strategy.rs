//! The way in which a binding's replicas are spread.

use karmada_api::placement::StaticWeight;
use karmada_api::{Placement, ResourceBindingSpec};

use super::constraint::wants_one_cluster;
use super::failure::AffinityFailure;

/// The way in which a binding's replicas are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ReplicaStrategy<'a> {
    /// The template has no replicas.
    None,
    /// All Pods of a template whose Pods differ in one cluster that has room for them.
    Set,
    /// All replicas in each cluster.
    Duplicated,
    /// Divided by fixed weights; without any, into equal parts.
    Weighted(&'a [StaticWeight]),
    /// Divided in proportion to the room that clusters have.
    Dynamic,
    /// Divided among as few clusters as have room.
    Aggregated,
}

/// The weight of running replicas, in Karmada's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assignment {
    /// Running replicas stay where they are while they may.
    Steady,
    /// Everything is assigned as if nothing ran.
    Fresh,
}

/// Returns `true` for a template whose Pods differ and that is to go to one cluster.
pub(super) fn is_set(spec: &ResourceBindingSpec, placement: &Placement) -> bool {
    let has_components = spec.components.iter().flatten().next().is_some();
    has_components && placement.spread_constraints.iter().any(wants_one_cluster)
}

/// Returns `true` if the placement divides replicas, whether its template has any or not.
pub(super) fn is_divided(placement: &Placement) -> bool {
    let scheduling = placement.replica_scheduling.as_ref();
    scheduling.is_some_and(|scheduling| {
        scheduling.replica_scheduling_type.as_deref() != Some("Duplicated")
    })
}

/// Returns `true` if clusters have fixed weights, whether or not a template has replicas that are divided by them
/// (Karmada's `isStaticWeightedStrategy`).
pub(super) fn has_static_weights(placement: &Placement) -> bool {
    placement
        .replica_scheduling
        .as_ref()
        .is_some_and(|scheduling| {
            let kind = scheduling.replica_scheduling_type.as_deref();
            let preference = scheduling.replica_division_preference.as_deref();
            let weights = scheduling.weight_preference.as_ref();
            matches!(kind, None | Some("" | "Divided"))
                && matches!(preference, None | Some("" | "Weighted"))
                && weights.is_none_or(|weights| {
                    let dynamic = weights.dynamic_weight.as_deref().unwrap_or_default();
                    dynamic.is_empty() && !weights.static_weight_list.is_empty()
                })
        })
}

impl<'a> ReplicaStrategy<'a> {
    /// Returns the strategy of the placement.
    ///
    /// # Errors
    /// Fails if the placement names a type or preference that is unknown.
    pub(super) fn of(
        spec: &ResourceBindingSpec,
        placement: &'a Placement,
    ) -> Result<Self, AffinityFailure> {
        let has_replicas = spec.replicas.is_some_and(|replicas| replicas > 0);
        if !has_replicas && spec.replica_requirements.is_none() {
            return Ok(Self::None);
        }
        let Some(scheduling) = &placement.replica_scheduling else {
            return Ok(Self::Duplicated);
        };
        match scheduling
            .replica_scheduling_type
            .as_deref()
            .unwrap_or_default()
        {
            "Duplicated" => return Ok(Self::Duplicated),
            "" | "Divided" => {}
            _ => {
                let what = "this type of replica scheduling";
                return Err(AffinityFailure::unsupported(what));
            }
        }
        match scheduling
            .replica_division_preference
            .as_deref()
            .unwrap_or_default()
        {
            "" | "Weighted" => {}
            "Aggregated" => return Ok(Self::Aggregated),
            _ => {
                let what = "this preference of replica division";
                return Err(AffinityFailure::unsupported(what));
            }
        }
        let Some(weights) = &scheduling.weight_preference else {
            return Ok(Self::Weighted(&[]));
        };
        match weights.dynamic_weight.as_deref().unwrap_or_default() {
            "" => Ok(Self::Weighted(&weights.static_weight_list)),
            "AvailableReplicas" => Ok(Self::Dynamic),
            _ => Err(AffinityFailure::unsupported("this dynamic weight")),
        }
    }

    /// Returns `true` if replicas are divided, and so not moved without need.
    pub(super) fn divides(self) -> bool {
        matches!(self, Self::Weighted(_) | Self::Dynamic | Self::Aggregated)
    }
}
