//! Runs the Lua scripts by which users interpret kinds (`ResourceInterpreterCustomization`), as Karmada does.
//!
//! ```text
//! Scripts → lane of the customization → operations → sandbox ← prelude.lua, natives
//!                                          json ↗       ↖ gopher, kube
//! ```
//!
//! - When is a script asked? [`Scripts`], with a lane in `lanes` for each customization. Which one is, the crate
//!   `interpreters` says.
//! - The arguments of each function, and its results: `operations`, typed by `propagation_rules::customization::results`.
//! - The bounds of a script: `sandbox`, which Lua's own part in `prelude.lua` completes, within its `deadline`.
//! - A call of a function in Rust: `arguments` and `call`.
//! - The differences to Lua in C: `gopher`, as Karmada runs scripts on gopher-lua.
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
