//! The part that all simulations share. A world brings its programs, the steps that may happen to them, and a model
//! of the state that must come of them.
//!
//! ```text
//! seed ─▶ search: a sequence of steps ─▶ play: a run in virtual time ─▶ outcome ─▶ search: a shorter sequence
//! ```
//!
//! | File | Content |
//! |---|---|
//! | `world.rs` | the parts that a world must bring, and the result of a run |
//! | `step.rs`, `fault.rs`, `draw.rs` | the steps of any world: of its programs and APIs |
//! | `search.rs` | the sequences that run, those of them that fail, and the shortest that still does |
//! | `play.rs`, `session.rs` | the steps as they happen, their checks, and the settled world that stays quiet |
//! | `programs.rs` | how the processes start, stop and die |
//! | `connection.rs`, `message.rs`, `record.rs`, `log.rs` | their requests and responses, and the write at which one dies |
//! | `access.rs`, `clusters.rs` | how a change reads and writes objects, beside the programs, and of which clusters |
//! | `oracle/` | which messages a process had received that explain each of its writes |
//! | `pace.rs` | how a program is found that repeats a request without a pause |
//! | `value.rs` | how an oracle reads objects |
//!
//! A new world is a folder beside `convergence`, `propagation` and `placement`:
//! 1. its programs, a [`Role`] each, with the [explanations](Explain) of their writes, if there are any, and its
//!    changes, with the strategy that draws sequences of them (few objects, so that steps meet);
//! 2. a type that implements [`World`]: it assembles the programs, applies a change, and compares the objects with
//!    a model that is written from the documentation, not from the programs;
//! 3. a [`Property`] that names the world, its sequences, and the list of seeds that failed once;
//! 4. the property's name in `commands/mod.rs`, for `cargo xtask simulate` and `fuzz`, and a test beside the others
//!    in `tests/` that runs those seeds and some hundreds.

pub(crate) mod access;
pub(crate) mod clusters;
pub(crate) mod connection;
pub(crate) mod draw;
mod fault;
mod log;
mod message;
pub(crate) mod oracle;
mod pace;
mod play;
pub(crate) mod programs;
mod record;
mod search;
mod session;
mod step;
pub(crate) mod value;
mod world;

pub use self::connection::Connections;
pub use self::fault::{About, Api, ApiFault, Part};
pub use self::message::{Process, Role};
pub use self::oracle::{Check, Explain, Facts, Reads, Request, Sources, Target};
pub use self::play::{run, run_with};
pub use self::programs::Programs;
pub use self::record::Record;
pub use self::search::{
    FIRST_SEED, Found, Summary, random_seed, search, search_from_first, sequence_of,
};
pub(crate) use self::session::Session;
pub use self::step::Step;
pub use self::world::{Figures, Property, Run, RunOf, StepOf, Timing, World};
