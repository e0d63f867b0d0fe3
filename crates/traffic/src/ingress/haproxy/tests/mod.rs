//! Tests on a model of HAProxy's Runtime API, which treats each command as 2.6.12 does.

mod answers;
mod plan;
mod properties;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use objects::Key;

use super::*;
use crate::ingress::fixtures::{
    Fixture, binding, cluster, ingress, slice, two_services as fixture,
};
use crate::ingress::{BackendAddresses, Desired};
use karmada_api::MultiClusterIngressStatus;

const GRACE: Duration = Duration::from_secs(30);

fn settings() -> ServerSettings {
    let parameters = "check".parse().unwrap();
    ServerSettings::new(
        &"example.com/ours".parse().unwrap(),
        parameters,
        GRACE,
        false,
    )
}

fn key() -> Key {
    Key::new("ns", "i")
}

/// Returns the desired state, with clusters readmitted where all are blocked.
fn desired(fixture: &Fixture, services: &[&str]) -> Desired {
    let spec = ingress("i", services, None).spec.ingress;
    let (status, addresses) = (
        MultiClusterIngressStatus::default(),
        BackendAddresses::Endpoints,
    );
    let mut desired = Desired::new(key(), &spec, &status, addresses, fixture);
    desired.readmit(fixture);
    desired
}

/// An HAProxy.
#[derive(Clone, Debug)]
struct Model {
    state: State,
}

impl Model {
    /// Returns one that has just started, with these backends.
    fn started(backends: &[&str]) -> Self {
        let backends = backends
            .iter()
            .map(|&name| (name.to_owned(), BTreeMap::new()));
        Self {
            state: State {
                pid: 1,
                backends: backends.collect(),
            },
        }
    }

    /// Returns one that has the servers for `desired`.
    fn converged(desired: &Desired) -> Self {
        let mut model = Self::started(&["ns_i_s_80", "ns_i_t_80", "theirs"]);
        model.ensure(desired);
        assert_eq!(model.plan(desired), HaproxyPlan::default());
        model
    }

    fn plan(&self, desired: &Desired) -> HaproxyPlan {
        settings().plan(desired, &Wanted::new(desired), &self.state)
    }

    /// Follows the plans until there is nothing to do now, and returns the commands by line.
    fn ensure(&mut self, desired: &Desired) -> Vec<String> {
        let mut sent = Vec::new();
        for _ in 0..5 {
            let plan = self.plan(desired);
            if plan.lines.is_empty() {
                return sent;
            }
            sent.extend(self.follow(&plan));
        }
        panic!("it never rests: {sent:?}");
    }

    /// Follows the lines, and returns them without their common parts.
    fn follow(&mut self, plan: &HaproxyPlan) -> Vec<String> {
        let lines = plan.lines.iter().map(|line| {
            for command in &line.commands {
                self.command(command);
            }
            line.commands.join("; ").replace("example.com_ours_", "")
        });
        lines.collect()
    }

    fn command(&mut self, command: &str) {
        let words: Vec<&str> = command.split(' ').collect();
        let place = words.iter().find_map(|word| word.split_once('/')).unwrap();
        let servers = self.state.backends.get_mut(place.0).unwrap();
        if let ["add", "server", _, address, parameters @ ..] = words.as_slice() {
            let server = Server {
                address: Some(address.parse().unwrap()),
                admin: 1,
                weight: 1,
                initial_weight: 1,
                checks: if parameters.contains(&"check") { 2 } else { 0 },
                ..Server::default()
            };
            assert_eq!(
                servers.insert(place.1.to_owned(), server),
                None,
                "{command}"
            );
            return;
        }
        let server = servers.get_mut(place.1).unwrap();
        match words.as_slice() {
            ["enable", "health", _] => server.checks |= 4,
            ["set", "server", _, "weight", "100%"] => server.weight = server.initial_weight,
            ["set", "server", _, "state", state] => {
                server.admin = match *state {
                    "ready" => 0,
                    "drain" => 8,
                    "maint" => 1,
                    other => panic!("{other}"),
                };
                server.since = Duration::ZERO;
            }
            ["shutdown", "sessions", "server", _] => server.connections = 0,
            ["del", "server", _] => {
                assert!(server.is_in_maintenance(), "{command}");
                if server.connections == 0 {
                    servers.remove(place.1);
                }
            }
            _ => panic!("{command}"),
        }
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        for server in self
            .state
            .backends
            .values_mut()
            .flat_map(|all| all.values_mut())
        {
            server.since += time;
        }
    }

    fn server(&mut self, place: &str) -> &mut Server {
        let (backend, name) = place.split_once('/').unwrap();
        let servers = self.state.backends.get_mut(backend).unwrap();
        servers
            .get_mut(&format!("example.com_ours_{name}"))
            .unwrap()
    }

    /// Returns the addresses of a backend that get requests.
    fn served(&self, backend: &str) -> BTreeSet<String> {
        let servers = self.state.backends[backend].values();
        let served = servers.filter(|server| server.takes_requests());
        served
            .map(|server| server.address.unwrap().to_string())
            .collect()
    }
}

fn set(addresses: &[&str]) -> BTreeSet<String> {
    addresses
        .iter()
        .map(|&address| address.to_owned())
        .collect()
}
