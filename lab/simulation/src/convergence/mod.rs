//! Convergence as a property: after any sequence of changes to objects, programs and APIs, the fleet
//! reaches the state that its objects demand, and then no program writes.
//!
//! The real controllers of health and traffic run in one thread, over two embedded API servers, in virtual time. A
//! seed determines a sequence of [`Step`]s and the whole run, request by request.
//!
//! ```text
//! sequences ─▶ step ─▶ fleet ─▶ clients, agent ─▶ apis ◀─ program
//!                        the oracle of the harness ─▶ explain: why was this written?
//!                         world ◀─ settled: does the store agree with `model`?
//! ```
//!
//! | File | Content |
//! |---|---|
//! | `world.rs` | the world that the harness drives, and the rules of every moment |
//! | `step.rs`, `sequences.rs` | the possible steps, and their frequency |
//! | `fleet.rs` | the effect of a change |
//! | `clients.rs`, `agent.rs` | the writes of everybody but the controllers |
//! | `program.rs` | the programs |
//! | `apis.rs`, `kinds.rs`, `objects.rs` | the servers, kinds and objects |
//! | `late.rs` | the writes that come late |
//! | `model.rs` | the demands of the documentation |
//! | `settled.rs` | the comparison of a settled fleet with the model |
//! | `explain/` | the explanations of writes |
//! | `real.rs` | the same sequences on real API servers |

mod agent;
mod apis;
mod clients;
mod explain;
mod fleet;
mod kinds;
mod late;
mod model;
mod objects;
mod program;
mod real;
mod sequences;
mod settled;
mod step;
mod world;

pub use self::apis::Remote;
pub use self::fleet::Controllers;
pub use self::program::Role;
pub use self::real::OnRealApis;
pub use self::step::{
    Backends, Change, Class, ConditionState, Corrupted, Expires, Match, RemedyShape, Step,
};
pub use self::world::Convergence;
