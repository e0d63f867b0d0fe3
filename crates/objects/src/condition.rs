//! The conditions in an object's status, whatever type they are read as.
//!
//! For the API server the list is atomic: a plain write of it erases all that others have written since it was read.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, from_value, json};

use crate::lenient::{self, Any};
use crate::patch::{JsonPatch, guarded};

/// The status `True` on the wire.
pub const TRUE: &str = "True";
/// The status `False` on the wire.
pub const FALSE: &str = "False";

/// A condition, with the fields that karmada-rs uses. The API does not validate it: any client may leave
/// fields out, or write null for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Condition {
    /// The condition's type, unique among the conditions of an object.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`; empty if the writer left it out.
    pub status: String,
    /// The reason of the last transition, one word; empty if the writer left it out.
    pub reason: String,
    /// The details.
    pub message: String,
    /// The time at which the status changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// The generation of the object's spec that the condition is about. The conditions of a `Cluster` have
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub observed_generation: Option<i64>,
    /// Set if the status is of another type than text. Nothing may be decided on it.
    #[serde(skip)]
    pub unclear: bool,
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(default, deserialize_with = "lenient::nullable")]
            r#type: String,
            #[serde(default)]
            status: Option<Any<String>>,
            #[serde(default, deserialize_with = "lenient::or_default")]
            reason: String,
            #[serde(default, deserialize_with = "lenient::or_default")]
            message: String,
            #[serde(default, deserialize_with = "lenient::option")]
            last_transition_time: Option<Time>,
            #[serde(default, deserialize_with = "lenient::option")]
            observed_generation: Option<i64>,
        }
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            type_: wire.r#type,
            unclear: matches!(wire.status, Some(Any(None))),
            status: wire
                .status
                .and_then(|Any(status)| status)
                .unwrap_or_default(),
            reason: wire.reason,
            message: wire.message,
            last_transition_time: wire.last_transition_time,
            observed_generation: wire.observed_generation,
        })
    }
}

/// A condition, of one type or another.
pub trait AnyCondition {
    /// Returns its type; empty if it cannot be read.
    fn kind(&self) -> &str;
    /// Returns its status; empty if it cannot be read.
    fn status(&self) -> &str;
    /// Returns the time at which the status changed last, if its writer left one.
    fn last_transition(&self) -> Option<Time>;
}

impl AnyCondition for Condition {
    fn kind(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn last_transition(&self) -> Option<Time> {
        self.last_transition_time.clone()
    }
}

impl AnyCondition for meta::Condition {
    fn kind(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn last_transition(&self) -> Option<Time> {
        Some(self.last_transition_time.clone())
    }
}

impl AnyCondition for Value {
    fn kind(&self) -> &str {
        self["type"].as_str().unwrap_or_default()
    }

    fn status(&self) -> &str {
        self["status"].as_str().unwrap_or_default()
    }

    fn last_transition(&self) -> Option<Time> {
        from_value(self["lastTransitionTime"].clone()).ok()
    }
}

/// Returns the first condition of the type `kind`.
pub fn find<'a, C: AnyCondition + 'a>(
    conditions: impl IntoIterator<Item = &'a C>,
    kind: &str,
) -> Option<&'a C> {
    let mut conditions = conditions.into_iter();
    conditions.find(|condition| condition.kind() == kind)
}

/// Returns the transition time of a condition that takes the place of `old`: by convention it changes with the
/// status only, not with reason or message.
pub fn transition(old: Option<&impl AnyCondition>, status: &str, now: Timestamp) -> Time {
    let same = old.filter(|old| old.status() == status);
    let since = same.and_then(AnyCondition::last_transition);
    since.unwrap_or_else(|| whole_seconds(now))
}

/// Returns the time as `metav1.Time` has it.
pub fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

/// Puts `new` in the place of the first condition of its type, or at the end.
pub fn upsert<C: AnyCondition>(conditions: &mut Vec<C>, new: C) {
    let mut places = conditions.iter_mut();
    match places.find(|old| old.kind() == new.kind()) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

/// Returns the merge patch that puts `new` in the place of the first condition of its type, or at the end, unless the
/// object has changed since `resource_version`.
///
/// The elements are raw: those of others go back as they were, down to fractions of a second, which a typed condition
/// loses.
pub fn upsert_patch(conditions: &[Value], new: Value, resource_version: Option<&str>) -> Value {
    let mut list = conditions.to_vec();
    upsert(&mut list, new);
    guarded(
        resource_version,
        json!({ "status": { "conditions": list } }),
    )
}

/// Returns the merge patch that leaves only the conditions that are `kept`, unless the object has changed since
/// `resource_version`.
pub fn retain_patch(
    conditions: &[Value],
    kept: impl Fn(&Value) -> bool,
    resource_version: Option<&str>,
) -> Value {
    let list: Vec<_> = conditions.iter().filter(|one| kept(one)).collect();
    guarded(
        resource_version,
        json!({ "status": { "conditions": list } }),
    )
}

impl JsonPatch {
    /// Puts each of `new` in the place of the first condition of its type, or at the end of the list `current`.
    /// The patch needs a guard, or another may add one of the same type meanwhile.
    pub fn conditions<C: AnyCondition + Serialize>(&mut self, current: Option<&[C]>, new: &[C]) {
        const LIST: [&str; 2] = ["status", "conditions"];
        if current.is_none() && !new.is_empty() {
            self.add(LIST, json!([]));
        }
        let current = current.unwrap_or_default();
        for new in new {
            let place = current.iter().position(|old| old.kind() == new.kind());
            let Some(index) = place.map(|index| index.to_string()) else {
                self.add(["status", "conditions", "-"], json!(new));
                continue;
            };
            self.test_name(["status", "conditions", &index, "type"], new.kind());
            self.replace(["status", "conditions", &index], json!(new));
        }
    }
}

#[cfg(test)]
mod tests;
