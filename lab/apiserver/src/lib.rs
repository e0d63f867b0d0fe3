#![doc = include_str!("../README.md")]
//!
//! # The way of a request
//!
//! ```text
//! serve (socket) ─┐
//! service ────────┴─> dispatch ── faults ──> call ──> verbs ──> write ──> store ──> collector
//!                        │                              │         │          └─> watch, notify
//!                        └─> discovery, openapi,        │         └─> schema, kinds, patch
//!                            metrics                    └─> selector, table, response
//! ```
//!
//! 1. `service` takes a request in process, `serve` from a socket. `dispatch` reads its path, applies the
//!    `faults` that concern it, and describes the API itself (`discovery`, `openapi`, `metrics`).
//! 2. A request for objects becomes a `call`: its kind (`kinds`), verb and options (`request`), and `body`, which
//!    may be JSON, YAML or Protocol Buffers (`protobuf`).
//! 3. `verbs` has a handler for each verb. Reads filter by `selector` and are shown as objects, as a `table`, or
//!    as metadata alone.
//! 4. A write passes through `write`: `patch` computes the object that is wanted, with the owner of each of its
//!    fields; `schema` prunes it, fills in its defaults and validates it; `kinds` knows the rules that no schema has.
//! 5. `store` gives it its version and keeps a history. `collector` and `deletion` then carry out a deletion
//!    with all that follows from it, before any client sees the state between.
//! 6. A `watch` has no queue: it reads that history from its own version on, and is woken by `notify`.
//!
//! Errors are `error`'s everywhere, in kube-apiserver's words.

mod body;
mod call;
mod clock;
mod collector;
mod deletion;
mod discovery;
mod dispatch;
mod error;
mod faults;
mod kinds;
mod lease;
mod metadata;
mod metrics;
mod names;
mod notify;
mod openapi;
mod patch;
mod protobuf;
mod repeated;
mod request;
mod response;
mod schema;
mod selector;
mod serve;
mod server;
mod service;
mod store;
mod table;
mod verbs;
mod watch;
mod write;
mod yaml;

#[cfg(test)]
mod tests;

pub use error::ApiError;
pub use faults::{Fault, FaultId, Faults, Injection};
pub use request::Verb;
pub use response::Body;
pub use server::ApiServer;
pub use service::ApiService;
