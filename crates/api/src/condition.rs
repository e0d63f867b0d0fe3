//! The `Cluster` conditions that the agent owns: their types and reasons.

/// Whether names of Services resolve inside the cluster: the agent's verdict.
pub const DNS_READY: &str = "ServiceDomainNameResolutionReady";
/// Reason of [`DNS_READY`] being True.
pub const DNS_READY_REASON: &str = "ServiceDomainNameResolutionReady";
/// Reason of [`DNS_READY`] being False.
pub const DNS_FAILED_REASON: &str = "ServiceDomainNameResolutionFailed";

/// Whether the verdict in [`DNS_READY`] is fresh.
pub const REPORTER_READY: &str = "HealthReporterReady";
/// Reason of [`REPORTER_READY`] being True.
pub const REPORTING_REASON: &str = "Reporting";
/// Reason of [`REPORTER_READY`] being False: too few nodes have a vote.
pub const INSUFFICIENT_OBSERVATIONS_REASON: &str = "InsufficientObservations";

/// The types of the conditions that karmada-rs owns on a `Cluster`.
pub const OWNED: [&str; 2] = [DNS_READY, REPORTER_READY];

/// A condition's status on the wire.
pub const TRUE: &str = "True";
/// A condition's status on the wire.
pub const FALSE: &str = "False";
