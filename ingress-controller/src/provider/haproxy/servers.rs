//! The servers of an HAProxy: their last known state, and the steps to the planned one.

use std::collections::{BTreeMap, BTreeSet};

use karmada_runtime::write::Writer;
use objects::Key;
use parking_lot::Mutex;
use traffic::ingress::ServedClusters;
use traffic::ingress::haproxy::{HaproxyPlan, Line, ServerSettings, State, refusal};

use super::error::HaproxyError;
use super::runtime_api::{Socket, lines};

/// The most steps of one call: to add, to drain the replaced server, to end it, to remove it, and one for a change in between.
const STEPS: usize = 5;

/// The servers of an HAProxy.
pub(super) struct Servers {
    socket: Socket,
    writer: Writer,
    settings: ServerSettings,
    known: Mutex<Known>,
}

/// The last state that was read, and who relies on it.
#[derive(Debug, Default)]
struct Known {
    state: State,
    /// The ingresses that are to be served, whether or not HAProxy has servers of them.
    desired: BTreeSet<Key>,
    /// The number of states taken in. A look that began before the last one is out of date.
    version: u64,
}

impl Known {
    /// Takes in the state of all servers. Returns the ingresses that have to be looked at: those of which somebody changed
    /// servers and, if the process is another one, all.
    fn replace(&mut self, state: State, settings: &ServerSettings) -> BTreeSet<Key> {
        let mut concerned = settings.changed(&self.state, &state);
        if self.state.pid != state.pid {
            concerned.extend(self.desired.iter().cloned());
        }
        self.version += 1;
        self.state = state;
        concerned
    }

    /// Takes in the state of the servers in `backends`. The process stays the one that the last look at all saw: another may
    /// have lost the other servers.
    fn update(&mut self, state: &State, backends: &BTreeSet<String>) {
        self.version += 1;
        for name in backends {
            match state.backends.get(name) {
                Some(servers) => self.state.backends.insert(name.clone(), servers.clone()),
                None => self.state.backends.remove(name),
            };
        }
    }
}

/// The end of a call's steps.
pub(super) struct Reached {
    pub(super) plan: HaproxyPlan,
    /// The refusals of the last commands, by backend.
    pub(super) refusals: BTreeMap<String, String>,
}

impl Servers {
    pub(super) fn new(socket: Socket, writer: Writer, settings: ServerSettings) -> Self {
        Self {
            socket,
            writer,
            settings,
            known: Mutex::default(),
        }
    }

    pub(super) fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Returns the process that was last seen.
    pub(super) fn pid(&self) -> u32 {
        self.known.lock().state.pid
    }

    /// Records that the ingress `key` is to be served.
    pub(super) fn desire(&self, key: &Key) {
        self.known.lock().desired.insert(key.clone());
    }

    /// Records that nothing of the ingress `key` is to be there.
    pub(super) fn forget(&self, key: &Key) {
        self.known.lock().desired.remove(key);
    }

    /// Returns the ingresses that are to be served.
    pub(super) fn desired(&self) -> BTreeSet<Key> {
        self.known.lock().desired.clone()
    }

    /// Returns the ingresses that HAProxy has servers of.
    pub(super) fn keys(&self) -> BTreeSet<Key> {
        self.settings.ingresses(&self.known.lock().state)
    }

    /// Returns the ingresses that are to be served, and those that HAProxy has servers of.
    pub(super) fn concerned(&self) -> BTreeSet<Key> {
        let mut all = self.keys();
        all.extend(self.known.lock().desired.iter().cloned());
        all
    }

    /// Returns the backends in which HAProxy has servers of the ingress `key`.
    pub(super) fn backends(&self, key: &Key) -> BTreeSet<String> {
        self.settings.backends(key, &self.known.lock().state)
    }

    /// Returns the clusters with servers that get requests for the ingress `key`.
    pub(super) fn held(&self, key: &Key) -> ServedClusters {
        self.settings.held(key, &self.known.lock().state)
    }

    /// Sends lines that change nothing, and returns their joined answers.
    pub(super) async fn read(&self, commands: &[String]) -> Result<State, HaproxyError> {
        let mut all: Option<State> = None;
        for line in lines(commands) {
            let answer = self.socket.send(&line).await;
            let answer = answer.map_err(|source| HaproxyError::Read {
                socket: self.socket.to_string(),
                source,
            })?;
            let state = State::read(&answer).ok_or_else(|| HaproxyError::Answer {
                socket: self.socket.to_string(),
            })?;
            all = match all {
                None => Some(state),
                Some(all) => Some(all.joined(state).ok_or_else(|| self.restarted())?),
            };
        }
        all.ok_or_else(|| self.restarted())
    }

    fn restarted(&self) -> HaproxyError {
        HaproxyError::Restarted {
            socket: self.socket.to_string(),
        }
    }

    /// Reads the servers in `backends`, and which backends there are.
    async fn read_backends(&self, backends: &BTreeSet<String>) -> Result<State, HaproxyError> {
        let mut commands = vec!["show backend".to_owned()];
        for backend in backends {
            commands.push(format!("show servers state {backend}"));
            commands.push(format!("show servers conn {backend}"));
        }
        let state = self.read(&commands).await?;
        self.known.lock().update(&state, backends);
        Ok(state)
    }

    /// Reads all servers. Returns the ingresses that have to be looked at.
    pub(super) async fn look(&self) -> Result<BTreeSet<Key>, HaproxyError> {
        let commands = ["show backend", "show servers state", "show servers conn"];
        let mut is_second = false;
        loop {
            let begun = self.known.lock().version;
            let state = self.read(&commands.map(str::to_owned)).await?;
            let mut known = self.known.lock();
            // A call that wrote meanwhile knows more. Under constant load the next look corrects it.
            if known.version == begun || is_second {
                return Ok(known.replace(state, &self.settings));
            }
            is_second = true;
        }
    }

    /// Sends the lines of a plan to the process that it was made for. Returns the refusals of HAProxy, by backend.
    async fn write(
        &self,
        plan: &[Line],
        pid: u32,
    ) -> Result<BTreeMap<String, String>, HaproxyError> {
        let mut refusals = BTreeMap::new();
        for Line { backend, commands } in plan {
            for line in lines(commands) {
                let call = async {
                    let answer = self.socket.send(&line).await;
                    answer.map_err(|error| kube::Error::Service(error.into()))
                };
                let answer = self.writer.write("haproxy_servers", call).await;
                let answer = answer.map_err(|source| HaproxyError::Write {
                    backend: backend.clone(),
                    source: Box::new(source),
                })?;
                let process = State::read(&answer).map(|state| state.pid);
                if process != Some(pid) {
                    return Err(self.restarted());
                }
                if let Some(message) = refusal(&answer) {
                    refusals.insert(backend.clone(), message);
                }
            }
        }
        Ok(refusals)
    }

    /// Takes step after step, each planned on the servers in `backends` as they are, until there is nothing to do now, or a
    /// step changes nothing.
    pub(super) async fn reach(
        &self,
        backends: &BTreeSet<String>,
        plan: impl Fn(&State) -> HaproxyPlan,
    ) -> Result<Reached, HaproxyError> {
        let mut before = Vec::new();
        let mut refusals = BTreeMap::new();
        let mut steps = 0;
        loop {
            let state = self.read_backends(backends).await?;
            let plan = plan(&state);
            if plan.lines.is_empty() || plan.lines == before || steps == STEPS {
                return Ok(Reached { plan, refusals });
            }
            refusals = self.write(&plan.lines, state.pid).await?;
            before = plan.lines;
            steps += 1;
        }
    }
}
