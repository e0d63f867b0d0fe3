//! The kinds whose content is understood: their replicas, health and status, and what they refer to.
//!
//! `order` asks who knows an operation of a kind: `thirdparty`, which has the kinds of other projects that Karmada
//! interprets by itself, or the rules of Kubernetes' own kinds in the other files.

mod aggregate;
mod members;
mod order;
mod reflect;
mod replicas;
mod revise;
#[cfg(test)]
mod status_tests;
mod thirdparty;

pub use members::MemberStatus;
pub(crate) use order::needs;
pub use order::{health, reflect, replicas, retain, revise, template_status};
pub use replicas::{Replicas, same_requirements};
pub use revise::{completions, revise_completions};
