//! `kubectl remedy plan`: what Remedies would do to clusters and to the backends of ingresses.

use std::fmt;

use jiff::Timestamp;
use karmada_api::Remedy;
use karmada_rules::ingress::{BackendChange, Cached, Facts, backend_changes};
use karmada_rules::remedy::{self, Forecast, Observed, observed, problems};
use kube::{Client, ResourceExt};

use crate::args::{ControllerArgs, PlanArgs};
use crate::error::Error;
use crate::fleet::{Fleet, put};
use crate::table::Table;
use crate::{Answer, manifest, terminal};

/// The difference that some Remedies would make.
#[derive(Debug)]
pub struct Plan {
    /// The clusters whose actions change, or that the bound keeps unblocked.
    pub clusters: Vec<Forecast>,
    /// The clusters on which a Remedy that only observes would act.
    pub observing: Vec<(String, Observed)>,
    /// The backends whose clusters change.
    pub backends: Vec<BackendChange>,
    /// Likely mistakes in the Remedies or in the flags, in words.
    pub warnings: Vec<String>,
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
        remedies.extend(manifest::read(path)?);
    }
    let fleet = Fleet::read(client, namespace, now).await?;
    let plan = Plan::of(fleet, remedies, &args.controllers);
    plan.warn();
    terminal::print(&plan.to_string());
    Ok((!plan.cuts_off()).into())
}

impl Plan {
    /// Returns the difference that `remedies` make to `fleet`, in place of those of the same names.
    pub fn of(mut fleet: Fleet, remedies: Vec<Remedy>, controllers: &ControllerArgs) -> Self {
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
        let mut observing = Vec::new();
        for remedy in remedies {
            warnings.extend(doubts(&remedy, &fleet));
            observing.extend(would_act(&remedy, &fleet));
            put(&mut fleet.remedies, remedy);
        }
        let mut clusters = fleet.forecast(controllers.max_blocked_clusters);
        for known in &clusters {
            put(&mut fleet.clusters, known.cluster.clone());
        }
        let after = fleet.served(&settings);
        clusters.retain(|known| !known.changes.is_empty() || known.over_bound.is_some());
        // The Remedies decide about no ingress, so both have the same in the same order.
        let backends = before.iter().zip(&after);
        Self {
            clusters,
            observing,
            backends: backends.flat_map(|(a, b)| backend_changes(a, b)).collect(),
            warnings,
        }
    }

    /// Prints what may be a mistake.
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

/// Returns what may be a mistake in `remedy`.
fn doubts(remedy: &Remedy, fleet: &Fleet) -> Vec<String> {
    let clusters = || fleet.clusters.iter().map(|(_, cluster)| cluster);
    let known = remedy::Fleet {
        has_cluster: &|name| fleet.cluster(name) != Cached::Absent,
        has_condition: &|kind| {
            clusters().next().is_none() || clusters().any(|known| known.condition(kind).is_some())
        },
    };
    let name = remedy.name_any();
    let found = problems(remedy, known).into_iter();
    found
        .map(|problem| format!("Remedy {name}: {problem}"))
        .collect()
}

/// Returns the clusters on which `remedy`, which only observes, would act.
fn would_act(remedy: &Remedy, fleet: &Fleet) -> Vec<(String, Observed)> {
    let clusters = fleet
        .clusters
        .iter()
        .map(|(key, cluster)| (&key.name, cluster));
    let covered = clusters.filter(|(name, _)| remedy::covers(remedy, name));
    covered
        .flat_map(|(name, cluster)| {
            let observed = observed(cluster, [remedy], fleet.now);
            observed
                .into_iter()
                .map(|observed| (name.clone(), observed))
        })
        .collect()
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut clusters = Table::new(["CLUSTER", "CHANGE"]);
        for known in &self.clusters {
            let changes = known.changes.iter().map(ToString::to_string);
            let over = known.over_bound.iter().map(ToString::to_string);
            for change in changes.chain(over) {
                clusters.push(vec![known.cluster.name_any(), change]);
            }
        }
        for (cluster, observed) in &self.observing {
            clusters.push(vec![cluster.clone(), observed.to_string()]);
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
                backend.ingress.namespace.clone(),
                backend.ingress.name.clone(),
                backend.service.clone(),
                backend.lost.join(", "),
                backend.gained.join(", "),
                backend.left.join(", "),
            ]);
        }
        write!(f, "\n{table}")?;
        for backend in self.backends.iter().filter(|backend| backend.is_cut_off) {
            let (ingress, service) = (&backend.ingress, &backend.service);
            writeln!(f, "\nService {service} of {ingress} has no cluster left.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
