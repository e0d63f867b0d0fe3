//! The property that every write follows from facts that its process has received.
//!
//! A process knows what it has received: the record has every list and every line of a watch that it
//! has read, and every response to its writes, so delayed, coalesced, lost and stale events are taken
//! into account exactly. A process acts on a decision without a pause: each of the writes that follow
//! from it begins as soon as the response to the previous one arrives. Therefore each write must equal
//! the result of [`super::model`] for some combination of versions of the objects, where the process
//! knew each version at some moment since the decision: since it last had no write in flight for the same
//! cluster or ingress. Lists and watches keep no decision open. Versions replaced in the instant of the
//! decision count as well, because the order among several watches is undefined.
//!
//! The property covers every write but those of leases, Events and exports of Services; one that no rule
//! covers is a violation. A patch or a deletion is judged on the version that it names. In addition, no process may
//! write before it has listed all that decides the write, nor without its lease: after it has expired,
//! was given back, or was read as another's.

mod facts;
mod gateway;
mod lease;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use karmada_api::names::NODE_PUBLISHER;
use serde_json::Value;
use tokio::time::Instant;

use self::facts::Facts;
use self::gateway::INGRESS_ANNOTATION;
use self::lease::Lease;
use super::kinds::{Kind, NAMESPACE, Side};
use super::known::{Known, Moment};
use super::program::{Process, Role};
use crate::clock;
use crate::harness::access::NAMESPACES;
use crate::harness::value::text;
use crate::harness::{self, Message};

/// The delay with which a timer may fire.
const TIMER: Duration = Duration::from_millis(2);
/// The kind of an answer to whoever wants no more than the metadata.
const METADATA_ONLY: &str = "PartialObjectMetadata";

/// A message of one of these programs.
type Entry = harness::Entry<Role>;

/// Reads a record and finds writes that nothing explains.
#[derive(Debug, Default)]
pub(crate) struct Explainer {
    processes: BTreeMap<Process, State>,
    requests: BTreeMap<usize, Request>,
    read: usize,
    /// The instant of the newest entry, and the first entry of that instant.
    instant: Option<(Instant, Moment)>,
    /// The number of judged writes, by what they write.
    judged: BTreeMap<&'static str, u64>,
}

/// The state of a process, as the record shows it.
#[derive(Debug, Default)]
struct State {
    known: Known,
    lease: Lease,
    /// The decisions, by the cluster or ingress that they are about.
    decisions: BTreeMap<String, Decision>,
    /// The ingress of each object that the process has created in the gateway.
    owners: BTreeMap<(Kind, String), String>,
}

/// The newest decision about one object.
#[derive(Debug, Default)]
struct Decision {
    /// The requests in flight that carry it out.
    busy: BTreeSet<usize>,
    /// The first entry of the instant in which it was made.
    since: Moment,
    /// That instant.
    made: Option<Instant>,
    /// The end of the last of its requests.
    ended: Option<Instant>,
}

/// A request in flight.
#[derive(Debug)]
struct Request {
    method: Method,
    target: Target,
    began: Instant,
    /// The status of the response, once it has arrived.
    status: Option<u16>,
    /// The objects whose decisions it carries out.
    subjects: Vec<String>,
    /// The body, if it is a write.
    body: Value,
    /// The beginning of a line of a watch whose end has not arrived.
    rest: Vec<u8>,
}

/// The target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Lease {
        is_object: bool,
    },
    Event,
    /// The export of a Service, which no rule judges yet.
    Export,
    Watch(Kind),
    /// The version of an API, which a list of one object tells.
    Version,
    /// The published nodes of members, of which these fleets have none.
    Nodes,
    List(Kind),
    Object(Kind, String),
    Status(Kind, String),
    Namespaces,
    Other,
}

impl Target {
    fn of(side: Side, path: &str) -> Self {
        let (plain, query) = path.split_once('?').unwrap_or((path, ""));
        if let Some((_, rest)) = plain.split_once("/leases") {
            return Self::Lease {
                is_object: !rest.is_empty() && !query.contains("watch=true"),
            };
        }
        if plain.ends_with("/events") || plain.contains("/events/") {
            return Self::Event;
        }
        let is_export = |plural| plain.contains(plural);
        if is_export("/serviceexports") || is_export("/propagationpolicies") {
            return Self::Export;
        }
        if plain == NAMESPACES {
            return Self::Namespaces;
        }
        if query.contains(NODE_PUBLISHER) {
            return Self::Nodes;
        }
        match Kind::of_path(side, plain) {
            Some((kind, rest)) => match *rest.as_slice() {
                [] if query.contains("watch=true") => Self::Watch(kind),
                [] if query.split('&').any(|parameter| parameter == "limit=1") => Self::Version,
                [] => Self::List(kind),
                [name] => Self::Object(kind, name.to_owned()),
                [name, "status"] => Self::Status(kind, name.to_owned()),
                _ => Self::Other,
            },
            None => Self::Other,
        }
    }
}

impl Explainer {
    /// Returns the number of entries read.
    pub(crate) fn position(&self) -> usize {
        self.read
    }

    /// Returns the number of judged writes, by what they write.
    pub(crate) fn judged(&self) -> &BTreeMap<&'static str, u64> {
        &self.judged
    }

    /// Returns the process that renewed the lease of a program last, and the instant at which it did.
    pub(crate) fn leader(&self, program: Role) -> Option<(Process, Instant)> {
        let all = self
            .processes
            .iter()
            .filter(|(process, _)| process.program == program);
        let renewed = all.filter_map(|(process, state)| Some((*process, state.lease.renewed()?)));
        renewed.max_by_key(|(_, renewed)| *renewed)
    }

    /// Reads more entries of a record and returns the first write that nothing explains.
    pub(crate) fn read(&mut self, entries: &[Entry]) -> Option<String> {
        entries.iter().find_map(|entry| {
            self.read += 1;
            self.entry(entry)
        })
    }

    fn entry(&mut self, entry: &Entry) -> Option<String> {
        let now = self.read;
        // All entries of one instant count as received, because their order is undefined.
        let instant = match self.instant {
            Some((at, first)) if at == entry.at => first,
            _ => now,
        };
        self.instant = Some((entry.at, instant));
        let state = self.processes.entry(entry.process).or_default();
        match &entry.message {
            Message::Request { method, path, body } => {
                let mut request = Request::new(entry, method, path, body);
                let is_write = *method != Method::GET;
                let mut violated = None;
                match &request.target {
                    Target::Lease { .. } => state.lease.requested(&request.body),
                    Target::Event
                    | Target::Export
                    | Target::Watch(_)
                    | Target::Version
                    | Target::Nodes => {}
                    // Of the reads, only that of one object is a part of a decision.
                    Target::List(_) if !is_write => {}
                    _ => {
                        request.subjects = state.subjects(&request, entry.at);
                        state.begin(entry, &request.subjects, instant);
                        if is_write {
                            let what = request.what();
                            *self.judged.entry(what).or_default() += 1;
                            violated = violation(entry, state, &request);
                        }
                    }
                }
                self.requests.insert(entry.request, request);
                return violated.map(|violated| {
                    let (program, replica) = (entry.process.program.name(), entry.process.replica);
                    let body = String::from_utf8_lossy(body);
                    format!(
                        "replica {replica} of {program} sends {method} {path} {body}: {violated}"
                    )
                });
            }
            Message::Response(status) => {
                let request = self.requests.get_mut(&entry.request)?;
                request.status = *status;
                // A response with a status is over only after its body.
                if status.is_none() {
                    state.end(entry, &request.subjects);
                }
            }
            Message::Body(bytes) => {
                let request = self.requests.get_mut(&entry.request)?;
                state.read(request, bytes, now);
                if !matches!(request.target, Target::Watch(_)) {
                    state.end(entry, &request.subjects);
                }
            }
            Message::Ended | Message::Abandoned => {
                let request = self.requests.get(&entry.request)?;
                state.end(entry, &request.subjects);
            }
        }
        None
    }
}

impl Request {
    fn new(entry: &Entry, method: &Method, path: &str, body: &[u8]) -> Self {
        Self {
            method: method.clone(),
            target: Target::of(entry.api.into(), path),
            began: entry.at,
            status: None,
            subjects: Vec::new(),
            body: serde_json::from_slice(body).unwrap_or_default(),
            rest: Vec::new(),
        }
    }

    fn succeeded(&self) -> bool {
        self.status
            .is_some_and(|status| (200..300).contains(&status))
    }

    /// Returns what the request writes, for the summary.
    fn what(&self) -> &'static str {
        match &self.target {
            Target::Status(Kind::Cluster, _) => "cluster actions",
            Target::Status(Kind::Remedy, _) => "remedy statuses",
            Target::Status(Kind::MultiClusterIngress, _) => "ingress statuses",
            Target::Object(Kind::MultiClusterIngress, _) => "ingress finalizers",
            Target::List(kind) | Target::Object(kind, _) => match kind {
                Kind::GatewayService => "gateway Services",
                Kind::GatewaySlice => "gateway EndpointSlices",
                Kind::GatewayIngress => "gateway Ingresses",
                _ => "others",
            },
            Target::Namespaces => "gateway Namespaces",
            _ => "others",
        }
    }
}

impl State {
    /// Returns the objects whose decisions a request carries out.
    fn subjects(&self, request: &Request, now: Instant) -> Vec<String> {
        let ingress = |object: &Value| text(object, INGRESS_ANNOTATION).to_owned();
        let subject = match &request.target {
            Target::Object(kind, name) | Target::Status(kind, name) => match kind.side() {
                Side::Karmada => name.clone(),
                Side::Gateway => {
                    let known = self.known.newest(*kind, name).map(ingress);
                    let created = || self.owners.get(&(*kind, name.clone())).cloned();
                    known.or_else(created).unwrap_or_default()
                }
            },
            Target::List(_) => ingress(&request.body),
            // A namespace is created for whatever has just failed without it.
            Target::Namespaces => {
                let failed = |decision: &Decision| decision.ended == Some(now);
                let all = self.decisions.iter();
                return all
                    .filter(|(_, decision)| failed(decision))
                    .map(|(subject, _)| subject.clone())
                    .collect();
            }
            _ => String::new(),
        };
        vec![subject]
    }

    /// Begins a request. It follows from the same decision as the last one about that object if that
    /// ended in the same instant.
    fn begin(&mut self, entry: &Entry, subjects: &[String], instant: Moment) {
        for subject in subjects {
            let decision = self.decisions.entry(subject.clone()).or_default();
            if decision.busy.is_empty() && decision.ended != Some(entry.at) {
                decision.since = instant;
                decision.made = Some(entry.at);
            }
            decision.busy.insert(entry.request);
        }
    }

    fn end(&mut self, entry: &Entry, subjects: &[String]) {
        for subject in subjects {
            let decision = self.decisions.entry(subject.clone()).or_default();
            if decision.busy.remove(&entry.request) {
                decision.ended = Some(entry.at);
            }
        }
    }

    /// Reads the body of a response, or a piece of a watch.
    fn read(&mut self, request: &mut Request, bytes: &[u8], now: Moment) {
        if let Target::Watch(kind) = request.target {
            if request.succeeded() {
                self.read_watch(kind, request, bytes, now);
            }
            return;
        }
        let Ok(body) = serde_json::from_slice::<Value>(bytes) else {
            return;
        };
        match &request.target {
            Target::Lease { is_object } => {
                if request.method != Method::GET {
                    self.lease.written(request.succeeded(), request.began);
                } else if *is_object {
                    self.lease.read(request.status, &body);
                }
            }
            Target::List(kind) if request.method == Method::GET && request.succeeded() => {
                self.known.read_list(*kind, body, now);
            }
            Target::List(_) if request.method == Method::GET => {}
            Target::List(kind) => {
                let name = text(&request.body, "/metadata/name").to_owned();
                let ingress = text(&request.body, INGRESS_ANNOTATION).to_owned();
                self.owners.insert((*kind, name), ingress);
                if request.succeeded() {
                    let name = text(&request.body, "/metadata/name");
                    let object = self.completed(*kind, name, request, body);
                    self.known.read_object(*kind, object, now);
                }
            }
            Target::Object(kind, name) if kind.side() == Side::Gateway => {
                let is_gone = request.method == Method::DELETE && request.succeeded();
                if is_gone || request.status == Some(404) {
                    self.known.read_absence(*kind, name, now);
                } else if request.succeeded() {
                    let object = self.completed(*kind, name, request, body);
                    self.known.read_object(*kind, object, now);
                }
            }
            // Nothing is decided from it.
            Target::Status(Kind::Remedy, _) => {}
            // Of these responses the programs keep the version only: they decide from their watches.
            Target::Object(kind, _) | Target::Status(kind, _) if request.succeeded() => {
                let only = serde_json::json!({ "metadata": body["metadata"] });
                self.known.read_object(*kind, only, now);
            }
            _ => {}
        }
    }

    /// Returns the answer to a write, and where that has the metadata alone, the rest as it was written.
    fn completed(&self, kind: Kind, name: &str, request: &Request, answer: Value) -> Value {
        if answer["kind"] != METADATA_ONLY {
            return answer;
        }
        let facts = Facts {
            known: &self.known,
            since: usize::MAX,
            times: [Timestamp::MIN; 2],
        };
        let mut written = match request.method {
            Method::POST => request.body.clone(),
            Method::PATCH => match facts.patched(kind, name, &request.body) {
                Ok(written) => written,
                Err(_) => return answer,
            },
            _ => return answer,
        };
        for part in ["kind", "metadata"] {
            written[part] = answer[part].clone();
        }
        written
    }

    fn read_watch(&mut self, kind: Kind, request: &mut Request, bytes: &[u8], now: Moment) {
        request.rest.extend_from_slice(bytes);
        while let Some(end) = request.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = request.rest.drain(..=end).collect();
            if let Ok(event) = serde_json::from_slice(&line) {
                self.known.read_event(kind, event, now);
            }
        }
    }
}

/// Returns the property that a write violates, if any.
fn violation(entry: &Entry, state: &State, request: &Request) -> Option<String> {
    let program = entry.process.program;
    let decides = |kind: &Kind| match program {
        Role::Remedy => matches!(kind, Kind::Cluster | Kind::Remedy),
        // A gateway that does not answer holds up no write to Karmada.
        Role::Ingress => kind.side() == Side::Karmada || Side::from(entry.api) == Side::Gateway,
    };
    let needed: Vec<Kind> = Kind::ALL.into_iter().filter(decides).collect();
    if !state.known.has_listed(&needed) {
        return Some("the process has not listed every kind that decides it".to_owned());
    }
    if let Some(without) = state.lease.violation(entry.at) {
        return Some(without.to_owned());
    }
    let subjects = request.subjects.iter();
    let decisions = subjects.filter_map(|subject| state.decisions.get(subject));
    let since = decisions.clone().map(|decision| decision.since).min();
    let made = decisions.filter_map(|decision| decision.made).min();
    let facts = Facts {
        known: &state.known,
        since: since.unwrap_or(usize::MAX),
        times: [made.unwrap_or(entry.at).checked_sub(TIMER), Some(entry.at)]
            .map(|at| clock::at(at.unwrap_or(entry.at))),
    };
    let (method, body) = (&request.method, &request.body);
    let result = match (program, &request.target) {
        (Role::Remedy, Target::Status(Kind::Cluster, name)) => facts.actions(name, body),
        (Role::Remedy, Target::Status(Kind::Remedy, name)) => facts.remedy_status(name, body),
        (Role::Ingress, Target::Status(Kind::MultiClusterIngress, name)) => {
            facts.status(name, body)
        }
        (Role::Ingress, Target::Object(Kind::MultiClusterIngress, name)) => {
            facts.finalizers(name, body)
        }
        (Role::Ingress, Target::List(kind)) if *method == Method::POST => {
            facts.placement(*kind, body)
        }
        (Role::Ingress, Target::Object(kind, name)) if *method == Method::PATCH => facts
            .patched(*kind, name, body)
            .and_then(|object| facts.placement(*kind, &object)),
        (Role::Ingress, Target::Object(kind, name)) if *method == Method::DELETE => {
            facts.removal(*kind, name, body)
        }
        (Role::Ingress, Target::Namespaces) if text(body, "/metadata/name") == NAMESPACE => Ok(()),
        _ => Err("no rule explains such a write".to_owned()),
    };
    result.err()
}
