//! The watches of runs, of the strategies that they name, and of the approvals that they wait for.

use fleet_api::{ApprovalRequest, StagedUpdateRun, StagedUpdateStrategy};
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::Event;
use objects::Key;
use objects::Scope;

use super::SharedIndex;

impl SharedIndex {
    /// Applies an event of a run, and wakes it: what it has said of itself leads to its next step.
    pub(super) fn observe_run(&self, scope: Scope, event: Event<Decoded<StagedUpdateRun>>) {
        let changed = self.change(|index| index.runs.observe(scope, event));
        self.queues.updates.add_all(changed);
    }

    /// Applies an event of a strategy, and wakes the runs that may wait for it. One that has begun has looked at it.
    pub(super) fn observe_strategy(
        &self,
        scope: Scope,
        event: Event<Decoded<StagedUpdateStrategy>>,
    ) {
        let runs = self.change(|index| {
            let changes = index.runs.strategies.observe(scope, event);
            let new = changes.iter().filter(|change| change.old.is_none());
            new.flat_map(|change| index.runs.naming(&change.key))
                .collect::<Vec<_>>()
        });
        self.queues.updates.add_all(runs);
    }

    /// Applies an event of an approval request, and wakes its run.
    pub(super) fn observe_approval(&self, scope: Scope, event: Event<Decoded<ApprovalRequest>>) {
        let runs = self.change(|index| {
            let changes = index.runs.approvals.observe(scope, event);
            let approvals = &index.runs.approvals;
            let runs = changes
                .iter()
                .flat_map(|change| approvals.concerned(change));
            runs.collect::<Vec<_>>()
        });
        self.queues.updates.add_all(runs);
    }

    /// Wakes the runs of a placement that are not over.
    pub(crate) fn wake_runs(&self, placement: &Key) {
        let runs = self.read(|index| {
            let runs = index.runs.open(placement);
            runs.map(|(key, _)| key.clone()).collect::<Vec<_>>()
        });
        self.queues.updates.add_all(runs);
    }
}
