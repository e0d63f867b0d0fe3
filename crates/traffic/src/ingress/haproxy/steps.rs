use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use super::names::{BackendName, Target};
use super::settings::ServerSettings;
use super::state::Server;

/// The time after which connections that stay open are looked at again.
const RECHECK: Duration = Duration::from_secs(2);

/// The commands that bring HAProxy one step further, and the obstacles that only time or somebody else can remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HaproxyPlan {
    /// The commands to send, in this order; those that take a blocked cluster out come first.
    pub lines: Vec<Line>,
    /// The backends that the configuration lacks.
    pub missing: BTreeSet<String>,
    /// The connections that hold up the end of servers without requests.
    pub open: BTreeSet<OpenConnections>,
    /// The time after which there may be more to do.
    pub next: Option<Duration>,
}

/// Commands about one backend, for one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The backend.
    pub backend: String,
    /// The commands.
    pub commands: Vec<String>,
}

/// Connections to a server in maintenance that nobody ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenConnections {
    /// The backend.
    pub backend: String,
    /// The server's target.
    pub target: Target,
}

impl fmt::Display for OpenConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            backend,
            target: Target { cluster, address },
        } = self;
        write!(
            f,
            "connections to {address} of cluster {cluster} stay open in backend {backend} of HAProxy, which sends no new ones there; end them at one end, or set --haproxy-end-connections"
        )
    }
}

/// When a server goes.
#[derive(Clone, Copy)]
pub(super) enum Urgency {
    /// Before all else.
    First,
    /// After its successors.
    Last,
}

/// The commands about one backend.
pub(super) struct Commands<'a> {
    name: &'a BackendName,
    /// Set if another server gets requests whatever `urgent` takes out.
    is_served: bool,
    pub(super) urgent: Vec<String>,
    ready: Vec<String>,
    pub(super) stale: Vec<String>,
}

impl<'a> Commands<'a> {
    pub(super) fn new(name: &'a BackendName, is_served: bool) -> Self {
        Self {
            name,
            is_served,
            urgent: Vec::new(),
            ready: Vec::new(),
            stale: Vec::new(),
        }
    }

    pub(super) fn of(&mut self, urgency: Urgency) -> &mut Vec<String> {
        match urgency {
            Urgency::First => &mut self.urgent,
            Urgency::Last => &mut self.stale,
        }
    }
}

/// The steps of a plan.
pub(super) struct Steps<'a> {
    settings: &'a ServerSettings,
    pub(super) plan: HaproxyPlan,
    /// The lines that take no blocked cluster out.
    later: Vec<Line>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(settings: &'a ServerSettings) -> Self {
        Self {
            settings,
            plan: HaproxyPlan::default(),
            later: Vec::new(),
        }
    }

    pub(super) fn end(&mut self, line: Commands<'_>) {
        let is_urgent = !line.urgent.is_empty();
        // Without any server a request is a 503 at once: nothing queues it.
        let commands = if line.is_served {
            [line.urgent, line.ready, line.stale].concat()
        } else {
            [line.ready, line.urgent, line.stale].concat()
        };
        if commands.is_empty() {
            return;
        }
        let backend = line.name.to_string();
        let lines = if is_urgent {
            &mut self.plan.lines
        } else {
            &mut self.later
        };
        lines.push(Line { backend, commands });
    }

    pub(super) fn finish(mut self) -> HaproxyPlan {
        self.plan.lines.append(&mut self.later);
        self.plan
    }

    fn server(&self, backend: &BackendName, target: &Target) -> String {
        format!("{backend}/{}", target.server_name(&self.settings.owner))
    }

    pub(super) fn set(&self, backend: &BackendName, target: &Target, what: &str) -> String {
        format!("set server {} {what}", self.server(backend, target))
    }

    fn delete(&self, backend: &BackendName, target: &Target) -> String {
        format!("del server {}", self.server(backend, target))
    }

    fn shutdown(&self, backend: &BackendName, target: &Target) -> String {
        format!("shutdown sessions server {}", self.server(backend, target))
    }

    /// Adds a server, which starts in maintenance and unchecked.
    pub(super) fn add(&self, line: &mut Commands<'_>, target: &Target) {
        let parameters = &self.settings.parameters;
        let (server, address) = (self.server(line.name, target), target.address);
        let add = format!("add server {server} {address} {parameters}");
        line.ready.push(add.trim_end().to_owned());
        if parameters.checks() {
            line.ready.push(format!("enable health {server}"));
        }
        line.ready.push(self.set(line.name, target, "state ready"));
    }

    /// Undoes the settings that keep requests from a server that is to get them.
    pub(super) fn repair(&self, line: &mut Commands<'_>, target: &Target, server: &Server) {
        if server.is_unchecked() && self.settings.parameters.checks() {
            let server = self.server(line.name, target);
            line.ready.push(format!("enable health {server}"));
        }
        if server.weight != server.initial_weight {
            line.ready.push(self.set(line.name, target, "weight 100%"));
        }
        if server.is_in_maintenance() || server.is_draining() {
            line.ready.push(self.set(line.name, target, "state ready"));
        }
    }

    /// Takes a server out that has somebody else's address, at once.
    pub(super) fn remove(&mut self, line: &mut Commands<'_>, target: &Target, server: &Server) {
        if server.is_in_maintenance() {
            self.retire(line, Urgency::First, target, server);
        } else {
            line.urgent.push(self.set(line.name, target, "state maint"));
        }
    }

    /// Takes a server one step further: to drain, after the grace to maintenance, and away when no connection is left. Only
    /// then its name may be given to another server: the connections of one in use return to it.
    pub(super) fn retire(
        &mut self,
        line: &mut Commands<'_>,
        urgency: Urgency,
        target: &Target,
        server: &Server,
    ) {
        let ServerSettings {
            grace,
            ends_connections,
            ..
        } = *self.settings;
        if server.is_in_maintenance() {
            if server.connections == 0 {
                let delete = self.delete(line.name, target);
                line.of(urgency).push(delete);
                self.wait(RECHECK);
                return;
            }
            if ends_connections && server.since >= RECHECK {
                let shutdown = self.shutdown(line.name, target);
                line.of(urgency).push(shutdown);
            } else if !ends_connections && server.since >= grace {
                self.plan.open.insert(OpenConnections {
                    backend: line.name.to_string(),
                    target: target.clone(),
                });
            }
            self.wait(RECHECK);
        } else if !server.is_draining() {
            let drain = self.set(line.name, target, "state drain");
            line.of(urgency).push(drain);
            self.wait(grace);
        } else if server.since >= grace {
            let maintenance = self.set(line.name, target, "state maint");
            line.of(urgency).push(maintenance);
            if ends_connections && server.connections > 0 {
                let shutdown = self.shutdown(line.name, target);
                line.of(urgency).push(shutdown);
            }
            self.wait(RECHECK);
        } else {
            self.wait(grace.saturating_sub(server.since));
        }
    }

    fn wait(&mut self, time: Duration) {
        let next = self.plan.next.map_or(time, |next| next.min(time));
        self.plan.next = Some(next);
    }
}
