//! Everything a karmada-rs program needs besides its decisions: flags, clients, leadership, watches,
//! the work queue, the admin server, telemetry and shutdown.
//!
//! A program's `start` connects, spawns named tasks on a [`program::Program`] and returns; this crate
//! runs them until shutdown. Decisions are pure functions of the `rules` crate.

mod activity;
pub mod admin;
pub mod alarm;
pub mod args;
pub mod as_text;
pub mod cache;
pub mod client;
mod conflicts;
pub mod contention;
pub mod controller;
mod delivery;
pub mod dynamic;
pub mod error;
pub mod events;
mod identity;
pub mod lease;
pub mod members;
pub mod metrics;
pub mod program;
pub mod queue;
pub mod readiness;
mod reading;
mod tasks;
pub mod telemetry;
pub mod untyped;
pub mod watch;
pub mod write;
