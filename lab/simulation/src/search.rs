//! A search for the shortest sequence for which a property does not hold.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::Mutex;
use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// A property of random sequences of steps.
pub trait Property {
    /// A step of a sequence.
    type Step: Clone + fmt::Debug + 'static;
    /// The name of the property among those of `cargo xtask simulate`.
    const NAME: &'static str;
    /// The committed list of the seeds whose sequences failed once.
    const FAILED_ONCE: &'static str;
    /// The path of that list.
    const SEEDS: &'static str;

    /// Returns the strategy that generates sequences.
    fn sequences() -> BoxedStrategy<Vec<Self::Step>>;

    /// Runs a sequence, with a seed for what the programs draw themselves.
    fn run(steps: &[Self::Step], seed: u64) -> Tried;
}

/// The result of one run.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The error is the property that does not hold.
    pub outcome: Result<(), String>,
    /// The number of requests that the programs made.
    pub requests: u64,
    /// The number of writes that were judged, by what they write.
    pub judged: BTreeMap<&'static str, u64>,
    /// The number of times that each fault was applied, by its name.
    pub faults: BTreeMap<&'static str, u64>,
}

/// The limit of attempts to shorten a failing sequence.
const SHRINKING: u32 = 500;

/// Totals of a search in which every sequence converged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of sequences.
    pub sequences: u64,
    /// The number of their steps.
    pub steps: u64,
    /// The number of requests that the programs made.
    pub requests: u64,
    /// The number of writes that were judged, by what they write.
    pub judged: BTreeMap<&'static str, u64>,
    /// The number of times that each fault was applied, by its name.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Summary {
    fn of(steps: usize, run: Tried) -> Self {
        Self {
            sequences: 1,
            steps: steps as u64,
            requests: run.requests,
            judged: run.judged,
            faults: run.faults,
        }
    }

    fn add(&mut self, one: Self) {
        self.sequences += one.sequences;
        self.steps += one.steps;
        self.requests += one.requests;
        for (sum, counts) in [
            (&mut self.judged, one.judged),
            (&mut self.faults, one.faults),
        ] {
            for (what, count) in counts {
                *sum.entry(what).or_default() += count;
            }
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sequences,
            steps,
            requests,
            judged,
            faults,
        } = self;
        let counts = |counts: &BTreeMap<&str, u64>| {
            let counts = counts.iter().map(|(what, count)| format!("{what} {count}"));
            counts.collect::<Vec<_>>().join(", ")
        };
        let writes: u64 = judged.values().sum();
        writeln!(
            f,
            "converged: {sequences} sequences, {steps} steps, {requests} requests"
        )?;
        writeln!(f, "judged: {writes} writes: {}", counts(judged))?;
        write!(f, "faults: {}", counts(faults))
    }
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
pub fn failed_once<P: Property>() -> Result<Vec<u64>, String> {
    seeds(P::FAILED_ONCE)
}

/// Parses one seed per line, in which `#` begins a comment.
fn seeds(list: &str) -> Result<Vec<u64>, String> {
    let seed = |line: &str| {
        let text = line.split('#').next().unwrap_or_default().trim();
        let parsed = text.parse().map_err(|_| format!("no seed in {line:?}"));
        (!text.is_empty()).then_some(parsed)
    };
    list.lines().filter_map(seed).collect()
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
fn sequence<P: Property>(seed: u64) -> (TestRunner, impl ValueTree<Value = Vec<P::Step>>) {
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
pub fn sequence_of<P: Property>(seed: u64) -> Vec<P::Step> {
    sequence::<P>(seed).1.current()
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
                Ok(one) => summary.lock().add(one),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    *found.lock() = Some(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    match found.into_inner() {
        Some(found) => Err(found),
        None => Ok(summary.into_inner()),
    }
}

/// Runs the sequence of one seed, and shrinks it if it fails.
fn run_seed<P: Property>(seed: u64) -> Result<Summary, Box<Found>> {
    let (mut runner, tree) = sequence::<P>(seed);
    let steps = tree.current();
    let first = P::run(&steps, seed);
    let Err(why) = &first.outcome else {
        return Ok(Summary::of(steps.len(), first));
    };
    tracing::info!(seed, why, "Shrinking a sequence that fails");
    let shrunken = runner.run_one(tree, |steps| {
        P::run(&steps, seed).outcome.map_err(TestCaseError::fail)
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
    use crate::convergence::Convergence;

    #[test]
    fn seeds_are_read_without_comments_and_anything_else_is_an_error() {
        assert_eq!(seeds("# all\n\n7 # why\n 8\n"), Ok(vec![7, 8]));
        assert_eq!(
            seeds("7\nx # why"),
            Err(r#"no seed in "x # why""#.to_owned())
        );
        assert!(failed_once::<Convergence>().is_ok());
    }

    #[test]
    fn a_search_runs_the_sequence_of_every_seed() {
        let summary = search::<Convergence>([1, 2, 3], 2).unwrap();
        let steps: usize = [1, 2, 3]
            .map(|seed| sequence_of::<Convergence>(seed).len())
            .iter()
            .sum();
        assert_eq!((summary.sequences, summary.steps), (3, steps as u64));
    }
}
