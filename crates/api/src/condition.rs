//! The conditions of a `Cluster`, and those of them that the agent owns: their types and reasons.

pub use objects::condition::{Condition, FALSE, TRUE};

/// The condition with the agent's verdict: True if the names of Services resolve inside the cluster.
pub const DNS_READY: &str = "ServiceDomainNameResolutionReady";
/// The reason of a True [`DNS_READY`].
pub const DNS_READY_REASON: &str = "ServiceDomainNameResolutionReady";
/// The reason of a False [`DNS_READY`].
pub const DNS_FAILED_REASON: &str = "ServiceDomainNameResolutionFailed";

/// The condition of the verdict's freshness: True while [`DNS_READY`] is up to date.
pub const REPORTER_READY: &str = "HealthReporterReady";
/// The reason of a True [`REPORTER_READY`].
pub const REPORTING_REASON: &str = "Reporting";
/// The reason of a False [`REPORTER_READY`] while too few nodes have a vote.
pub const INSUFFICIENT_OBSERVATIONS_REASON: &str = "InsufficientObservations";

/// The reason of a False [`REPORTER_READY`] while nobody renews the reporter's lease. The agents cannot
/// write it themselves: the remedy-controller does.
pub const REPORTER_SILENT_REASON: &str = "ReporterSilent";
/// The name of the lease of a cluster's reporter, in the cluster's execution namespace.
pub const REPORTER_LEASE: &str = "cluster-health-agent";

/// The types of the conditions that karmada-rs owns on a `Cluster`.
pub const OWNED: [&str; 2] = [DNS_READY, REPORTER_READY];
