//! Placements as a property: after any history of users, members, programs and APIs, the members hold the
//! objects that the placements ask for, the placements say so, and then no program writes anything but heartbeats.
//!
//! The real programs run in one thread, over embedded API servers for the hub and for each member, in virtual time:
//! the controller on the hub, and an agent in each member. A seed determines a sequence of [`Step`]s and the whole run.
//!
//! ```text
//! sequences ─▶ step ─▶ fleet ─▶ apis ◀─ programs    apis ─▶ snapshot ─▶ history, settled ─▶ world
//! ```
//!
//! | File | Content |
//! |---|---|
//! | `world.rs` | the world that the harness drives, and the rules of every moment |
//! | `step.rs`, `sequences.rs` | the possible steps, and their frequency |
//! | `fleet.rs`, `objects.rs` | the effect of a step, and its objects |
//! | `programs.rs` | the programs, and the APIs of each |
//! | `apis.rs`, `snapshot.rs` | the servers, and their objects at one moment |
//! | `history.rs` | the part of the past that decides, since it may be kept |
//! | `model.rs` | the clusters that the documentation allows, and those that it demands |
//! | `settled.rs`, `namespaced.rs` | the comparison of a settled fleet with the model |
//!
//! Of placements this leaves out: objects of others in the way of ours, workloads that become available slowly or
//! never (`placement_rules::rollout` has random histories of those), more than one part of a snapshot, preferences and
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
