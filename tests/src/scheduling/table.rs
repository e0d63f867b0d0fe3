//! Many histories, and how often the schedulers differ.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::case::{Case, Decision, elements};
use super::difference::{Difference, between};
use super::history::{DECISIONS, History};
use super::karmada::{self, Decided};
use super::ours;

/// The number of decisions from which on all that there is occurs.
const ENOUGH: usize = 1000;
/// The strategies, outcomes and features of cases, all of which are to be seen where nothing differs.
const KINDS: [&str; 16] = [
    "NoClusterFit",
    "SchedulerError",
    "Success",
    "Unschedulable",
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    WEIGHTED,
    "clusters",
    "estimates",
    "groups",
    "keeps empty",
    "models",
    "overflow",
    "regions",
    "triggered",
];
const AGGREGATED: &str = "Aggregated";
const DUPLICATED: &str = "Duplicated";
const DYNAMIC: &str = "dynamic weight";
const WEIGHTED: &str = "fixed weights";

/// The comparison of many decisions.
#[derive(Debug, Default)]
pub struct Table {
    decisions: usize,
    /// Decisions that do not differ.
    alike: usize,
    /// Of the decisions that do not differ, how many are of a kind.
    seen: BTreeMap<&'static str, usize>,
    differences: BTreeMap<Difference, usize>,
    /// Decisions that differ, for which no reason is known.
    unexplained: Vec<String>,
}

/// Has both schedulers decide so many times, in histories of this seed and those after it.
///
/// # Errors
/// Karmada's scheduler is not [built](tools::build), or cannot be run.
pub fn compare(seed: u64, decisions: u64) -> Result<Table> {
    let seeds = (0..decisions.div_ceil(DECISIONS)).map(|nth| seed.wrapping_add(nth));
    let mut histories: Vec<_> = seeds.map(History::draw).collect();
    let mut table = Table::default();
    for _ in 0..DECISIONS {
        let decided = karmada::decide(histories.iter().map(|history| &history.case))?;
        for (history, decided) in histories.iter_mut().zip(decided) {
            table.add(history, &decided)?;
            history.go_on(&decided.binding);
        }
    }
    Ok(table)
}

impl Table {
    fn add(&mut self, history: &History, decided: &Decided) -> Result<()> {
        self.decisions += 1;
        let case = &history.case;
        let Some(difference) = between(case, decided)? else {
            self.alike += 1;
            for kind in kinds(case, &Decision::of(&decided.binding)) {
                *self.seen.entry(kind).or_default() += 1;
            }
            return Ok(());
        };
        if difference.reasons.is_empty() {
            self.unexplained.push(format!(
                "{} (seed {}, decision {})\n  Karmada: {}\n  ours:    {}\n{}",
                difference.what,
                history.seed,
                history.past + 1,
                Decision::of(&decided.binding),
                ours::decide(case)?,
                serde_json::to_string(case)?,
            ));
        }
        *self.differences.entry(difference).or_default() += 1;
        Ok(())
    }

    /// Checks that every difference has its reason, that most decisions are alike, and that everything that there is was
    /// among them.
    ///
    /// # Errors
    /// It is not so.
    pub fn check(&self) -> Result<()> {
        ensure!(
            self.unexplained.is_empty(),
            "{} decisions differ without a row in docs/propagation-limits.md:\n{}",
            self.unexplained.len(),
            self.unexplained.join("\n")
        );
        if self.decisions < ENOUGH {
            return Ok(());
        }
        ensure!(
            self.alike * 10 >= self.decisions * 9,
            "many decisions differ:\n{self}"
        );
        let missing: Vec<_> = KINDS
            .into_iter()
            .filter(|kind| !self.seen.contains_key(kind))
            .collect();
        ensure!(
            missing.is_empty(),
            "never seen where nothing differs: {}\n{self}",
            missing.join(", ")
        );
        Ok(())
    }

    /// Returns the rows of `docs/propagation-limits.md` that the differences need.
    pub fn rows(&self) -> impl Iterator<Item = &'static str> {
        let reasons = self.differences.keys().flat_map(|one| &one.reasons);
        reasons.map(|reason| reason.row())
    }
}

/// Returns those of [`KINDS`] that a case has.
fn kinds(case: &Case, decided: &Decision) -> Vec<&'static str> {
    let spec = &case.binding["spec"];
    let placement = &spec["placement"];
    let scheduling = &placement["replicaScheduling"];
    let is_by = |field: &str| {
        let mut constraints = elements(&placement["spreadConstraints"]);
        constraints.any(|constraint| constraint["spreadByField"] == field)
    };
    let any_cluster = |path: &str| {
        let mut clusters = case.clusters.iter();
        clusters.any(|cluster| cluster.pointer(path).is_some_and(|value| !value.is_null()))
    };
    let groups = || elements(&placement["clusterAffinities"]);
    let strategy = match (
        scheduling["replicaSchedulingType"].as_str(),
        scheduling["replicaDivisionPreference"].as_str(),
        &scheduling["weightPreference"]["dynamicWeight"],
    ) {
        (None | Some(DUPLICATED), ..) => DUPLICATED,
        (_, Some(AGGREGATED), _) => AGGREGATED,
        (_, _, Value::Null) => WEIGHTED,
        _ => DYNAMIC,
    };
    let features = [
        ("clusters", is_by("cluster")),
        ("regions", is_by("region")),
        ("groups", groups().next().is_some()),
        (
            "overflow",
            groups().any(|group| group["overflowAffinities"].is_array()),
        ),
        ("estimates", any_cluster("/metadata/annotations")),
        ("models", any_cluster("/spec/resourceModels")),
        ("keeps empty", case.keeps_empty),
        ("triggered", spec["rescheduleTriggeredAt"].is_string()),
    ];
    let features = features
        .into_iter()
        .filter_map(|(name, has)| has.then_some(name));
    let outcome = KINDS.into_iter().filter(|kind| decided.reason == *kind);
    features.chain(outcome).chain([strategy]).collect()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            decisions, alike, ..
        } = self;
        write!(f, "{decisions} decisions, {alike} alike\nalike:")?;
        for (kind, count) in &self.seen {
            write!(f, " {kind} {count};")?;
        }
        for (Difference { what, reasons }, count) in &self.differences {
            let rows: Vec<_> = reasons.iter().map(|reason| reason.row()).collect();
            let rows = if rows.is_empty() {
                "no reason".to_owned()
            } else {
                rows.join("; ")
            };
            write!(f, "\n{count:>6}  {what} ({rows})")?;
        }
        Ok(())
    }
}
