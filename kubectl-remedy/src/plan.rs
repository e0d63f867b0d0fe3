//! `kubectl remedy plan`: the effect of Remedies on clusters and on the backends of ingresses.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use karmada_api::Remedy;
use kube::{Client, ResourceExt};
use serde::Serialize;
use traffic::ingress::{BackendChange, Cached, ClusterFacts, backend_changes};
use traffic::remedy::{self, Forecast, covers, observed, problems};

use crate::answer::Answer;
use crate::args::{ControllerArgs, PlanArgs};
use crate::change::Change;
use crate::error::Error;
use crate::fleet::{FleetSnapshot, put};
use crate::table::{Table, listed};
use crate::{manifest, terminal};

/// The difference that some Remedies would make.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The clusters whose actions change, or would but for the bound or an observing Remedy.
    pub clusters: Vec<ClusterChange>,
    /// The backends whose clusters change.
    pub backends: Vec<BackendChange>,
    /// Likely mistakes in the Remedies or in the flags, in words.
    pub warnings: Vec<String>,
}

/// The changes of one cluster.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ClusterChange {
    /// The cluster.
    pub name: String,
    /// The actions that it has then.
    pub actions: Vec<String>,
    /// The changes, and those that are held back.
    pub changes: Vec<Change>,
}

/// Prints the plan for the Remedies of files.
pub(crate) async fn run(
    args: &PlanArgs,
    client: &Client,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Answer, Error> {
    let mut remedies = Vec::new();
    for path in &args.filename {
        remedies.extend(manifest::remedies(path)?);
    }
    let fleet = FleetSnapshot::read(client, namespace, now).await?;
    let plan = Plan::of(fleet, remedies, &args.controllers);
    plan.warn();
    terminal::print(&match args.output {
        None => plan.to_string(),
        Some(format) => manifest::text(&plan, format)?,
    });
    Ok((!plan.cuts_off()).into())
}

impl Plan {
    /// Returns the difference that `remedies` make to `fleet`, in place of those of the same names.
    pub fn of(
        mut fleet: FleetSnapshot,
        remedies: Vec<Remedy>,
        controllers: &ControllerArgs,
    ) -> Self {
        let settings = controllers.settings();
        let mut warnings = Vec::new();
        let before = fleet.served(&settings);
        let foreign = fleet.ingresses.existing() - before.len();
        if foreign > 0 {
            let controller = settings.controller.as_str();
            warnings.push(format!(
                "{foreign} MultiClusterIngresses are not considered: {controller} does not serve them"
            ));
        }
        let mut planned = BTreeSet::new();
        for remedy in remedies {
            warnings.extend(doubts(&remedy, &fleet));
            planned.insert(remedy.name_any());
            put(&mut fleet.remedies, remedy);
        }
        let forecast = fleet.forecast(controllers.max_blocked_clusters);
        let changes = forecast
            .iter()
            .map(|known| ClusterChange::of(known, &planned, &fleet));
        let clusters = changes.filter(|known| !known.changes.is_empty()).collect();
        for known in forecast {
            put(&mut fleet.clusters, known.cluster);
        }
        let after = fleet.served(&settings);
        // The Remedies decide about no ingress, so both have the same in the same order.
        let backends = before.iter().zip(&after);
        Self {
            clusters,
            backends: backends.flat_map(|(a, b)| backend_changes(a, b)).collect(),
            warnings,
        }
    }

    /// Prints the likely mistakes.
    pub(crate) fn warn(&self) {
        for warning in &self.warnings {
            terminal::print_error(&format!("warning: {warning}"));
        }
    }

    /// Returns `true` if a backend has no cluster left.
    pub(crate) fn cuts_off(&self) -> bool {
        self.backends.iter().any(|backend| backend.is_cut_off)
    }
}

/// Returns possible mistakes in `remedy`.
fn doubts(remedy: &Remedy, fleet: &FleetSnapshot) -> Vec<String> {
    let known = remedy::FleetLookup {
        has_cluster: &|name| fleet.cluster(name) != Cached::Absent,
        has_condition: &|kind| {
            let mut clusters = fleet.clusters.iter().peekable();
            clusters.peek().is_none() || clusters.any(|(_, known)| known.condition(kind).is_some())
        },
    };
    let name = remedy.name_any();
    let found = problems(remedy, known).into_iter();
    found
        .map(|problem| format!("Remedy {name}: {problem}"))
        .collect()
}

impl ClusterChange {
    /// Returns the changes of the cluster of `known`, and those for which the `planned` Remedies that only
    /// observe would ask.
    fn of(known: &Forecast, planned: &BTreeSet<String>, fleet: &FleetSnapshot) -> Self {
        let name = known.cluster.name_any();
        let remedies = fleet.remedies.iter();
        let remedies = remedies
            .filter(|(key, remedy)| planned.contains(&key.name) && covers(remedy, &name))
            .map(|(_, remedy)| &**remedy);
        let observed = observed(&known.cluster, remedies, fleet.now);
        Self {
            actions: known.cluster.remedy_actions().to_vec(),
            changes: Change::all_of(known)
                .chain(observed.iter().map(Change::from))
                .collect(),
            name,
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut clusters = Table::new(["CLUSTER", "CHANGE"]);
        for known in &self.clusters {
            for change in &known.changes {
                clusters.push(vec![known.name.clone(), change.message.clone()]);
            }
        }
        if clusters.is_empty() {
            return writeln!(f, "No cluster gets or loses an action.");
        }
        clusters.fmt(f)?;
        if self.backends.is_empty() {
            return writeln!(f, "\nNo backend of an ingress gets or loses a cluster.");
        }
        let mut table = Table::new(["NAMESPACE", "INGRESS", "BACKEND", "LOST", "GAINED", "LEFT"]);
        for backend in &self.backends {
            table.push(vec![
                backend.namespace.clone(),
                backend.ingress.clone(),
                backend.service.clone(),
                backend.lost.join(", "),
                backend.gained.join(", "),
                listed(&backend.left),
            ]);
        }
        write!(f, "\n{table}")?;
        for backend in self.backends.iter().filter(|backend| backend.is_cut_off) {
            let BackendChange {
                namespace,
                ingress,
                service,
                ..
            } = backend;
            writeln!(
                f,
                "\nService {service} of {namespace}/{ingress} has no cluster left."
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
