//! Templates, policies and bindings as the watches show them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{
    ClusterPropagationPolicy, ClusterResourceBinding, PropagationPolicy, ResourceBinding,
    ResourceBindingSpec, Suspension,
};
use objects::{GroupVersionKind, Key};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::candidate::Candidate;
use propagation_rules::dependencies::Dependency;
use propagation_rules::problems::problems;
use serde_json::Value;

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

impl Policy {
    pub(crate) fn candidate(&self) -> Candidate<'_> {
        match self {
            Self::Namespaced(policy) => Candidate::from(&**policy),
            Self::Cluster(policy) => Candidate::from(&**policy),
        }
    }

    /// Returns `true` if the policy selects the template.
    pub(crate) fn selects(&self, template: &Value) -> bool {
        self.candidate().selects(template)
    }

    /// Returns the suspension that the policy asks for, unless the policy is not applied.
    pub(crate) fn suspension(&self) -> Option<&Suspension> {
        suspension(&self.candidate())
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

/// Returns the suspension that a policy asks for, unless the policy is not applied.
pub(crate) fn suspension<'a>(policy: &Candidate<'a>) -> Option<&'a Suspension> {
    // That of a policy which is being deleted counts as long as its claim stands.
    let suspension = policy.spec.suspension.as_ref()?;
    problems(policy).is_empty().then_some(suspension)
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
