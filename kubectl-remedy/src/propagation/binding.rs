//! The binding of a template: the result of scheduling, and the reason why it waits.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::condition::{FALSE, TRUE};
use karmada_api::{Condition, GracefulEvictionTask};
use objects::Metadata;
use propagation_rules::binding_ref::BindingRef;
use propagation_rules::schedule::Scheduler;
use serde::Serialize;
use serde_json::Value;

use super::cause::Cause;
use super::command::one_line;
use super::facts::Facts;
use crate::age::age;

/// The scheduler of a binding that names none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The binding of a template.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BindingLink {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    pub(super) name: String,
    /// The condition `Scheduled`.
    pub(super) scheduled: Option<Condition>,
    /// The group of clusters in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) affinity_group: Option<String>,
    /// The replicas that it asks room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replicas: Option<i32>,
    /// The room that it asks for each of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) requests: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) evictions: Vec<Eviction>,
    /// The bindings that require it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) required_by: Vec<String>,
    /// The reason why it does not follow its policy yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<String>,
}

/// An eviction that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Eviction {
    pub(super) from_cluster: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) since: Option<Time>,
}

impl Eviction {
    fn of(task: &GracefulEvictionTask) -> Self {
        Self {
            from_cluster: task.from_cluster.clone(),
            reason: task.reason.clone().unwrap_or_default(),
            message: task.message.clone().unwrap_or_default(),
            since: task.creation_timestamp.clone(),
        }
    }
}

impl BindingLink {
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let binding = facts.binding()?;
        let key = binding.key();
        let evictions = binding.spec.graceful_eviction_tasks.iter().flatten();
        let required_by = facts.required_by();
        Some(Self {
            namespace: key.namespace,
            name: key.name,
            scheduled: binding.scheduled().cloned(),
            affinity_group: binding.observed_group().map(ToOwned::to_owned),
            replicas: binding.spec.replicas,
            requests: requests(binding),
            evictions: evictions.map(Eviction::of).collect(),
            required_by: required_by.iter().map(ToString::to_string).collect(),
            waiting: facts.waiting().map(|(_, waiting)| waiting),
        })
    }

    /// Returns the binding as lines for people, at `now`.
    pub(super) fn lines(&self, now: Timestamp) -> Vec<String> {
        let name = objects::Key::new(&*self.namespace, &*self.name);
        let mut lines = vec![match &self.scheduled {
            None => format!("{name}: nobody has scheduled it"),
            Some(scheduled) => {
                let since = age(scheduled.last_transition_time.as_ref(), now);
                let (status, reason) = (&scheduled.status, &scheduled.reason);
                let message = one_line(&scheduled.message);
                format!("{name}: Scheduled is {status} for {since}: {reason}: {message}")
            }
        }];
        if let Some(group) = &self.affinity_group {
            lines.push(format!("the group of clusters in use is {group}"));
        }
        if let Some(replicas) = self.replicas.filter(|replicas| *replicas > 0) {
            let requests = self.requests.iter();
            let requests: Vec<_> = requests
                .map(|(name, amount)| format!("{name} {amount}"))
                .collect();
            let each = match requests.join(", ") {
                none if none.is_empty() => none,
                each => format!(", each with {each}"),
            };
            lines.push(format!("it asks for {replicas} replicas{each}"));
        }
        for eviction in &self.evictions {
            let since = age(eviction.since.as_ref(), now);
            let why = [&eviction.reason, &eviction.message].map(|text| one_line(text));
            let why: Vec<_> = why.into_iter().filter(|text| !text.is_empty()).collect();
            let (from, why) = (&eviction.from_cluster, why.join(": "));
            lines.push(format!("it is leaving {from} for {since}: {why}"));
        }
        if !self.required_by.is_empty() {
            lines.push(format!("it follows {}", self.required_by.join(", ")));
        }
        lines.extend(self.waiting.clone());
        lines
    }
}

fn requests(binding: BindingRef<'_>) -> BTreeMap<String, String> {
    let needs = binding.spec.replica_requirements.as_ref();
    let requests = needs.and_then(|needs| needs.get("resourceRequest")?.as_object());
    let requests = requests.into_iter().flatten();
    requests
        .map(|(name, amount)| match amount {
            Value::String(amount) => (name.clone(), amount.clone()),
            other => (name.clone(), other.to_string()),
        })
        .collect()
}

impl Facts {
    /// Returns the reason why the binding has no clusters.
    pub(super) fn binding_cause(&self) -> Option<Cause> {
        let binding = self.binding()?;
        if binding.metadata.is_deleting() {
            return Some(Cause::BindingDeleting);
        }
        let suspension = binding.spec.suspension.as_ref();
        if suspension.is_some_and(|suspension| suspension.scheduling == Some(true)) {
            return Some(Cause::SchedulingSuspended);
        }
        let name = binding.spec.scheduler_name.as_deref();
        let name = name
            .filter(|name| !name.is_empty())
            .unwrap_or(DEFAULT_SCHEDULER);
        let scheduler = Scheduler {
            name: name.to_owned(),
            ..Scheduler::default()
        };
        // A template that is merely attached goes where others go.
        if !scheduler.schedules(binding) {
            return None;
        }
        match binding.scheduled() {
            Some(says) if says.status == TRUE => None,
            Some(says) if says.status == FALSE => Some(Cause::Unschedulable(
                says.reason.clone(),
                says.message.clone(),
            )),
            _ => Some(Cause::NotScheduled(scheduler.name)),
        }
    }
}
