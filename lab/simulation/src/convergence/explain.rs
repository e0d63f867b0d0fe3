//! The property that every write follows from facts that its process has received.
//!
//! A process knows what it has received: the record has every list and every line of a watch that it
//! has read, so delayed, coalesced, lost and stale events are taken into account exactly. A process
//! acts on a decision without a pause: each of the writes that follow from it begins as soon as the
//! response to the previous one arrives. Therefore each write must equal the result of
//! [`super::model`] for some combination of versions of the objects, where the process knew each
//! version at some moment since it was last idle. It is idle without a request in flight, other than
//! watches, its lease and Events. Versions replaced in the instant of the decision count as well,
//! because the order among several watches is undefined.
//!
//! The property covers every write of `remedyActions`, of `serviceLocations` and
//! `trafficBlockClusters`, and every write or deletion of an `EndpointSlice` of the gateway. In
//! addition, no process may write before it has listed all that decides the write, nor after its
//! lease, as far as it knows, has expired.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::kinds::{Kind, is_deleting, text};
use super::known::Known;
use super::model;
use super::program::{Process, Role};
use super::record::{Entry, Message};

/// The duration of a lease.
const LEASE: Duration = Duration::from_secs(15);

/// The most combinations of classes to try.
const COMBINATIONS: usize = 4_096;

/// Reads a record and finds writes that nothing explains.
#[derive(Debug, Default)]
pub(crate) struct Explainer {
    processes: BTreeMap<Process, State>,
    requests: BTreeMap<usize, Request>,
    read: usize,
    /// The instant of the newest entry, and the first entry of that instant.
    instant: Option<(Instant, usize)>,
}

/// The state of a process, as the record shows it.
#[derive(Debug, Default)]
struct State {
    known: Known,
    /// Requests in flight, without watches, the lease and Events.
    busy: BTreeSet<usize>,
    /// The first entry of the instant in which it was last idle.
    idle: usize,
    /// The end of the last of those requests.
    ended: Option<Instant>,
    /// The beginning of the last write that acquired or renewed the lease.
    renewed: Option<Instant>,
}

/// A request in flight.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of a request, not the states of a machine"
)]
struct Request {
    kind: Option<Kind>,
    began: Instant,
    is_write: bool,
    is_lease: bool,
    is_watch: bool,
    is_list: bool,
    succeeded: bool,
    /// The beginning of a line of a watch whose end has not arrived.
    rest: Vec<u8>,
}

impl Explainer {
    /// Returns the number of entries read.
    pub(crate) fn position(&self) -> usize {
        self.read
    }

    /// Returns the process that renewed the lease of a program last, and the instant at which it did.
    pub(crate) fn leader(&self, program: Role) -> Option<(Process, Instant)> {
        let all = self
            .processes
            .iter()
            .filter(|(process, _)| process.program == program);
        let renewed = all.filter_map(|(process, state)| Some((*process, state.renewed?)));
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
                let request = Request::new(entry, method, path);
                let counts = !request.is_watch && !request.is_lease && !path.contains("/events");
                if counts {
                    state.begin(entry, instant);
                }
                let is_write = request.is_write && counts;
                self.requests.insert(entry.request, request);
                let state = self.processes.get(&entry.process)?;
                return is_write
                    .then(|| violation(entry, state, method, path, body))
                    .flatten();
            }
            Message::Response(status) => {
                let request = self.requests.get_mut(&entry.request)?;
                request.succeeded = status.is_some_and(|status| (200..300).contains(&status));
                if request.is_lease && request.is_write && request.succeeded {
                    // From its beginning, because the holder counts from before its request.
                    state.renewed = Some(request.began);
                }
                // A response with a status is over only after its body.
                if status.is_none() {
                    state.end(entry);
                }
            }
            Message::Body(bytes) => {
                let request = self.requests.get_mut(&entry.request)?;
                state.read(request, bytes, now);
                if !request.is_watch {
                    state.end(entry);
                }
            }
            Message::Ended | Message::Abandoned => {
                state.end(entry);
            }
        }
        None
    }
}

impl Request {
    fn new(entry: &Entry, method: &Method, path: &str) -> Self {
        let (plain, query) = path.split_once('?').unwrap_or((path, ""));
        let of = Kind::of_path(entry.side, plain);
        Self {
            kind: of.as_ref().map(|(kind, _)| *kind),
            began: entry.at,
            is_write: *method != Method::GET,
            is_lease: plain.contains("/leases"),
            is_watch: query.contains("watch=true"),
            is_list: method == Method::GET && of.is_some_and(|(_, rest)| rest.is_empty()),
            succeeded: false,
            rest: Vec::new(),
        }
    }
}

impl State {
    /// Begins a request. It follows from the same decision as the last one if that ended in the same
    /// instant.
    fn begin(&mut self, entry: &Entry, instant: usize) {
        if self.busy.is_empty() && self.ended != Some(entry.at) {
            self.idle = instant;
        }
        self.busy.insert(entry.request);
    }

    fn end(&mut self, entry: &Entry) {
        if self.busy.remove(&entry.request) {
            self.ended = Some(entry.at);
        }
    }

    fn read(&mut self, request: &mut Request, bytes: &[u8], now: usize) {
        let Some(kind) = request
            .kind
            .filter(|_| request.is_list && request.succeeded)
        else {
            return;
        };
        if !request.is_watch {
            if let Ok(list) = serde_json::from_slice(bytes) {
                self.known.read_list(kind, list, now);
            }
            return;
        }
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
fn violation(
    entry: &Entry,
    state: &State,
    method: &Method,
    path: &str,
    body: &[u8],
) -> Option<String> {
    let process = entry.process;
    let violated = (|| {
        let kinds: &[Kind] = match process.program {
            Role::Remedy => &[Kind::Cluster, Kind::Remedy],
            Role::Ingress => &Kind::ALL,
        };
        if !state.known.has_listed(kinds) {
            return Some("the process has not listed every kind that decides it".to_owned());
        }
        if state
            .renewed
            .is_none_or(|renewed| entry.at >= renewed + LEASE)
        {
            return Some("its lease has expired".to_owned());
        }
        let plain = path.split('?').next().unwrap_or_default();
        let (kind, rest) = Kind::of_path(entry.side, plain)?;
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let facts = Facts {
            known: &state.known,
            since: state.idle,
        };
        match (kind, rest.as_slice()) {
            (Kind::Cluster, [name, "status"]) => facts.actions(name, &body),
            (Kind::MultiClusterIngress, [name, "status"])
                if body.pointer("/status/trafficBlockClusters").is_some() =>
            {
                facts.blocks(name, &body["status"])
            }
            (Kind::GatewaySlice, []) => facts.admission(&body),
            (Kind::GatewaySlice, [name]) if method == Method::DELETE => facts.removal(name),
            _ => None,
        }
    })()?;
    let (program, replica) = (process.program.name(), process.replica);
    let body = String::from_utf8_lossy(body);
    Some(format!(
        "replica {replica} of {program} sends {method} {path} {body}: {violated}"
    ))
}

/// The versions of objects from which a process may have decided.
struct Facts<'a> {
    known: &'a Known,
    since: usize,
}

impl<'a> Facts<'a> {
    fn versions(&self, kind: Kind, name: &str) -> Vec<Option<&'a Value>> {
        self.known.versions(kind, name, self.since)
    }

    fn present(&self, kind: Kind, name: &str) -> impl Iterator<Item = &'a Value> {
        self.versions(kind, name).into_iter().flatten()
    }

    /// Checks that `remedyActions` is the union of the actions that some version of each Remedy wants
    /// for one version of the cluster.
    fn actions(&self, name: &str, body: &Value) -> Option<String> {
        let written = &body["status"]["remedyActions"];
        let remedies: Vec<Vec<Option<&Value>>> = self
            .known
            .names(Kind::Remedy)
            .map(|name| self.versions(Kind::Remedy, name))
            .collect();
        let mut possible = BTreeSet::new();
        for cluster in self
            .present(Kind::Cluster, name)
            .filter(|cluster| !is_deleting(cluster))
        {
            let mut sums = BTreeSet::from([BTreeSet::new()]);
            for versions in &remedies {
                let wanted: BTreeSet<BTreeSet<String>> = versions
                    .iter()
                    .map(|remedy| {
                        remedy
                            .map(|r| model::wanted_actions(r, cluster))
                            .unwrap_or_default()
                    })
                    .collect();
                let with = |sum: &BTreeSet<String>| {
                    wanted
                        .iter()
                        .map(|one| sum | one)
                        .collect::<Vec<BTreeSet<String>>>()
                };
                sums = sums.iter().flat_map(with).collect();
            }
            possible.extend(sums);
        }
        let explained = possible
            .iter()
            .any(|actions| model::written(actions) == *written);
        (!explained).then(|| format!("only these are explained: {possible:?}"))
    }

    /// Returns the combinations of versions of the classes, at most [`COMBINATIONS`].
    fn classes(&self) -> Vec<Vec<&'a Value>> {
        let mut all = vec![Vec::new()];
        for name in self.known.names(Kind::IngressClass) {
            let versions = self.versions(Kind::IngressClass, name);
            let with = |chosen: &Vec<&'a Value>| {
                let chosen = chosen.clone();
                let extended = versions
                    .iter()
                    .map(move |version| chosen.iter().copied().chain(*version).collect::<Vec<_>>());
                extended.collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).take(COMBINATIONS).collect();
        }
        all
    }

    /// Returns two flags: `true` if some versions of the classes make the ingress ours to serve, and
    /// `true` if some do not.
    fn may_serve(&self, ingress: &Value) -> (bool, bool) {
        let classes = self.classes();
        let served = |chosen: &Vec<&Value>| model::is_served(ingress, chosen.iter().copied());
        let deleting = is_deleting(ingress);
        (
            !deleting && classes.iter().any(served),
            deleting || !classes.iter().all(served),
        )
    }

    /// Checks that locations and blocks follow from one version of the ingress, each location from
    /// some version of the binding, and each block from some version of the cluster. Both may be
    /// absent if the ingress may not be ours to serve.
    fn blocks(&self, name: &str, status: &Value) -> Option<String> {
        let nothing =
            status["serviceLocations"].is_null() && status["trafficBlockClusters"].is_null();
        let explained = self
            .present(Kind::MultiClusterIngress, name)
            .any(|ingress| {
                let (served, released) = self.may_serve(ingress);
                (released && nothing) || (served && self.is_located(ingress, status))
            });
        (!explained)
            .then(|| "no versions of the ingress, its bindings and clusters explain it".to_owned())
    }

    fn is_located(&self, ingress: &Value, status: &Value) -> bool {
        let written: Vec<&Value> = status["serviceLocations"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        let services = model::services(ingress);
        let is_known = |written: &&Value| services.contains(text(written, "/name"));
        if !written.iter().all(is_known) {
            return false;
        }
        let located = services.iter().all(|service| {
            let entry = written
                .iter()
                .find(|entry| entry["name"] == **service)
                .copied();
            let bindings = self.versions(Kind::Binding, &model::binding_name(service));
            bindings.into_iter().any(|binding| {
                let clusters = model::located(service, binding);
                clusters
                    .map(|clusters| model::location(service, &clusters))
                    .as_ref()
                    == entry
            })
        });
        let clusters: BTreeSet<&str> = written
            .iter()
            .flat_map(|entry| entry["clusters"].as_array().into_iter().flatten())
            .filter_map(Value::as_str)
            .collect();
        let blocked: BTreeSet<&str> = status["trafficBlockClusters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let agrees = |cluster: &&&str| {
            let versions = self.versions(Kind::Cluster, cluster);
            let is_blocked = |version: Option<&Value>| version.is_some_and(model::is_blocked);
            versions
                .iter()
                .any(|&version| is_blocked(version) == blocked.contains(**cluster))
        };
        located && blocked.is_subset(&clusters) && clusters.iter().all(|c| agrees(&c))
    }

    /// Checks that a new slice at the gateway leads into a cluster with an admitted version, or into one
    /// that may be readmitted.
    fn admission(&self, slice: &Value) -> Option<String> {
        let cluster = text(slice, "/metadata/labels/karmada-rs.io~1cluster");
        let admitted = self.present(Kind::Cluster, cluster).any(model::is_admitted);
        (!admitted && !self.may_be_readmitted(slice, cluster))
            .then(|| format!("{cluster} was never known as admitted"))
    }

    /// Returns `true` if in some versions no person blocked a cluster, and no cluster is admitted in
    /// which the Service of a slice runs.
    fn may_be_readmitted(&self, slice: &Value, cluster: &str) -> bool {
        let source = text(
            slice,
            "/metadata/annotations/karmada-rs.io~1collected-endpoint-slice",
        );
        let mut sources = self.present(Kind::EndpointSlice, source);
        let Some(service) = sources.find_map(model::collected_for) else {
            return false;
        };
        let all_blocked = self
            .present(Kind::Binding, &model::binding_name(service))
            .filter_map(|binding| model::located(service, Some(binding)))
            .any(|located| {
                located.iter().all(|one| {
                    let versions = self.versions(Kind::Cluster, one);
                    let mut versions = versions.iter();
                    versions.any(|version| !version.is_some_and(model::is_admitted))
                })
            });
        let undecided = |object: &&Value| {
            self.known.names(Kind::Remedy).all(|name| {
                let versions = self.versions(Kind::Remedy, name);
                let mut versions = versions.iter();
                versions.any(|remedy| !remedy.is_some_and(|r| model::is_decided(r, object)))
            })
        };
        let readmissible = |object: &&Value| model::is_readmissible(object, std::iter::empty());
        let mut clusters = self.present(Kind::Cluster, cluster).filter(readmissible);
        all_blocked && clusters.any(|object| undecided(&object))
    }

    /// Checks that a slice is deleted only if, in some version, an object that led to it is absent or
    /// no longer leads to it.
    fn removal(&self, name: &str) -> Option<String> {
        let slices: Vec<&Value> = self.present(Kind::GatewaySlice, name).collect();
        let annotation = |slice: &Value, key: &str| {
            text(
                slice,
                &format!("/metadata/annotations/karmada-rs.io~1{key}"),
            )
            .to_owned()
        };
        if slices.is_empty() {
            // The process has just created the slice and not received it yet.
            return None;
        }
        let explained = slices.iter().any(|slice| {
            let cluster = text(slice, "/metadata/labels/karmada-rs.io~1cluster");
            let source = annotation(slice, "collected-endpoint-slice");
            let ingress = annotation(slice, "multi-cluster-ingress");
            let clusters = self.versions(Kind::Cluster, cluster);
            let not_admitted = clusters
                .iter()
                .any(|version| !version.is_some_and(model::is_admitted));
            let sources = self.versions(Kind::EndpointSlice, &source);
            let gone = sources
                .iter()
                .any(|source| source.is_none_or(|s| model::endpoints(s).is_empty()));
            let service = sources
                .iter()
                .flatten()
                .find_map(|s| model::collected_for(s));
            let Some(service) = service else { return true };
            let not_located = self
                .versions(Kind::Binding, &model::binding_name(service))
                .iter()
                .any(|binding| {
                    !model::located(service, *binding).is_some_and(|all| all.contains(cluster))
                });
            let templates = self.versions(Kind::Service, service);
            let no_ports = templates
                .iter()
                .any(|t| t.is_none_or(|t| model::ports(t).is_empty()));
            let ingresses = self.versions(Kind::MultiClusterIngress, &ingress);
            let not_routed = ingresses.iter().any(|ingress| {
                ingress.is_none_or(|ingress| {
                    !model::services(ingress).contains(service) || self.may_serve(ingress).1
                })
            });
            not_admitted || gone || not_located || no_ports || not_routed
        });
        (!explained).then(|| "nothing explains the deletion".to_owned())
    }
}

/// Returns `true` if an entry is a write to anything but a lease.
pub(crate) fn is_write(entry: &Entry) -> bool {
    match &entry.message {
        Message::Request { method, path, .. } => {
            *method != Method::GET && !path.contains("/leases")
        }
        _ => false,
    }
}
