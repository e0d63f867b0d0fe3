//! The status of a binding: the state of its template in each cluster, as the Works report it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::work::{APPLIED, ManifestStatus};
use karmada_api::{AggregatedStatusItem, Condition, Work, condition, names};
use objects::Metadata;
use objects::condition::{find, transition};
use objects::message;
use objects::patch::JsonPatch;
use objects::write::{Guard, Plan, Write};
use serde_json::json;

use super::interpret::MemberStatus;
use super::works::{
    cluster_of, is_delivered, kept_clusters, other_owner, wanted_clusters, work_name,
};
use crate::binding_ref::BindingRef;

/// The condition of a binding that is True if its template was applied to every cluster.
pub const FULLY_APPLIED: &str = "FullyApplied";
/// The condition of a binding that is False while dispatching is suspended.
pub const DISPATCHING: &str = "Dispatching";
/// The condition of a binding that is False while its Lazy policy waits for an edit of the template.
pub const POLICY_APPLIED: &str = "PolicyApplied";
/// The health of a template of which nothing is known.
const UNKNOWN: &str = "Unknown";

/// A change of a cluster's result, and not only of details of its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition;

/// Plans the status of a binding. `works` are those with its ID; `waiting` names the edit for which a binding waits
/// that does not follow its policy yet.
pub fn plan(
    binding: BindingRef<'_>,
    works: &[&Work],
    waiting: Option<String>,
    now: &Time,
) -> Plan<Transition> {
    let facts = Facts::new(binding, works);
    let status = binding.status;
    let current = status.and_then(|status| status.aggregated_status.as_deref());
    let current = current.unwrap_or_default();
    let items = facts.items(current);

    let mut patch = JsonPatch::default();
    if status.is_none() {
        patch.add(["status"], json!({}));
    }
    let mut is_transition = false;
    let is_same = is_same(&items, current);
    if !is_same {
        is_transition = outcomes(&items) != outcomes(current);
        patch.add(["status", "aggregatedStatus"], json!(items));
    }
    let list = status.and_then(|status| status.conditions.as_deref());
    let known = list.unwrap_or_default();
    let wanted = [
        facts.dispatching(known),
        facts.fully_applied(known, &items),
        policy_applied(known, waiting),
    ];
    let wanted = wanted.into_iter().flatten();
    let changed: Vec<Condition> = wanted
        .filter_map(|wanted| changed(known, wanted, now))
        .collect();
    is_transition |= changed
        .iter()
        .filter(|new| new.type_ != POLICY_APPLIED)
        .any(|new| find(known, &new.type_).is_none_or(|old| old.status != new.status));
    patch.conditions(list, &changed);
    if is_same && changed.is_empty() {
        return Plan::default();
    }
    // An element that is not in this version may have been added since.
    let is_added = changed.iter().any(|new| find(known, &new.type_).is_none());
    let guard = if status.is_none() || is_added {
        Guard::Version
    } else {
        Guard::None
    };
    let write = Write::json("binding_status", binding.object(), patch);
    Plan {
        writes: vec![write.of_status().guarded(guard)],
        events: is_transition.then_some(Transition).into_iter().collect(),
        wake_at: None,
    }
}

/// Returns the condition with the time of its transition, unless the list has it as it is.
fn changed(list: &[Condition], mut wanted: Condition, now: &Time) -> Option<Condition> {
    let old = find(list, &wanted.type_);
    let same_status = old.filter(|old| old.status == wanted.status);
    if same_status.is_some_and(|old| old.reason == wanted.reason && old.message == wanted.message) {
        return None;
    }
    wanted.last_transition_time = Some(transition(old, &wanted.status, now.0));
    Some(wanted)
}

/// Returns the state of the template's copy in each cluster that should have one, for the status of the
/// template.
pub fn members<'a>(binding: BindingRef<'a>, works: &'a [Work]) -> Vec<MemberStatus<'a>> {
    let works: Vec<&Work> = works.iter().collect();
    let facts = Facts::new(binding, &works);
    let expected = facts.works.iter().copied();
    expected
        .filter(|(cluster, _)| facts.expected.contains(cluster))
        .map(|(cluster, work)| {
            let manifest = work.spec.workload.manifests.first();
            let generation = manifest
                .and_then(|manifest| manifest.annotation(names::TEMPLATE_GENERATION))
                .and_then(|generation| generation.parse().ok());
            let is_applied = work
                .condition(APPLIED)
                .is_some_and(|applied| applied.status == condition::TRUE);
            let reported = facts.reported(work).filter(|_| is_applied);
            MemberStatus {
                cluster,
                status: reported.and_then(|reported| reported.status.as_ref()),
                manifest_generation: generation.unwrap_or_default(),
            }
        })
        .collect()
}

struct Facts<'a> {
    binding: BindingRef<'a>,
    /// The clusters that should have the template.
    expected: BTreeSet<&'a str>,
    /// The Works by cluster, those that are being deleted included: their copies may still run.
    works: Vec<(&'a str, &'a Work)>,
}

impl<'a> Facts<'a> {
    fn new(binding: BindingRef<'a>, works: &[&'a Work]) -> Self {
        let name = work_name(binding);
        let mut works: Vec<(&str, &Work)> = works
            .iter()
            .filter(|work| work.metadata.name.as_deref() == Some(&name))
            .filter(|work| other_owner(work, binding).is_none())
            .filter_map(|work| Some((cluster_of(work)?, *work)))
            .collect();
        works.sort_by_key(|(cluster, _)| *cluster);
        let mut expected: BTreeSet<&str> = wanted_clusters(binding).into_keys().collect();
        expected.extend(kept_clusters(binding));
        Self {
            binding,
            expected,
            works,
        }
    }

    /// Returns an item for each cluster of which something is known, by name.
    fn items(&self, current: &[AggregatedStatusItem]) -> Vec<AggregatedStatusItem> {
        let mut items = Vec::new();
        for (cluster, work) in &self.works {
            let was_there = current.iter().any(|item| item.cluster_name == **cluster);
            match work.condition(APPLIED) {
                Some(applied) if applied.status == condition::TRUE => {
                    let reported = self.reported(work);
                    let health = reported.and_then(|status| status.health.clone());
                    items.push(AggregatedStatusItem {
                        cluster_name: (*cluster).to_owned(),
                        applied: Some(true),
                        applied_message: None,
                        health: Some(health.unwrap_or_else(|| UNKNOWN.to_owned())),
                        status: reported.and_then(|status| status.status.clone()),
                    });
                }
                // A Work that was just made has nothing to report yet.
                None if !was_there && !work.is_suspended() => {}
                applied => items.push(AggregatedStatusItem {
                    cluster_name: (*cluster).to_owned(),
                    applied: None,
                    applied_message: applied
                        .map(|applied| message::listed(&applied.message, self.works.len()))
                        .filter(|message| !message.is_empty())
                        .map(str::to_owned),
                    health: Some(UNKNOWN.to_owned()),
                    status: None,
                }),
            }
        }
        items
    }

    fn reported<'w>(&self, work: &'w Work) -> Option<&'w ManifestStatus> {
        let resource = &self.binding.spec.resource;
        let statuses = work.status.as_ref().map(|status| &status.manifest_statuses);
        statuses?.iter().find(|status| {
            let manifest = &status.identifier;
            manifest.kind == resource.kind
                && manifest.name == resource.name
                && manifest.namespace == resource.namespace.as_deref().unwrap_or_default()
        })
    }

    /// Returns the clusters that should have the current manifest, and do not because of a suspension.
    fn suspended(&self) -> Vec<(&'a str, &'a Work)> {
        let works = self.works.iter().copied();
        works
            .filter(|(cluster, work)| self.expected.contains(cluster) && work.is_suspended())
            .collect()
    }

    fn fully_applied(
        &self,
        conditions: &[Condition],
        items: &[AggregatedStatusItem],
    ) -> Option<Condition> {
        let is_known = find(conditions, FULLY_APPLIED).is_some();
        let late: Vec<&str> = self
            .suspended()
            .into_iter()
            .filter(|(_, work)| !is_delivered(work))
            .map(|(cluster, _)| cluster)
            .collect();
        if !late.is_empty() {
            let message = format!(
                "Dispatching is suspended before the template was delivered to {}",
                listed(&late)
            );
            return Some(new_condition(
                FULLY_APPLIED,
                condition::FALSE,
                "DispatchSuspended",
                message,
            ));
        }
        let is_applied = self.expected.iter().all(|cluster| {
            let mut items = items.iter();
            items.any(|item| item.cluster_name == **cluster && item.applied == Some(true))
        });
        // A template without clusters is applied nowhere.
        if !self.expected.is_empty() && is_applied {
            let message = "All works have been successfully applied";
            return Some(new_condition(
                FULLY_APPLIED,
                condition::TRUE,
                "FullyAppliedSuccess",
                message.to_owned(),
            ));
        }
        let has_failed = items.iter().any(|item| item.applied != Some(true));
        (is_known || has_failed).then(|| {
            let message = "Failed to apply all works, see status.aggregatedStatus for details";
            new_condition(
                FULLY_APPLIED,
                condition::FALSE,
                "FullyAppliedFailed",
                message.to_owned(),
            )
        })
    }

    fn dispatching(&self, conditions: &[Condition]) -> Option<Condition> {
        let suspended = self.suspended();
        if suspended.is_empty() {
            let is_known = find(conditions, DISPATCHING).is_some();
            return is_known.then(|| {
                let message = "The template is being dispatched to its clusters.";
                new_condition(
                    DISPATCHING,
                    condition::TRUE,
                    "Dispatching",
                    message.to_owned(),
                )
            });
        }
        let clusters: Vec<String> = suspended
            .into_iter()
            .map(|(cluster, work)| format!("{cluster} ({})", self.delivery(work)))
            .collect();
        let clusters: Vec<&str> = clusters.iter().map(String::as_str).collect();
        let message = format!("Dispatching is suspended on {}.", listed(&clusters));
        Some(new_condition(
            DISPATCHING,
            condition::FALSE,
            "SuspendDispatching",
            message,
        ))
    }

    /// Returns the version of the template that a suspended cluster has.
    fn delivery(&self, work: &Work) -> String {
        if is_delivered(work) {
            return "up to date".to_owned();
        }
        let status = self
            .reported(work)
            .and_then(|reported| reported.status.as_ref());
        let generation =
            status.and_then(|status| status.get("resourceTemplateGeneration")?.as_i64());
        match generation {
            Some(generation) => format!("has generation {generation}"),
            None if work.condition(APPLIED).is_some() => "has an earlier one".to_owned(),
            None => "has none".to_owned(),
        }
    }
}

fn policy_applied(conditions: &[Condition], waiting: Option<String>) -> Option<Condition> {
    let Some(message) = waiting else {
        let is_known = find(conditions, POLICY_APPLIED).is_some();
        return is_known.then(|| {
            let message = "The binding follows its policy.".to_owned();
            new_condition(POLICY_APPLIED, condition::TRUE, "PolicyApplied", message)
        });
    };
    let reason = "WaitsForTemplate";
    Some(new_condition(
        POLICY_APPLIED,
        condition::FALSE,
        reason,
        message,
    ))
}

fn new_condition(kind: &str, status: &str, reason: &str, message: String) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        ..Condition::default()
    }
}

/// Returns the names, of which a message has room for some.
fn listed(names: &[&str]) -> String {
    const ROOM: usize = 10;
    let (shown, rest) = names.split_at(names.len().min(ROOM));
    match rest.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns `true` if the lists are the same: a field that is `false` is absent on the wire.
fn is_same(left: &[AggregatedStatusItem], right: &[AggregatedStatusItem]) -> bool {
    normalized(left) == normalized(right)
}

fn normalized(items: &[AggregatedStatusItem]) -> Vec<AggregatedStatusItem> {
    let mut items = items.to_vec();
    for item in &mut items {
        item.applied = item.applied.filter(|applied| *applied);
        item.applied_message = item.applied_message.take().filter(|text| !text.is_empty());
    }
    items
}

fn outcomes(items: &[AggregatedStatusItem]) -> Vec<(&str, bool, Option<&str>)> {
    let items = items.iter();
    items
        .map(|item| {
            let is_applied = item.applied == Some(true);
            (
                item.cluster_name.as_str(),
                is_applied,
                item.health.as_deref(),
            )
        })
        .collect()
}
