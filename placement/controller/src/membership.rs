//! Keeps what one cluster of the fleet has on the hub, and says what its agent says.

use std::sync::Arc;

use fleet_api::names::{WORK_FINALIZER, member_namespace, member_role, member_role_binding};
use fleet_api::{InternalMemberCluster, MemberCluster, Work};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::write::WriteError;
use kube::api::Preconditions;
use kube::{Api, Resource};
use objects::condition_taint::ConditionTaint;
use objects::{Key, Metadata};
use placement_rules::membership::{Change, MembershipFacts, MembershipPlan, MembershipWrite, plan};
use serde::Serialize;
use serde_json::{Value, json};

use crate::index::Index;
use crate::requests::{HubApi, Written, exists, unless_gone};
use crate::watch::{Echo, SharedIndex};

/// Reconciles clusters of the fleet.
pub(crate) struct MembershipReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    /// The taints that clusters have for their conditions.
    pub(crate) condition_taints: Vec<ConditionTaint>,
    pub(crate) force_leave_after: SignedDuration,
    pub(crate) clock: fn() -> Timestamp,
}

/// A cluster and what belongs to it.
struct Known {
    cluster: Arc<MemberCluster>,
    namespace: Option<Arc<Namespace>>,
    role: Option<Arc<Role>>,
    role_binding: Option<Arc<RoleBinding>>,
    channel: Option<Arc<InternalMemberCluster>>,
    waiting_works: Vec<Waiting>,
}

/// A Work that waits for its agent.
struct Waiting {
    name: String,
    finalizers: Vec<String>,
}

impl Known {
    fn read(index: &Index, name: &str) -> Option<Self> {
        let cluster = Arc::clone(index.fleet.get(name)?);
        let namespace = member_namespace(name);
        let within = |name: &str| Key::new(&*namespace, name);
        // Only then it counts.
        let waiting_works = if cluster.metadata.is_deleting() {
            waiting(index, &namespace)
        } else {
            Vec::new()
        };
        Some(Self {
            cluster,
            namespace: index
                .namespaces
                .get(&Key::cluster_scoped(&*namespace))
                .map(Arc::clone),
            role: index.roles.get(&within(&member_role(name))).map(Arc::clone),
            role_binding: index
                .role_bindings
                .get(&within(&member_role_binding(name)))
                .map(Arc::clone),
            channel: index.channels.get(&within(name)).map(Arc::clone),
            waiting_works,
        })
    }
}

/// Returns the Works in a namespace that have the finalizer of its agent.
fn waiting(index: &Index, namespace: &str) -> Vec<Waiting> {
    let works = index.works.iter();
    let works = works.filter(|(key, _)| key.namespace == namespace);
    let waiting = works.filter_map(|(key, work)| {
        let finalizers = work.meta().finalizers.clone()?;
        let is_waiting = finalizers.iter().any(|one| one == WORK_FINALIZER);
        is_waiting.then(|| Waiting {
            name: key.name.clone(),
            finalizers,
        })
    });
    waiting.collect()
}

impl Controller for MembershipReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(|index| {
            let members = index.fleet.members.iter();
            members.map(|(key, _)| key.clone()).collect()
        })
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let known = self.index.read(|index| {
            let awaited = index.awaited.belongings.until(key);
            Some((Known::read(index, &key.name)?, awaited))
        });
        let Some((known, awaited)) = known else {
            return Ok(());
        };
        if let Some(until) = awaited {
            self.index.queues.membership.add_at(key.clone(), until);
            return Ok(());
        }
        let now = (self.clock)();
        let MembershipPlan { writes, wake_at } = self.plan(&known, now);
        for write in writes {
            match self.take(&key.name, &known, write).await {
                // The watch is about to show it.
                Err(error) if exists(&error) => {}
                taken => taken?,
            }
        }
        if let Some(at) = wake_at {
            self.index
                .queues
                .membership
                .add_at_time(key.clone(), at, now);
        }
        Ok(())
    }
}

impl MembershipReconciler {
    fn plan(&self, known: &Known, now: Timestamp) -> MembershipPlan {
        let works: Vec<_> = known.waiting_works.iter().map(|one| &*one.name).collect();
        plan(&MembershipFacts {
            cluster: &known.cluster,
            namespace: known.namespace.as_ref().map(|one| &one.metadata),
            role: known.role.as_deref(),
            role_binding: known.role_binding.as_deref(),
            channel: known.channel.as_deref(),
            waiting_works: &works,
            condition_taints: &self.condition_taints,
            force_after: self.force_leave_after,
            now,
        })
    }

    async fn take(
        &self,
        cluster: &str,
        known: &Known,
        write: MembershipWrite,
    ) -> Result<(), WriteError> {
        let hub = &self.hub;
        let namespace = member_namespace(cluster);
        let key = Key::cluster_scoped(cluster);
        let version = known.cluster.metadata.resource_version();
        match write {
            MembershipWrite::Cluster(patch) => {
                let clusters = hub.all::<MemberCluster>();
                let patch = hub.patch("member", &clusters, cluster, &patch);
                let echo = echo(key.clone(), &key, Some(version));
                unless_gone(self.index.awaiting(echo, patch).await)?;
            }
            MembershipWrite::Namespace(change) => {
                let namespaces = hub.all::<Namespace>();
                let of = Key::cluster_scoped(&*namespace);
                let bring = self.bring("namespace", &namespaces, &namespace, change);
                self.index.awaiting(echo(of, &key, None), bring).await?;
            }
            MembershipWrite::Role(change) => {
                let (roles, name) = (hub.within(&namespace), member_role(cluster));
                let bring = self.bring("role", &roles, &name, change);
                let of = Key::new(&*namespace, &*name);
                self.index.awaiting(echo(of, &key, None), bring).await?;
            }
            MembershipWrite::RoleBinding(change) => {
                let (bindings, name) = (hub.within(&namespace), member_role_binding(cluster));
                let bring = self.bring("rolebinding", &bindings, &name, change);
                let of = Key::new(&*namespace, &*name);
                self.index.awaiting(echo(of, &key, None), bring).await?;
            }
            MembershipWrite::Channel(change) => {
                let channels = hub.within(&namespace);
                let bring = self.bring("internalmember", &channels, cluster, change);
                let of = Key::new(&*namespace, cluster);
                self.index.awaiting(echo(of, &key, None), bring).await?;
            }
            MembershipWrite::ReleaseWork(name) => {
                let works = hub.within::<Work>(&namespace);
                let patch = released(known, &name);
                unless_gone(hub.patch("work_finalizer", &works, &name, &patch).await)?;
            }
            MembershipWrite::DeleteNamespace { uid } => {
                // One that was made again meanwhile is another cluster's.
                let same = Preconditions {
                    uid: Some(uid),
                    resource_version: None,
                };
                let namespaces = hub.all::<Namespace>();
                let delete = hub.delete("namespace", &namespaces, &namespace, Some(same));
                let of = Key::cluster_scoped(&*namespace);
                self.index.awaiting(echo(of, &key, None), delete).await?;
            }
            MembershipWrite::Status(patch) => {
                let clusters = hub.all::<MemberCluster>();
                let write = hub.patch_status("member_status", &clusters, cluster, &patch);
                let echo = echo(key.clone(), &key, Some(version));
                unless_gone(self.index.awaiting(echo, write).await)?;
            }
        }
        Ok(())
    }

    async fn bring<K>(
        &self,
        target: &'static str,
        objects: &Api<K>,
        name: &str,
        change: Change<K>,
    ) -> Written
    where
        K: Resource<DynamicType = ()> + Clone + Serialize,
    {
        match change {
            Change::Create(object) => self.hub.create(target, objects, &object).await,
            Change::Patch(patch) => self.hub.patch(target, objects, name, &patch).await,
        }
    }
}

fn echo<'a>(object: Key, cluster: &'a Key, replaced: Option<&'a str>) -> Echo<'a> {
    Echo {
        of: |writes| &mut writes.belongings,
        object,
        owner: cluster,
        replaced,
    }
}

/// Returns the patch that takes the finalizer of its agent from a Work.
fn released(known: &Known, name: &str) -> Value {
    let mut works = known.waiting_works.iter();
    let finalizers = works.find(|work| work.name == name);
    let finalizers = finalizers.map_or(&[][..], |work| &work.finalizers);
    let kept: Vec<_> = finalizers
        .iter()
        .filter(|one| *one != WORK_FINALIZER)
        .collect();
    json!({ "metadata": { "finalizers": kept } })
}
