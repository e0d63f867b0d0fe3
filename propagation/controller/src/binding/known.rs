//! What is known of a binding's Works besides the binding itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use karmada_api::{
    ClusterOverridePolicy, ClusterView, OverridePolicy, ResourceBinding, Suspension, Work,
};
use karmada_rules::binding_ref::BindingRef;
use karmada_rules::propagation::overrides::Overrides;
use karmada_rules::propagation::works::WorkFacts;
use objects::{Key, Metadata};
use serde_json::Value;

use crate::index::{Index, Policy};
use crate::works::SharedWorks;

/// A snapshot of the objects to which the facts about a binding's Works refer.
pub(super) struct Known {
    clusters: Vec<Arc<ClusterView>>,
    cluster_overrides: Vec<Arc<ClusterOverridePolicy>>,
    overrides: Vec<Arc<OverridePolicy>>,
    policy: Option<Policy>,
    referrers: Vec<Referrer>,
}

/// A binding that requires another.
struct Referrer {
    key: Key,
    binding: Arc<ResourceBinding>,
    policy: Option<Policy>,
}

impl Known {
    /// Reads what is known now.
    pub(super) fn read(
        index: &Index,
        works: &SharedWorks,
        binding: BindingRef<'_>,
        template: &Value,
    ) -> Self {
        let (cluster_overrides, overrides) = index.overrides_for(template.namespace());
        // A policy that drops the template leaves its Works as they are: of a pause that began in the same
        // edit, nothing would tell once the claim is gone.
        let policy = index.policy_of(binding);
        let policy = policy.filter(|policy| policy.selects(template));
        let referrers = index.referrers(binding).into_iter();
        Self {
            clusters: works.clusters(),
            cluster_overrides,
            overrides,
            policy,
            referrers: referrers
                .map(|(key, binding)| Referrer {
                    key,
                    policy: index.policy_of(BindingRef::from(&*binding)),
                    binding,
                })
                .collect(),
        }
    }

    /// Returns the facts about these Works of the binding.
    pub(super) fn facts<'a>(
        &'a self,
        binding: BindingRef<'a>,
        template: &'a Value,
        works: &'a [Work],
    ) -> WorkFacts<'a> {
        let clusters = self.clusters.iter();
        let referrers = self.referrers.iter();
        WorkFacts {
            binding,
            template,
            revised: BTreeMap::new(),
            clusters: clusters
                .map(|cluster| (cluster.metadata.name(), &**cluster))
                .collect(),
            overrides: Overrides {
                cluster_policies: self.cluster_overrides.iter().map(|one| &**one).collect(),
                policies: self.overrides.iter().map(|one| &**one).collect(),
            },
            policy_suspension: self.policy.as_ref().and_then(Policy::suspension),
            works: works.iter().collect(),
            referrers: referrers
                .map(|referrer| (referrer.key.clone(), referrer.suspensions()))
                .collect::<BTreeMap<_, _>>(),
        }
    }
}

impl Referrer {
    /// Returns its own suspension, and that of its policy.
    fn suspensions(&self) -> Vec<&Suspension> {
        let own = self.binding.spec.suspension.as_ref();
        let own = own.map(|suspension| &suspension.dispatching);
        let of_policy = self.policy.as_ref().and_then(Policy::suspension);
        own.into_iter().chain(of_policy).collect()
    }
}
