//! The record as a person reads it, and as two runs of one seed compare.

use super::program::Process;
use super::record::{Entry, Message};
use crate::harness::Log;

/// The entries of a run.
#[derive(Debug)]
pub(crate) struct Entries(pub(crate) Vec<Entry>);

impl Log for Entries {
    /// Leaves out the values that depend on a clock or on chance.
    fn text(&self) -> String {
        log(&self.0)
    }
}

/// Formats an entry on one line.
pub(crate) fn shown(entry: &Entry) -> String {
    let Process {
        program,
        replica,
        life,
    } = entry.process;
    let what = match &entry.message {
        Message::Request { method, path, body } => {
            format!("{method} {path} {}", normal(path, body))
        }
        Message::Response(Some(status)) => format!("{status}"),
        Message::Response(None) => "connection lost".to_owned(),
        Message::Body(bytes) => normal("", bytes),
        Message::Ended => "ended".to_owned(),
        Message::Abandoned => "abandoned".to_owned(),
    };
    let (side, request) = (entry.side, entry.request);
    format!(
        "{}-{replica}.{life} {side:?} {request}: {what}",
        program.name()
    )
}

/// Returns a body without values that depend on a clock or on chance: times of leases and Events,
/// and the names of replicas and Events.
fn normal(path: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_dated = path.contains("/events") || text.contains("\"kind\":\"Event\"");
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(&text) else {
        return text.into_owned();
    };
    blank(&mut value, is_dated);
    value.to_string()
}

/// Replaces the values that depend on a clock or on chance with `null`.
fn blank(value: &mut serde_json::Value, is_event: bool) {
    const CHANCE: [&str; 5] = [
        "renewTime",
        "acquireTime",
        "holderIdentity",
        "eventTime",
        "firstTimestamp",
    ];
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if CHANCE.contains(&key.as_str()) || is_event && key == "name" {
                    *value = serde_json::Value::Null;
                } else {
                    blank(value, is_event);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(|value| blank(value, is_event)),
        _ => {}
    }
}

/// Formats the entries, one per line, with the virtual time since the first.
fn log(entries: &[Entry]) -> String {
    let begun = entries.first().map(|entry| entry.at);
    let mut log = String::new();
    for entry in entries {
        let at = begun
            .map(|begun| entry.at.duration_since(begun))
            .unwrap_or_default();
        log.extend([format!("{at:?} {}\n", shown(entry))]);
    }
    log
}
