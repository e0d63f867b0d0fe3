//! The collection of the endpoints of one Service from one cluster.

use std::sync::Arc;

use fleet_api::names::member_namespace;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::names::{
    DERIVED_PREFIX, IMPORTED_SERVICE_NAME, SERVICE_NAME, SLICE_COLLECTOR, SLICE_MANAGED_BY,
    SOURCE_CLUSTER, WORK_NAMESPACE, collected_slice,
};
use karmada_api::{ClusterView, ServiceExport, execution_namespace};
use objects::Key;
use objects::metadata::has_marks;
use objects::write::{Guard, ObjectRef, Plan, Write};
use serde_json::json;

use super::collected::{OWNER_LABEL, SERVICE_NAMESPACE, is_ours, owner};
use crate::ClusterKind;
use crate::cached::Cached;
use crate::left_to_others::LeftToOthers;

/// The need for the endpoints of a Service from a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The Service is exported, and was propagated to the cluster; or it was placed there.
    Wanted,
    /// It is not, or there is no such cluster.
    Unwanted,
    /// It is not known, since an object cannot be read, or an agent in the cluster is in charge.
    Unclear,
}

/// The facts that decide about the slices of one Service from one cluster.
#[derive(Clone, Debug)]
pub struct CollectionFacts<'a> {
    /// The kind of the cluster.
    pub kind: ClusterKind,
    /// The cluster's name.
    pub cluster: &'a str,
    /// The Service.
    pub service: &'a Key,
    /// The need for its endpoints.
    pub need: Need,
    /// Its slices in the cluster; `None` while they are unknown.
    pub sources: Option<&'a [Arc<EndpointSlice>]>,
    /// Those that were collected from there, whoever did.
    pub collected: &'a [Arc<EndpointSlice>],
}

/// The name of the writes in metrics.
const TARGET: &str = "endpoint_slice";

impl Need {
    /// Returns the need for the endpoints of a Service from `cluster`. `work` is the Work that brings the Service there.
    pub fn of(
        cluster: Cached<&ClusterView>,
        export: Cached<&ServiceExport>,
        work: Cached<()>,
    ) -> Self {
        match (cluster, export, work) {
            (Cached::Absent, ..) | (_, Cached::Absent, _) | (.., Cached::Absent) => Self::Unwanted,
            (_, Cached::Present(export), _) if export.metadata.deletion_timestamp.is_some() => {
                Self::Unwanted
            }
            (Cached::Present(cluster), Cached::Present(_), Cached::Present(()))
                if cluster.spec.sync_mode == "Push" =>
            {
                Self::Wanted
            }
            _ => Self::Unclear,
        }
    }
}

/// Plans the slices of a Service from a cluster: a copy of each in the member. A member that is not reached keeps those
/// that were collected last. Where another program collects, ours go: twice the same endpoints would get twice the
/// requests. The writes are in this order, so that no endpoint is missing for a while: creations, changes, deletions.
pub fn plan(facts: &CollectionFacts<'_>) -> Plan<LeftToOthers> {
    let collected = facts.collected.iter().map(AsRef::as_ref);
    let (ours, theirs): (Vec<&EndpointSlice>, Vec<_>) =
        collected.partition(|slice| is_ours(facts.kind, &slice.metadata));
    let is_theirs = facts.need == Need::Wanted && !theirs.is_empty();
    let wanted = match (facts.need, facts.sources) {
        (Need::Unwanted, _) => Vec::new(),
        (Need::Wanted, _) if is_theirs => Vec::new(),
        (Need::Wanted, Some(sources)) => sources.iter().map(|source| copy(facts, source)).collect(),
        (Need::Wanted, None) | (Need::Unclear, _) => return Plan::default(),
    };
    let outdated = ours.iter().filter(|slice| {
        let name = &slice.metadata.name;
        wanted.iter().all(|copy| copy.metadata.name != *name)
    });
    // In this version only: another one may be another's.
    let deletions = outdated.map(|slice| {
        let write = Write::delete(TARGET, ObjectRef::of(*slice, &()));
        write.guarded(Guard::Version)
    });
    let (mut writes, mut changes) = (Vec::new(), Vec::new());
    for copy in &wanted {
        let same = ours
            .iter()
            .find(|slice| slice.metadata.name == copy.metadata.name);
        match same {
            None => writes.push(Write::create(TARGET, copy, &())),
            Some(slice) => changes.extend(change(slice, copy)),
        }
    }
    writes.extend(changes);
    writes.extend(deletions);
    Plan {
        writes,
        events: is_theirs.then_some(LeftToOthers).into_iter().collect(),
        wake_at: None,
    }
}

/// Returns the copy of a slice of a member: its addresses and ports, and the nodes behind these, which tell which endpoint takes
/// requests at a node port. Its zones and pods do not exist elsewhere.
fn copy(facts: &CollectionFacts<'_>, source: &EndpointSlice) -> EndpointSlice {
    let (cluster, service) = (facts.cluster, facts.service);
    let name = source.metadata.name.as_deref().unwrap_or_default();
    let address_type = &source.address_type;
    let (name, namespace, annotation) = match facts.kind {
        ClusterKind::Cluster => (
            collected_slice(cluster, name, address_type),
            service.namespace.clone(),
            (WORK_NAMESPACE.to_owned(), execution_namespace(cluster)),
        ),
        // Those of all namespaces are in one.
        ClusterKind::MemberCluster => (
            collected_slice(
                cluster,
                &format!("{}.{name}", service.namespace),
                address_type,
            ),
            member_namespace(cluster),
            (SERVICE_NAMESPACE.to_owned(), service.namespace.clone()),
        ),
    };
    let labels = [
        (
            SERVICE_NAME.to_owned(),
            format!("{DERIVED_PREFIX}{}", service.name),
        ),
        (SLICE_MANAGED_BY.to_owned(), SLICE_COLLECTOR.to_owned()),
        (OWNER_LABEL.to_owned(), owner(facts.kind).to_owned()),
        // Where a ServiceImport takes the copy to other clusters, these stay: a Work replaces the annotation below.
        (IMPORTED_SERVICE_NAME.to_owned(), service.name.clone()),
        (SOURCE_CLUSTER.to_owned(), cluster.to_owned()),
    ];
    EndpointSlice {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace),
            labels: Some(labels.into()),
            annotations: Some([annotation].into()),
            ..ObjectMeta::default()
        },
        address_type: source.address_type.clone(),
        endpoints: Some(endpoints(source)),
        ports: Some(ports(source)),
    }
}

fn endpoints(slice: &EndpointSlice) -> Vec<Endpoint> {
    let endpoints = slice.endpoints.iter().flatten();
    let copied = endpoints.map(|endpoint| Endpoint {
        addresses: endpoint.addresses.clone(),
        conditions: Some(endpoint.conditions.clone().unwrap_or_default()),
        hostname: endpoint.hostname.clone(),
        node_name: endpoint.node_name.clone(),
        ..Endpoint::default()
    });
    copied.collect()
}

fn ports(slice: &EndpointSlice) -> Vec<EndpointPort> {
    slice.ports.clone().unwrap_or_default()
}

/// Returns the write that makes `wanted` of `slice`, if something that is ours differs.
fn change(slice: &EndpointSlice, wanted: &EndpointSlice) -> Option<Write> {
    let (old, new) = (&slice.metadata, &wanted.metadata);
    // Its annotation names its owner: that is the same.
    let is_same = has_marks(old, new)
        && endpoints(slice) == endpoints(wanted)
        && ports(slice) == ports(wanted);
    (!is_same).then(|| {
        let metadata = json!({ "labels": new.labels });
        let body =
            json!({ "metadata": metadata, "endpoints": wanted.endpoints, "ports": wanted.ports });
        Write::merge(TARGET, ObjectRef::of(slice, &()), body).guarded(Guard::Version)
    })
}

#[cfg(test)]
mod tests;
