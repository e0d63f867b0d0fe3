//! The facts about a binding's Works besides the binding itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::try_join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{
    ClusterOverridePolicy, ClusterView, OverridePolicy, ResourceBinding, Suspension, Work,
};
use objects::{Key, Metadata};
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::namespaces::is_propagated;
use propagation_rules::overrides::Overrides;
use propagation_rules::template::Skipped;
use propagation_rules::works::WorkFacts;
use serde_json::Value;

use crate::index::{Index, Policy, policy_key};
use crate::latest::SharedReads;

/// A snapshot of the objects to which the facts about a binding's Works refer.
pub(super) struct Known {
    clusters: Vec<Arc<ClusterView>>,
    cluster_overrides: Vec<Arc<ClusterOverridePolicy>>,
    overrides: Vec<Arc<OverridePolicy>>,
    policy: Option<Policy>,
    referrers: Vec<Referrer>,
    /// Those of the policies that may pause the Works. One of which only an earlier version can be read has none.
    versions: BTreeMap<Key, Version>,
}

/// The mark that tells one version of a policy's spec from the others.
#[derive(Clone, PartialEq)]
struct Version {
    uid: Option<String>,
    generation: Option<i64>,
}

impl Version {
    fn of(metadata: &ObjectMeta) -> Self {
        Self {
            uid: metadata.uid.clone(),
            generation: metadata.generation,
        }
    }
}

/// A binding that requires another.
struct Referrer {
    key: Key,
    binding: Arc<ResourceBinding>,
    policy: Option<Policy>,
}

impl Known {
    /// Reads the facts of now.
    pub(super) fn read(index: &Index, binding: BindingRef<'_>, template: &Value) -> Self {
        let (cluster_overrides, overrides) = index.overrides_for(template.namespace());
        // A policy that drops the template leaves its Works as they are: of a pause that began in the same
        // edit, nothing would tell once the claim is gone.
        let policy = index.policy_of(binding);
        let policy = policy.filter(|policy| policy.selects(template));
        let referrers = index.referrers(binding).into_iter();
        let referrers: Vec<_> = referrers
            .map(|(key, binding)| Referrer {
                key,
                policy: index.policy_of(BindingRef::from(&*binding)),
                binding,
            })
            .collect();
        let of_referrers = referrers.iter().filter_map(|one| one.policy.as_ref());
        let versions = (policy.iter().chain(of_referrers))
            .map(Policy::candidate)
            .map(|policy| (policy_key(&policy), Version::of(policy.metadata)))
            .filter(|(key, _)| !index.is_stale(key))
            .collect();
        Self {
            clusters: index.clusters(),
            cluster_overrides,
            overrides,
            policy,
            referrers,
            versions,
        }
    }

    /// Returns `true` if the policies that may pause the binding's Works are known as the API has them now. Policies
    /// and templates come over two watches, so that an edit may arrive before a pause that was written first.
    pub(super) async fn is_latest(&self, policies: &SharedReads) -> Result<bool, kube::Error> {
        let reads = self.versions.keys().map(|key| policies.policy(key));
        let latest = try_join_all(reads).await?;
        let latest = latest.iter().map(|found| found.as_ref().map(Version::of));
        Ok(latest.eq(self.versions.values().cloned().map(Some)))
    }

    /// Returns the facts about these Works of the binding.
    pub(super) fn facts<'a>(
        &'a self,
        binding: BindingRef<'a>,
        template: &'a Value,
        works: &'a [Work],
        skipped: &Skipped,
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
            is_everywhere: is_everywhere(template, skipped),
            referrers: referrers
                .map(|referrer| (referrer.key.clone(), referrer.suspensions()))
                .collect::<BTreeMap<_, _>>(),
        }
    }
}

/// Returns `true` for a Namespace that every member has, whether or not a policy selects it.
pub(super) fn is_everywhere(template: &Value, skipped: &Skipped) -> bool {
    objects::group_kind(template) == ("", "Namespace") && is_propagated(template, skipped)
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
