//! `fuzz`: searches with new random seeds, which the tests do not draw.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;
use simulation::convergence::Convergence;
use simulation::harness::{Property, random_seed, search};
use simulation::placement::Placement;
use simulation::propagation::{Lazy, Propagation};
use tools::cargo;

/// The share of the time given to the sequences of each simulation; property tests get the rest.
const SEQUENCES_FOR: Duration = Duration::from_mins(1);

/// The length of the search.
#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// Minutes until the search stops
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
}

/// Searches until the time is over or something fails.
pub(crate) fn run(fuzz: &Fuzz) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60 * fuzz.minutes);
    while Instant::now() < end {
        draw_sequences::<Convergence>(end)?;
        draw_sequences::<Propagation>(end)?;
        draw_sequences::<Lazy>(end)?;
        draw_sequences::<Placement>(end)?;
        draw_other_properties(random_seed())?;
    }
    Ok(())
}

/// Searches for a sequence for which a property does not hold.
fn draw_sequences<P: Property>(end: Instant) -> Result<()> {
    let threads = thread::available_parallelism()?.get();
    let until = end.min(Instant::now() + SEQUENCES_FOR);
    let first = random_seed();
    let seeds = (first..).take_while(|_| Instant::now() < until);
    match search::<P>(seeds, threads) {
        Ok(summary) => println!("{}, from seed {first}\n{summary}", P::NAME),
        Err(found) => bail!("{found}"),
    }
    Ok(())
}

/// Runs the tests of all libraries, with this seed for those that draw values.
fn draw_other_properties(seed: u64) -> Result<()> {
    let seed = seed.to_string();
    let output = cargo::command()
        .args(["test", "--workspace", "--locked", "--lib", "--no-fail-fast"])
        .env("PROPTEST_RNG_SEED", &seed)
        .output()?;
    ensure!(
        output.status.success(),
        "{}\n{}\nagain: PROPTEST_RNG_SEED={seed} cargo test --workspace --lib\n\
         proptest has added the lines to commit to files in proptest-regressions/",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    println!("properties hold, seed {seed}");
    Ok(())
}
