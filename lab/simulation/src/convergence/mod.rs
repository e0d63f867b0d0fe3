//! Convergence as a property: after any sequence of changes to objects, programs and APIs, the fleet
//! reaches the state that its objects demand, and then no program writes.
//!
//! The real controllers of health and traffic run in one thread, over two embedded API servers, in virtual time. A
//! seed determines a sequence of [`Step`]s and the whole run, request by request.
//!
//! ```text
//! sequences ─▶ step ─▶ fleet ─▶ clients, agent ─▶ apis ◀─ program
//!                        the oracle of the harness ─▶ explain: why was this written?
//!                         world ◀─ settled: is what is stored what `model` demands?
//! ```
//!
//! | File | It answers |
//! |---|---|
//! | `world.rs` | what the harness drives, and what must hold at every moment |
//! | `step.rs`, `sequences.rs` | what may happen, and how often |
//! | `fleet.rs` | what a change does |
//! | `clients.rs`, `agent.rs` | what everybody but the controllers writes |
//! | `program.rs` | which programs run, and on which APIs |
//! | `apis.rs`, `kinds.rs`, `objects.rs` | which servers, kinds and objects there are |
//! | `late.rs` | which writes come late |
//! | `model.rs` | what the documentation demands |
//! | `settled.rs` | whether a settled fleet is as the model demands |
//! | `explain/` | whether a write follows from what its process had received |
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
