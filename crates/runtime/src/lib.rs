//! Everything that a program needs besides its decisions, which are pure functions of the crates of rules.
//!
//! A program's `start` connects, spawns named tasks on a [`program::Program`] and returns; this crate runs
//! them until shutdown. A change flows through it in this order:
//!
//! - `client` connects (`scope`: to the objects of a kind that may have namespaces or not), `watch` reads the changes, each object `decoded` as far as possible, and `delivery` passes it on and tells `watch_health` and
//!   [`readiness`] how that goes; `dynamic` does so for kinds that are known only at run time.
//! - `cache` keeps the last good version of each object, made small by `as_text` or `untyped`, as
//!   `packed` text, or by `partial`; a `store` finds it by its references, too. The program's table of `wakes` says
//!   which keys a change wakes, and `queue` holds them.
//! - `controller` takes each key and reconciles it, `members` in a loop for each member cluster, with `permits` that a
//!   reconcile releases while it waits for others; `conflicts` tells the failures that are news, and `panics` end no
//!   more than the key or member.
//! - `lease` says who may write and `write` does; `contention` pauses where another client undoes it. `commit` sends the
//!   writes of a plan, and `expectations` hold its key back until the watch shows that.
//! - `events` go out once the burst is over, which `activity` knows.
//!
//! `resolv_conf` says at which servers `client` looks names up, and also the agent's probe.
//!
//! Around these: `args`, `program`, `open_files`, `tasks`, `admin`, `telemetry`, `metrics`, and `alarm`. The crate knows no
//! product: a program gives its [`program::Identity`].

mod activity;
pub mod admin;
pub mod alarm;
pub mod args;
pub mod as_text;
pub mod cache;
pub mod client;
pub mod commit;
mod conflicts;
pub mod contention;
pub mod controller;
mod decoded;
mod delivery;
pub mod dynamic;
pub mod error;
pub mod events;
pub mod expectations;
mod fair_watch;
mod identity;
pub mod lease;
pub mod members;
pub mod metrics;
mod open_files;
mod packed;
pub mod panics;
pub mod partial;
pub mod permits;
pub mod program;
pub mod queue;
pub mod readiness;
pub mod resolv_conf;
pub mod scope;
pub mod store;
mod tasks;
pub mod telemetry;
pub mod untyped;
pub mod wakes;
pub mod watch;
mod watch_health;
pub mod write;
