//! `cargo xtask fuzz`: searches with new random seeds, which the tests do not draw.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;
use simulation::convergence::{random_seed, search};

use crate::cargo;

/// The share of the time given to sequences of the simulation; property tests get the rest.
const SEQUENCES_FOR: Duration = Duration::from_mins(2);

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
    let threads = thread::available_parallelism()?.get();
    while Instant::now() < end {
        let until = end.min(Instant::now() + SEQUENCES_FOR);
        let first = random_seed();
        let seeds = (first..).take_while(|_| Instant::now() < until);
        match search(seeds, threads) {
            Ok(summary) => println!("from seed {first}\n{summary}"),
            Err(found) => bail!("{found}"),
        }
        draw_other_properties(random_seed())?;
    }
    Ok(())
}

/// Runs the tests of all libraries, with this seed for those that draw values.
fn draw_other_properties(seed: u64) -> Result<()> {
    let seed = seed.to_string();
    let output = cargo::command(&["test", "--workspace", "--locked", "--lib", "--no-fail-fast"])
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
