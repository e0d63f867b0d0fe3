//! Runs the Lua scripts by which users interpret kinds (`ResourceInterpreterCustomization`), as Karmada does.
//!
//! ```text
//! Scripts → lane of the customization → operations → sandbox ← prelude.lua, natives
//!                                          json ↗       ↖ gopher, kube
//! ```
//!
//! - When is a script asked? [`Scripts`], with a lane in `lanes` for each customization. Which one is, the crate
//!   `interpreters` says.
//! - What is each function called with, and what may it return? `operations`, typed by
//!   `propagation_rules::customization::results`.
//! - What may a script do, and for how long? `sandbox`, which Lua's own part in `prelude.lua` completes, within its
//!   `deadline`.
//! - What does a function in Rust get, and how does it end? `arguments` and `call`.
//! - What do scripts find to be otherwise than in C? `gopher`: Karmada runs them on gopher-lua.
//! - How do objects become tables, and tables objects? `json`.
//!
//! A script gets a state of its own at each run, and nothing survives it. It has 1 s and 64 MiB.

mod arguments;
mod call;
mod deadline;
mod error;
mod gopher;
mod json;
mod kube;
mod lanes;
mod natives;
pub mod operations;
mod sandbox;
mod scripts;
#[cfg(test)]
mod tests;

pub use error::{Failure, ScriptError};
pub use sandbox::check;
pub use scripts::{RunLabels, Scripts};
