//! A search for the shortest sequence for which a property does not hold.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::Mutex;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::play::{on_large_stack, run};
use super::world::{Figures, Property, StepOf};

/// The limit of attempts to shorten a failing sequence.
const SHRINKING: u32 = 500;

/// Totals of a search in which every sequence settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of sequences.
    pub sequences: u64,
    /// The number of their steps.
    pub steps: u64,
    /// The sums of their figures.
    pub figures: Figures,
}

impl Summary {
    fn add(&mut self, steps: usize, run: Figures) {
        self.sequences += 1;
        self.steps += steps as u64;
        let sum = &mut self.figures;
        sum.requests += run.requests;
        for (sum, counts) in [(&mut sum.judged, run.judged), (&mut sum.faults, run.faults)] {
            for (name, count) in counts {
                *sum.entry(name).or_default() += count;
            }
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sequences,
            steps,
            figures,
        } = self;
        let Figures {
            requests,
            judged,
            faults,
        } = figures;
        let writes: u64 = judged.values().sum();
        writeln!(
            f,
            "settled: {sequences} sequences, {steps} steps, {requests} requests"
        )?;
        writeln!(f, "judged: {writes} writes: {}", listed(judged))?;
        write!(f, "faults: {}", listed(faults))
    }
}

fn listed(counts: &BTreeMap<&str, u64>) -> String {
    let counts = counts.iter().map(|(name, count)| format!("{name} {count}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// The first seed of every run of the tests. It is fixed, so that the tests of one commit always have
/// the same result; `cargo xtask fuzz` tries other seeds.
pub const FIRST_SEED: u64 = 20_261_122;

/// Returns a random seed.
pub fn random_seed() -> u64 {
    RandomState::new().hash_one(()) >> 32
}

/// Returns the seeds whose sequences failed once.
///
/// # Errors
/// A line of the committed list does not begin with a seed.
fn failed_once<P: Property>() -> Result<Vec<u64>, String> {
    seeds(P::FAILED_ONCE)
}

/// Parses one seed per line, in which `#` begins a comment.
fn seeds(list: &str) -> Result<Vec<u64>, String> {
    let mut seeds = Vec::new();
    for line in list.lines() {
        let text = line.split('#').next().unwrap_or_default().trim();
        if !text.is_empty() {
            let seed: u64 = text.parse().map_err(|_| format!("no seed in {line:?}"))?;
            seeds.push(seed);
        }
    }
    Ok(seeds)
}

/// A sequence for which a property does not hold.
#[derive(Clone, Debug)]
pub struct Found {
    /// The name of the property.
    pub property: &'static str,
    /// The path of the list of seeds that failed once.
    pub seeds: &'static str,
    /// The seed.
    pub seed: u64,
    /// The property and the observed violation.
    pub why: String,
    /// The shortest sequence found that fails, possibly for another reason.
    pub steps: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.why)?;
        writeln!(f, "the shortest sequence that fails:")?;
        for step in &self.steps {
            writeln!(f, "    {step}")?;
        }
        let Self {
            property,
            seeds,
            seed,
            why,
            ..
        } = self;
        let why = why.lines().next().unwrap_or_default();
        writeln!(
            f,
            "reproduce: cargo xtask simulate {property} --seed {seed} --sequences 1"
        )?;
        write!(f, "add this line to {seeds}: {seed} # {why}")
    }
}

/// Generates the sequence of a seed, with the runner that can shrink it.
fn sequence<P: Property>(seed: u64) -> (TestRunner, impl ValueTree<Value = Vec<StepOf<P::World>>>) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: SHRINKING,
        ..Config::default()
    };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, random);
    #[expect(clippy::expect_used, reason = "no strategy of ours rejects a value")]
    let tree = P::sequences()
        .new_tree(&mut runner)
        .expect("no value is rejected");
    (runner, tree)
}

/// Returns the sequence of a seed.
pub fn sequence_of<P: Property>(seed: u64) -> Vec<StepOf<P::World>> {
    on_large_stack(|| sequence::<P>(seed).1.current())
}

/// Runs the sequences of `seeds` on several threads, until one fails.
///
/// # Errors
/// The shortest sequence that fails.
pub fn search<P: Property>(
    seeds: impl IntoIterator<Item = u64, IntoIter: Send>,
    threads: usize,
) -> Result<Summary, Box<Found>> {
    let seeds = Mutex::new(seeds.into_iter());
    let failed = AtomicBool::new(false);
    let found = Mutex::new(None);
    let summary = Mutex::new(Summary::default());
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let Some(seed) = seeds.lock().next() else {
                return;
            };
            match run_seed::<P>(seed) {
                Ok((steps, figures)) => summary.lock().add(steps, figures),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    *found.lock() = Some(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move || on_large_stack(work));
        }
    });
    match found.into_inner() {
        Some(found) => Err(found),
        None => Ok(summary.into_inner()),
    }
}

/// Runs the sequences that failed once, and then as many as the tests of every commit do.
///
/// # Errors
/// The shortest sequence that fails.
pub fn search_from_first<P: Property>(sequences: u64) -> Result<Summary, String> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let seeds = failed_once::<P>()?.into_iter();
    let seeds = seeds.chain(FIRST_SEED..FIRST_SEED + sequences);
    search::<P>(seeds, threads).map_err(|found| found.to_string())
}

/// Runs the sequence of one seed, and shrinks it if it fails. Returns the number of its steps, and its figures.
fn run_seed<P: Property>(seed: u64) -> Result<(usize, Figures), Box<Found>> {
    let (mut runner, tree) = sequence::<P>(seed);
    let steps = tree.current();
    let first = run::<P>(&steps, seed);
    let Err(why) = &first.outcome else {
        return Ok((steps.len(), first.figures));
    };
    tracing::info!(seed, why, "Shrinking a sequence that fails");
    let shrunken = runner.run_one(tree, |steps| {
        run::<P>(&steps, seed).outcome.map_err(TestCaseError::fail)
    });
    let (why, steps) = match shrunken {
        Err(TestError::Fail(why, steps)) => (why.to_string(), steps),
        Err(TestError::Abort(why)) => (why.to_string(), steps),
        Ok(_) => (format!("not reproduced by a second run: {why}"), steps),
    };
    Err(Box::new(Found {
        property: P::NAME,
        seeds: P::SEEDS,
        seed,
        why,
        steps: steps.iter().map(|step| format!("{step:?}")).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Comments are left out, and anything else is an error.
    #[test]
    fn seeds_are_read() {
        assert_eq!(seeds("# all\n\n7 # why\n 8\n"), Ok(vec![7, 8]));
        assert_eq!(
            seeds("7\nx # why"),
            Err(r#"no seed in "x # why""#.to_owned())
        );
    }
}
