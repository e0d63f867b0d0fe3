//! A request as the oracle follows it, from its beginning to its response.

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::target::Target;
use crate::harness::message::{Entry, Role};

/// A request of a program.
#[derive(Debug)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) target: Target,
    /// The body, if it is a write.
    pub(crate) body: Value,
    /// All of it in one line.
    pub(super) line: String,
    pub(super) began: Instant,
    /// The status of the response, once it has arrived.
    pub(super) status: Option<u16>,
    /// The subjects of the decisions that it carries out.
    pub(super) subjects: Vec<String>,
    /// The beginning of a line of a watch whose end has not arrived.
    rest: Vec<u8>,
}

impl Request {
    pub(super) fn new<R: Role>(entry: &Entry<R>, method: &Method, path: &str, body: &[u8]) -> Self {
        Self {
            method: method.clone(),
            target: Target::of(entry.api, path),
            body: serde_json::from_slice(body).unwrap_or_default(),
            line: format!("{method} {path} {}", String::from_utf8_lossy(body)),
            began: entry.at,
            status: None,
            subjects: Vec::new(),
            rest: Vec::new(),
        }
    }

    pub(super) fn succeeded(&self) -> bool {
        self.status
            .is_some_and(|status| (200..300).contains(&status))
    }

    pub(super) fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// Returns `true` if the object need not be known: an applied one names its kind, which a patch does not, and a
    /// deletion without a precondition is of whichever object may have been created a moment ago.
    pub(super) fn may_precede(&self) -> bool {
        match self.method {
            Method::PATCH => self.body.is_null() || self.body["kind"].is_string(),
            Method::DELETE => self.body["preconditions"].is_null(),
            _ => false,
        }
    }

    /// Returns the value that a field of the metadata must have for the write to be stored; null if any is right.
    pub(super) fn demanded(&self, field: &str) -> &Value {
        match self.method {
            Method::DELETE => &self.body["preconditions"][field],
            _ => guard(&self.body, field),
        }
    }

    /// Returns the lines of a watch that are complete with these bytes.
    pub(super) fn lines(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.rest.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            lines.push(self.rest.drain(..=end).collect());
        }
        lines
    }
}

/// Returns the value of a field of the metadata on which a patch or an object to be stored depends; null without one.
pub(super) fn guard<'a>(body: &'a Value, field: &str) -> &'a Value {
    let Some(steps) = body.as_array() else {
        return &body["metadata"][field];
    };
    let path = format!("/metadata/{field}");
    let guard = steps.iter().find(|step| {
        step["path"] == *path && matches!(step["op"].as_str(), Some("replace" | "test"))
    });
    guard.map_or(&Value::Null, |step| &step["value"])
}
