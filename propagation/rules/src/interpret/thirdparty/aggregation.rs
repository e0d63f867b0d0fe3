//! The status of a template, put together from the reports of its copies.

use objects::Metadata;
use serde_json::{Map, Value, json};

use super::reading::{is_empty, is_true, list, text};
use crate::interpret::aggregate::is_same;
use crate::interpret::members::{MemberStatus, earliest, is_observed, latest, statuses, sums};
use crate::interpret::reflect::number;

/// A template, and the reports of its copies.
pub(in crate::interpret) struct Aggregation<'a> {
    template: &'a Value,
    current: &'a Value,
    members: &'a [MemberStatus<'a>],
    rebuilt: bool,
}

impl<'a> Aggregation<'a> {
    /// Creates the aggregation of `members`; see [`template_status`](fn@super::super::template_status).
    pub(in crate::interpret) fn new(
        template: &'a Value,
        members: &'a [MemberStatus<'a>],
        rebuilt: bool,
    ) -> Self {
        Self {
            template,
            current: template.get("status").unwrap_or(&Value::Null),
            members,
            rebuilt,
        }
    }

    /// Returns the merge patch by which the template's status becomes that of `aggregate`; `None` if it is that.
    pub(in crate::interpret) fn patch(
        &self,
        aggregate: fn(&Self) -> Option<Map<String, Value>>,
    ) -> Option<Value> {
        let wanted = Value::Object(aggregate(self)?);
        if is_same(Some(self.current), &wanted) {
            return None;
        }
        // Zeros and all: some kinds require their counts.
        let patch = difference(self.current, &wanted);
        Some(json!({ "status": patch }))
    }

    /// Returns the reports of the members, in the order of their names.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let members = self.members.iter();
        members.filter_map(|member| Some((member.cluster, member.status?)))
    }

    /// Returns the reported statuses.
    pub(super) fn statuses(&self) -> impl Iterator<Item = &'a Value> {
        statuses(self.members)
    }

    /// Returns the number of copies, those included that report nothing.
    pub(super) fn copies(&self) -> usize {
        self.members.len()
    }

    /// Returns the first status that is reported. Of a single copy, it is the template's.
    pub(super) fn alone(&self) -> Option<Map<String, Value>> {
        let status = self.statuses().next()?;
        status.as_object().cloned()
    }

    /// Returns the sums of the fields `names`.
    pub(super) fn sums(&self, names: &[&str]) -> Map<String, Value> {
        sums(self.members, names)
    }

    /// Returns the first value of a field that is not empty, or null.
    pub(super) fn first(&self, name: &str) -> Value {
        self.values_of(name).next().cloned().unwrap_or_default()
    }

    /// Returns the last value of a field that is not empty, or null.
    pub(super) fn last(&self, name: &str) -> Value {
        self.values_of(name).last().cloned().unwrap_or_default()
    }

    /// Returns the last text of a field that is not empty, or an empty one.
    pub(super) fn last_text(&self, name: &str) -> Value {
        let texts = self.values_of(name).filter(|value| value.is_string());
        texts.last().cloned().unwrap_or_else(|| json!(""))
    }

    fn values_of(&self, name: &str) -> impl Iterator<Item = &'a Value> {
        let values = self.statuses().filter_map(move |status| status.get(name));
        values.filter(|value| !is_empty(value))
    }

    /// Returns the smallest of the times in a field, or null.
    pub(super) fn earliest(&self, name: &str) -> Value {
        json!(earliest(self.members, name))
    }

    /// Returns the greatest of the times in a field, or null.
    pub(super) fn latest(&self, name: &str) -> Value {
        json!(latest(self.members, name))
    }

    /// Returns the greatest number in a field.
    pub(super) fn greatest(&self, name: &str) -> i64 {
        let numbers = self.statuses().map(|status| number(Some(status), name));
        numbers.max().unwrap_or_default()
    }

    /// Returns the elements of all lists in a field.
    pub(super) fn joined(&self, name: &str) -> Vec<Value> {
        let lists = self.statuses().filter_map(|status| status.get(name));
        let elements = lists.filter_map(Value::as_array).flatten();
        elements.cloned().collect()
    }

    /// Returns the maps in a field as one; of equal keys the last counts.
    pub(super) fn united(&self, name: &str) -> Map<String, Value> {
        let maps = self.statuses().filter_map(|status| status.get(name));
        let entries = maps.filter_map(Value::as_object).flatten();
        entries
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Returns the generation of the template that every member has seen; the one that was reported before if some
    /// has not seen the newest. Where there is no copy, there is nothing to wait for.
    pub(super) fn observed_generation(&self) -> Value {
        let is_seen = self.rebuilt && self.members.iter().all(is_observed);
        let generation = if is_seen || self.members.is_empty() {
            self.template.generation().unwrap_or_default()
        } else {
            number(Some(self.current), "observedGeneration")
        };
        generation.into()
    }

    /// Returns all conditions, each with its cluster before the message. Those of a type, status and reason are one.
    pub(super) fn conditions(&self) -> Vec<Value> {
        let mut merged: Vec<Value> = Vec::new();
        for (cluster, status) in self.members() {
            for condition in list(status, "/conditions").filter(|one| one.is_object()) {
                let message = format!("{cluster}={}", text(condition, "/message"));
                let mut known = merged.iter_mut();
                if let Some(known) = known.find(|known| is_alike(known, condition)) {
                    known["message"] = format!("{}, {message}", text(known, "/message")).into();
                } else {
                    let mut condition = condition.clone();
                    condition["message"] = message.into();
                    merged.push(condition);
                }
            }
        }
        merged
    }

    /// Returns the conditions of the type `kind` that are True in members, with the names of these.
    pub(super) fn with_condition(&self, kind: &str) -> Vec<(&'a str, &'a Value)> {
        let members = self.members();
        let found = members.filter_map(|(cluster, status)| {
            let found = list(status, "/conditions").find(|condition| is_true(condition, kind))?;
            Some((cluster, found))
        });
        found.collect()
    }

    /// Returns the status as it is, but for `fields`; those that are null go.
    pub(super) fn keeping(&self, fields: Map<String, Value>) -> Map<String, Value> {
        let mut status = self.current.as_object().cloned().unwrap_or_default();
        status.extend(fields);
        status.retain(|_, value| !value.is_null());
        status
    }
}

/// Returns `true` if two conditions have the same type, status and reason.
fn is_alike(one: &Value, other: &Value) -> bool {
    let mut fields = ["/type", "/status", "/reason"].into_iter();
    fields.all(|field| text(one, field) == text(other, field))
}

/// Returns the merge patch (RFC 7396) that makes `wanted` of `current`.
fn difference(current: &Value, wanted: &Value) -> Value {
    let (Some(current), Some(wanted)) = (current.as_object(), wanted.as_object()) else {
        return wanted.clone();
    };
    let gone = current.keys().filter(|name| !wanted.contains_key(*name));
    let gone = gone.map(|name| (name.clone(), Value::Null));
    let other = wanted.iter().filter_map(|(name, value)| {
        let now = current.get(name);
        (now != Some(value)).then(|| {
            let change = difference(now.unwrap_or(&Value::Null), value);
            (name.clone(), change)
        })
    });
    gone.chain(other).collect::<Map<_, _>>().into()
}
