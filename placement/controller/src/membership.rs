//! Keeps the objects of one cluster of the fleet on the hub, and reports the words of its agent.

use std::sync::Arc;

use fleet_api::names::{WORK_FINALIZER, member_namespace, member_role, member_role_binding};
use fleet_api::{InternalMemberCluster, MemberCluster};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::expectations::Subject;
use kube::Resource;
use objects::condition_taint::ConditionTaint;
use objects::write::Plan;
use objects::{Key, Metadata};
use placement_rules::membership::{MembershipFacts, plan};
use tokio::time::Instant;

use crate::index::Index;
use crate::requests::HubApi;
use crate::shared::SharedIndex;
use crate::topics::MEMBERS;

/// Reconciles clusters of the fleet.
pub(crate) struct MembershipReconciler {
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) hub: HubApi,
    /// The taints that clusters have for their conditions.
    pub(crate) condition_taints: Vec<ConditionTaint>,
    pub(crate) force_leave_after: SignedDuration,
    pub(crate) clock: fn() -> Timestamp,
}

/// A cluster and its objects.
struct Known {
    cluster: Arc<MemberCluster>,
    namespace: Option<Arc<Namespace>>,
    role: Option<Arc<Role>>,
    role_binding: Option<Arc<RoleBinding>>,
    channel: Option<Arc<InternalMemberCluster>>,
    /// Its Works that wait for its agent.
    waiting_works: Vec<ObjectMeta>,
}

impl Known {
    fn read(index: &Index, name: &str) -> Option<Self> {
        let cluster = Arc::clone(index.fleet.get(name)?);
        let namespace = member_namespace(name);
        let names = [
            member_role(name),
            member_role_binding(name),
            name.to_owned(),
        ];
        let [role, role_binding, channel] = names.map(|name| Key::new(&*namespace, name));
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
            role: index.roles.get(&role).map(Arc::clone),
            role_binding: index.role_bindings.get(&role_binding).map(Arc::clone),
            channel: index.channels.get(&channel).map(Arc::clone),
            waiting_works,
        })
    }
}

/// Returns the Works in a namespace that have the finalizer of its agent.
fn waiting(index: &Index, namespace: &str) -> Vec<ObjectMeta> {
    let works = index.works.iter();
    let works = works.filter(|(key, _)| key.namespace == namespace);
    let works = works.map(|(_, work)| work.meta());
    let waiting = works.filter(|work| work.has_finalizer(WORK_FINALIZER));
    waiting.cloned().collect()
}

impl Controller for MembershipReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.index.read(|index| index.fleet.keys())
    }

    fn held_until(&self, key: &Key) -> Option<Instant> {
        self.hub.held_until(MEMBERS, key)
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let known = self.index.read(|index| Known::read(index, &key.name));
        let Some(known) = known else {
            return Ok(());
        };
        let now = (self.clock)();
        let Plan {
            writes, wake_at, ..
        } = self.plan(&known, now);
        let subject = Subject::new(MEMBERS, key);
        for write in &writes {
            self.hub.committer.write(write, Some(&subject)).await?;
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
    fn plan(&self, known: &Known, now: Timestamp) -> Plan {
        plan(&MembershipFacts {
            cluster: &known.cluster,
            namespace: known.namespace.as_ref().map(|one| &one.metadata),
            role: known.role.as_deref(),
            role_binding: known.role_binding.as_deref(),
            channel: known.channel.as_deref(),
            waiting_works: &known.waiting_works.iter().collect::<Vec<_>>(),
            condition_taints: &self.condition_taints,
            force_after: self.force_leave_after,
            now,
        })
    }
}
