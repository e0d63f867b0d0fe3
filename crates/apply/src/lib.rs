//! The engine that applies a set of manifests to one cluster, observes their objects, and takes them away again.
//! It knows no owner: an implementation of [`Ownership`] tells it the owner of each object, and how it is to be treated.
//!
//! A program builds a [`ManifestSet`] from the object that lists the manifests, and calls [`Applier::sync`] for it at each
//! change of the set and at each [`Wake`]. Then, for each manifest, wave by wave:
//!
//! 1. `applier` takes the object from the watch. If it is `settled` by the `records`, that was all.
//! 2. `write` has it read live by `requests`, unless the record shows that nobody but us has written it, or it was never there.
//! 3. By the owner's [`Instruction`](objects::ownership::Instruction), `plan` decides: nothing, a creation, an
//!    application, a replacement, or a refusal. Pure. Where the owner wants that, `compare` has the cluster tell first
//!    the changes of the write, and `not_written` keeps the findings about an object that is left, until that changes.
//! 4. `requests` sends each [`Action`](objects::write::Action) of the plan, and `records` keeps how the write left the
//!    object. `notes` names the fields that the cluster has left out of it, and `schemas` tells when it may know them.
//! 5. `result` has the report of the program: the object as observed, and the [`MemberError`] that stopped it.
//!
//! Why not [`Committer`](karmada_runtime::commit::Committer): it asks for the version of the stored object alone, while the
//! engine reads in the object which fields the cluster has filled in, left out, or does not know. It holds a key back until
//! a watch shows its write, while the engine decides by its record of the write, or by a live look.
//!
//! Where another client changes an object back each time, `rivals` puts off the next write of it.
//!
//! [`Applier::remove`], in `remove`, deletes or releases the objects of a set that goes, [`Applier::prune`] those for
//! which it has no manifest any more. A manifest that is withheld keeps its place, and has no object. `wake` tells which set
//! a change in the cluster concerns, and `kinds` which kinds are to be watched there.

mod applier;
mod compare;
mod error;
mod kinds;
mod manifest_set;
mod not_written;
mod notes;
mod ownership;
mod plan;
mod records;
mod remove;
mod requests;
mod result;
mod rivals;
mod schemas;
mod settled;
mod wake;
mod write;

#[cfg(test)]
mod tests;

pub use applier::Applier;
pub use error::MemberError;
pub use kinds::KindCounts;
pub use manifest_set::{LastWrite, ManifestRef, ManifestSet};
pub use ownership::Ownership;
pub use plan::plan;
pub use remove::Remaining;
pub use result::{Again, Contested, SyncResult, Synced};
pub use wake::Wake;
