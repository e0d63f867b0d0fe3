//! Scenarios that play without a person, each with its expectations.

mod api_outage;
mod checks;
mod coredns_outage;
mod failover_to_backup;
mod flapping_dns;
mod leader_killed;
mod link_cut;
mod maintenance;
mod maintenance_window;
mod paused_rollout;
mod placement_eviction;
mod placement_rollout;
mod power_failure;
mod print;
mod script;

use anyhow::Result;
use clap::ValueEnum;
use lab_parts::thresholds::ProbeTiming;

use self::script::Script;
use crate::sandbox::Sandbox;
use crate::terminal::print;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// DNS fails in member1, and its traffic goes elsewhere; DNS returns, and so does the traffic
    CorednsOutage,
    /// A Remedy without condition blocks member1 until it is deleted
    Maintenance,
    /// A Remedy without condition blocks member1 until it expires by itself
    MaintenanceWindow,
    /// DNS fails while the Karmada API is cut off: what must follow does once the API is back
    ApiOutage,
    /// The leader is killed during an outage: member1 stays blocked, and another agent takes over
    LeaderKilled,
    /// The power of member1 fails: the gateway notices, and its traffic goes elsewhere until it is back
    PowerFailure,
    /// Only the control plane is cut off from member1, whose agents fall silent: nothing is blocked
    LinkCut,
    /// DNS fails and returns faster than the thresholds: nothing changes until it stays
    FlappingDns,
    /// DNS fails in member1 while a rollout is paused: only traffic moves, and the rollout completes once resumed
    PausedRollout,
    /// DNS fails in member1 and stays dead: its traffic leaves, then the workload moves to a backup, and goes back only when asked
    FailoverToBackup,
    /// A placed version that never becomes available stops at the first wave while requests go on; mended, it completes
    PlacementRollout,
    /// DNS fails in member1, which has the store: nothing new is placed there, and once evicted the store goes elsewhere
    PlacementEviction,
}

impl Scenario {
    /// Plays the scenario and prints its timeline as it grows.
    ///
    /// # Errors
    /// Fails at the first expectation that is not met, with the observation instead.
    pub(crate) async fn play(self, sandbox: &Sandbox, thresholds: ProbeTiming) -> Result<()> {
        let script = Script::new(sandbox, thresholds);
        print(&format!(
            "each node probes DNS every {:?} and changes its vote after {:?}; waiting until all is well",
            thresholds.period, thresholds.threshold,
        ));
        let printing = print::entries(sandbox.record(), script.began);
        let playing = async {
            script.settled().await?;
            let start = script.newest();
            let before = script.state();
            match self {
                Self::CorednsOutage => coredns_outage::play(&script).await?,
                Self::Maintenance => maintenance::play(&script).await?,
                Self::MaintenanceWindow => maintenance_window::play(&script).await?,
                Self::ApiOutage => api_outage::play(&script).await?,
                Self::LeaderKilled => leader_killed::play(&script).await?,
                Self::PowerFailure => power_failure::play(&script).await?,
                Self::LinkCut => link_cut::play(&script).await?,
                Self::FlappingDns => flapping_dns::play(&script).await?,
                Self::PausedRollout => paused_rollout::play(&script).await?,
                Self::FailoverToBackup => failover_to_backup::play(&script).await?,
                Self::PlacementRollout => placement_rollout::play(&script).await?,
                Self::PlacementEviction => placement_eviction::play(&script).await?,
            }
            script.others_untouched(start)?;
            script.settled().await?;
            let counts = print::counts(&before, &script.state());
            print(&format!("as expected: {counts}"));
            Ok(())
        };
        tokio::select! {
            biased;
            played = playing => played,
            () = printing => Ok(()),
        }
    }
}
