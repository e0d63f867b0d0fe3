//! Propagation as a property: after any history of users, members, programs and APIs, the members hold
//! the copies that the policies ask for, and then no program writes.
//!
//! The real programs run in one thread, over embedded API servers for the fleet and for each member, in
//! virtual time. A seed determines a sequence of [`Step`]s and the whole run.
//!
//! ```text
//! sequences, scenes ─▶ step ─▶ fleet ─▶ apis ◀─ programs
//!                              fleet ─▶ history    apis ─▶ snapshot ─▶ settled, moves, held ─▶ world
//! ```
//!
//! | File | Content |
//! |---|---|
//! | `world.rs` | the world that the harness drives, and the rules of every moment |
//! | `step.rs`, `parts.rs`, `scenes.rs`, `sequences.rs` | the possible steps, and their frequency |
//! | `fleet.rs`, `objects.rs`, `specs.rs` | the effect of a step |
//! | `programs.rs` | the programs, and the APIs of each |
//! | `apis.rs`, `snapshot.rs` | the servers, and their objects at one moment |
//! | `model.rs`, `schedule.rs` | the demands of the documentation, and the places of workloads |
//! | `settled.rs` | whether a settled fleet is as the model demands |
//! | `held.rs` | the copies that a pause may never take away |
//! | `moves.rs`, `since.rs`, `history.rs` | the reasons that may move a workload at all |
//!
//! Of propagation this leaves out: objects of others in the way of ours, the reports of members on workloads, so
//! that no Deployment gets healthy and its evictions last as long as they may, and the cluster-controller, so
//! that nothing empties the namespace of a cluster that has left. Each program has one process without a lease;
//! leader election is a part of [`convergence`](crate::convergence).

mod apis;
mod fleet;
mod held;
mod history;
mod model;
mod moves;
mod objects;
mod parts;
mod programs;
mod scenes;
mod schedule;
mod sequences;
mod settled;
mod since;
mod snapshot;
mod specs;
mod step;
mod world;

pub use self::fleet::Members;
pub use self::objects::Template;
pub use self::programs::Role;
pub use self::step::{
    Affinity, By, Change, Division, Pause, PolicyShape, Purge, Spread, Step, TaintEffect,
    Toleration,
};
pub use self::world::{Lazy, Propagation};
