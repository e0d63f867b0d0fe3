//! The watches of clusters, and of what each has on the hub.

use fleet_api::ClusterProfile;
use fleet_api::names::cluster_of_member_namespace;
use fleet_api::{InternalMemberCluster, MemberCluster};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use karmada_runtime::cache::Cache;
use karmada_runtime::watch::Decoded;
use kube::Resource;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use objects::Key;
use placement_rules::pick::wakes;
use placement_rules::snapshot::latest_policy;

use super::SharedIndex;
use crate::fleet::Judgement;
use crate::index::Index;

impl SharedIndex {
    /// Applies an event of a cluster. What depends on it is woken once it is judged.
    pub(super) fn observe_member(&self, event: Event<Decoded<MemberCluster>>) {
        let now = (self.clock)();
        for name in self.change(|index| index.fleet.observe(event, now)) {
            let key = Key::cluster_scoped(name);
            self.queues.membership.add(key.clone());
            self.queues.profiles.add(key.clone());
            self.queues.fleet.add(key);
        }
    }

    /// Applies an event of the definition of a kind: once the hub has profiles, each cluster gets one.
    pub(super) fn observe_definition(
        &self,
        event: &Event<Decoded<PartialObjectMeta<CustomResourceDefinition>>>,
    ) {
        let (definition, is_served) = match event {
            Event::Apply(definition) | Event::InitApply(definition) => (definition, true),
            Event::Delete(definition) => (definition, false),
            Event::Init | Event::InitDone => return,
        };
        let (group, plural) = (ClusterProfile::group(&()), ClusterProfile::plural(&()));
        if Key::of(definition).name != format!("{plural}.{group}") {
            return;
        }
        let clusters = self.change(|index| {
            index.serves_profiles = is_served;
            let members = index.fleet.members.iter();
            members.map(|(key, _)| key.clone()).collect::<Vec<_>>()
        });
        self.queues.profiles.add_all(clusters);
    }

    /// Applies an event of a profile, and wakes its cluster.
    pub(super) fn observe_profile(&self, event: Event<Decoded<ClusterProfile>>) {
        let changes = self.change(|index| index.profiles.observe(event));
        let clusters = changes.into_iter().map(|change| change.key.name);
        self.queues
            .profiles
            .add_all(clusters.map(Key::cluster_scoped));
    }

    /// Looks at a cluster, and wakes what its change since the last look concerns. Returns the time at which it may
    /// change by itself.
    pub(crate) fn judge(&self, name: &str, now: Timestamp) -> Option<Timestamp> {
        let Judgement {
            change,
            is_gone,
            until,
        } = self.change(|index| index.fleet.judge(name, now));
        if change.is_none() && !is_gone {
            return until;
        }
        self.queues.profiles.add(Key::cluster_scoped(name));
        let (scheduled, concerned, bindings) = self.read(|index| {
            let concerned = index.placements_on(name);
            let scheduled = index.placements.iter().filter(|(key, _)| {
                let Some(change) = change else {
                    return false;
                };
                let policies = index.policies.of(key);
                let policies: Vec<_> = policies.iter().map(|policy| &**policy).collect();
                latest_policy(&policies)
                    .is_some_and(|policy| wakes(policy, concerned.contains(key), change))
            });
            let scheduled: Vec<_> = scheduled.map(|(key, _)| key.clone()).collect();
            (scheduled, concerned, index.bindings_on(name))
        });
        self.queues.schedule.add_all(scheduled);
        self.queues.works.add_all(bindings);
        for key in concerned {
            self.queues.rollout.add(key.clone());
            self.wake_runs(&key);
            self.tell(key);
        }
        until
    }

    pub(super) fn observe_namespace(&self, event: Event<Decoded<Namespace>>) {
        self.observe_belonging(event, |index| &mut index.namespaces);
    }

    pub(super) fn observe_role(&self, event: Event<Decoded<Role>>) {
        self.observe_belonging(event, |index| &mut index.roles);
    }

    pub(super) fn observe_role_binding(&self, event: Event<Decoded<RoleBinding>>) {
        self.observe_belonging(event, |index| &mut index.role_bindings);
    }

    pub(super) fn observe_channel(&self, event: Event<Decoded<InternalMemberCluster>>) {
        self.observe_belonging(event, |index| &mut index.channels);
    }

    /// Applies an event of what may belong to a cluster, and wakes that. What belongs to none is not kept.
    fn observe_belonging<K: Resource + Clone + Default>(
        &self,
        event: Event<Decoded<K>>,
        cache: impl FnOnce(&mut Index) -> &mut Cache<K>,
    ) {
        if let Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) = &event
            && cluster_of(&Key::of(object)).is_none()
        {
            return;
        }
        for change in self.change(|index| cache(index).observe(event)) {
            if let Some(cluster) = cluster_of(&change.key) {
                self.queues.membership.add(Key::cluster_scoped(cluster));
            }
        }
    }
}

/// Returns the cluster to which a namespace, or an object in one, belongs.
fn cluster_of(key: &Key) -> Option<&str> {
    let namespace = if key.namespace.is_empty() {
        &key.name
    } else {
        &key.namespace
    };
    cluster_of_member_namespace(namespace)
}
