use std::collections::{BTreeMap, BTreeSet};

use objects::Key;

use super::names::{BackendName, Target};
use super::settings::ServerSettings;
use super::state::{Server, State};
use super::steps::{Commands, HaproxyPlan, Steps, Urgency};
use super::wanted::{Role, Wanted};
use crate::ingress::{Cached, Desired, ServedClusters};

impl ServerSettings {
    /// Plans the step from `state` to `wanted`, the servers for `desired`.
    pub fn plan(&self, desired: &Desired, wanted: &Wanted, state: &State) -> HaproxyPlan {
        let mut steps = Steps::new(self);
        let existing = self.existing(&desired.key, state);
        let all: BTreeSet<&BackendName> = existing.keys().chain(wanted.backends.keys()).collect();
        let none = (BTreeMap::new(), BTreeMap::new());
        for name in all {
            if !state.backends.contains_key(&name.to_string()) {
                steps.plan.missing.insert(name.to_string());
                continue;
            }
            let targets = wanted.backends.get(name).unwrap_or(&none.0);
            let servers = existing.get(name).unwrap_or(&none.1);
            let is_served = servers.iter().any(|(target, server)| {
                targets.get(target) == Some(&Role::Serves)
                    && server.takes_requests()
                    && is_at(server, target)
            });
            // The last server that requests go to stays until another takes them.
            let may_drain = is_served || !targets.values().any(|role| *role == Role::Serves);
            let mut line = Commands::new(name, is_served);
            for (target, server) in servers {
                match targets.get(target) {
                    _ if !is_at(server, target) => steps.remove(&mut line, target, server),
                    Some(Role::Serves) => steps.repair(&mut line, target, server),
                    Some(Role::Ends) if may_drain && server.takes_requests() => {
                        line.stale.push(steps.set(name, target, "state drain"));
                    }
                    Some(Role::Ends) => {}
                    None => match fate(desired, name, target) {
                        Fate::Excluded => steps.retire(&mut line, Urgency::First, target, server),
                        Fate::Stale if may_drain || !server.takes_requests() => {
                            steps.retire(&mut line, Urgency::Last, target, server);
                        }
                        Fate::Stale | Fate::Kept => {}
                    },
                }
            }
            for (target, role) in targets {
                if *role == Role::Serves && !servers.contains_key(target) {
                    steps.add(&mut line, target);
                }
            }
            steps.end(line);
        }
        steps.finish()
    }

    /// Plans the removal of every server of the ingress `key`; those of `excluded` clusters go first. Nobody routes to them
    /// any more: only who has connections gets time to end them.
    pub fn removal(&self, key: &Key, excluded: &BTreeSet<String>, state: &State) -> HaproxyPlan {
        let mut steps = Steps::new(self);
        for (name, servers) in self.existing(key, state) {
            let mut line = Commands::new(&name, true);
            for (target, server) in &servers {
                let urgency = if excluded.contains(&target.cluster) {
                    Urgency::First
                } else {
                    Urgency::Last
                };
                if server.connections == 0 && !server.is_in_maintenance() {
                    let maintenance = steps.set(&name, target, "state maint");
                    line.of(urgency).push(maintenance);
                } else {
                    steps.retire(&mut line, urgency, target, server);
                }
            }
            steps.end(line);
        }
        steps.finish()
    }

    /// Plans that the servers of clusters in `cut` get no request, and nothing else.
    pub fn cutting(&self, key: &Key, cut: &ServedClusters, state: &State) -> HaproxyPlan {
        let mut steps = Steps::new(self);
        for (name, servers) in self.existing(key, state) {
            let Some(clusters) = cut.get(&name.to_string()) else {
                continue;
            };
            let mut line = Commands::new(&name, true);
            let cut = servers.iter().filter(|(target, server)| {
                clusters.contains(&target.cluster) && server.takes_requests()
            });
            for (target, _) in cut {
                line.urgent.push(steps.set(&name, target, "state drain"));
            }
            steps.end(line);
        }
        steps.finish()
    }

    /// Returns the clusters with servers that get requests for the ingress `key`, by backend.
    pub fn held(&self, key: &Key, state: &State) -> ServedClusters {
        let mut held = ServedClusters::new();
        for (name, servers) in self.existing(key, state) {
            let serving = servers.iter().filter(|(_, server)| server.takes_requests());
            let clusters: BTreeSet<String> = serving.map(|(t, _)| t.cluster.clone()).collect();
            if !clusters.is_empty() {
                held.insert(name.to_string(), clusters);
            }
        }
        held
    }

    /// Returns the ingresses that have servers.
    pub fn ingresses(&self, state: &State) -> BTreeSet<Key> {
        let all = state.servers(&self.owner);
        all.map(|(backend, _, _)| backend.ingress).collect()
    }

    /// Returns the backends in which the ingress `key` has servers.
    pub fn backends(&self, key: &Key, state: &State) -> BTreeSet<String> {
        let all = state.servers_of(&self.owner, key);
        all.map(|(backend, _, _)| backend.to_string()).collect()
    }

    /// Returns the ingresses of which a server was changed, made or removed between two states.
    pub fn changed(&self, before: &State, after: &State) -> BTreeSet<Key> {
        let mut changed = BTreeSet::new();
        for (one, other) in [(before, after), (after, before)] {
            for (backend, target, server) in one.servers(&self.owner) {
                let servers = other.backends.get(&backend.to_string());
                let name = target.server_name(&self.owner);
                let twin = servers.and_then(|servers| servers.get(&name));
                if !twin.is_some_and(|twin| twin.is_set_as(server)) {
                    changed.insert(backend.ingress);
                }
            }
        }
        changed
    }

    /// Returns the servers of the ingress `key`.
    fn existing<'a>(
        &'a self,
        key: &Key,
        state: &'a State,
    ) -> BTreeMap<BackendName, BTreeMap<Target, &'a Server>> {
        let mut existing: BTreeMap<BackendName, BTreeMap<Target, &Server>> = BTreeMap::new();
        for (backend, target, server) in state.servers_of(&self.owner, key) {
            existing.entry(backend).or_default().insert(target, server);
        }
        existing
    }
}

fn is_at(server: &Server, target: &Target) -> bool {
    server.address == Some(target.address)
}

/// The fate of a server that is not wanted.
enum Fate {
    /// It gets no request, whatever else happens.
    Excluded,
    /// It stays as it is: its source cannot be read.
    Kept,
    /// It goes after its successors serve.
    Stale,
}

fn fate(desired: &Desired, name: &BackendName, target: &Target) -> Fate {
    let backend = desired.backend(&name.service);
    let cluster = backend.and_then(|backend| backend.cluster(&target.cluster));
    let Some(cluster) = cluster else {
        return if desired.excluded.contains(&target.cluster) {
            Fate::Excluded
        } else {
            Fate::Stale
        };
    };
    let is_unread = !desired.unread_slices.is_empty()
        || backend.is_some_and(|backend| backend.ports == Cached::Unread);
    if cluster.admission.is_excluded() {
        Fate::Excluded
    } else if is_unread && cluster.admission.is_served() {
        Fate::Kept
    } else {
        Fate::Stale
    }
}
