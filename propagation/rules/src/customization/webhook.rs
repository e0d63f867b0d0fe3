//! The webhooks of a `ResourceInterpreterWebhookConfiguration` (Karmada, `config.karmada.io/v1alpha1`).
//!
//! `address` says where one is, `request` has the question, `response` the answer, and `problems` the mistakes
//! in a configuration.

mod address;
mod problems;
mod request;
mod response;
#[cfg(test)]
mod tests;

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use objects::{GroupVersionKind, Metadata};
use serde_json::Value;

pub use address::{Address, ServiceReference};
pub use problems::problems;
pub use request::Request;
pub use response::Response;

use self::problems::{KNOWN_VERSION, LONGEST, ONE_ADDRESS, SHORTEST, of_url};
use super::fields::{list, text, texts};
use super::operation::Operation;

/// A webhook that answers questions about objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Webhook {
    /// The name of its configuration, and its own there: `<configuration>/<webhook>`.
    pub name: String,
    /// The longest that a call may take.
    pub timeout: Duration,
    address: Option<Address>,
    /// The authorities in PEM and base64.
    ca_bundle: String,
    rules: Vec<Rule>,
    speaks_known_version: bool,
}

/// The questions about kinds that a webhook answers, as patterns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    kinds: Vec<String>,
}

impl Webhook {
    /// Reads the webhooks of a configuration.
    pub(super) fn all_of(configuration: &Value) -> impl Iterator<Item = Self> + use<'_> {
        let webhooks = list(configuration, "webhooks");
        webhooks.map(move |webhook| Self::read(configuration.name(), webhook))
    }

    fn read(configuration: &str, webhook: &Value) -> Self {
        let config = webhook.get("clientConfig").unwrap_or(&Value::Null);
        let timeout = webhook.get("timeoutSeconds").and_then(Value::as_u64);
        Self {
            name: format!("{configuration}/{}", text(webhook, "name")),
            timeout: Duration::from_secs(timeout.unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)),
            address: Address::read(config),
            ca_bundle: text(config, "caBundle").to_owned(),
            rules: list(webhook, "rules").map(Rule::read).collect(),
            speaks_known_version: texts(webhook, "interpreterContextVersions")
                .any(|version| version == KNOWN_VERSION),
        }
    }

    /// Returns `true` if it answers the operation for objects of the kind.
    pub fn answers(&self, kind: &GroupVersionKind, operation: Operation) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.has(kind) && has(&rule.operations, operation.name()))
    }

    /// Returns `true` if it answers anything about objects of the kind.
    pub(super) fn interprets(&self, kind: &GroupVersionKind) -> bool {
        self.rules.iter().any(|rule| rule.has(kind))
    }

    /// Returns where it is asked.
    ///
    /// # Errors
    /// Fails with the reason for which it cannot be asked.
    pub fn address(&self) -> Result<&Address, String> {
        if !self.speaks_known_version {
            let accepts = "webhook does not accept known ResourceInterpreterContext versions";
            return Err(format!("{accepts} ({KNOWN_VERSION})"));
        }
        let address = self.address.as_ref();
        let address = address.ok_or_else(|| ONE_ADDRESS.to_owned())?;
        match address {
            Address::Url(url) => match of_url(url) {
                Some(problem) => Err(problem),
                None => Ok(address),
            },
            Address::Service(_) => Ok(address),
        }
    }

    /// Returns the authorities that verify its server, in PEM; `None` for those of the system.
    ///
    /// # Errors
    /// Fails if they are not in base64.
    pub fn authorities(&self) -> Result<Option<Vec<u8>>, String> {
        if self.ca_bundle.is_empty() {
            return Ok(None);
        }
        let decoded = BASE64_STANDARD.decode(&self.ca_bundle);
        let decoded = decoded.map_err(|error| format!("caBundle is no base64: {error}"))?;
        Ok(Some(decoded))
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let fields = ["operations", "apiGroups", "apiVersions", "kinds"];
        let lists = fields.map(|field| texts(rule, field).map(str::to_owned).collect());
        let [operations, groups, versions, kinds] = lists;
        Self {
            operations,
            groups,
            versions,
            kinds,
        }
    }

    fn has(&self, kind: &GroupVersionKind) -> bool {
        has(&self.groups, &kind.group)
            && has(&self.versions, &kind.version)
            && has(&self.kinds, &kind.kind)
    }
}

fn has(patterns: &[String], text: &str) -> bool {
    let mut patterns = patterns.iter();
    patterns.any(|pattern| pattern == "*" || pattern == text)
}
