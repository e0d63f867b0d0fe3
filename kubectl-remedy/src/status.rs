//! `kubectl remedy status`: one line for each cluster.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use karmada_api::condition::{Condition, DNS_READY, REPORTER_READY, owned};
use karmada_api::remedy::{DRAIN, REASON};
use karmada_api::{Cluster, MultiClusterIngress};
use kube::{Client, ResourceExt};
use serde::Serialize;
use traffic::remedy::Expiry;

use crate::age::age;
use crate::answer::Answer;
use crate::args::{StatusArgs, StatusOutput};
use crate::error::Error;
use crate::fleet::FleetSnapshot;
use crate::manifest::{self, Format};
use crate::table::Table;
use crate::terminal;

/// The state of a fleet, as it is written.
#[derive(Debug, Serialize)]
struct Report {
    clusters: Vec<Line>,
}

/// The state of one cluster.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    conditions: Vec<Condition>,
    actions: Vec<String>,
    /// Those that act on the cluster.
    remedies: Vec<Acting>,
    ingresses: Ingresses,
    /// The drain that nobody has taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    drain: Option<Drain>,
}

/// A drain of a cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Drain {
    /// The time until which the traffic stays away.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// True if that is over.
    is_over: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Acting {
    name: String,
    cause: String,
}

/// The number of ingresses with a backend in a cluster, and of those that are blocked there.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Ingresses {
    located: usize,
    blocked: usize,
}

/// Shows the fleet.
pub(crate) async fn run(
    args: &StatusArgs,
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Answer, Error> {
    let fleet = FleetSnapshot::read_without_backends(client, namespace, now).await?;
    let report = Report::of(&fleet);
    terminal::print(&match args.output {
        None => report.table(false, now),
        Some(StatusOutput::Wide) => report.table(true, now),
        Some(StatusOutput::Json) => manifest::text(&report, Format::Json)?,
        Some(StatusOutput::Yaml) => manifest::text(&report, Format::Yaml)?,
    });
    for key in fleet.clusters.unread() {
        terminal::print_error(&format!("cluster {key} cannot be read"));
    }
    Ok(Answer::Yes)
}

impl Report {
    fn of(fleet: &FleetSnapshot) -> Self {
        let counts = counts(fleet);
        let lines = fleet.clusters.iter().map(|(key, cluster)| {
            let ingresses = counts.get(&*key.name).copied().unwrap_or_default();
            Line::of(cluster, fleet, ingresses)
        });
        Self {
            clusters: lines.collect(),
        }
    }

    fn table(&self, is_wide: bool, now: Timestamp) -> String {
        let titles = [
            "NAME", "DNS", "SINCE", "REPORTER", "SINCE", "ACTIONS", "REMEDIES", "BLOCKED",
        ];
        let details: &[&str] = if is_wide { &["REASON", "MESSAGE"] } else { &[] };
        let mut table = Table::new(titles.into_iter().chain(details.iter().copied()));
        for line in &self.clusters {
            table.push(line.cells(is_wide, now));
        }
        if table.is_empty() {
            return "No clusters found\n".to_owned();
        }
        let drains = self.clusters.iter().filter_map(Line::drained);
        table.to_string() + &drains.collect::<String>()
    }
}

impl Line {
    fn of(cluster: &Cluster, fleet: &FleetSnapshot, ingresses: Ingresses) -> Self {
        let acting = fleet.acting_on(cluster).into_iter();
        Self {
            name: cluster.name_any(),
            conditions: owned(cluster.conditions()).cloned().collect(),
            actions: cluster.remedy_actions().to_vec(),
            remedies: acting
                .map(|(remedy, cause)| Acting {
                    name: remedy.name_any(),
                    cause: cause.to_string(),
                })
                .collect(),
            ingresses,
            drain: drain_of(cluster, fleet),
        }
    }

    /// Returns the line about the drain of the cluster.
    fn drained(&self) -> Option<String> {
        let (drain, name) = (self.drain.as_ref()?, &self.name);
        let reason = drain.reason.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let until = drain.until.as_ref();
        let until = until.map_or_else(String::new, |end| format!(" until {end}"));
        let state = if drain.is_over {
            format!("was drained{until}{reason}, and still is")
        } else {
            format!("is drained{until}{reason}")
        };
        Some(format!(
            "\n{name} {state}: `kubectl remedy uncordon {name}` takes that back\n"
        ))
    }

    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|found| found.type_ == kind)
    }

    fn cells(&self, is_wide: bool, now: Timestamp) -> Vec<String> {
        let mut cells = vec![self.name.clone()];
        for kind in [DNS_READY, REPORTER_READY] {
            let found = self.condition(kind);
            cells.push(found.map_or_else(String::new, |found| found.status.clone()));
            cells.push(found.map_or_else(String::new, |found| {
                age(found.last_transition_time.as_ref(), now)
            }));
        }
        let remedies: Vec<&str> = self.remedies.iter().map(|r| r.name.as_str()).collect();
        cells.push(self.actions.join(","));
        cells.push(remedies.join(","));
        let Ingresses { located, blocked } = self.ingresses;
        cells.push(format!("{blocked}/{located}"));
        if is_wide {
            let found = self.condition(DNS_READY);
            cells.push(found.map_or_else(String::new, |found| found.reason.clone()));
            cells.push(found.map_or_else(String::new, |found| found.message.clone()));
        }
        cells
    }
}

/// Returns the drain of a cluster, by its Remedy.
fn drain_of(cluster: &Cluster, fleet: &FleetSnapshot) -> Option<Drain> {
    let name = cluster.name_any();
    let mut remedies = fleet.remedies.iter().map(|(_, remedy)| &**remedy);
    let remedy = remedies.find(|remedy| remedy.annotations().get(DRAIN) == Some(&name))?;
    let end = match Expiry::of(remedy) {
        Expiry::At(end) => Some(end),
        Expiry::Never | Expiry::Unreadable => None,
    };
    Some(Drain {
        until: end.map(|end| end.to_string()),
        is_over: end.is_some_and(|end| end <= fleet.now),
        reason: remedy.annotations().get(REASON).cloned(),
    })
}

/// Returns the numbers for each cluster that an ingress names.
fn counts(fleet: &FleetSnapshot) -> BTreeMap<&str, Ingresses> {
    let mut counts: BTreeMap<&str, Ingresses> = BTreeMap::new();
    for (_, ingress) in fleet.ingresses.iter() {
        // Several Services of an ingress may run in the same cluster.
        for cluster in located(ingress).collect::<BTreeSet<_>>() {
            counts.entry(cluster).or_default().located += 1;
        }
        for cluster in blocked(ingress).iter().collect::<BTreeSet<_>>() {
            counts.entry(cluster).or_default().blocked += 1;
        }
    }
    counts
}

/// Returns `true` if a Service of `ingress` runs in `cluster`, by its status.
pub(crate) fn is_located(ingress: &MultiClusterIngress, cluster: &str) -> bool {
    located(ingress).any(|located| located == cluster)
}

/// Iterates over the clusters in which the Services of `ingress` run, by its status.
fn located(ingress: &MultiClusterIngress) -> impl Iterator<Item = &str> {
    let status = ingress.status.as_ref();
    let locations = status.and_then(|status| status.service_locations.as_ref());
    let locations = locations.into_iter().flatten();
    let clusters = locations.flat_map(|location| location.clusters.iter().flatten());
    clusters.map(String::as_str)
}

/// Returns the blocked clusters of `ingress`, by its status.
pub(crate) fn blocked(ingress: &MultiClusterIngress) -> &[String] {
    let status = ingress.status.as_ref();
    status
        .and_then(|status| status.traffic_block_clusters.as_deref())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
