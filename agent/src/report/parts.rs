//! The parts of a report.

use health::quorum::Quorum;
use health::report::{Pace, Terms};
use health::signal::PerTarget;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use karmada_runtime::contention::Contention;
use karmada_runtime::events::EventRecorder;
use karmada_runtime::lease::Leadership;
use karmada_runtime::write::Writer;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;
use traffic::ClusterKind;

use crate::metrics::VerdictMetrics;
use crate::peers::Peers;

/// The clusters that an agent reports on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Its own, by the name of the object.
    Own(String),
    /// Every member of the fleet.
    Members,
}

/// The report of one agent, written while it leads.
pub(crate) struct Report {
    pub(crate) client: Client,
    pub(crate) kind: ClusterKind,
    pub(crate) subject: Subject,
    pub(crate) pace: Pace,
    /// The quorum of each signal that is reported on.
    pub(crate) quorums: PerTarget<Quorum>,
    /// The signals that users declare; `None` until the file has been read, and where nothing is said about that.
    pub(crate) declared: watch::Receiver<Option<PerTarget<Terms>>>,
    pub(crate) peers: Peers,
    pub(crate) metrics: VerdictMetrics,
    pub(crate) leadership: Leadership,
    /// Takes the end of each abstention, at whose start the lease is to be given back.
    pub(crate) abstentions: watch::Sender<Option<Instant>>,
    pub(crate) writer: Writer,
    pub(crate) events: EventRecorder,
    /// The Lease of the agents, on which the Events are.
    pub(crate) lease: ObjectReference,
    /// Who undoes our conditions, by their cluster and type.
    pub(crate) contention: Contention<(String, String)>,
    /// The clock of the conditions' transition times.
    pub(crate) clock: fn() -> Timestamp,
}
