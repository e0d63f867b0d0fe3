//! What every karmada-rs program needs and none decides: flags, client, leadership, watches, the
//! work queue, the admin server, telemetry, shutdown.
//!
//! A program's `start` connects, spawns named tasks on a [`program::Program`] and returns; the rest
//! of its life is here. Decisions are not: they are pure functions of the `rules` crate.

pub mod admin;
pub mod args;
pub mod cache;
pub mod client;
pub mod controller;
pub mod error;
pub mod events;
pub mod lease;
pub mod metrics;
pub mod program;
pub mod queue;
pub mod readiness;
mod tasks;
pub mod telemetry;
pub mod watch;
pub mod write;
