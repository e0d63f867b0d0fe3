//! The clusters of a binding, and its replicas in each.

mod divide;
mod filter;
mod groups;
mod need;
mod plan;
mod select;
mod selects;
mod strategy;
mod write;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::{
    ClusterResourceBinding, ResourceBinding, ResourceBindingSpec, ResourceBindingStatus,
};

pub use divide::webster;
pub use filter::Unfit;
pub use need::{Scheduler, concerns, is_observed};
pub use plan::{Fleet, Pass, Plan, plan};
pub use selects::selects;
pub use write::{SUCCESS, SpecWrite, StatusWrite};

/// The condition of a binding: True once its clusters have been chosen.
pub const SCHEDULED: &str = "Scheduled";

/// A binding of either kind, as scheduling reads it.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// Its metadata.
    pub metadata: &'a ObjectMeta,
    /// The template, its placement and its clusters.
    pub spec: &'a ResourceBindingSpec,
    /// The state of scheduling.
    pub status: Option<&'a ResourceBindingStatus>,
}

impl<'a> From<&'a ResourceBinding> for Binding<'a> {
    fn from(binding: &'a ResourceBinding) -> Self {
        Self {
            metadata: &binding.metadata,
            spec: &binding.spec,
            status: binding.status.as_ref(),
        }
    }
}

impl<'a> From<&'a ClusterResourceBinding> for Binding<'a> {
    fn from(binding: &'a ClusterResourceBinding) -> Self {
        Self {
            metadata: &binding.metadata,
            spec: &binding.spec,
            status: binding.status.as_ref(),
        }
    }
}

/// The reason why one affinity has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No cluster fits.
    Unfit(Unfit),
    /// The placement cannot be met or understood.
    Error(String),
    /// The placement asks for what this scheduler does not do.
    Unsupported(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::Error(message) => f.write_str(message),
            Self::Unsupported(what) => write!(f, "Unsupported: {what}"),
        }
    }
}
