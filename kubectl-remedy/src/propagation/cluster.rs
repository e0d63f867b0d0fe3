//! The clusters that have an object or are to have it: the Work of each, and the member.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::work::APPLIED;
use karmada_api::{ClusterView, Work, cluster_of_execution_namespace};
use objects::condition::find;
use objects::health::Health;
use objects::{Key, Metadata};
use propagation_rules::cluster::READY;
use propagation_rules::execution::{Progress, unapplied_since};
use propagation_rules::works::{bound, is_delivered, kept_clusters, wanted_clusters};
use serde::Serialize;

use super::command::one_line;
use super::facts::Facts;
use super::trouble::Trouble;
use crate::writer::Writer;

/// Why a cluster has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Need {
    /// It was scheduled there.
    Scheduled,
    /// Others require it there, or every cluster has it.
    Required,
    /// It is leaving, once those elsewhere are healthy.
    Leaving,
    /// It is not to be there any more.
    Former,
}

/// A cluster that has an object, or is to have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterLink {
    pub(super) name: String,
    pub(super) need: Need,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replicas: Option<i32>,
    pub(super) work: Option<WorkLink>,
    /// `None` if there is no such cluster.
    pub(super) member: Option<MemberLink>,
    #[serde(skip)]
    pub(super) trouble: Option<Trouble>,
}

/// The Work for a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkLink {
    pub(super) name: String,
    /// `applied`, `not applied`, `paused` or `deleting`.
    pub(super) state: &'static str,
    /// The time since which it is not applied, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<Time>,
    /// The reason why it is not applied; empty if all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) health: Option<String>,
    pub(super) created: Option<Time>,
    /// Who wrote its manifests last.
    pub(super) last_writer: Option<Writer>,
}

/// A member, as its Cluster has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct MemberLink {
    /// The status of its condition `Ready`; empty if there is none.
    pub(super) ready: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) since: Option<Time>,
}

/// Returns every cluster that has the object, or is to have it.
pub(super) fn links(facts: &Facts) -> Vec<ClusterLink> {
    let mut needs: BTreeMap<&str, (Need, Option<i32>)> = BTreeMap::new();
    if let Some(binding) = facts.binding() {
        for (cluster, target) in wanted_clusters(binding) {
            let need = target.map_or((Need::Required, None), |target| {
                (Need::Scheduled, target.replicas)
            });
            needs.insert(cluster, need);
        }
        for cluster in kept_clusters(binding) {
            needs.entry(cluster).or_insert((Need::Leaving, None));
        }
    } else if facts.is_namespace() {
        let all = facts.clusters.iter();
        let staying = all.filter(|(_, cluster)| !cluster.metadata.is_deleting());
        needs.extend(staying.map(|(name, _)| (&**name, (Need::Required, None))));
    }
    let without_owner = if facts.template.is_some() {
        Need::Former
    } else {
        Need::Required
    };
    for work in facts.works.iter().filter(|work| facts.is_own(work)) {
        if let Some(cluster) = cluster_of(work) {
            needs.entry(cluster).or_insert((without_owner, None));
        }
    }
    if let Some(only) = &facts.only {
        needs.retain(|cluster, _| cluster == only);
    }
    let links = needs.into_iter();
    links
        .map(|(name, (need, replicas))| facts.link(name, need, replicas))
        .collect()
}

fn cluster_of(work: &Work) -> Option<&str> {
    cluster_of_execution_namespace(work.metadata.namespace())
}

impl Facts {
    /// Returns `true` if the Work is not that of another binding.
    fn is_own(&self, work: &Work) -> bool {
        let owner = bound(&work.metadata);
        match (owner, self.binding()) {
            (Some(owner), Some(binding)) => owner == binding.key(),
            (None, _) | (_, None) => true,
        }
    }

    fn link(&self, name: &str, need: Need, replicas: Option<i32>) -> ClusterLink {
        let works = self.works.iter();
        let mut works = works.filter(|work| cluster_of(work) == Some(name));
        let taken = works.clone().find_map(|work| bound(&work.metadata));
        let work = works.find(|work| self.is_own(work));
        let member = self.clusters.get(name).map(MemberLink::of);
        let trouble = match need {
            Need::Leaving => None,
            Need::Former => self.only.is_some().then_some(Trouble::Unneeded),
            Need::Scheduled | Need::Required => trouble(work, taken, member.as_ref()),
        };
        ClusterLink {
            name: name.to_owned(),
            need,
            replicas,
            work: work.map(WorkLink::of),
            member,
            trouble,
        }
    }
}

fn trouble(
    work: Option<&Work>,
    taken: Option<Key>,
    member: Option<&MemberLink>,
) -> Option<Trouble> {
    let Some(member) = member else {
        return Some(Trouble::NoCluster);
    };
    let Some(work) = work else {
        return Some(taken.map_or(Trouble::NoWork, Trouble::Taken));
    };
    match Progress::of(work) {
        Progress::Deleting => Some(Trouble::Deleting),
        Progress::Suspended => Some(Trouble::Paused(is_delivered(work))),
        Progress::Unapplied => Some(match work.condition(APPLIED) {
            _ if member.ready != TRUE => Trouble::Unreachable(member.says()),
            Some(applied) if applied.status == FALSE => Trouble::Failed(applied.message.clone()),
            _ => Trouble::Unapplied,
        }),
        Progress::Applied if is_unhealthy(work) => Some(Trouble::Unhealthy),
        Progress::Applied if member.ready != TRUE => Some(Trouble::NotReady(member.says())),
        Progress::Applied => None,
    }
}

fn is_unhealthy(work: &Work) -> bool {
    health(work) == Some(Health::Unhealthy.to_string())
}

/// Returns the health of a Work: that of its first object that is not well, or of its first.
fn health(work: &Work) -> Option<String> {
    let statuses = work
        .status
        .iter()
        .flat_map(|status| &status.manifest_statuses);
    let mut health = statuses.filter_map(|status| status.health.clone());
    let first = health.next()?;
    let healthy = Health::Healthy.to_string();
    if first != healthy {
        return Some(first);
    }
    Some(health.find(|other| *other != healthy).unwrap_or(first))
}

impl ClusterLink {
    /// Returns `true` if the object is to be in the cluster.
    pub(super) fn is_needed(&self) -> bool {
        matches!(self.need, Need::Scheduled | Need::Required)
    }

    /// Returns `true` if the object is leaving the cluster.
    pub(super) fn is_leaving(&self) -> bool {
        self.need == Need::Leaving
    }
}

impl WorkLink {
    fn of(work: &Work) -> Self {
        let progress = Progress::of(work);
        let state = match progress {
            Progress::Applied => "applied",
            Progress::Unapplied => "not applied",
            Progress::Suspended => "paused",
            Progress::Deleting => "deleting",
        };
        let since = unapplied_since(work).filter(|_| progress == Progress::Unapplied);
        let applied = work.condition(APPLIED);
        let message = match applied {
            Some(applied) if applied.status != TRUE => &applied.message,
            _ => "",
        };
        Self {
            name: work.metadata.name().to_owned(),
            state,
            since: since.map(Time),
            message: message.to_owned(),
            health: health(work),
            created: work.metadata.creation_timestamp.clone(),
            last_writer: Writer::of(&work.metadata, "spec", "workload"),
        }
    }
}

impl MemberLink {
    fn of(cluster: &ClusterView) -> Self {
        let ready = find(&cluster.status.conditions, READY).cloned();
        let ready = ready.unwrap_or_default();
        Self {
            ready: ready.status,
            reason: ready.reason,
            message: ready.message,
            since: ready.last_transition_time,
        }
    }

    /// Returns its readiness, in words.
    fn says(&self) -> String {
        if self.ready.is_empty() {
            return "nobody has asked it".to_owned();
        }
        if self.message.is_empty() {
            return self.reason.clone();
        }
        format!("{}: {}", self.reason, one_line(&self.message))
    }

    /// Returns whether it is ready, in a word or two.
    pub(super) fn state(&self) -> String {
        match &*self.ready {
            TRUE => "ready".to_owned(),
            "" => "unknown".to_owned(),
            _ => format!("not ready: {}", self.reason),
        }
    }
}
