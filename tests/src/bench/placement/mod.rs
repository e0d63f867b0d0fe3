//! The two programs that place: the controller of a hub with many clusters, whose agents are scripted, and both with
//! three real members.
//!
//! - `hub`: many placements in many clusters, on the hub alone.
//! - `members`: from the hub into members, as a KubeFleet of this size was measured.
//! - `limit`: the same writes by a bare client; `objects`: the placed objects, and how they are read.

mod hub;
mod limit;
mod members;
mod objects;

use anyhow::Result;
use clap::ValueEnum;

pub use self::hub::PlacementBench;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Both programs with three real members
    Members,
    /// The controller alone, with many clusters
    Hub,
}

impl Part {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Members, Self::Hub];
}

/// Runs these parts of the benchmark and passes each line of its results to `print`. Every API is a real one.
///
/// # Errors
/// A part does not start, or no change is seen for five minutes.
pub async fn bench(
    parts: &[Part],
    extent: PlacementBench,
    mut print: impl FnMut(&str),
) -> Result<()> {
    for part in parts {
        match part {
            Part::Members => members::bench(&mut print).await?,
            Part::Hub => hub::bench(extent, &mut print).await?,
        }
    }
    Ok(())
}
