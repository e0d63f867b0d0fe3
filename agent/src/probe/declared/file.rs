//! The file with the signals that users declare, and the mistakes in one.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use health::SIGNALS;
use health::quorum::Quorum;
use health::report::Terms;
use health::threshold::Thresholds;
use karmada_api::TRAFFIC_CONTROL;
use karmada_api::condition::OWNED;
use objects::Mistake;
use objects::qualified_name::{is_label, is_qualified};
use serde::Deserialize;
use serde_json::Value;

use super::kind::length;
use super::probe::Probe;

/// The largest file, in bytes.
pub(super) const LARGEST: usize = 64 * 1024;
/// The most signals: each has a vote in every answer of an agent, and metrics of its own.
const MOST: usize = 32;
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);
/// The text that stands for the address of the node.
const NODE_IP: &str = "$(NODE_IP)";
/// The types of conditions that Karmada and `KubeFleet` write, which a cluster that joins has not yet.
const THEIRS: [&str; 4] = ["Ready", "CompleteAPIEnablements", "Joined", "Healthy"];

/// The settings of a signal whose declaration leaves them out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) thresholds: Thresholds,
    pub(crate) timeout: Duration,
    pub(crate) quorum: Quorum,
}

/// A declared signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) condition: String,
    pub(super) probe: Probe,
    pub(super) thresholds: Thresholds,
    pub(super) timeout: Duration,
    pub(super) quorum: Quorum,
}

impl Declaration {
    /// Returns the terms on which the votes become a verdict.
    pub(super) fn terms(&self) -> Terms {
        let Thresholds {
            period,
            failure,
            success,
            ..
        } = self.thresholds;
        Terms {
            quorum: self.quorum,
            // As of the signals that are compiled in.
            patience: failure.max(success) + 2 * period,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the field signals with a list")]
struct Document {
    /// `None` once the last one was taken out.
    signals: Option<Vec<Value>>,
}

/// A signal as the file has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wire {
    name: String,
    condition: String,
    probe: Probe,
    #[serde(default)]
    period: Option<String>,
    #[serde(default)]
    timeout: Option<String>,
    #[serde(default)]
    failure_threshold: Option<String>,
    #[serde(default)]
    success_threshold: Option<String>,
    /// In percent.
    #[serde(default)]
    min_answering: Option<u8>,
    /// In percent.
    #[serde(default)]
    failure_quorum: Option<u8>,
}

/// Parses a file for a node with this address.
///
/// # Errors
/// Returns everything that is wrong with it, each on a line.
pub(super) fn parse(
    text: &[u8],
    node_ip: Option<IpAddr>,
    defaults: &Defaults,
) -> Result<Vec<Declaration>, Vec<String>> {
    let signals = listed(text, node_ip).map_err(|problem| vec![problem])?;
    let mut problems = Vec::new();
    if signals.len() > MOST {
        problems.push(format!("{} signals are more than {MOST}", signals.len()));
    }
    let (mut names, mut conditions) = (BTreeSet::new(), BTreeSet::new());
    let mut declarations = Vec::new();
    for (place, signal) in (1..).zip(signals) {
        let shown = match signal["name"].as_str() {
            Some(name) if is_label(name) => format!("signal {place}, {name}"),
            _ => format!("signal {place}"),
        };
        match declaration(signal, defaults) {
            Ok(declared) => {
                if !names.insert(declared.name.clone()) {
                    problems.push(format!("{shown}: another signal has this name"));
                }
                if !conditions.insert(declared.condition.clone()) {
                    problems.push(format!("{shown}: another signal has this condition"));
                }
                declarations.push(declared);
            }
            Err(problem) => problems.push(format!("{shown}: {problem}")),
        }
    }
    if problems.is_empty() {
        Ok(declarations)
    } else {
        Err(problems)
    }
}

/// Returns the list of signals. An empty file has none.
fn listed(text: &[u8], node_ip: Option<IpAddr>) -> Result<Vec<Value>, String> {
    if text.len() > LARGEST {
        return Err(format!("the file is larger than {LARGEST} bytes"));
    }
    let text = std::str::from_utf8(text).map_err(|_| "the file is no text in UTF-8".to_owned())?;
    let text = match node_ip {
        Some(ip @ IpAddr::V4(_)) => text.replace(NODE_IP, &ip.to_string()),
        Some(ip @ IpAddr::V6(_)) => text.replace(NODE_IP, &format!("[{ip}]")),
        None if text.contains(NODE_IP) => {
            return Err(format!("{NODE_IP} is not known: give the agent --node-ip"));
        }
        None => text.to_owned(),
    };
    match document(&text)? {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => {
            let document: Result<Document, _> = serde_json::from_value(value);
            let signals = document.map_err(|error| mistake(&error))?.signals;
            Ok(signals.unwrap_or_default())
        }
    }
}

/// Parses the one document of a file.
fn document(text: &str) -> Result<Option<Value>, String> {
    let mut text = text.as_bytes();
    let options = serde_saphyr::options! { with_snippet: false };
    let mut documents = serde_saphyr::read_with_options(&mut text, options);
    let first: Option<Result<Value, serde_saphyr::Error>> = documents.next();
    let first = first.transpose();
    let first = first.map_err(|error| Mistake::from(&error).to_string())?;
    if documents.next().is_some() {
        return Err("the file has more than one document".to_owned());
    }
    Ok(first)
}

/// Returns the mistake in a part of the file. A value is not quoted: who puts a credential there must not find it in a log.
fn mistake(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let names_our_words = ["unknown field", "unknown variant", "missing field"];
    if names_our_words.iter().any(|begin| text.starts_with(begin)) {
        text
    } else {
        Mistake::from(error).to_string()
    }
}

fn declaration(signal: Value, defaults: &Defaults) -> Result<Declaration, String> {
    let wire: Wire = serde_json::from_value(signal).map_err(|error| mistake(&error))?;
    check_names(&wire)?;
    let thresholds = thresholds(&wire, defaults)?;
    let period = thresholds.period;
    let timeout = match (&wire.timeout, &wire.period) {
        (Some(text), _) => length("timeout", text)?,
        (None, None) => defaults.timeout,
        (None, Some(_)) => defaults.timeout.min(period * 2 / 5),
    };
    if timeout >= period {
        return Err(format!(
            "timeout {timeout:?} is not shorter than the period, {period:?}"
        ));
    }
    let quorum = Quorum {
        min_answering: wire.min_answering.unwrap_or(defaults.quorum.min_answering),
        failure: wire.failure_quorum.unwrap_or(defaults.quorum.failure),
    };
    if !(1..=100).contains(&quorum.min_answering) {
        return Err("minAnswering is not between 1 and 100 percent".to_owned());
    }
    // With half of the votes or less, both verdicts could have their quorum at once.
    if !(51..=100).contains(&quorum.failure) {
        return Err("failureQuorum is not between 51 and 100 percent".to_owned());
    }
    wire.probe.kind().check()?;
    Ok(Declaration {
        name: wire.name,
        condition: wire.condition,
        probe: wire.probe,
        thresholds,
        timeout,
        quorum,
    })
}

fn check_names(wire: &Wire) -> Result<(), String> {
    if !is_label(&wire.name) {
        return Err("name is no word of lower-case letters, digits and hyphens".to_owned());
    }
    if SIGNALS.iter().any(|signal| signal.name == wire.name) {
        return Err("name is that of a signal of the agent's own: take another".to_owned());
    }
    if !is_qualified(&wire.condition) {
        return Err("condition is no type of a condition, such as ImageRegistryReady".to_owned());
    }
    if OWNED.contains(&&*wire.condition) {
        return Err("condition is of a signal of the agent's own: take another".to_owned());
    }
    // Of a MemberCluster: True, it would block the traffic of a cluster that is well.
    if wire.condition == TRAFFIC_CONTROL {
        return Err("condition is the action of Remedies: take another".to_owned());
    }
    if THEIRS.contains(&&*wire.condition) {
        return Err("condition is one that Karmada or KubeFleet writes: take another".to_owned());
    }
    Ok(())
}

fn thresholds(wire: &Wire, defaults: &Defaults) -> Result<Thresholds, String> {
    let default = defaults.thresholds;
    let period = given_or("period", wire.period.as_ref(), default.period)?;
    // A threshold that is shorter than the period would be over before a second round: one lost answer would decide.
    let least = 2 * period;
    let failure = wire.failure_threshold.as_ref();
    let failure = given_or("failureThreshold", failure, default.failure.max(least))?;
    let success = wire.success_threshold.as_ref();
    let success = given_or("successThreshold", success, default.success.max(least))?;
    if period < SHORTEST_PERIOD && wire.period.is_some() {
        return Err(format!("period is shorter than {SHORTEST_PERIOD:?}"));
    }
    Ok(Thresholds {
        period,
        failure,
        success,
        silence: failure.max(least),
        max_hold: default.max_hold,
    })
}

fn given_or(field: &str, text: Option<&String>, default: Duration) -> Result<Duration, String> {
    text.map_or(Ok(default), |text| length(field, text))
}

#[cfg(test)]
mod tests;
