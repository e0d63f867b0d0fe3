//! The kinds whose content is understood: their replicas, health and status.

mod aggregate;
mod reflect;
mod replicas;
mod revise;
#[cfg(test)]
mod status_tests;

pub use aggregate::{MemberStatus, template_status};
pub use reflect::reflect;
pub use replicas::{Replicas, same_requirements};
pub use revise::{completions, revise, revise_completions};
