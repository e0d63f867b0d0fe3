//! No block is lifted or made that no fact explains.
//!
//! A process knows what it was told: the record has every list and every line of a watch that it has
//! read, so delayed, coalesced, lost and stale news are taken into account exactly. It acts on a
//! decision without a pause: the writes that follow from one begin as soon as the one before is
//! answered. So each write must be what [`super::model`] says for some combination of versions of
//! the objects, each of them one that the process knew at some moment since it was last idle, that
//! is, without a request under way but watches, its lease and Events; versions replaced in that very
//! instant count as well, since several watches speak in an order of their own.
//!
//! What is looked at: every write of `remedyActions`, of `serviceLocations` and
//! `trafficBlockClusters`, and every write or deletion of an `EndpointSlice` of the gateway. Besides,
//! no write may come before all that decides it was listed, nor from a process whose lease, as far
//! as it was told, has run out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::kinds::{Kind, is_deleting, text};
use super::model;
use super::program::{Process, Program};
use super::record::{Entry, What};
use super::told::Told;

/// How long a lease lasts after it was last renewed.
const LEASE: Duration = Duration::from_secs(15);

/// The most combinations of classes that are tried.
const COMBINATIONS: usize = 4_096;

/// Reads records and says what nothing explains.
#[derive(Debug, Default)]
pub(crate) struct Explainer {
    processes: BTreeMap<Process, State>,
    requests: BTreeMap<usize, Request>,
    read: usize,
    /// The instant that is being read, and its first entry.
    instant: Option<(Instant, usize)>,
}

/// What is known of a process.
#[derive(Debug, Default)]
struct State {
    told: Told,
    /// Requests under way, but watches, the lease and Events.
    busy: BTreeSet<usize>,
    /// The first entry of the instant in which it was last idle.
    idle: usize,
    /// When the last of those requests ended.
    ended: Option<Instant>,
    /// When the last write that made the lease its own began.
    renewed: Option<Instant>,
}

/// A request under way.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what a request is for, and not the states of a machine"
)]
struct Request {
    kind: Option<Kind>,
    began: Instant,
    is_write: bool,
    is_lease: bool,
    is_watch: bool,
    is_list: bool,
    succeeded: bool,
    /// What was read of a watch and is no whole line yet.
    rest: Vec<u8>,
}

impl Explainer {
    /// How much of the record was read.
    pub(crate) fn position(&self) -> usize {
        self.read
    }

    /// Who renewed the lease of a program last, and when.
    pub(crate) fn leader(&self, program: Program) -> Option<(Process, Instant)> {
        let all = self
            .processes
            .iter()
            .filter(|(process, _)| process.program == program);
        let renewed = all.filter_map(|(process, state)| Some((*process, state.renewed?)));
        renewed.max_by_key(|(_, renewed)| *renewed)
    }

    /// Reads on in a record; the first write that nothing explains is the answer.
    pub(crate) fn read(&mut self, entries: &[Entry]) -> Option<String> {
        entries.iter().find_map(|entry| {
            self.read += 1;
            self.entry(entry)
        })
    }

    fn entry(&mut self, entry: &Entry) -> Option<String> {
        let now = self.read;
        let instant = match self.instant {
            Some((at, first)) if at == entry.at => first,
            _ => now,
        };
        self.instant = Some((entry.at, instant));
        let state = self.processes.entry(entry.process).or_default();
        match &entry.what {
            What::Asked { method, path, body } => {
                let request = Request::new(entry, method, path);
                let counts = !request.is_watch && !request.is_lease && !path.contains("/events");
                if counts {
                    state.begin(entry, instant);
                }
                let is_write = request.is_write && counts;
                self.requests.insert(entry.request, request);
                let state = self.processes.get(&entry.process)?;
                return is_write
                    .then(|| judge(entry, state, method, path, body))
                    .flatten();
            }
            What::Answered(status) => {
                let request = self.requests.get_mut(&entry.request)?;
                request.succeeded = status.is_some_and(|status| (200..300).contains(&status));
                if request.is_lease && request.is_write && request.succeeded {
                    state.renewed = Some(request.began);
                }
                if status.is_none() {
                    state.end(entry);
                }
            }
            What::Told(bytes) => {
                let request = self.requests.get_mut(&entry.request)?;
                state.hear(request, bytes, now);
                if !request.is_watch {
                    state.end(entry);
                }
            }
            What::Ended | What::Left => {
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
    /// A request begins. If the last one ended in this very instant, it follows from it.
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

    fn hear(&mut self, request: &mut Request, bytes: &[u8], now: usize) {
        let Some(kind) = request
            .kind
            .filter(|_| request.is_list && request.succeeded)
        else {
            return;
        };
        if !request.is_watch {
            if let Ok(list) = serde_json::from_slice(bytes) {
                self.told.list(kind, list, now);
            }
            return;
        }
        request.rest.extend_from_slice(bytes);
        while let Some(end) = request.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = request.rest.drain(..=end).collect();
            if let Ok(event) = serde_json::from_slice(&line) {
                self.told.event(kind, event, now);
            }
        }
    }
}

/// What is wrong with a write.
fn judge(entry: &Entry, state: &State, method: &Method, path: &str, body: &[u8]) -> Option<String> {
    let process = entry.process;
    let why = (|| {
        let kinds: &[Kind] = match process.program {
            Program::Remedy => &[Kind::Cluster, Kind::Remedy],
            Program::Ingress => &Kind::ALL,
        };
        let needed: Vec<Kind> = kinds
            .iter()
            .copied()
            .filter(|kind| process.program == Program::Remedy || *kind != Kind::Remedy)
            .collect();
        if !state.told.has_listed(&needed) {
            return Some("not everything that decides it was listed".to_owned());
        }
        if state
            .renewed
            .is_none_or(|renewed| entry.at >= renewed + LEASE)
        {
            return Some("its lease has run out".to_owned());
        }
        let plain = path.split('?').next().unwrap_or_default();
        let (kind, rest) = Kind::of_path(entry.side, plain)?;
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let facts = Facts {
            told: &state.told,
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
            (Kind::GatewaySlice, [name]) if method == Method::DELETE => facts.cut(name),
            _ => None,
        }
    })()?;
    let (program, replica) = (process.program.name(), process.replica);
    let body = String::from_utf8_lossy(body);
    Some(format!(
        "replica {replica} of {program} sends {method} {path} {body}: {why}"
    ))
}

/// What a process may have decided from.
struct Facts<'a> {
    told: &'a Told,
    since: usize,
}

impl<'a> Facts<'a> {
    fn known(&self, kind: Kind, name: &str) -> Vec<Option<&'a Value>> {
        self.told.known(kind, name, self.since)
    }

    fn present(&self, kind: Kind, name: &str) -> impl Iterator<Item = &'a Value> {
        self.known(kind, name).into_iter().flatten()
    }

    /// `remedyActions` must be what some versions of all Remedies ask for on one of the cluster.
    fn actions(&self, name: &str, body: &Value) -> Option<String> {
        let written = &body["status"]["remedyActions"];
        let remedies: Vec<Vec<Option<&Value>>> = self
            .told
            .names(Kind::Remedy)
            .map(|name| self.known(Kind::Remedy, name))
            .collect();
        let mut possible = BTreeSet::new();
        for cluster in self
            .present(Kind::Cluster, name)
            .filter(|cluster| !is_deleting(cluster))
        {
            let mut sums = BTreeSet::from([BTreeSet::new()]);
            for versions in &remedies {
                let asked: BTreeSet<BTreeSet<String>> = versions
                    .iter()
                    .map(|remedy| remedy.map(|r| model::asked(r, cluster)).unwrap_or_default())
                    .collect();
                let with = |sum: &BTreeSet<String>| {
                    asked
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

    /// Every combination of versions of the classes.
    fn classes(&self) -> Vec<Vec<&'a Value>> {
        let mut all = vec![Vec::new()];
        for name in self.told.names(Kind::IngressClass) {
            let versions = self.known(Kind::IngressClass, name);
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

    /// Whether an ingress may have been known as one to serve, and as one not to.
    fn may_serve(&self, ingress: &Value) -> (bool, bool) {
        let classes = self.classes();
        let ours = |chosen: &Vec<&Value>| model::is_ours(ingress, chosen.iter().copied());
        let deleting = is_deleting(ingress);
        (
            !deleting && classes.iter().any(ours),
            deleting || !classes.iter().all(ours),
        )
    }

    /// The locations and blocks must be those of one version of the ingress, with each location by
    /// some version of the binding and each block by some version of the cluster; or none, when the
    /// ingress may have been known as not ours to serve.
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
            .then(|| "no versions of the ingress, its bindings and clusters say so".to_owned())
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
            let bindings = self.known(Kind::Binding, &model::binding_name(service));
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
        let stands = |cluster: &&&str| {
            let versions = self.known(Kind::Cluster, cluster);
            let is_blocked = |version: Option<&Value>| version.is_some_and(model::is_blocked);
            versions
                .iter()
                .any(|&version| is_blocked(version) == blocked.contains(**cluster))
        };
        located && blocked.is_subset(&clusters) && clusters.iter().all(|c| stands(&c))
    }

    /// A new slice at the gateway must lead into a cluster that may have been known as open.
    fn admission(&self, slice: &Value) -> Option<String> {
        let cluster = text(slice, "/metadata/labels/karmada-rs.io~1cluster");
        let open = self.present(Kind::Cluster, cluster).any(model::is_open);
        (!open).then(|| format!("{cluster} was not known as open"))
    }

    /// A slice may go only when what led to it may have been known as gone, or the ingress as not to
    /// be served, or as another one.
    fn cut(&self, name: &str) -> Option<String> {
        let slices: Vec<&Value> = self.present(Kind::GatewaySlice, name).collect();
        let annotation = |slice: &Value, key: &str| {
            text(
                slice,
                &format!("/metadata/annotations/karmada-rs.io~1{key}"),
            )
            .to_owned()
        };
        if slices.is_empty() {
            // It was made and not told of yet: nothing says what it leads to.
            return None;
        }
        let explained = slices.iter().any(|slice| {
            let cluster = text(slice, "/metadata/labels/karmada-rs.io~1cluster");
            let source = annotation(slice, "collected-endpoint-slice");
            let ingress = annotation(slice, "multi-cluster-ingress");
            let clusters = self.known(Kind::Cluster, cluster);
            let is_closed = clusters
                .iter()
                .any(|version| !version.is_some_and(model::is_open));
            let sources = self.known(Kind::EndpointSlice, &source);
            let gone = sources
                .iter()
                .any(|source| source.is_none_or(|s| model::endpoints(s).is_empty()));
            let service = sources
                .iter()
                .flatten()
                .find_map(|s| model::collected_for(s));
            let Some(service) = service else { return true };
            let not_located = self
                .known(Kind::Binding, &model::binding_name(service))
                .iter()
                .any(|binding| {
                    !model::located(service, *binding).is_some_and(|all| all.contains(cluster))
                });
            let templates = self.known(Kind::Service, service);
            let no_ports = templates
                .iter()
                .any(|t| t.is_none_or(|t| model::ports(t).is_empty()));
            let ingresses = self.known(Kind::MultiClusterIngress, &ingress);
            let not_routed = ingresses.iter().any(|ingress| {
                ingress.is_none_or(|ingress| {
                    !model::services(ingress).contains(service) || self.may_serve(ingress).1
                })
            });
            is_closed || gone || not_located || no_ports || not_routed
        });
        (!explained).then(|| "nothing says that it may go".to_owned())
    }
}

/// What a write says, for people: without what nobody needs to replay it.
pub(crate) fn is_write(entry: &Entry) -> bool {
    match &entry.what {
        What::Asked { method, path, .. } => *method != Method::GET && !path.contains("/leases"),
        _ => false,
    }
}
