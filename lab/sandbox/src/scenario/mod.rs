//! Stories that play without a person, and what is promised of each.

mod api_outage;
mod coredns_outage;
mod flapping_dns;
mod leader_killed;
mod maintenance;
mod promise;
mod script;
mod timeline;

use anyhow::Result;
use clap::ValueEnum;

use self::script::Script;
use crate::terminal::say;
use crate::thresholds::Thresholds;
use crate::world::World;

/// A story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// DNS dies in member1, its traffic goes elsewhere; DNS returns, and so does the traffic
    CorednsOutage,
    /// A Remedy without condition takes the traffic of member1 away until it is deleted
    Maintenance,
    /// DNS dies while the Karmada API is cut off: what must follow does once the API is back
    ApiOutage,
    /// The agent that leads is killed during an outage: the block stands, another agent goes on
    LeaderKilled,
    /// DNS comes and goes faster than the thresholds: nothing changes until it stays
    FlappingDns,
}

impl Scenario {
    /// Plays the story and prints its timeline as it happens.
    ///
    /// # Errors
    /// When it does not happen as promised: what was promised, and what was seen.
    pub(crate) async fn play(self, world: &World, thresholds: Thresholds) -> Result<()> {
        let script = Script::new(world, thresholds);
        say(&format!(
            "each node asks every {:?} and changes its vote after {:?}; waiting until all is well",
            thresholds.period(),
            thresholds.failure(),
        ));
        let timeline = timeline::print(world.record(), script.began);
        let story = async {
            script.settled().await?;
            let prologue = script.newest();
            let before = script.state();
            match self {
                Self::CorednsOutage => coredns_outage::play(&script).await?,
                Self::Maintenance => maintenance::play(&script).await?,
                Self::ApiOutage => api_outage::play(&script).await?,
                Self::LeaderKilled => leader_killed::play(&script).await?,
                Self::FlappingDns => flapping_dns::play(&script).await?,
            }
            script.others_untouched(prologue)?;
            script.settled().await?;
            let counts = timeline::counts(&before, &script.state());
            say(&format!("as promised: {counts}"));
            Ok(())
        };
        tokio::select! {
            biased;
            played = story => played,
            () = timeline => Ok(()),
        }
    }
}
