//! The exports of backend Services: Karmada collects the endpoints of a Service only from clusters to
//! which a `ServiceExport` of its name is propagated.

use std::collections::BTreeSet;

use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use karmada_api::{PropagationPolicy, PropagationSpec, ResourceSelector, ServiceExport};
use kube::Resource;
use objects::Key;
use objects::write::{Action, Guard, ObjectRef, Plan, Write};
use serde_json::{Value, json};

use super::class::ControllerName;
use super::kubernetes::{MANAGED_BY_LABEL, limited, managed_by};
use crate::cached::Cached;
use crate::left_to_others::LeftToOthers;

/// Exports, in the words of metrics.
const EXPORT: &str = "service_export";
/// Policies, in the words of metrics.
const POLICY: &str = "propagation_policy";

/// The need for the export of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// An ingress of ours routes to the Service.
    Needed,
    /// No ingress of ours does.
    Unneeded,
    /// One may: an ingress, or its class, cannot be read.
    Unclear,
}

/// The facts that decide about the export of one Service.
#[derive(Clone, Debug)]
pub struct ExportFacts<'a> {
    /// The need for it.
    pub need: Need,
    /// The Service's template.
    pub template: Cached<&'a Service>,
    /// The clusters of the Service's binding.
    pub clusters: Cached<BTreeSet<&'a str>>,
    /// The `ServiceExport` of the Service's name, whoever made it.
    pub export: Cached<&'a ServiceExport>,
    /// The policy of ours for it.
    pub policy: Cached<&'a PropagationPolicy>,
}

/// The factory of exports and their policies, which also recognizes them.
#[derive(Clone, Debug)]
pub struct Exporter {
    managed_by: String,
}

impl Exporter {
    /// Creates a factory for `controller`.
    pub fn new(controller: &ControllerName) -> Self {
        Self {
            managed_by: managed_by(controller),
        }
    }

    /// Returns the label selector of our objects.
    pub fn selector(&self) -> String {
        format!("{MANAGED_BY_LABEL}={}", self.managed_by)
    }

    /// Returns `true` if an object is ours to change.
    pub fn owns(&self, meta: &ObjectMeta) -> bool {
        let labels = meta.labels.as_ref();
        labels.and_then(|labels| labels.get(MANAGED_BY_LABEL)) == Some(&self.managed_by)
    }

    /// Returns the name of the policy for the export of `service`, which is a valid label: Karmada's
    /// webhook refuses longer names.
    pub fn policy_name(service: &str) -> String {
        limited(format!("export-{service}"), service)
    }

    /// Returns the Service that `policy` exports. A shortened name does not show it, and
    /// users may have changed the policy: it is the owner or the selected object that such a name is
    /// derived from.
    pub fn exported(policy: &PropagationPolicy) -> Option<&str> {
        let metadata = &policy.metadata;
        let owners = metadata.owner_references.iter().flatten();
        let owners = owners.filter(|owner| owner.kind == Service::KIND);
        let selected = policy.spec.resource_selectors.iter();
        owners
            .map(|owner| owner.name.as_str())
            .chain(selected.filter_map(|selector| selector.name.as_deref()))
            .find(|service| metadata.name.as_ref() == Some(&Self::policy_name(service)))
    }

    /// Plans the changes to the export of `service`. A `ServiceExport` of another owner is left alone,
    /// and needs no policy of ours: its owner propagates it. Each write follows those before it.
    pub fn plan(&self, service: &Key, facts: &ExportFacts<'_>) -> Plan<LeftToOthers> {
        let is_unread = facts.template == Cached::Unread
            || facts.clusters == Cached::Unread
            || facts.export == Cached::Unread
            || facts.policy == Cached::Unread;
        if is_unread || facts.need == Need::Unclear {
            return Plan::default();
        }
        let existing = present(facts.export);
        let theirs = existing.is_some_and(|export| !self.owns(&export.metadata));
        let wanted = if theirs {
            None
        } else {
            self.wanted(service, facts)
        };
        let policy = policy_change(present(facts.policy), wanted.as_ref());
        let (last, first): (Vec<_>, Vec<_>) = policy
            .into_iter()
            .partition(|write| write.action == Action::Delete);
        let is_leaving =
            present(facts.policy).is_some_and(|p| p.metadata.deletion_timestamp.is_some());
        let creation = match (&wanted, existing) {
            // A wider policy of a user claims an export that has none of ours yet, and keeps it.
            (Some((export, _)), None) if !is_leaving && last.is_empty() => {
                Some(Write::create(EXPORT, export, &()).owning_all())
            }
            _ => None,
        };
        let deletion = existing
            .filter(|export| !theirs && !is_of(&export.metadata, wanted.as_ref()))
            .filter(|export| export.metadata.deletion_timestamp.is_none())
            .map(|export| deletion(EXPORT, export));
        let writes = first.into_iter().chain(creation).chain(deletion);
        let is_left = theirs && facts.need == Need::Needed;
        Plan {
            writes: writes.chain(last).collect(),
            events: is_left.then_some(LeftToOthers).into_iter().collect(),
            wake_at: None,
        }
    }

    fn wanted(
        &self,
        service: &Key,
        facts: &ExportFacts<'_>,
    ) -> Option<(ServiceExport, PropagationPolicy)> {
        let template = present(facts.template)?;
        let clusters = present(facts.clusters.clone())?;
        // A policy without names would propagate to every cluster.
        if facts.need != Need::Needed
            || clusters.is_empty()
            || template.metadata.deletion_timestamp.is_some()
        {
            return None;
        }
        let metadata = ObjectMeta {
            name: Some(service.name.clone()),
            namespace: Some(service.namespace.clone()),
            labels: Some([(MANAGED_BY_LABEL.to_owned(), self.managed_by.clone())].into()),
            owner_references: Some(vec![OwnerReference {
                api_version: Service::API_VERSION.to_owned(),
                kind: Service::KIND.to_owned(),
                name: service.name.clone(),
                uid: template.metadata.uid.clone().unwrap_or_default(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        };
        let (api_version, kind) = (
            ServiceExport::API_VERSION.to_owned(),
            ServiceExport::KIND.to_owned(),
        );
        let policy = PropagationPolicy {
            api_version: PropagationPolicy::API_VERSION.to_owned(),
            kind: PropagationPolicy::KIND.to_owned(),
            metadata: ObjectMeta {
                name: Some(Self::policy_name(&service.name)),
                ..metadata.clone()
            },
            spec: PropagationSpec {
                resource_selectors: vec![ResourceSelector {
                    api_version: api_version.clone(),
                    kind: kind.clone(),
                    name: Some(service.name.clone()),
                    ..ResourceSelector::default()
                }],
                placement: Some(json!({ "clusterAffinity": { "clusterNames": clusters } })),
                ..PropagationSpec::default()
            },
        };
        let export = ServiceExport {
            api_version,
            kind,
            metadata,
        };
        Some((export, policy))
    }
}

fn present<T>(cached: Cached<T>) -> Option<T> {
    match cached {
        Cached::Present(object) => Some(object),
        Cached::Absent | Cached::Unread => None,
    }
}

/// Returns `true` if an existing object belongs to the Service for which `wanted` was made. Of one that
/// was created again, the garbage collector deletes the dependents of its predecessor. Other tools may add
/// owners of theirs.
fn is_of(existing: &ObjectMeta, wanted: Option<&(ServiceExport, PropagationPolicy)>) -> bool {
    let existing = existing.owner_references.as_deref().unwrap_or_default();
    wanted.is_some_and(|(export, _)| {
        let mut owners = export.metadata.owner_references.iter().flatten();
        owners.all(|owner| existing.contains(owner))
    })
}

fn policy_change(
    existing: Option<&PropagationPolicy>,
    wanted: Option<&(ServiceExport, PropagationPolicy)>,
) -> Option<Write> {
    let Some(existing) = existing else {
        return wanted.map(|(_, policy)| Write::create(POLICY, policy, &()).owning_all());
    };
    let metadata = &existing.metadata;
    if metadata.deletion_timestamp.is_some() {
        // Its end wakes the Service.
        return None;
    }
    if !is_of(metadata, wanted) {
        return Some(deletion(POLICY, existing));
    }
    let (_, policy) = wanted?;
    (!has_selection(&existing.spec, &policy.spec)).then(|| {
        let body = json!({ "spec": policy.spec });
        let write = Write::merge(POLICY, ObjectRef::of(existing, &()), body);
        write.guarded(Guard::Version).owning("/spec")
    })
}

/// Returns the deletion of an object, and not of another one of its name.
fn deletion<K: Resource<DynamicType = ()>>(target: &'static str, object: &K) -> Write {
    let write = Write::delete(target, ObjectRef::of(object, &())).guarded(Guard::Uid);
    write.owning_all()
}

/// Returns `true` if a policy selects the same as `wanted`, and places it alike. Karmada's webhook adds defaults to
/// policies, which make no difference.
fn has_selection(existing: &PropagationSpec, wanted: &PropagationSpec) -> bool {
    selected(existing).eq(selected(wanted)) && cluster_names(existing) == cluster_names(wanted)
}

/// Iterates over the API versions, kinds and names that a policy selects.
fn selected(spec: &PropagationSpec) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    let selectors = spec.resource_selectors.iter();
    selectors.map(|s| (&*s.api_version, &*s.kind, s.name.as_deref()))
}

/// Returns the names of the clusters in which a policy places objects.
fn cluster_names(spec: &PropagationSpec) -> Option<&Value> {
    let placement = spec.placement.as_ref()?;
    placement.pointer("/clusterAffinity/clusterNames")
}

#[cfg(test)]
mod tests;
