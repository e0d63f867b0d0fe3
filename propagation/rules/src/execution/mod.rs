//! A Work and its objects in the member cluster: whose they are, and what the Work's status says about them.
//!
//! The engine of `crates/apply` applies the manifests, as it is told by way of execution-controller's `KarmadaWork`:
//!
//! - Which Work does an object name? [`work_of`].
//! - What becomes of a manifest and the object that is found in its place? [`instruction`]; whether the Work may write that, by
//!   the user's conflict resolution.
//! - Which labels and annotations did the last write have? [`written`].
//! - What becomes of an object when its Work goes? [`removal`]: deleted, or kept without Karmada's `marks`.
//! - By which managers do we know what we, or Karmada before us, have written? [`MANAGERS`].
//! - Was the Work, as it is now, applied already? [`applied`]. With which [`notes`]?
//! - Which slices of other clusters does it bring, and which of them are withheld while their cluster is blocked?
//!   [`ImportBlocks`].
//! - How far has it come ([`Progress`]), and if it is not applied, [`unapplied_since`] when?
//!
//! From what the engine then has observed, `status` plans the Work's status and its Events.

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
