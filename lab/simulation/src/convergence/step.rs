//! The changes of a sequence: to objects, agents and leases.

use std::fmt;

use super::program::Role;
use crate::harness;

/// A step of a sequence.
pub type Step = harness::Step<Change, Role>;

/// A change by users, agents and others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants explain their fields")]
pub enum Change {
    /// A cluster joins, with Karmada's finalizer.
    Join { cluster: u8 },
    /// A cluster is deleted; it stays until its finalizer is removed.
    Leave { cluster: u8 },
    /// Karmada removes its finalizer from a cluster.
    RemoveFinalizer { cluster: u8 },
    /// An agent reports a condition; without a status, the condition is removed.
    Condition {
        cluster: u8,
        reporter: bool,
        status: Option<ConditionState>,
    },
    /// DNS resolves or fails in a cluster from now on, as its agent observes it, which starts with the first
    /// such step.
    Observe { cluster: u8, resolves: bool },
    /// Another writer replaces a cluster's status by an earlier one (karmada#5030).
    RewriteStatus { cluster: u8, age: u8 },
    /// A Remedy is created or changed.
    PutRemedy { remedy: u8, spec: RemedyShape },
    /// A Remedy is deleted.
    DeleteRemedy { remedy: u8 },
    /// A `MultiClusterIngress` is created or changed.
    PutIngress {
        ingress: u8,
        class: Class,
        backends: Backends,
    },
    /// Another controller adds a finalizer to a `MultiClusterIngress`, or removes it.
    HoldIngress { ingress: u8, held: bool },
    /// A `MultiClusterIngress` is deleted.
    DeleteIngress { ingress: u8 },
    /// An `IngressClass` is created, in place of one of that name.
    PutClass {
        class: u8,
        ours: bool,
        default: bool,
    },
    /// An `IngressClass` is deleted.
    DeleteClass { class: u8 },
    /// A Service is bound to clusters and still runs in others. Bits select the clusters.
    Bind { service: u8, to: u8, applied: u8 },
    /// A Service's binding is deleted.
    Unbind { service: u8 },
    /// A Service's template gets other ports; without ports, it is deleted.
    Template { service: u8, ports: Option<u8> },
    /// Other endpoints of a Service are collected from a cluster; without endpoints, the slice is
    /// deleted.
    Collect {
        service: u8,
        cluster: u8,
        endpoints: Option<u8>,
    },
    /// The gateway's own ingress controller sets or clears the address of an ingress.
    Address { ingress: u8, served: bool },
    /// An object of ours in the gateway is deleted.
    DeleteFromGateway { nth: u8 },
    /// Another holder takes the lease of a program and never renews it.
    StealLease { program: Role },
    /// The lease of a program is deleted.
    DeleteLease { program: Role },
    /// An object gets a spec that the programs cannot read.
    Corrupt { corrupted: Corrupted, nth: u8 },
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionState {
    /// `True`.
    Healthy,
    /// `False`.
    Unhealthy,
    /// `Unknown`.
    Unknown,
}

/// The spec of a Remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemedyShape {
    /// The clusters in its affinity, as bits, which may be none; without an affinity, every cluster.
    pub clusters: Option<u8>,
    /// Its matches; without a list, it acts at once, and with an empty one never.
    pub matches: Option<Vec<Match>>,
    /// `TrafficControl`, another action, both, or none, as bits.
    pub actions: u8,
    /// The value of its annotation that lets it only observe.
    pub observe_only: Option<&'static str>,
    /// The annotation that lets it expire.
    pub expires: Option<Expires>,
}

impl RemedyShape {
    /// The Remedy that blocks every cluster at once.
    pub const AT_ONCE: Self = Self {
        clusters: None,
        matches: None,
        actions: 1,
        observe_only: None,
        expires: None,
    };
}

/// The expiry of a Remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expires {
    /// So many seconds after the step.
    After(u8),
    /// A text that is no time.
    Unreadable,
}

/// One `clusterConditionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Set if it matches the reporter's condition instead of the verdict.
    pub reporter: bool,
    /// Set for `Equal`, clear for `NotEqual`.
    pub equal: bool,
    /// The status to compare with.
    pub status: ConditionState,
}

/// The class of an ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A class by name, which may exist.
    Named(u8),
    /// No class.
    None,
}

/// The backends of an ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backends {
    /// A Service in a rule.
    Rule(u8),
    /// A Service as default backend.
    Default(u8),
    /// Both Services.
    Both,
}

/// The kind of an object that becomes unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is a kind")]
pub enum Corrupted {
    Remedy,
    Ingress,
    Binding,
}

impl fmt::Display for ConditionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Healthy => "True",
            Self::Unhealthy => "False",
            Self::Unknown => "Unknown",
        })
    }
}

// Few of each, so that random steps often concern the same objects.
pub(crate) const SERVICES: u8 = 2;
pub(crate) const INGRESSES: u8 = 3;
pub(crate) const REMEDIES: u8 = 3;
pub(crate) const CLASSES: u8 = 2;
