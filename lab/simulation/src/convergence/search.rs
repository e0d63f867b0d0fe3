//! Many sequences, and the shortest one that fails.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::{Options, Step, run, sequences};

/// How many attempts to make a failing sequence shorter.
const SHRINKING: u32 = 500;

/// What a search came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The seed of the first sequence.
    pub seed: u64,
    /// How many sequences ran.
    pub sequences: u64,
    /// How many steps they had.
    pub steps: u64,
    /// How many requests the programs made.
    pub requests: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            sequences,
            steps,
            requests,
        } = self;
        write!(
            f,
            "converged: {sequences} sequences, {steps} steps, {requests} requests, seed {seed}"
        )
    }
}

/// A seed that no run had before.
pub fn random_seed() -> u64 {
    RandomState::new().hash_one(()) >> 32
}

/// The first seed of today (UTC): others each day, the same for everybody on that day, so that what
/// fails goes on failing until it is mended.
pub fn todays_seed() -> u64 {
    const DAY: u64 = 24 * 60 * 60;
    const SEEDS_A_DAY: u64 = 1_000_000;
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.unwrap_or_default().as_secs() / DAY * SEEDS_A_DAY
}

/// A sequence for which a property does not hold.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its seed.
    pub seed: u64,
    /// What does not hold.
    pub why: String,
    /// The shortest sequence found that fails, if not for the same reason.
    pub steps: Vec<Step>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.why)?;
        writeln!(f, "the shortest sequence that fails:")?;
        for step in &self.steps {
            writeln!(f, "    {step:?}")?;
        }
        let seed = self.seed;
        write!(
            f,
            "again: cargo xtask simulate convergence --seed {seed} --sequences 1"
        )
    }
}

/// The sequence of a seed, with the ways to make it shorter.
fn sequence(seed: u64) -> (TestRunner, impl ValueTree<Value = Vec<Step>>) {
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
    let tree = sequences()
        .new_tree(&mut runner)
        .expect("every value is taken");
    (runner, tree)
}

/// The sequence of a seed.
pub fn sequence_of(seed: u64) -> Vec<Step> {
    sequence(seed).1.current()
}

/// Runs the sequences of the seeds from `first` on, on several threads, until one fails.
///
/// # Errors
/// With the shortest sequence that fails.
pub fn search(first: u64, sequences: u64, threads: usize) -> Result<Summary, Box<Found>> {
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let found = Mutex::new(None);
    let summary = Mutex::new(Summary {
        seed: first,
        ..Summary::default()
    });
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= sequences {
                return;
            }
            match one(first.wrapping_add(nth)) {
                Ok(one) => {
                    let mut all = summary.lock();
                    all.sequences += 1;
                    all.steps += one.steps;
                    all.requests += one.requests;
                }
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

/// Runs the sequence of one seed.
fn one(seed: u64) -> Result<Summary, Box<Found>> {
    let options = Options::seeded(seed);
    let (mut runner, tree) = sequence(seed);
    let steps = tree.current();
    let first = run(&steps, &options);
    let Err(why) = &first.outcome else {
        return Ok(Summary {
            seed,
            sequences: 1,
            steps: steps.len() as u64,
            requests: first.requests() as u64,
        });
    };
    tracing::info!(seed, why, "Found one to shrink");
    let shrunken = runner.run_one(tree, |steps| {
        run(&steps, &options).outcome.map_err(TestCaseError::fail)
    });
    let (why, steps) = match shrunken {
        Err(TestError::Fail(why, steps)) => (why.to_string(), steps),
        Err(TestError::Abort(why)) => (why.to_string(), steps),
        Ok(_) => (format!("not when it ran again: {why}"), steps),
    };
    Err(Box::new(Found { seed, why, steps }))
}
