//! The exports of backend Services: Karmada collects the endpoints of a Service only from clusters to
//! which a `ServiceExport` of its name is propagated.

use std::collections::BTreeSet;

use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use karmada_api::{PropagationPolicy, PropagationSpec, ResourceSelector, ServiceExport};
use objects::Key;
use serde_json::json;

use super::class::ControllerName;
use super::facts::Cached;
use super::kubernetes::{MANAGED_BY_LABEL, limited, managed_by};

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

/// The changes to the export of one Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportChange {
    /// Create this export, after the change of the policy.
    pub create: Option<ServiceExport>,
    /// Delete the export with this uid.
    pub delete: Option<Option<String>>,
    /// Change the policy.
    pub policy: Option<PolicyChange>,
    /// Set if the Service needs an export and another owner has made one.
    pub is_theirs: bool,
}

/// A change to the policy that propagates an export.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyChange {
    /// Create it.
    Create(Box<PropagationPolicy>),
    /// Replace its selectors and clusters, provided that it still has this resource version.
    Update {
        /// The version.
        version: Option<String>,
        /// The selectors and the clusters.
        spec: Box<PropagationSpec>,
    },
    /// Delete the one with this uid.
    Delete {
        /// The uid.
        uid: Option<String>,
    },
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

    /// Returns the Service for whose export `policy` was made. A shortened name does not show it, and
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
    /// and needs no policy of ours: its owner propagates it.
    pub fn plan(&self, service: &Key, facts: &ExportFacts<'_>) -> ExportChange {
        let is_unread = facts.template == Cached::Unread
            || facts.clusters == Cached::Unread
            || facts.export == Cached::Unread
            || facts.policy == Cached::Unread;
        if is_unread || facts.need == Need::Unclear {
            return ExportChange::default();
        }
        let existing = present(facts.export);
        let theirs = existing.is_some_and(|export| !self.owns(&export.metadata));
        let wanted = if theirs {
            None
        } else {
            self.wanted(service, facts)
        };
        let policy = policy_change(present(facts.policy), wanted.as_ref());
        // Without a policy of ours, a wider one of a user would claim the export and keep it.
        let is_leaving =
            present(facts.policy).is_some_and(|p| p.metadata.deletion_timestamp.is_some());
        let is_propagated = !is_leaving && !matches!(policy, Some(PolicyChange::Delete { .. }));
        ExportChange {
            create: match (&wanted, existing) {
                (Some((export, _)), None) if is_propagated => Some(export.clone()),
                _ => None,
            },
            delete: existing
                .filter(|export| !theirs && !is_of(&export.metadata, wanted.as_ref()))
                .filter(|export| export.metadata.deletion_timestamp.is_none())
                .map(|export| export.metadata.uid.clone()),
            policy,
            is_theirs: theirs && facts.need == Need::Needed,
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
        let meta = |name: String| ObjectMeta {
            name: Some(name),
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
            metadata: meta(Self::policy_name(&service.name)),
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
            metadata: meta(service.name.clone()),
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
) -> Option<PolicyChange> {
    let Some(existing) = existing else {
        return wanted.map(|(_, policy)| PolicyChange::Create(Box::new(policy.clone())));
    };
    let metadata = &existing.metadata;
    if metadata.deletion_timestamp.is_some() {
        // Its end wakes the Service.
        return None;
    }
    if !is_of(metadata, wanted) {
        let uid = metadata.uid.clone();
        return Some(PolicyChange::Delete { uid });
    }
    let (_, policy) = wanted?;
    (!has_selection(&existing.spec, &policy.spec)).then(|| PolicyChange::Update {
        version: metadata.resource_version.clone(),
        spec: Box::new(policy.spec.clone()),
    })
}

/// Returns `true` if a policy selects and places what `wanted` does. Karmada's webhook adds defaults to
/// policies, which make no difference.
fn has_selection(existing: &PropagationSpec, wanted: &PropagationSpec) -> bool {
    let selected = |spec: &PropagationSpec| -> Vec<_> {
        let selectors = spec.resource_selectors.iter();
        selectors
            .map(|s| (s.api_version.clone(), s.kind.clone(), s.name.clone()))
            .collect()
    };
    let names = |spec: &PropagationSpec| {
        let placement = spec.placement.as_ref();
        placement
            .and_then(|placement| placement.pointer("/clusterAffinity/clusterNames"))
            .cloned()
    };
    selected(existing) == selected(wanted) && names(existing) == names(wanted)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{some_time, template};
    use super::*;

    fn exporter() -> Exporter {
        Exporter::new(&"karmada-rs.io/ingress-controller".parse().unwrap())
    }

    fn service() -> Key {
        Key::new("ns", "s")
    }

    fn with_uid(uid: &str) -> Service {
        let mut template = template("s", &[("web", 80)]);
        template.metadata.uid = Some(uid.to_owned());
        template
    }

    fn facts<'a>(template: &'a Service, clusters: &[&'a str]) -> ExportFacts<'a> {
        ExportFacts {
            need: Need::Needed,
            template: Cached::Present(template),
            clusters: Cached::Present(clusters.iter().copied().collect()),
            export: Cached::Absent,
            policy: Cached::Absent,
        }
    }

    fn plan(facts: &ExportFacts<'_>) -> ExportChange {
        exporter().plan(&service(), facts)
    }

    /// Returns what is created for Service `s` in these clusters, as an API server stores it.
    fn created(template: &Service, clusters: &[&str]) -> (ServiceExport, PropagationPolicy) {
        let change = plan(&facts(template, clusters));
        let Some(PolicyChange::Create(mut policy)) = change.policy else {
            panic!("{change:?}");
        };
        let mut export = change.create.unwrap();
        export.metadata.uid = Some("e".to_owned());
        policy.metadata.uid = Some("p".to_owned());
        policy.metadata.resource_version = Some("7".to_owned());
        (export, *policy)
    }

    #[test]
    fn a_service_of_an_ingress_is_exported_to_the_clusters_of_its_binding() {
        let template = with_uid("u");
        let (export, policy) = created(&template, &["m2", "m1"]);
        let export = serde_json::to_value(export).unwrap();
        let labels = serde_json::json!({ "app.kubernetes.io/managed-by": "karmada-rs.io_ingress-controller" });
        let owner = serde_json::json!([
            { "apiVersion": "v1", "kind": "Service", "name": "s", "uid": "u" }
        ]);
        assert_eq!(
            export,
            serde_json::json!({
                "apiVersion": "multicluster.x-k8s.io/v1alpha1",
                "kind": "ServiceExport",
                "metadata": {
                    "name": "s", "namespace": "ns", "uid": "e",
                    "labels": labels, "ownerReferences": owner,
                },
            })
        );
        assert_eq!(policy.metadata.name.as_deref(), Some("export-s"));
        let policy = serde_json::to_value(policy).unwrap();
        assert_eq!(policy["metadata"]["ownerReferences"], owner);
        assert_eq!(
            policy["spec"],
            serde_json::json!({
                "resourceSelectors": [{
                    "apiVersion": "multicluster.x-k8s.io/v1alpha1",
                    "kind": "ServiceExport",
                    "name": "s",
                }],
                "placement": { "clusterAffinity": { "clusterNames": ["m1", "m2"] } },
            })
        );
    }

    #[test]
    fn an_export_that_is_up_to_date_is_unchanged_and_follows_the_binding() {
        let template = with_uid("u");
        let (export, policy) = created(&template, &["m1"]);
        let existing = |clusters: &[&'static str]| ExportFacts {
            export: Cached::Present(&export),
            policy: Cached::Present(&policy),
            ..facts(&template, clusters)
        };
        assert_eq!(plan(&existing(&["m1"])), ExportChange::default());
        let moved = plan(&existing(&["m1", "m2"]));
        let Some(PolicyChange::Update { version, spec }) = moved.policy else {
            panic!("{moved:?}");
        };
        let names = json!({ "clusterAffinity": { "clusterNames": ["m1", "m2"] } });
        assert_eq!(version.as_deref(), Some("7"));
        assert_eq!(spec.placement, Some(names));
        assert_eq!((moved.create, moved.delete), (None, None));
    }

    #[test]
    fn the_defaults_that_karmada_adds_to_a_policy_are_no_difference() {
        let template = with_uid("u");
        let (export, mut policy) = created(&template, &["m1"]);
        policy.spec.priority = Some(0);
        policy.spec.preemption = Some("Never".to_owned());
        policy.spec.scheduler_name = Some("default-scheduler".to_owned());
        policy.spec.resource_selectors[0].namespace = Some("ns".to_owned());
        policy.spec.placement.as_mut().unwrap()["replicaScheduling"] = json!({});
        let existing = ExportFacts {
            export: Cached::Present(&export),
            policy: Cached::Present(&policy),
            ..facts(&template, &["m1"])
        };
        assert_eq!(plan(&existing), ExportChange::default());
    }

    #[test]
    fn an_export_is_removed_once_nobody_needs_it_or_it_has_no_clusters_or_another_owner() {
        let template = with_uid("u");
        let (export, policy) = created(&template, &["m1"]);
        let existing = ExportFacts {
            export: Cached::Present(&export),
            policy: Cached::Present(&policy),
            ..facts(&template, &["m1"])
        };
        let again = with_uid("u2");
        let mut leaving = with_uid("u");
        leaving.metadata.deletion_timestamp = Some(some_time());
        let unneeded = ExportFacts {
            need: Need::Unneeded,
            ..existing.clone()
        };
        let nowhere = ExportFacts {
            clusters: Cached::Present(BTreeSet::new()),
            ..existing.clone()
        };
        let of = |template| ExportFacts {
            template,
            ..existing.clone()
        };
        let removed = ExportChange {
            create: None,
            delete: Some(Some("e".to_owned())),
            policy: Some(PolicyChange::Delete {
                uid: Some("p".to_owned()),
            }),
            is_theirs: false,
        };
        for facts in [
            unneeded,
            nowhere,
            of(Cached::Absent),
            of(Cached::Present(&leaving)),
            of(Cached::Present(&again)),
        ] {
            assert_eq!(plan(&facts), removed, "{facts:?}");
        }
        let unbound = ExportFacts {
            clusters: Cached::Absent,
            ..existing
        };
        assert_eq!(plan(&unbound), removed);
    }

    #[test]
    fn an_owner_that_another_tool_adds_changes_nothing() {
        let template = with_uid("u");
        let (mut export, mut policy) = created(&template, &["m1"]);
        for metadata in [&mut export.metadata, &mut policy.metadata] {
            let theirs = OwnerReference {
                uid: "theirs".to_owned(),
                ..OwnerReference::default()
            };
            let owners = metadata.owner_references.as_mut().unwrap();
            owners.insert(0, theirs);
        }
        let existing = ExportFacts {
            export: Cached::Present(&export),
            policy: Cached::Present(&policy),
            ..facts(&template, &["m1"])
        };
        assert_eq!(plan(&existing), ExportChange::default());
    }

    #[test]
    fn an_export_is_not_created_while_a_policy_of_ours_that_does_not_fit_is_still_there() {
        let (before, template) = (with_uid("u"), with_uid("u2"));
        let (_, mut policy) = created(&before, &["m1"]);
        let needed = facts(&template, &["m1"]);
        assert!(plan(&needed).create.is_some());
        let change = plan(&ExportFacts {
            policy: Cached::Present(&policy),
            ..needed.clone()
        });
        assert_eq!(change.create, None);
        assert!(matches!(change.policy, Some(PolicyChange::Delete { .. })));
        policy.metadata.deletion_timestamp = Some(some_time());
        let leaving = plan(&ExportFacts {
            policy: Cached::Present(&policy),
            ..needed
        });
        assert_eq!(leaving, ExportChange::default());
    }

    #[test]
    fn an_export_of_another_owner_is_left_alone_and_gets_no_policy() {
        let template = with_uid("u");
        let mut theirs = ServiceExport::default();
        theirs.metadata.name = Some("s".to_owned());
        let facts = ExportFacts {
            export: Cached::Present(&theirs),
            ..facts(&template, &["m1"])
        };
        let left = ExportChange {
            is_theirs: true,
            ..ExportChange::default()
        };
        assert_eq!(plan(&facts), left);
        let (_, policy) = created(&template, &["m1"]);
        let with_ours = ExportFacts {
            policy: Cached::Present(&policy),
            ..facts
        };
        let change = plan(&with_ours);
        assert_eq!((change.create, change.delete), (None, None));
        assert!(matches!(change.policy, Some(PolicyChange::Delete { .. })));
    }

    #[test]
    fn the_policy_of_a_service_with_a_long_name_has_a_shortened_one_and_leads_to_the_service() {
        for length in [1, 56, 57, 63] {
            let name = "s".repeat(length);
            let template = with_uid("u");
            let change = exporter().plan(&Key::new("ns", &name), &facts(&template, &["m1"]));
            let Some(PolicyChange::Create(mut policy)) = change.policy else {
                panic!("{change:?}");
            };
            let policy_name = policy.metadata.name.clone().unwrap();
            assert_eq!(policy_name, Exporter::policy_name(&name));
            assert!(policy_name.len() <= 63, "{policy_name}");
            let is_readable = policy_name == format!("export-{name}");
            assert_eq!(is_readable, length <= 56, "{policy_name}");
            assert_eq!(Exporter::exported(&policy), Some(name.as_str()));
            let owners = policy.metadata.owner_references.take();
            assert_eq!(Exporter::exported(&policy), Some(name.as_str()));
            policy.metadata.owner_references = owners;
            policy.spec = PropagationSpec::default();
            assert_eq!(Exporter::exported(&policy), Some(name.as_str()));
            policy.metadata.owner_references = None;
            assert_eq!(Exporter::exported(&policy), None);
        }
        let mut other = "s".repeat(63);
        let name = Exporter::policy_name(&other);
        other.replace_range(62.., "t");
        assert_ne!(Exporter::policy_name(&other), name);
    }

    #[test]
    fn whatever_cannot_be_read_changes_nothing() {
        let template = with_uid("u");
        let needed = facts(&template, &["m1"]);
        for unread in [
            ExportFacts {
                need: Need::Unclear,
                ..needed.clone()
            },
            ExportFacts {
                template: Cached::Unread,
                ..needed.clone()
            },
            ExportFacts {
                clusters: Cached::Unread,
                ..needed.clone()
            },
            ExportFacts {
                export: Cached::Unread,
                ..needed.clone()
            },
            ExportFacts {
                policy: Cached::Unread,
                ..needed
            },
        ] {
            assert_eq!(plan(&unread), ExportChange::default());
        }
    }
}
