//! The endpoints of exported Services, which are collected from the members into the API of the fleet.
//!
//! - `collected`: the form in which Karmada collects them, and we: of which Service and which cluster is a slice, and
//!   is it ours? Everybody who serves them asks. On a hub they are in the namespaces of the members. And how are the slices of
//!   nodes told from them?
//! - `collection`: in a fleet without Karmada, or on a hub, which slices should there be of one Service from one cluster, and
//!   which writes lead there? The execution-controller, or the placement-agent, carries them out.
//! - `derived`: which Service has the collected slices as its endpoints, where a `ServiceImport` takes them?
//! - `selection`: which slices of a member does it need to see?

mod collected;
mod collection;
mod derived;
mod selection;

pub use collected::{
    COLLECTED, NODE_SLICES, collect_from_hub, is_ours, slice_cluster, slice_service,
};
pub use collection::{CollectionFacts, Need, plan};
pub use derived::{DERIVED, DERIVED_TARGET, derive_service, derived_service};
pub use selection::{Selection, source_service};
