//! A Work and its objects in the member cluster: their owner, and the Work's status about them.
//!
//! The engine of `crates/apply` applies the manifests, as it is told by way of execution-controller's `KarmadaWork`:
//!
//! - Which Work does an object name? [`work_of`].
//! - How is a manifest written over the object that is found in its place? [`instruction`]; whether the Work may write that, by
//!   the user's conflict resolution.
//! - Which labels and annotations did the last write have? [`written`].
//! - Is an object deleted when its Work goes? [`removal`]: deleted, or kept without Karmada's `marks`.
//! - Which managers have our writes, and those of Karmada before us? [`MANAGERS`].
//! - Was the Work, as it is now, applied already? [`applied`]. With which [`notes`]?
//! - Which slices of other clusters does it bring, and which of them are withheld while their cluster is blocked?
//!   [`ImportBlocks`].
//! - How far has it come ([`Progress`]), and if it is not applied, [`unapplied_since`] when?
//!
//! From the observations of the engine then, `status` plans the Work's status and its Events.

mod imports;
mod marks;
mod ownership;
mod progress;
mod status;
#[cfg(test)]
mod tests;

pub use imports::{Block, ImportBlocks, ImportFacts, ServiceSlice, is_slice};
pub use ownership::{MANAGERS, applied, instruction, notes, removal, work_of, written};
pub use progress::{Progress, unapplied_since};
pub use status::{Interpreted, Outcome, StatusNews, SyncOutcome, identifier, status};
