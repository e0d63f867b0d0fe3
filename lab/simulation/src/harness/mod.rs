//! The part that all simulations share. A world brings its programs, the steps that may happen to them, and an
//! oracle that says what must come of it.
//!
//! ```text
//! seed ─▶ search: a sequence of steps ─▶ play: a run in virtual time ─▶ outcome ─▶ search: a shorter sequence
//! ```
//!
//! | File | It answers |
//! |---|---|
//! | `world.rs` | what a world must bring, and what a run returns |
//! | `search.rs` | which sequences run, which of them fail, and what is the shortest that still does |
//! | `play.rs` | in which order a world is driven, when it has settled, and for how long nothing may write then |
//! | `process.rs` | how one process of a program starts, stops and dies |
//! | `connection.rs`, `traffic.rs` | what its requests were, and at which write it dies |
//! | `access.rs` | how a step reads and writes objects, beside the programs |
//! | `fault.rs` | what may go wrong with an API |
//! | `pace.rs` | how a program is found that repeats a request without a pause |
//! | `value.rs` | how an oracle reads objects |
//!
//! A new world is a folder beside `convergence`, `propagation` and `placement`:
//! 1. its steps, and the strategy that draws sequences of them (few objects, so that steps meet);
//! 2. a type that implements [`World`]: it starts the programs, applies a step, and compares what is stored with a
//!    model that is written from the documentation, not from the programs;
//! 3. a [`Property`] that names the world, its sequences, and the list of seeds that failed once;
//! 4. the property's name in `commands/mod.rs`, for `cargo xtask simulate` and `fuzz`, and a test beside the others
//!    in `tests/` that runs those seeds and some hundreds.

pub(crate) mod access;
pub(crate) mod connection;
mod fault;
pub(crate) mod pace;
mod play;
pub(crate) mod process;
mod search;
pub(crate) mod traffic;
pub(crate) mod value;
mod world;

pub use self::fault::ApiFault;
pub use self::play::{run, run_with};
pub(crate) use self::play::{settle, stay_quiet};
pub use self::search::{FIRST_SEED, Found, Summary, failed_once, random_seed, search, sequence_of};
pub use self::world::{Figures, Log, Property, Run, StepOf, Timing, World};
