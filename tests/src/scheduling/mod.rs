//! Our scheduler beside Karmada's: random bindings and clusters, about which both decide. Every way in which they differ
//! is either a mistake, or has a row in `docs/propagation-limits.md`.
//!
//! A `history` draws the decisions to make, one `case` after the other. `karmada` and `ours` decide about it, and
//! `difference` says where the decisions differ, and why that may be.

mod case;
mod difference;
mod history;
mod karmada;
mod ours;
mod table;

pub use self::table::{Table, compare};
