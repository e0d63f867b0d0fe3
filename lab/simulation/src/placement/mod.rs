//! Placements as a property: after any history of users, members, programs and APIs, the members hold what the
//! placements ask for, the placements say so, and then no program writes anything but heartbeats.
//!
//! The real programs run in one thread, over embedded API servers for the hub and for each member, in virtual time:
//! the controller on the hub, and an agent in each member. A seed determines a sequence of [`Step`]s and the whole run.
//!
//! ```text
//! sequences ─▶ step ─▶ fleet ─▶ apis ◀─ programs    apis ─▶ snapshot ─▶ history, settled ─▶ world
//! ```
//!
//! | File | It answers |
//! |---|---|
//! | `world.rs` | what the harness drives, and what must hold at every moment |
//! | `step.rs`, `sequences.rs` | what may happen, and how often |
//! | `fleet.rs`, `objects.rs`, `clusters.rs` | what a step does, and to what |
//! | `programs.rs` | which programs run, and on which APIs |
//! | `apis.rs`, `snapshot.rs` | which servers there are, and what they hold at one moment |
//! | `history.rs` | what of the past decides, since it may be kept |
//! | `model.rs` | which clusters the documentation allows, and which it demands |
//! | `settled.rs`, `namespaced.rs` | whether a settled fleet is as the model demands |
//!
//! Of placements this leaves out: objects of others in the way of ours, workloads that become available slowly or
//! never (`rules::placement::rollout` has random histories of those), more than one part of a snapshot, preferences and
//! properties of clusters.

mod apis;
mod fleet;
mod history;
mod model;
mod namespaced;
mod objects;
mod programs;
mod sequences;
mod settled;
mod snapshot;
mod step;
mod world;

pub use self::fleet::Members;
pub use self::programs::Role;
pub use self::step::{Apply, Change, PlacementShape, Policy, Scope, Step};
pub use self::world::Placement;
