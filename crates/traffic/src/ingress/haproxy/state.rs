use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use objects::Key;

use super::names::{BackendName, Target};

/// The answer of the Runtime API to `show info`, `show backend`, `show servers state` and `show servers conn` in one line
/// (HAProxy 2.6, Management Guide, 9.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The id of the process, another after each restart and reload.
    pub pid: u32,
    /// The servers that were asked for, by the names of backend and server. Every backend is there.
    pub backends: BTreeMap<String, BTreeMap<String, Server>>,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Its address; `None` if that is a name.
    pub address: Option<SocketAddr>,
    /// The bits of `srv_admin_state`.
    pub admin: u32,
    /// Its weight now.
    pub weight: u32,
    /// The weight with which it was added.
    pub initial_weight: u32,
    /// The time since its state changed, in whole seconds.
    pub since: Duration,
    /// The bits of `srv_check_state`.
    pub checks: u32,
    /// The connections in use (`used_cur`).
    pub connections: u32,
}

const MAINTENANCE: u32 = 1;
/// The value of the configuration, whatever holds now.
const CONFIGURED_MAINTENANCE: u32 = 4;
const DRAIN: u32 = 8;
const CHECKS_CONFIGURED: u32 = 2;
const CHECKS_ENABLED: u32 = 4;

impl Server {
    /// Returns `true` if somebody put it into maintenance.
    pub fn is_in_maintenance(&self) -> bool {
        self.admin & MAINTENANCE != 0
    }

    /// Returns `true` if somebody drains it.
    pub fn is_draining(&self) -> bool {
        self.admin & DRAIN != 0
    }

    /// Returns `true` if nobody keeps new requests from it. Its health is another matter.
    pub fn takes_requests(&self) -> bool {
        self.admin & !CONFIGURED_MAINTENANCE == 0
    }

    /// Returns `true` if it has checks that are not made.
    pub(super) fn is_unchecked(&self) -> bool {
        self.checks & (CHECKS_CONFIGURED | CHECKS_ENABLED) == CHECKS_CONFIGURED
    }

    /// Returns `true` if `other` needs the same commands, whatever time and traffic have changed.
    pub fn is_set_as(&self, other: &Self) -> bool {
        self.settings() == other.settings()
    }

    /// Returns the server without the fields that time and traffic change.
    fn settings(&self) -> Self {
        Self {
            since: Duration::ZERO,
            connections: 0,
            checks: self.checks & CHECKS_ENABLED,
            ..self.clone()
        }
    }
}

/// The part of an answer that a line belongs to.
enum Part {
    Info,
    Backends,
    Servers,
    Connections,
}

impl State {
    /// Reads an answer. Other lines are passed over, such as the refusal of a command. `None` if there is no id of
    /// a process.
    pub fn read(answer: &str) -> Option<Self> {
        let mut state = Self::default();
        let mut pid = None;
        let (mut part, mut columns) = (Part::Info, Vec::new());
        for line in answer.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => part = Part::Info,
                ["#", "name"] => part = Part::Backends,
                ["#", header @ ..] => {
                    part = if header.contains(&"srv_admin_state") {
                        Part::Servers
                    } else if header.contains(&"used_cur") {
                        Part::Connections
                    } else {
                        Part::Info
                    };
                    columns = header.to_vec();
                }
                words => match part {
                    Part::Info => pid = pid.or_else(|| line.strip_prefix("Pid: ")?.parse().ok()),
                    Part::Backends => {
                        state.backends.entry(line.to_owned()).or_default();
                    }
                    Part::Servers => {
                        state.add_server(&Row {
                            columns: &columns,
                            words,
                        });
                    }
                    Part::Connections => {
                        state.add_connections(&Row {
                            columns: &columns,
                            words,
                        });
                    }
                },
            }
        }
        state.pid = pid?;
        Some(state)
    }

    fn add_server(&mut self, row: &Row<'_>) -> Option<()> {
        let (backend, name) = (row.text("be_name")?, row.text("srv_name")?);
        let ip = row.text("srv_addr")?.parse().ok();
        let port = row.text("srv_port").and_then(|port| port.parse().ok());
        let address = ip.zip(port).map(|(ip, port)| SocketAddr::new(ip, port));
        let number = |column| row.number(column).unwrap_or_default();
        let server = Server {
            address,
            admin: row.number("srv_admin_state")?,
            weight: number("srv_uweight"),
            initial_weight: number("srv_iweight"),
            since: Duration::from_secs(number("srv_time_since_last_change").into()),
            checks: number("srv_check_state"),
            connections: 0,
        };
        let servers = self.backends.entry(backend.to_owned()).or_default();
        servers.insert(name.to_owned(), server);
        Some(())
    }

    /// Adds the columns of the second table to a server of the first.
    fn add_connections(&mut self, row: &Row<'_>) -> Option<()> {
        let (backend, name) = row.text("bkname/svname")?.split_once('/')?;
        let server = self.backends.get_mut(backend)?.get_mut(name)?;
        server.connections = row.number("used_cur")?;
        Some(())
    }

    /// Adds another answer of the same process. `None` if another process gave it.
    pub fn joined(mut self, other: Self) -> Option<Self> {
        (self.pid == other.pid).then_some(())?;
        for (name, servers) in other.backends {
            self.backends.entry(name).or_default().extend(servers);
        }
        Some(self)
    }

    /// Returns the servers that `owner` made, by backend.
    pub(super) fn servers<'a>(&'a self, owner: &'a str) -> impl Iterator<Item = OurServer<'a>> {
        let all = self.backends.iter();
        all.flat_map(move |(name, servers)| ours(owner, name, servers))
    }

    /// Returns the servers that `owner` made for `ingress`, by backend.
    pub(super) fn servers_of<'a>(
        &'a self,
        owner: &'a str,
        ingress: &Key,
    ) -> impl Iterator<Item = OurServer<'a>> {
        let prefix = BackendName::prefix(ingress);
        let all = self.backends.range(prefix.clone()..);
        let all = all.take_while(move |(name, _)| name.starts_with(&prefix));
        all.flat_map(move |(name, servers)| ours(owner, name, servers))
    }
}

/// A server with its backend and target.
pub(super) type OurServer<'a> = (BackendName, Target, &'a Server);

/// Returns those of the `servers` of the backend `name` that `owner` made.
fn ours<'a>(
    owner: &'a str,
    name: &str,
    servers: &'a BTreeMap<String, Server>,
) -> impl Iterator<Item = OurServer<'a>> {
    let backend = BackendName::parse(name);
    backend.into_iter().flat_map(move |backend| {
        servers.iter().filter_map(move |(name, server)| {
            let target = Target::parse(owner, name)?;
            Some((backend.clone(), target, server))
        })
    })
}

/// A row of a table. Newer versions add columns.
struct Row<'a> {
    columns: &'a [&'a str],
    words: &'a [&'a str],
}

impl<'a> Row<'a> {
    fn text(&self, column: &str) -> Option<&'a str> {
        let place = self.columns.iter().position(|name| *name == column)?;
        self.words.get(place).copied()
    }

    fn number(&self, column: &str) -> Option<u32> {
        self.text(column)?.parse().ok()
    }
}

/// Returns the refusals in an answer to commands after `show info`. A success is none, and neither is the message that a
/// server was added or deleted. Idle connections end a moment after maintenance begins, and only then a server can go.
pub fn refusal(answer: &str) -> Option<String> {
    let (_, rest) = answer.split_once("\n\n")?;
    let routine = [
        "",
        "New server registered.",
        "Server deleted.",
        "Server still has connections attached to it, cannot remove it.",
    ];
    let mut said: Vec<&str> = rest.lines().map(str::trim).collect();
    said.retain(|line| !routine.contains(line));
    said.dedup();
    said.truncate(3);
    (!said.is_empty()).then(|| said.join(" "))
}
