//! The kinds whose content is understood: their replicas, health and status, and the objects that they refer to.
//!
//! A program asks the scripts of users first ([`customization`](super::customization)); the answer of one is
//! [`Timed`], for some look at the clock. Then `order` asks who else knows an operation of a kind: `thirdparty`, which
//! has the kinds of other projects that Karmada interprets by itself, or the rules of Kubernetes' own kinds in the
//! other files.

mod aggregate;
mod components;
mod conditions;
mod members;
mod order;
mod reflect;
mod replicas;
mod revise;
mod scripted;
#[cfg(test)]
mod status_tests;
mod thirdparty;
mod times;

pub use components::{Component, same_components};
pub use conditions::with_conditions;
pub use members::MemberStatus;
pub(crate) use order::needs;
pub use order::{components, health, reflect, replicas, retain, revise, template_status};
pub use replicas::{Replicas, pod_requirements, same_requirements};
pub use revise::{completions, revise_completions};
pub use scripted::scripted_status;
pub use times::Timed;
