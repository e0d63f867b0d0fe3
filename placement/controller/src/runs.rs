//! The runs of the hub, the strategies that they name, and the approvals that they wait for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet_api::conditions::SUCCEEDED;
use fleet_api::names::TARGET_RUN;
use fleet_api::{ApprovalRequest, StagedUpdateRun, StagedUpdateStrategy};
use karmada_runtime::expectations::Expectations;
use karmada_runtime::metrics::count_value;
use objects::condition::TRUE;
use objects::{Key, Metadata};
use placement_rules::update::{asks_for_latest, is_finished, placement_of, said, snapshot_of};

use crate::scoped::Scoped;

/// The number of snapshots that runs have given, and that are kept of a placement: as many as it keeps of its selections.
const RELEASES: usize = 10;

/// The runs of the hub and the objects that they name.
#[derive(Debug)]
pub(crate) struct RunIndex {
    /// By their placements.
    pub(crate) runs: Scoped<StagedUpdateRun, Key>,
    pub(crate) strategies: Scoped<StagedUpdateStrategy>,
    /// By the runs that wait for them.
    pub(crate) approvals: Scoped<ApprovalRequest, Key>,
    /// The uids of the runs, by their placements, for which the latest snapshot has been made.
    answered: BTreeMap<Key, BTreeSet<String>>,
}

impl RunIndex {
    pub(crate) fn new(expectations: &Expectations) -> Self {
        Self {
            runs: Scoped::by(|run| BTreeSet::from([placement_of(run)]), expectations),
            strategies: Scoped::expecting(expectations),
            approvals: Scoped::by(run_of, expectations),
            answered: BTreeMap::new(),
        }
    }

    /// Returns the runs of a placement of which something may still become.
    fn open(&self, placement: &Key) -> Vec<Arc<StagedUpdateRun>> {
        let mut runs = self.runs.of(placement);
        runs.retain(|run| !is_finished(run) && !run.metadata.is_deleting());
        runs
    }

    /// Returns the keys of the runs of placements of which something may still become.
    pub(crate) fn open_keys(&self, placements: impl IntoIterator<Item = Key>) -> Vec<Key> {
        let placements = placements.into_iter();
        let open = placements.flat_map(|placement| self.open(&placement));
        open.map(|run| run.metadata.key()).collect()
    }

    /// Returns the runs that name a strategy, and of which something may still become.
    pub(crate) fn naming(&self, strategy: &Key) -> Vec<Key> {
        let naming = self.runs.iter().filter(|(key, run)| {
            key.namespace == strategy.namespace
                && run.spec.strategy_name == strategy.name
                && !is_finished(run)
        });
        naming.map(|(key, _)| key.clone()).collect()
    }

    /// Returns the uids of the runs of a placement that are to begin with its latest snapshot.
    pub(crate) fn asking(&self, placement: &Key) -> BTreeSet<String> {
        let runs = self.open(placement).into_iter();
        let asking = runs.filter(|run| asks_for_latest(run));
        asking.map(|run| run.metadata.uid().to_owned()).collect()
    }

    /// Notes that the selection of a placement is in its latest snapshot, for the sake of these runs.
    pub(crate) fn answer(&mut self, placement: &Key, runs: BTreeSet<String>) {
        if runs.is_empty() {
            self.answered.remove(placement);
        } else {
            self.answered.insert(placement.clone(), runs);
        }
    }

    /// Returns `true` if the latest snapshot has been made for the sake of a run.
    pub(crate) fn is_answered(&self, placement: &Key, run: &StagedUpdateRun) -> bool {
        let answered = self.answered.get(placement);
        answered.is_some_and(|runs| runs.contains(run.metadata.uid()))
    }

    /// Returns the names of the snapshots of a placement that its runs ask for, or have given last: those are releases to
    /// which another run may go back, however often the placement has changed since.
    pub(crate) fn pinned(&self, placement: &Key) -> BTreeSet<String> {
        let runs = self.runs.of(placement).into_iter();
        let (mut ended, open): (Vec<_>, Vec<_>) = runs.partition(|run| is_finished(run));
        ended.retain(|run| has_succeeded(run));
        ended.sort_by_key(|run| Reverse(run.metadata.creation_timestamp.clone()));
        let [open, ended] =
            [open, ended].map(|runs| runs.into_iter().filter_map(|run| snapshot_of(&run, [])));
        let mut pinned: BTreeSet<String> = open.collect();
        let mut released = 0;
        for name in ended {
            if released < RELEASES && pinned.insert(name) {
                released += 1;
            }
        }
        pinned
    }

    /// Counts the runs by the reason of their last word; empty for those that have said nothing.
    pub(crate) fn by_reason(&self) -> Vec<(&'static str, usize)> {
        let mut counts = BTreeMap::from(REASONS.map(|reason| (reason, 0)));
        for (_, run) in self.runs.iter() {
            let said = run.status.as_ref().and_then(said);
            count_value(&mut counts, said.map_or("", |said| &said.reason));
        }
        counts.into_iter().collect()
    }
}

fn has_succeeded(run: &StagedUpdateRun) -> bool {
    let said = run.status.as_ref().and_then(said);
    said.is_some_and(|said| said.type_ == SUCCEEDED && said.status == TRUE)
}

/// Returns the run that an approval request was made for.
fn run_of(approval: &ApprovalRequest) -> BTreeSet<Key> {
    let metadata = &approval.metadata;
    let run = metadata.label(TARGET_RUN);
    let run = run.map(|run| Key::new(metadata.namespace(), run));
    run.into_iter().collect()
}

/// The reasons of the last word of a run. A label has no other value.
const REASONS: [&str; 10] = [
    "",
    "UpdateRunFailed",
    "UpdateRunInitializedFailed",
    "UpdateRunInitializedSuccessfully",
    "UpdateRunProgressing",
    "UpdateRunStopped",
    "UpdateRunStopping",
    "UpdateRunStuck",
    "UpdateRunSucceeded",
    "UpdateRunWaiting",
];
