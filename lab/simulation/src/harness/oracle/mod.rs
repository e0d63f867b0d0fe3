//! The oracle of every world: each write follows from messages that its process has received.
//!
//! The record has every list and every line of a watch that a process has read, and every response to its writes, so
//! delayed, coalesced, lost and stale events are taken into account exactly. In every world a process
//! - writes to no object that it has never received, unless it creates or applies it, or deletes whichever has the name,
//! - demands no uid and no version that it has never received,
//! - does not repeat a write that conflicted though a watch had shown it a newer version before that,
//! - writes nothing without its lease, if it has one: after that has expired, was given back, or was read as another's.
//!
//! That a settled world sees no write, not even after a restart, is checked by the session.
//!
//! A world may [explain](Explain) more: for each write, that it equals the result of the world's model for some
//! combination of versions of the objects. A process acts on a decision without a pause: each of the writes that follow
//! from it begins as soon as the response to the previous one arrives. Therefore each version counts that the process
//! knew at some moment since the decision: since it last had no write in flight for the same subject. Lists and watches
//! keep no decision open. Versions replaced in the instant of the decision count as well, because the order among
//! several watches is undefined.

mod check;
mod known;
mod lease;
mod reads;
mod request;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

pub use self::check::Check;
pub(crate) use self::check::check;
use self::known::{Known, Moment};
use self::lease::{Lease, RENEWAL};
use self::reads::METADATA_ONLY;
pub use self::reads::{Reads, Sources};
pub use self::request::Request;
pub(crate) use self::target::ObjectPath;
pub use self::target::Target;
use super::message::{Entry, Message, Process};
use super::programs::Programs;
use crate::clock;

/// The delay with which a timer may fire.
const TIMER: Duration = Duration::from_millis(2);

/// The programs of a world whose writes have explanations. By default they have those of every world alone.
pub trait Explain: Reads {
    /// True if a process writes only while it holds the lease of its program.
    const IS_ELECTED: bool = false;

    /// Returns the name under which a write is counted; `None` if it is not judged.
    fn counted(self, _: &Request) -> Option<&'static str> {
        Some(self.identity().name)
    }

    /// Returns the subject of the decision that a request about this object carries out; `None` if those are all that
    /// have just failed.
    fn subject(_: &Target, _: &Value) -> Option<String> {
        Some(String::new())
    }

    /// Checks that facts explain a write.
    ///
    /// # Errors
    /// The property that the write violates.
    fn explain(self, _: &Request, _: &Facts<'_>) -> Check {
        Ok(())
    }
}

/// The versions of objects from which a process may have decided.
#[derive(Debug)]
pub struct Facts<'a> {
    pub(crate) known: &'a Known,
    pub(crate) since: Moment,
    /// The first and the last time at which the process may have looked at the clock.
    pub(crate) times: [Timestamp; 2],
}

/// Reads a record and finds writes that nothing explains.
#[derive(Debug)]
pub(crate) struct Oracle<R> {
    processes: BTreeMap<Process<R>, State>,
    requests: BTreeMap<usize, Request>,
    read: usize,
    /// The instant of the newest entry, and the first entry of that instant.
    instant: Option<(Instant, Moment)>,
    /// The number of judged writes, by the names under which they are counted.
    judged: BTreeMap<&'static str, u64>,
}

impl<R> Default for Oracle<R> {
    fn default() -> Self {
        Self {
            processes: BTreeMap::new(),
            requests: BTreeMap::new(),
            read: 0,
            instant: None,
            judged: BTreeMap::new(),
        }
    }
}

/// The state of a process, as the record shows it.
#[derive(Debug, Default)]
struct State {
    known: Known,
    lease: Lease,
    /// The decisions, by their subjects.
    decisions: BTreeMap<String, Decision>,
    /// The objects as the process has tried to create them, where answers are a source.
    created: BTreeMap<ObjectPath, Value>,
}

/// The newest decision about one subject.
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

impl<R: Explain> Oracle<R> {
    /// Returns the number of entries read.
    pub(crate) fn position(&self) -> usize {
        self.read
    }

    /// Returns the number of judged writes, by the names under which they are counted.
    pub(crate) fn judged(&self) -> &BTreeMap<&'static str, u64> {
        &self.judged
    }

    /// Returns a program that has no leader, or whose leader has not renewed the lease in time.
    pub(crate) fn leaderless(&self, programs: &Programs<R>) -> Option<R> {
        let mut all = R::all().into_iter().filter(|_| R::IS_ELECTED);
        all.find(|program| {
            let processes = self.processes.iter();
            let of_program = processes.filter(|(process, _)| process.program == *program);
            let renewed =
                of_program.filter_map(|(process, state)| Some((*process, state.lease.renewed()?)));
            let leader = renewed.max_by_key(|(_, renewed)| *renewed);
            leader.is_none_or(|(process, renewed)| {
                renewed.elapsed() > RENEWAL || !programs.runs(process)
            })
        })
    }

    /// Reads more entries of a record and returns the first write that nothing explains.
    pub(crate) fn read(&mut self, entries: &[Entry<R>]) -> Option<String> {
        entries.iter().find_map(|entry| {
            self.read += 1;
            self.entry(entry)
        })
    }

    fn entry(&mut self, entry: &Entry<R>) -> Option<String> {
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
                let counted = state.begin(entry, &mut request, instant);
                let judged = match counted {
                    Some(name) => {
                        *self.judged.entry(name).or_default() += 1;
                        state.judge(entry, &request)
                    }
                    None => Ok(()),
                };
                let violated = judged.err().map(|violated| {
                    format!("{} sends {}: {violated}", entry.process, request.line)
                });
                self.requests.insert(entry.request, request);
                return violated;
            }
            Message::Response(status) => {
                let request = self.requests.get_mut(&entry.request)?;
                request.status = *status;
                if *status == Some(409) {
                    state.known.read_conflict(request, entry.at);
                }
                // A response with a status is over only after its body.
                if status.is_none() {
                    state.end(entry, &request.subjects);
                }
            }
            Message::Body(bytes) => {
                let request = self.requests.get_mut(&entry.request)?;
                state.read::<R>(request, bytes, (now, entry.at));
                if !request.target.is_watch() {
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

impl State {
    /// Begins a request. It follows from the same decision as the last one about its subject if that ended in the same
    /// instant. Returns the name under which it is counted, if it is a write that is judged.
    fn begin<R: Explain>(
        &mut self,
        entry: &Entry<R>,
        request: &mut Request,
        instant: Moment,
    ) -> Option<&'static str> {
        if request.target.is_lease() {
            self.lease.requested(&request.body);
            return None;
        }
        let is_judged = entry.message.written().is_some() && !request.target.is_event();
        let counted = entry.process.program.counted(request);
        let counted = counted.filter(|_| is_judged);
        // Of the reads, only that of one object is a part of a decision.
        if counted.is_none() && !(request.is_read() && request.target.name.is_some()) {
            return None;
        }
        request.subjects = self.subjects::<R>(request, entry.at);
        for subject in &request.subjects {
            let decision = self.decisions.entry(subject.clone()).or_default();
            if decision.busy.is_empty() && decision.ended != Some(entry.at) {
                decision.since = instant;
                decision.made = Some(entry.at);
            }
            decision.busy.insert(entry.request);
        }
        counted
    }

    /// Returns the subjects of the decisions that a request carries out.
    fn subjects<R: Explain>(&self, request: &Request, now: Instant) -> Vec<String> {
        let object = match request.target.object() {
            Some(path) => {
                let known = self.known.newest(&path);
                let known = known.or_else(|| self.created.get(&path));
                known.unwrap_or(&Value::Null)
            }
            None => &request.body,
        };
        if let Some(subject) = R::subject(&request.target, object) {
            return vec![subject];
        }
        let all = self.decisions.iter();
        all.filter(|(_, decision)| decision.ended == Some(now))
            .map(|(subject, _)| subject.clone())
            .collect()
    }

    fn end<R>(&mut self, entry: &Entry<R>, subjects: &[String]) {
        for subject in subjects {
            let decision = self.decisions.entry(subject.clone()).or_default();
            if decision.busy.remove(&entry.request) {
                decision.ended = Some(entry.at);
            }
        }
    }

    /// Reads the body of a response, or a piece of a watch.
    fn read<R: Explain>(
        &mut self,
        request: &mut Request,
        bytes: &[u8],
        (now, at): (Moment, Instant),
    ) {
        if request.target.is_watch() {
            for line in request.lines(bytes) {
                let event = serde_json::from_slice(&line);
                if let Ok(event) = event
                    && request.succeeded()
                    && !request.target.is_lease()
                {
                    self.known
                        .read_event::<R>(&request.target, event, (now, at));
                }
            }
            return;
        }
        let Ok(body) = serde_json::from_slice::<Value>(bytes) else {
            return;
        };
        let (target, succeeded) = (&request.target, request.succeeded());
        if target.is_lease() {
            if !request.is_read() {
                self.lease.written(succeeded, request.began);
            } else if target.name.is_some() {
                self.lease.read(request.status, &body);
            }
            return;
        }
        if request.is_read() && target.name.is_none() {
            if succeeded {
                self.known.read_list::<R>(target, body, (now, at));
            }
            return;
        }
        let is_source = R::sources(target) == Sources::Answers;
        if is_source && request.method == Method::POST {
            let path = target.path_of(&request.body);
            self.created.insert(path, request.body.clone());
        }
        let is_gone = request.method == Method::DELETE && succeeded || request.status == Some(404);
        if is_source
            && is_gone
            && let Some(path) = target.object()
        {
            self.known.replace::<R>(target, path, None, now);
        } else if succeeded {
            let object = if is_source {
                self.completed(request, body)
            } else {
                body
            };
            self.known.read_object::<R>(target, object, now);
        }
    }

    /// Returns the answer to a write, and where that has the metadata alone, the rest as it was written.
    fn completed(&self, request: &Request, answer: Value) -> Value {
        if answer["kind"] != METADATA_ONLY {
            return answer;
        }
        let written = match (request.target.object(), &request.method) {
            (None, &Method::POST) => Ok(request.body.clone()),
            (Some(path), &Method::PATCH) => self.known.patched(&path, &request.body),
            _ => return answer,
        };
        let Ok(mut written) = written else {
            return answer;
        };
        for part in ["kind", "metadata"] {
            written[part] = answer[part].clone();
        }
        written
    }

    /// Checks that the knowledge of the process explains a write.
    fn judge<R: Explain>(&self, entry: &Entry<R>, request: &Request) -> Check {
        if R::IS_ELECTED
            && let Some(without) = self.lease.violation(entry.at)
        {
            return Err(without.to_owned());
        }
        self.known.admits(request)?;
        let subjects = request.subjects.iter();
        let decisions = subjects.filter_map(|subject| self.decisions.get(subject));
        let since = decisions.clone().map(|decision| decision.since).min();
        let made = decisions.filter_map(|decision| decision.made).min();
        let facts = Facts {
            known: &self.known,
            since: since.unwrap_or(usize::MAX),
            times: [made.unwrap_or(entry.at).checked_sub(TIMER), Some(entry.at)]
                .map(|at| clock::at(at.unwrap_or(entry.at))),
        };
        entry.process.program.explain(request, &facts)
    }
}
