//! The watched objects, looked up by what refers to them.

mod candidates;
mod dependencies;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{
    ClusterOverridePolicy, ClusterPropagationPolicy, ClusterResourceBinding, OverridePolicy,
    PropagationPolicy, PropagationSpec, ResourceBinding, ResourceBindingSpec, Suspension,
};
use karmada_rules::binding_ref::BindingRef;
use karmada_rules::propagation::choice::Candidate;
use karmada_rules::propagation::claim::Claim;
use karmada_rules::propagation::customization::{self, Customized};
use karmada_rules::propagation::dependencies::Dependency;
use karmada_rules::propagation::problems::problems;
use karmada_rules::propagation::selector::best_rank;
use karmada_runtime::cache::{Cache, Undecoded};
use kube::core::Version;
use objects::{GroupVersionKind, Key};
use serde_json::Value;

use self::candidates::Candidates;
use self::dependencies::Dependencies;
pub(crate) use self::dependencies::{is_referring, listed_kinds, referrer_keys};

/// A resource template: an object of a kind known at run time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TemplateKey {
    pub(crate) kind: GroupVersionKind,
    pub(crate) key: Key,
}

impl TemplateKey {
    /// Creates the key of the object `key` of a kind.
    pub(crate) fn new(kind: &GroupVersionKind, key: &Key) -> Self {
        Self {
            kind: kind.clone(),
            key: key.clone(),
        }
    }

    /// Returns the reference by which Events name the template.
    pub(crate) fn reference(&self) -> ObjectReference {
        let Self { kind, key } = self;
        ObjectReference {
            api_version: Some(kind.api_version()),
            kind: Some(kind.kind.clone()),
            namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: Some(key.name.clone()),
            ..ObjectReference::default()
        }
    }
}

/// Returns the key of the object; without a name for all of a namespace among which labels select.
impl From<&Dependency> for TemplateKey {
    fn from(dependency: &Dependency) -> Self {
        let Dependency {
            api_version,
            kind,
            namespace,
            name,
            ..
        } = dependency;
        Self {
            kind: GroupVersionKind::new(api_version, kind),
            key: Key::new(namespace, name),
        }
    }
}

/// A policy of either scope.
#[derive(Clone, Debug)]
pub(crate) enum Policy {
    Namespaced(Arc<PropagationPolicy>),
    Cluster(Arc<ClusterPropagationPolicy>),
}

/// A binding of either scope.
#[derive(Clone, Debug)]
pub(crate) enum StoredBinding {
    Namespaced(Arc<ResourceBinding>),
    Cluster(Arc<ClusterResourceBinding>),
}

/// The objects of the Karmada API as the watches last showed them, besides the templates.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) policies: Cache<PropagationPolicy>,
    pub(crate) cluster_policies: Cache<ClusterPropagationPolicy>,
    pub(crate) overrides: Cache<OverridePolicy>,
    pub(crate) cluster_overrides: Cache<ClusterOverridePolicy>,
    pub(crate) bindings: Cache<ResourceBinding>,
    pub(crate) cluster_bindings: Cache<ClusterResourceBinding>,
    /// Those of the kinds that the API does not serve.
    pub(crate) not_served: BTreeSet<GroupVersionKind>,
    /// The kinds of customizations that have been listed, or that the API does not serve.
    pub(crate) interpreters_listed: BTreeSet<GroupVersionKind>,
    customizations: BTreeMap<(GroupVersionKind, Key), Value>,
    candidates: Candidates,
    dependencies: Dependencies,
    /// The kinds that policies select and bindings are of or list, with the number of those that name them.
    kinds: BTreeMap<GroupVersionKind, usize>,
}

impl Policy {
    pub(crate) fn candidate(&self) -> Candidate<'_> {
        match self {
            Self::Namespaced(policy) => Candidate::from(&**policy),
            Self::Cluster(policy) => Candidate::from(&**policy),
        }
    }

    /// Returns `true` if the policy selects the template.
    pub(crate) fn selects(&self, template: &Value) -> bool {
        let policy = self.candidate();
        let selectors = &policy.spec.resource_selectors;
        best_rank(selectors, policy.namespace(), template).is_some()
    }

    /// Returns the suspension that the policy asks for, unless the policy is not applied.
    pub(crate) fn suspension(&self) -> Option<&Suspension> {
        let spec = match self {
            Self::Namespaced(policy) => &policy.spec,
            Self::Cluster(policy) => &policy.spec,
        };
        // That of a policy which is being deleted counts as long as its claim stands.
        let suspension = spec.suspension.as_ref()?;
        problems(&self.candidate()).is_empty().then_some(suspension)
    }

    /// Returns the reference by which Events name the policy.
    pub(crate) fn reference(&self) -> ObjectReference {
        let (api_version, kind) = match self {
            Self::Namespaced(_) => (PropagationPolicy::API_VERSION, PropagationPolicy::KIND),
            Self::Cluster(_) => (
                ClusterPropagationPolicy::API_VERSION,
                ClusterPropagationPolicy::KIND,
            ),
        };
        let metadata = self.candidate().metadata.clone();
        ObjectReference {
            api_version: Some(api_version.to_owned()),
            kind: Some(kind.to_owned()),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            ..ObjectReference::default()
        }
    }
}

impl StoredBinding {
    pub(crate) fn view(&self) -> BindingRef<'_> {
        match self {
            Self::Namespaced(binding) => BindingRef::from(&**binding),
            Self::Cluster(binding) => BindingRef::from(&**binding),
        }
    }

    pub(crate) fn metadata(&self) -> &ObjectMeta {
        self.view().metadata
    }
}

impl Index {
    /// Returns the policy `key`; one without a namespace is a `ClusterPropagationPolicy`.
    pub(crate) fn policy(&self, key: &Key) -> Option<Policy> {
        if key.namespace.is_empty() {
            let policy = self.cluster_policies.get(key)?;
            Some(Policy::Cluster(Arc::clone(policy)))
        } else {
            let policy = self.policies.get(key)?;
            Some(Policy::Namespaced(Arc::clone(policy)))
        }
    }

    /// Returns the policies that may select a template.
    pub(crate) fn policies_for(&self, template: &TemplateKey) -> Vec<Policy> {
        let candidates = self.candidates.of(template).into_iter();
        candidates.filter_map(|key| self.policy(key)).collect()
    }

    /// Replaces the selectors of a policy by those of its new version, or removes them.
    pub(crate) fn replace_candidate(&mut self, key: &Key, policy: Option<&Candidate<'_>>) {
        self.candidates.replace(key, policy);
    }

    /// Returns the keys of all policies.
    pub(crate) fn policy_keys(&self) -> Vec<Key> {
        let own = self.policies.iter().map(|(key, _)| key.clone());
        let cluster = self.cluster_policies.iter().map(|(key, _)| key.clone());
        own.chain(cluster).collect()
    }

    /// Returns the keys of the policies whose spec is so.
    pub(crate) fn policies_where(&self, is: impl Fn(&PropagationSpec) -> bool) -> Vec<Key> {
        let own = self
            .policies
            .iter()
            .map(|(key, policy)| (key, &policy.spec));
        let cluster = self.cluster_policies.iter();
        let cluster = cluster.map(|(key, policy)| (key, &policy.spec));
        let found = own.chain(cluster).filter(|(_, spec)| is(spec));
        found.map(|(key, _)| key.clone()).collect()
    }

    /// Returns `true` if the override policy of that namespace, or of none, and name exists.
    pub(crate) fn has_override(&self, namespace: Option<&str>, name: &str) -> bool {
        if let Some(namespace) = namespace {
            let key = Key::new(namespace, name);
            self.overrides.get(&key).is_some()
        } else {
            let key = Key::cluster_scoped(name);
            self.cluster_overrides.get(&key).is_some()
        }
    }

    /// Returns the binding `key`; one without a namespace is a `ClusterResourceBinding`.
    pub(crate) fn binding(&self, key: &Key) -> Option<StoredBinding> {
        if key.namespace.is_empty() {
            let binding = self.cluster_bindings.get(key)?;
            Some(StoredBinding::Cluster(Arc::clone(binding)))
        } else {
            let binding = self.bindings.get(key)?;
            Some(StoredBinding::Namespaced(Arc::clone(binding)))
        }
    }

    /// Returns the keys of the bindings whose spec meets the condition.
    pub(crate) fn bindings_where(&self, is_met: impl Fn(&ResourceBindingSpec) -> bool) -> Vec<Key> {
        let own = self.bindings.iter().map(|(key, b)| (key, &b.spec));
        let cluster = self.cluster_bindings.iter().map(|(key, b)| (key, &b.spec));
        own.chain(cluster)
            .filter(|(_, spec)| is_met(spec))
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Returns the keys of the bindings that `policy` has.
    pub(crate) fn bindings_of(&self, policy: &Candidate<'_>) -> Vec<Key> {
        let own = self.bindings.iter().map(|(key, b)| (key, &b.metadata));
        let cluster = self.cluster_bindings.iter();
        let cluster = cluster.map(|(key, b)| (key, &b.metadata));
        own.chain(cluster)
            .filter(|(_, metadata)| Claim::of(*metadata).is_some_and(|claim| claim.is_of(policy)))
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Returns the policy that has the binding.
    pub(crate) fn policy_of(&self, binding: BindingRef<'_>) -> Option<Policy> {
        let claim = Claim::of(binding.metadata)?;
        let policy = self.policy(&claim.policy())?;
        claim.is_of(&policy.candidate()).then_some(policy)
    }

    /// Returns the override policies that may select a template of `namespace`, which is empty for a
    /// cluster-scoped one.
    pub(crate) fn overrides_for(
        &self,
        namespace: &str,
    ) -> (Vec<Arc<ClusterOverridePolicy>>, Vec<Arc<OverridePolicy>>) {
        let cluster = self.cluster_overrides.iter();
        let own = self.overrides.iter();
        (
            cluster.map(|(_, policy)| Arc::clone(policy)).collect(),
            own.filter(|(key, _)| key.namespace == namespace)
                .map(|(_, policy)| Arc::clone(policy))
                .collect(),
        )
    }

    /// Returns every kind whose objects may be templates.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &GroupVersionKind> {
        self.kinds.keys()
    }

    /// Returns `true` if no policy or binding names the kind in a version that Kubernetes prefers, and that
    /// is served.
    pub(crate) fn is_newest_version(&self, kind: &GroupVersionKind) -> bool {
        let priority = |kind: &GroupVersionKind| Version::parse(&kind.version).priority();
        let of_group =
            |other: &&GroupVersionKind| other.group == kind.group && other.kind == kind.kind;
        let mut others = self.kinds().filter(of_group);
        others.all(|other| priority(other) <= priority(kind) || self.not_served.contains(other))
    }

    /// Replaces the kinds that one object names. Returns `true` if the set of all kinds has changed.
    pub(crate) fn replace_kinds(
        &mut self,
        old: impl IntoIterator<Item = GroupVersionKind>,
        new: impl IntoIterator<Item = GroupVersionKind>,
    ) -> bool {
        let mut changed = false;
        for kind in new {
            let count = self.kinds.entry(kind).or_default();
            *count += 1;
            changed |= *count == 1;
        }
        for kind in old {
            if let Some(count) = self.kinds.get_mut(&kind) {
                *count -= 1;
                if *count == 0 {
                    self.kinds.remove(&kind);
                    // It is looked up anew if it is named again.
                    self.not_served.remove(&kind);
                    changed = true;
                }
            }
        }
        changed
    }

    /// Replaces a customization by its new version, or removes it.
    pub(crate) fn customize(&mut self, kind: &GroupVersionKind, key: Key, object: Option<Value>) {
        let id = (kind.clone(), key);
        match object {
            Some(object) => self.customizations.insert(id, object),
            None => self.customizations.remove(&id),
        };
    }

    /// Returns the kinds that are interpreted elsewhere.
    pub(crate) fn customized(&self) -> Customized {
        let mut customized = Customized::default();
        self.customizations
            .values()
            .for_each(|object| customized.add(object));
        customized
    }

    /// Returns `true` once every customization is known.
    pub(crate) fn is_interpretation_known(&self) -> bool {
        self.interpreters_listed.len() == customization::KINDS.len()
    }

    pub(crate) fn undecoded(&self) -> Vec<(&'static str, Undecoded)> {
        vec![
            ("PropagationPolicy", self.policies.undecoded()),
            (
                "ClusterPropagationPolicy",
                self.cluster_policies.undecoded(),
            ),
            ("OverridePolicy", self.overrides.undecoded()),
            ("ClusterOverridePolicy", self.cluster_overrides.undecoded()),
            ("ResourceBinding", self.bindings.undecoded()),
            ("ClusterResourceBinding", self.cluster_bindings.undecoded()),
        ]
    }
}

/// Returns the key of a policy.
pub(crate) fn policy_key(policy: &Candidate<'_>) -> Key {
    Key::new(policy.namespace().unwrap_or_default(), policy.name())
}

/// Returns the template of a binding.
pub(crate) fn template_of(spec: &ResourceBindingSpec) -> TemplateKey {
    let resource = &spec.resource;
    let namespace = resource.namespace.as_deref().unwrap_or_default();
    TemplateKey {
        kind: GroupVersionKind::new(&resource.api_version, &resource.kind),
        key: Key::new(namespace, &resource.name),
    }
}
