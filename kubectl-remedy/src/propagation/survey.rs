//! Everything that a fleet propagates, for `kubectl remedy check`.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::ClusterRole;
use karmada_api::{
    ClusterPropagationPolicy, ClusterResourceBinding, ClusterView, PropagationPolicy,
    ResourceBinding, Work,
};
use kube::api::{ListParams, ObjectMeta};
use kube::{Api, Client};
use objects::{GroupVersionKind, Key, Metadata};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::problems::problems;
use propagation_rules::rights::{self, are_granted};
use propagation_rules::template::{SKIPPED_NAMESPACES, Skipped, is_excluded};
use propagation_rules::works::bound;
use serde_json::json;

use super::cluster::links;
use super::command::{named, policy, policy_name};
use super::discovery::{Served, served};
use super::facts::Facts;
use super::near_misses::{key_of, texts};
use super::report::delivery_cause;
use super::requests::{Reader, of_either_scope, policy_of_fleet};
use super::templates::Templates;
use crate::error::Error;
use crate::lists::scoped;

/// The objects that a fleet propagates, or is to propagate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    pub(super) kinds: Vec<Served>,
    pub(super) policies: Vec<PropagationPolicy>,
    /// The objects of every kind that a policy selects.
    pub(super) templates: Vec<Templates>,
    /// Those of both scopes.
    pub(super) bindings: Vec<ResourceBinding>,
    pub(super) works: Vec<Work>,
    pub(super) clusters: BTreeMap<String, ClusterView>,
    /// The roles with which kinds are propagated, if they may be read.
    pub(super) roles: Option<Vec<ClusterRole>>,
}

/// Something that is not as it may be expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) text: String,
    /// The command that tells more, or mends it.
    pub(crate) next: String,
    /// True if it is wrong, and not merely under way or intended.
    pub(crate) is_wrong: bool,
}

impl Remark {
    fn new(text: impl Into<String>, next: impl Into<String>, is_wrong: bool) -> Self {
        Self {
            text: text.into(),
            next: next.into(),
            is_wrong,
        }
    }
}

impl Survey {
    /// Reads the propagated objects, of one namespace or of all; `None` if the API serves no policies.
    pub(crate) async fn read(
        client: &Client,
        namespace: Option<&str>,
    ) -> Result<Option<Self>, Error> {
        let kinds = served(client).await?;
        if !kinds.iter().any(|kind| kind.group == "policy.karmada.io") {
            return Ok(None);
        }
        let reader = Reader {
            client,
            kinds: &kinds,
        };
        let all = ListParams::default;
        let cluster_wide = Api::all(client.clone());
        let (mut policies, of_fleet, clusters, interpreters, roles) = futures::try_join!(
            reader.list::<PropagationPolicy>(scoped(client, namespace), all()),
            reader.list::<ClusterPropagationPolicy>(cluster_wide, all()),
            reader.clusters(),
            reader.interpreters(),
            reader.roles(),
        )?;
        policies.extend(of_fleet.into_iter().map(policy_of_fleet));
        let mut bindings = reader
            .list::<ResourceBinding>(scoped(client, namespace), all())
            .await?;
        if namespace.is_none() {
            let cluster_wide = Api::all(client.clone());
            let found = reader.list::<ClusterResourceBinding>(cluster_wide, all());
            bindings.extend(found.await?.into_iter().map(of_either_scope));
        }
        let works = reader.list(Api::all(client.clone()), all()).await?;
        let templates = Templates::selected(&policies, &reader, &interpreters, namespace).await?;
        Ok(Some(Self {
            kinds,
            policies,
            templates,
            bindings,
            works,
            clusters,
            roles,
        }))
    }

    /// Returns the numbers of policies and bindings.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.policies.len(), self.bindings.len())
    }

    /// Returns the metadata of the bindings.
    pub(crate) fn of_bindings(&self) -> impl Iterator<Item = &ObjectMeta> {
        self.bindings.iter().map(|binding| &binding.metadata)
    }

    /// Returns the metadata of the Works.
    pub(crate) fn of_works(&self) -> impl Iterator<Item = &ObjectMeta> {
        self.works.iter().map(|work| &work.metadata)
    }

    /// Tells of the policies that are not applied, or select nothing.
    pub(crate) fn policies(&self) -> Vec<Remark> {
        let candidates = self.policies.iter().map(Candidate::from);
        let remarks = candidates.filter_map(|candidate| {
            let key = key_of(&candidate);
            let name = policy_name(&key);
            let problems = problems(&candidate);
            if !problems.is_empty() {
                let text = format!("{name} is not applied: {}", texts(&problems));
                return Some(Remark::new(text, edit(&key), true));
            }
            if self.may_select(&candidate) {
                return None;
            }
            let text = format!("{name} selects nothing");
            Some(Remark::new(text, edit(&key), false))
        });
        remarks.collect()
    }

    /// Returns `true` if the policy selects an object, or one that cannot be listed.
    fn may_select(&self, policy: &Candidate<'_>) -> bool {
        self.templates.iter().any(|of_kind| match &of_kind.objects {
            None => of_kind.is_named_by(policy),
            Some(objects) => objects.iter().any(|object| policy.selects(object)),
        })
    }

    /// Tells of the kinds that policies select and that are not propagated.
    pub(crate) fn kinds(&self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        for of_kind in &self.templates {
            let (name, kind) = (of_kind.kind.full_name(), of_kind.kind.group_resource());
            if let Some(refusal) = &of_kind.refusal {
                let text = format!("{name} are not propagated: {refusal}");
                let next = "kubectl describe resourceinterpretercustomizations";
                remarks.push(Remark::new(text, next, true));
            }
            let roles = self.roles.as_deref().unwrap_or_default();
            // Without any such role, others propagate here.
            if let Some(kind) = kind
                && !roles.is_empty()
                && !are_granted(&kind, roles)
            {
                let text = format!("the propagation-controller may not propagate {name}");
                remarks.push(Remark::new(text, rights::command(&[kind]), true));
            }
            if of_kind.objects.is_none() {
                let text =
                    format!("you may not list {name}: what policies select of them is not known");
                let next = format!("kubectl auth can-i list {name} -A");
                remarks.push(Remark::new(text, next, false));
            }
        }
        remarks
    }

    /// Tells of the objects of such kinds that no policy selects, and that nothing else propagates.
    pub(crate) fn without_policy(&self) -> Vec<Remark> {
        let skipped = Skipped {
            namespaces: SKIPPED_NAMESPACES.parse().into_iter().collect(),
            ..Skipped::default()
        };
        let bound = self.bindings.iter().map(template_of);
        let bound: BTreeSet<_> = bound.map(unversioned).collect();
        let mut remarks = Vec::new();
        for of_kind in &self.templates {
            let objects = of_kind.objects.iter().flatten();
            let left = objects.filter(|object| {
                let mut candidates = self.policies.iter().map(Candidate::from);
                !is_excluded(object, &skipped)
                    && !bound.contains(&unversioned((GroupVersionKind::of(object), object.key())))
                    && !candidates.any(|policy| policy.selects(object))
            });
            remarks.extend(left.map(|object| {
                let (kind, key) = (&of_kind.kind, object.key());
                let text = format!("no policy selects {} {key}", kind.kind);
                let object = named(&kind.full_name(), &key);
                Remark::new(text, format!("kubectl remedy why {object}"), false)
            }));
        }
        remarks
    }

    /// Tells of the bindings that are not scheduled, or not applied somewhere.
    pub(crate) fn bindings(self) -> Vec<Remark> {
        let mut works: BTreeMap<Key, Vec<Work>> = BTreeMap::new();
        for work in self.works {
            if let Some(binding) = bound(&work.metadata) {
                works.entry(binding).or_default().push(work);
            }
        }
        let mut facts = Facts {
            clusters: self.clusters,
            ..Facts::default()
        };
        let mut remarks = Vec::new();
        for binding in self.bindings {
            let (kind, key) = template_of(&binding);
            let own = BindingRef::from(&binding).key();
            facts.works = works.remove(&own).unwrap_or_default();
            facts.kind = Served::or_former(&self.kinds, &kind, !key.namespace.is_empty());
            // The cause does not depend on the rest of it.
            facts.template = Some(json!({ "metadata": { "name": key.name } }));
            facts.key = key;
            facts.binding = Some(binding);
            if let Some(cause) = delivery_cause(&facts, &links(&facts)) {
                let type_ = if own.namespace.is_empty() {
                    "crb"
                } else {
                    "rb"
                };
                let next = format!("kubectl remedy why {}", named(type_, &own));
                remarks.push(Remark::new(cause.sentence(&facts), next, cause.is_wrong()));
            }
        }
        remarks
    }
}

fn template_of(binding: &ResourceBinding) -> (GroupVersionKind, Key) {
    let resource = &binding.spec.resource;
    let namespace = resource.namespace.clone().unwrap_or_default();
    (
        GroupVersionKind::new(&resource.api_version, &resource.kind),
        Key::new(namespace, &resource.name),
    )
}

fn edit(key: &Key) -> String {
    format!("kubectl edit {}", policy(key))
}

/// Returns the identity of a template, in whichever version.
fn unversioned((kind, key): (GroupVersionKind, Key)) -> (String, String, Key) {
    (kind.group, kind.kind, key)
}
