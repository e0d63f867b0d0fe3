//! Values that a clock has made: they are no news by themselves.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The age of a time that whoever answers has taken from a clock: that of an answer, and some difference of clocks.
const RECENT: SignedDuration = SignedDuration::from_mins(1);

/// A value, and the same at another time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The value.
    pub value: Value,
    /// The value that the same question has at another time, if it may be another.
    pub at_another_time: Option<Value>,
}

impl From<Value> for Timed {
    fn from(value: Value) -> Self {
        Self {
            value,
            at_another_time: None,
        }
    }
}

impl Timed {
    /// Creates the value that somebody has answered at `now` who cannot be asked as of another time: the times around
    /// `now` in it may be of a clock.
    pub fn answered(value: Value, now: Timestamp) -> Self {
        let mut other = value.clone();
        take_recent(&mut other, now);
        Self {
            at_another_time: Some(other).filter(|other| *other != value),
            value,
        }
    }

    /// Returns the value, with all that the clock has made of it as `current` has it, where it has that at all.
    pub fn with_times_of(&self, current: &Value) -> Value {
        let mut value = self.value.clone();
        if let Some(other) = &self.at_another_time {
            keep_times(&mut value, other, current);
        }
        value
    }

    /// Returns `current` if nothing but the time differs from it, and the value otherwise.
    pub fn unless_only_times_differ_from(self, current: &Value) -> Value {
        if self.with_times_of(current) == *current {
            current.clone()
        } else {
            self.value
        }
    }
}

/// Takes the times around `now` out of a value (RFC 3339).
fn take_recent(value: &mut Value, now: Timestamp) {
    match value {
        Value::String(text) => {
            let time = text.parse::<Timestamp>();
            if time.is_ok_and(|time| now.duration_since(time).abs() <= RECENT) {
                value.take();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|one| take_recent(one, now)),
        Value::Object(fields) => fields.values_mut().for_each(|one| take_recent(one, now)),
        _ => {}
    }
}

fn keep_times(value: &mut Value, other: &Value, current: &Value) {
    match (&mut *value, other, current) {
        (value, other, _) if value == other => {}
        (Value::Object(value), Value::Object(other), Value::Object(current)) => {
            for (name, field) in value.iter_mut() {
                if let (Some(other), Some(current)) = (other.get(name), current.get(name)) {
                    keep_times(field, other, current);
                }
            }
        }
        (Value::Array(value), Value::Array(other), Value::Array(current))
            if value.len() == other.len() && value.len() == current.len() =>
        {
            for ((value, other), current) in value.iter_mut().zip(other).zip(current) {
                keep_times(value, other, current);
            }
        }
        (Value::Object(_) | Value::Array(_), ..) | (_, _, Value::Null) => {}
        (value, _, current) => *value = current.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn timed(phase: &str) -> Timed {
        Timed {
            value: json!({ "phase": phase, "at": "12:00", "list": [{ "at": 1, "n": 2 }] }),
            at_another_time: Some(
                json!({ "phase": phase, "at": "13:07", "list": [{ "at": 5, "n": 2 }] }),
            ),
        }
    }

    /// Values of the clock stay as they were, unless something else is news.
    #[test]
    fn times_alone_are_no_news() {
        let current = json!({ "phase": "Up", "at": "11:00", "list": [{ "at": 0, "n": 2 }] });
        assert_eq!(timed("Up").unless_only_times_differ_from(&current), current);
        let news = timed("Down").unless_only_times_differ_from(&current);
        assert_eq!(news["at"], "12:00");
        let kept = timed("Down").with_times_of(&current);
        assert_eq!(kept["at"], "11:00");
        assert_eq!(kept["phase"], "Down");
        let first = timed("Up").unless_only_times_differ_from(&Value::Null);
        assert_eq!(first["at"], "12:00");
    }

    /// Case I78: of a value that was answered once, the times of the answer are no news, and those of events are.
    #[test]
    fn times_of_answers_are_no_news() {
        let now: Timestamp = "2026-11-27T01:00:00Z".parse().unwrap();
        let answered = |at: &str| {
            let value = json!({ "phase": "Up", "conditions": [{ "at": at }] });
            Timed::answered(value, now)
        };
        let current = answered("2026-11-26T23:00:00Z").value;
        let fresh = answered("2026-11-27T00:59:59Z");
        assert_eq!(fresh.unless_only_times_differ_from(&current), current);
        let event = answered("2026-11-26T22:00:00Z");
        assert_eq!(event.at_another_time, None);
        assert_ne!(event.unless_only_times_differ_from(&current), current);
    }

    /// A value without times is compared as it is.
    #[test]
    fn plain_value_is_itself() {
        let plain = Timed::from(json!({ "a": 1 }));
        assert_eq!(plain.with_times_of(&json!({ "a": 2 })), json!({ "a": 1 }));
        let current = json!({ "a": 2 });
        assert_eq!(
            plain.unless_only_times_differ_from(&current),
            json!({ "a": 1 })
        );
    }
}
