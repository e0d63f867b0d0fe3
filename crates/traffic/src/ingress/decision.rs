use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{KARMADA_INGRESS_FINALIZER, MultiClusterIngress, MultiClusterIngressStatus};
use objects::{Key, Metadata};

use super::admission::blocked_clusters;
use super::choice::{
    BACKEND_ADDRESSES_ANNOTATION, BackendAddresses, InvalidAnnotation, PossibleAddresses, Serving,
    WhenAllBlocked, annotated,
};
use super::class::{ControllerName, Ownership, ownership};
use super::desired::{Desired, ServedClusters, passed_on};
use super::facts::Facts;
use super::fail_open::cut;
use super::locations::service_locations;
use super::plan::{BlockChange, StatusPatch};
use super::withheld::Withheld;
use crate::cached::Cached;

/// The decision on one `MultiClusterIngress`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Change nothing: it, or its class, cannot be read. The load balancer keeps its endpoints, but
    /// for those of clusters that must get no request.
    Leave,
    /// Clean up: this controller does not, or no longer, serve it.
    Release(Release),
    /// Serve it.
    Serve(Box<Serve>),
}

/// The release of an ingress: first the load balancer deletes it, then its status is cleared, then its
/// finalizers are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// Set if our status fields must be cleared. All of them are, even those that the cache shows as
    /// absent: the cache may be stale, and the ingress is not reconciled again.
    pub clears_status: bool,
    /// Its finalizers, if they must be others.
    pub finalizers: Option<Vec<String>>,
}

/// The service of an ingress: first it gets our finalizer, then its status and the load balancer are
/// updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serve {
    /// Its finalizers, if they must be others.
    pub finalizers: Option<Vec<String>>,
    /// Our status fields, if they must be others.
    pub status: Option<StatusPatch>,
    /// The clusters that the status write blocks and unblocks.
    pub change: BlockChange,
}

/// The settings of the controller that its decisions depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of our controller, and of its finalizer.
    pub controller: ControllerName,
    /// The behaviour while every cluster of a backend Service is blocked, unless an ingress has an
    /// annotation of its own.
    pub when_all_blocked: WhenAllBlocked,
    /// The addresses to which requests are sent, unless an ingress has an annotation of its own.
    pub backend_addresses: BackendAddresses,
    /// Those that such an annotation may name.
    pub possible_addresses: PossibleAddresses,
    /// The annotations that the load balancer does not get.
    pub withheld: Withheld,
}

impl Settings {
    /// Returns the settings without flags.
    pub fn new(controller: ControllerName) -> Self {
        Self {
            controller,
            when_all_blocked: WhenAllBlocked::default(),
            backend_addresses: BackendAddresses::default(),
            possible_addresses: PossibleAddresses::default(),
            withheld: Withheld::default(),
        }
    }
}

/// Decides on the ingress `key`, with `seen` its state in the cache.
///
/// An ingress with our finalizer is ours to clean up whatever its class is now, and ours to serve until
/// a class that can be read names another controller: a class that vanishes, or a second default one,
/// must not tear live traffic down.
pub fn decide(
    key: &Key,
    seen: Cached<&MultiClusterIngress>,
    facts: &impl Facts,
    controller: &ControllerName,
) -> Decision {
    let ingress = match seen {
        Cached::Present(ingress) => ingress,
        Cached::Absent => return Decision::Release(Release::default()),
        Cached::Unread => return Decision::Leave,
    };
    let owner = ownership(&ingress.spec.ingress, facts, controller);
    decide_owned(key, ingress, owner, facts, controller)
}

/// Decides on the ingress `key`, which can be read and has this `owner`.
pub fn decide_owned(
    key: &Key,
    ingress: &MultiClusterIngress,
    owner: Ownership,
    facts: &impl Facts,
    controller: &ControllerName,
) -> Decision {
    let carried = ingress.metadata.has_finalizer(controller.as_str());
    if ingress.metadata.is_deleting() {
        return Decision::Release(release(ingress, owner, controller));
    }
    match owner {
        Ownership::Ours => Decision::Serve(Box::new(serve(key, ingress, facts, controller))),
        Ownership::Unclaimed | Ownership::Unclear if carried => {
            Decision::Serve(Box::new(serve(key, ingress, facts, controller)))
        }
        Ownership::Unclear => Decision::Leave,
        Ownership::Unclaimed | Ownership::Foreign => {
            Decision::Release(release(ingress, owner, controller))
        }
    }
}

fn status(ingress: &MultiClusterIngress) -> MultiClusterIngressStatus {
    ingress.status.clone().unwrap_or_default()
}

impl Serve {
    /// Returns the status of `ingress`, which is served, from now on.
    pub fn shown(&self, ingress: &MultiClusterIngress) -> StatusPatch {
        let patch = self.status.clone();
        patch.unwrap_or_else(|| StatusPatch::current(&status(ingress)))
    }
}

fn release(
    ingress: &MultiClusterIngress,
    owner: Ownership,
    controller: &ControllerName,
) -> Release {
    let metadata = &ingress.metadata;
    let has_ours = metadata.has_finalizer(controller.as_str());
    let is_ours = match owner {
        Ownership::Ours => true,
        Ownership::Unclaimed => has_ours,
        Ownership::Foreign | Ownership::Unclear => false,
    };
    let mut removed = vec![controller.as_str()];
    if metadata.is_deleting() && is_ours {
        // Karmada's has no other controller that would remove it.
        removed.push(KARMADA_INGRESS_FINALIZER);
    }
    Release {
        clears_status: has_ours,
        finalizers: metadata.without_finalizers(&removed),
    }
}

fn serve(
    key: &Key,
    ingress: &MultiClusterIngress,
    facts: &impl Facts,
    controller: &ControllerName,
) -> Serve {
    let spec = &ingress.spec.ingress;
    let status = status(ingress);
    let before = status.traffic_block_clusters.as_deref().unwrap_or_default();
    let previous = status.service_locations.as_deref().unwrap_or_default();
    let locations = service_locations(&key.namespace, spec, previous, facts);
    let blocked = blocked_clusters(&locations, before, facts);
    Serve {
        finalizers: ingress.metadata.with_finalizers(&[controller.as_str()]),
        change: BlockChange::between(before, &blocked),
        status: Some(StatusPatch::new(locations, blocked))
            .filter(|patch| *patch != StatusPatch::current(&status)),
    }
}

/// Returns those of the `held` clusters whose endpoints must go although nothing else is done about an
/// ingress that is left. `ingress` is its state, if that can be read.
pub fn cut_of_left(
    ingress: Option<&MultiClusterIngress>,
    held: ServedClusters,
    facts: &impl Facts,
    settings: &Settings,
) -> ServedClusters {
    let when_all_blocked = ingress.map_or(settings.when_all_blocked, |ingress| {
        annotated(&ingress.metadata, settings.when_all_blocked).0
    });
    cut(held, when_all_blocked, facts)
}

/// Returns the addresses to which requests for the backends of `ingress` are sent.
pub fn backend_addresses(ingress: &MultiClusterIngress, settings: &Settings) -> BackendAddresses {
    addresses(&ingress.metadata, settings).0
}

/// Returns the addresses that an ingress chooses, and its annotation if that names none that can be had; then the flag counts.
fn addresses(
    metadata: &ObjectMeta,
    settings: &Settings,
) -> (BackendAddresses, Option<InvalidAnnotation>) {
    let default = settings.backend_addresses;
    let (chosen, invalid) = annotated(metadata, default);
    match settings.possible_addresses.check(chosen) {
        Ok(()) => (chosen, invalid),
        Err(allowed) => {
            let impossible = InvalidAnnotation {
                annotation: BACKEND_ADDRESSES_ANNOTATION,
                value: chosen.to_string(),
                allowed,
                effective: default.to_string(),
            };
            (default, Some(impossible))
        }
    }
}

/// Returns the desired state of the load balancer, which has endpoints of the clusters `held`, for the ingress `key`, which is
/// ours to serve.
pub fn desired(
    key: &Key,
    ingress: &MultiClusterIngress,
    held: &BTreeSet<String>,
    facts: &impl Facts,
    settings: &Settings,
) -> Desired {
    let (addresses, invalid) = addresses(&ingress.metadata, settings);
    let (spec, status) = (&ingress.spec.ingress, status(ingress));
    let mut desired = Desired::new(key.clone(), spec, &status, addresses, facts);
    desired.invalid_annotations.extend(invalid);
    let (when_all_blocked, invalid) = annotated(&ingress.metadata, settings.when_all_blocked);
    desired.when_all_blocked = when_all_blocked;
    desired.invalid_annotations.extend(invalid);
    let annotations = passed_on(&ingress.metadata).into_iter();
    let (withheld, passed): (BTreeMap<_, _>, _) =
        annotations.partition(|(key, _)| settings.withheld.covers(key));
    desired.annotations = passed;
    desired.withheld = withheld.into_keys().collect();
    desired.keep_untold(held);
    desired.readmit(facts);
    let (serving, invalid) = annotated(&ingress.metadata, Serving::default());
    desired.invalid_annotations.extend(invalid);
    if serving == Serving::Together {
        desired.serve_together();
    }
    desired
}

#[cfg(test)]
mod tests;
