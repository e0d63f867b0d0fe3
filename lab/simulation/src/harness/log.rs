//! The record as a person reads it, and as two runs of one seed compare.

use std::fmt;

use serde_json::Value;
use tokio::time::Instant;

use super::message::{Entry, Message, Role};

/// The messages of a run, and the events between them.
#[derive(Clone, Debug)]
pub(crate) struct Log<R> {
    begun: Instant,
    pub(super) entries: Vec<Entry<R>>,
    /// Lines, each with its time and the number of the entries before it.
    notes: Vec<(Instant, usize, String)>,
}

impl<R> Default for Log<R> {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            entries: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl<R> Log<R> {
    pub(super) fn note(&mut self, line: String) {
        self.notes.push((Instant::now(), self.entries.len(), line));
    }
}

/// Shows a line each, with the virtual time since the beginning.
impl<R: Role> fmt::Display for Log<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut notes = self.notes.iter().peekable();
        for nth in 0..=self.entries.len() {
            while let Some((at, _, line)) = notes.next_if(|(_, before, _)| *before <= nth) {
                writeln!(f, "{:?} {line}", at.duration_since(self.begun))?;
            }
            if let Some(entry) = self.entries.get(nth) {
                writeln!(f, "{:?} {entry}", entry.at.duration_since(self.begun))?;
            }
        }
        Ok(())
    }
}

/// Leaves out the values that depend on a clock or on chance.
impl<R: Role> fmt::Display for Entry<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}: ", self.process, self.api, self.request)?;
        match &self.message {
            Message::Request { method, path, body } => {
                write!(f, "{method} {path} {}", normal(path, body))
            }
            Message::Response(Some(status)) => write!(f, "{status}"),
            Message::Response(None) => f.write_str("connection lost"),
            Message::Body(bytes) => f.write_str(&normal("", bytes)),
            Message::Ended => f.write_str("ended"),
            Message::Abandoned => f.write_str("abandoned"),
        }
    }
}

/// Returns a body without values that depend on a clock or on chance: times of leases and Events,
/// and the names of replicas and Events.
fn normal(path: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_dated = path.contains("/events") || text.contains("\"kind\":\"Event\"");
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
        return text.into_owned();
    };
    blank(&mut value, is_dated);
    value.to_string()
}

/// Replaces the values that depend on a clock or on chance with `null`.
fn blank(value: &mut Value, is_event: bool) {
    const CHANCE: [&str; 5] = [
        "renewTime",
        "acquireTime",
        "holderIdentity",
        "eventTime",
        "firstTimestamp",
    ];
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if CHANCE.contains(&key.as_str()) || is_event && key == "name" {
                    *value = Value::Null;
                } else {
                    blank(value, is_event);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| blank(value, is_event)),
        _ => {}
    }
}
