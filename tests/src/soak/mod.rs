//! The programs of a fleet, held up by faults for as long as is asked.
//!
//! [`soak`] starts a `Stage`, on which `Fault`s follow each other. Under each fault a part of the templates is edited;
//! when it is over, everything must be in all members and reported, with nothing left to do. Then the `Vitals` of the
//! programs are taken, whose second half must be level.

mod extent;
mod fault;
mod plot;
mod stage;
mod templates;
mod vitals;

use anyhow::Result;
use tokio::time::Instant;

pub use self::extent::Soak;
use self::{fault::Fault, stage::Stage, vitals::Vitals};

/// Runs the soak and passes each line of its results to `print`.
///
/// # Errors
/// Something is not in a member or not reported minutes after a fault is over, an Event is lost, or the memory or the
/// descriptors of a program grow in the second half.
pub async fn soak(extent: &Soak, mut print: impl FnMut(&str)) -> Result<()> {
    let began = Instant::now();
    let mut stage = Stage::start(extent).await?;
    print(&format!(
        "{} Deployments and as many ConfigMaps are in {} members after {:.0?}",
        extent.templates,
        extent.clusters,
        began.elapsed()
    ));
    let mut vitals = Vitals::default();
    let began = Instant::now();
    for turn in 1.. {
        // A program that was killed has the memory of a new one.
        let level = began.elapsed() > extent.length / 2;
        let fault = Fault::of_turn(turn, level);
        let fault_began = Instant::now();
        stage.play(fault, turn).await?;
        print(&format!(
            "{:>5.0?} {fault}: mended after {:.1?}",
            began.elapsed(),
            fault_began.elapsed()
        ));
        vitals.take(began.elapsed(), &stage.programs)?;
        if began.elapsed() > extent.length {
            break;
        }
    }
    stage.lost_no_event().await?;
    for line in vitals.lines() {
        print(&line);
    }
    if let Some(file) = &extent.plot {
        plot::draw(&vitals, file)?;
    }
    vitals.are_level()
}
