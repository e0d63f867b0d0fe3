//! The answers of DNS for the published hosts. ExternalDNS says of every record that it is done, also of one that somebody else
//! has, so only DNS itself acknowledges it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use futures::{StreamExt, stream};
use karmada_api::DnsEndpoint;
use karmada_runtime::client::Addresses;
use objects::Key;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;
use traffic::ingress::dns::{DnsProblem, Lookup, alias_of, host_of, is_due, is_served, targets_of};

/// The number of hosts looked up at once.
const CONCURRENCY: usize = 16;

pub(super) struct Answers {
    addresses: Addresses,
    /// The time that a resolver may keep an answer.
    ttl: Duration,
    by_ingress: Mutex<BTreeMap<Key, Hosts>>,
    /// The number of hosts that resolve to something else.
    unserved: Gauge,
}

/// The published targets of each host of an ingress.
type Hosts = BTreeMap<String, Published>;

#[derive(Clone, Debug, PartialEq)]
struct Published {
    targets: BTreeSet<String>,
    /// The name to which the host leads, if it is one.
    alias: Option<String>,
    since: Instant,
    problem: Option<DnsProblem>,
}

impl Answers {
    pub(super) fn new(addresses: Addresses, ttl: Duration, unserved: Gauge) -> Self {
        Self {
            addresses,
            ttl,
            by_ingress: Mutex::default(),
            unserved,
        }
    }

    /// Takes in the published targets of `ingress`, and returns which of its hosts resolve to something else.
    pub(super) fn of(&self, ingress: &Key, endpoints: &[DnsEndpoint]) -> BTreeSet<DnsProblem> {
        let mut all = self.by_ingress.lock();
        let mut before = all.remove(ingress).unwrap_or_default();
        let mut problems = BTreeSet::new();
        let mut hosts = Hosts::new();
        for endpoint in endpoints {
            let (host, targets) = (host_of(endpoint).to_owned(), targets_of(endpoint));
            let known = before.remove(&host).filter(|one| one.targets == targets);
            let published = known.unwrap_or_else(|| Published {
                alias: alias_of(endpoint).map(str::to_owned),
                targets,
                since: Instant::now(),
                problem: None,
            });
            problems.extend(published.problem.clone());
            hosts.insert(host, published);
        }
        if !hosts.is_empty() {
            all.insert(ingress.clone(), hosts);
        }
        problems
    }

    /// Forgets the published targets.
    pub(super) fn clear(&self) {
        self.by_ingress.lock().clear();
    }

    /// Looks up the hosts that must have followed by now, and returns the ingresses of those that do otherwise than before.
    pub(super) async fn look_up(&self) -> BTreeSet<Key> {
        let looked_up: Vec<_> = stream::iter(self.due(Instant::now()))
            .map(|(ingress, host, one)| async move {
                let problem = self.examine(&host, &one).await;
                (ingress, host, one, problem)
            })
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        let mut all = self.by_ingress.lock();
        let mut woken = BTreeSet::new();
        for (ingress, host, before, problem) in looked_up {
            let Some(problem) = problem else { continue };
            let one = all.get_mut(&ingress).and_then(|hosts| hosts.get_mut(&host));
            // Something else may have been published meanwhile.
            if let Some(one) = one.filter(|one| **one == before)
                && one.problem != problem
            {
                one.problem = problem;
                woken.insert(ingress);
            }
        }
        let hosts = all.values().flat_map(Hosts::values);
        let unserved = hosts.filter(|one| one.problem.is_some()).count();
        self.unserved
            .set(i64::try_from(unserved).unwrap_or(i64::MAX));
        woken
    }

    /// Returns the hosts with records that must have followed at `now`.
    fn due(&self, now: Instant) -> Vec<(Key, String, Published)> {
        let all = self.by_ingress.lock();
        let hosts = all
            .iter()
            .flat_map(|(ingress, hosts)| hosts.iter().map(move |(host, one)| (ingress, host, one)));
        let due = hosts.filter(|(_, host, one)| {
            // Of a wildcard, any name may have a record of its own.
            is_due(now.duration_since(one.since), self.ttl) && !host.starts_with('*')
        });
        due.map(|(ingress, host, one)| (ingress.clone(), host.clone(), one.clone()))
            .collect()
    }

    /// Returns the problem of the answer for a host; `None` while DNS does not answer.
    async fn examine(&self, host: &str, one: &Published) -> Option<Option<DnsProblem>> {
        let found = self.resolve(host).await?;
        let published = match &one.alias {
            Some(alias) => self.resolve(alias).await?,
            None => one
                .targets
                .iter()
                .filter_map(|ip| ip.parse().ok())
                .collect(),
        };
        let lookup = Lookup {
            published,
            found,
            is_alias: one.alias.is_some(),
        };
        let problem = (!is_served(&lookup)).then(|| DnsProblem::NotServed {
            host: host.to_owned(),
            published: one.targets.clone(),
            found: lookup.found,
        });
        Some(problem)
    }

    /// Returns the addresses of a name; `None` while DNS does not answer.
    async fn resolve(&self, name: &str) -> Option<BTreeSet<IpAddr>> {
        // The dot keeps the search list of a pod out.
        match self.addresses.look_up_anew(&format!("{name}.")).await {
            Ok(found) => Some(found.into_iter().collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Some(BTreeSet::new()),
            Err(error) => {
                tracing::debug!(name, %error, "A published host cannot be looked up");
                None
            }
        }
    }
}
