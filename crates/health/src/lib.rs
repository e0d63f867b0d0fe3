//! The verdicts on a cluster's health: from the observation of one probe round to the conditions of the
//! `Cluster`.
//!
//! ```text
//!   Observation → Threshold → Vote   on each node, of each signal
//!        Vote of every node → Tally → Judgement   of each signal, on the leader
//!                 all Judgements → ReportPlan → conditions
//! ```
//!
//! - The signals that are judged: [`signal`]. Each has a file with its names and the classes of its failures:
//!   [`dns`], [`service_network`] and [`reachability`], which are listed in [`SIGNALS`]. All else here knows no signal by name.
//! - When does a node's vote change: [`threshold`], fed with the observations of a round ([`observation`],
//!   [`failure`]).
//! - When does a cluster fail or recover: [`quorum`].
//! - Which conditions are written, and when: [`report`].
//! - Which agent competes for the lease, and when does one give it back: [`campaign`].
//! - Where is a cluster's DNS broken: [`diagnosis`]. Which pods does that concern: [`resolvers`].
//! - How is an answer of a Prometheus read: [`prometheus`].

pub mod campaign;
pub mod diagnosis;
pub mod dns;
pub mod failure;
pub mod observation;
pub mod prometheus;
pub mod quorum;
pub mod reachability;
pub mod report;
pub mod resolver;
pub mod resolvers;
pub mod service_network;
pub mod signal;
pub mod threshold;

use self::dns::DNS;
use self::reachability::REACHABILITY;
use self::service_network::SERVICE_NETWORK;
use self::signal::Signal;

/// Every signal that is compiled in, by the names that `--detectors` of the agent takes.
pub const SIGNALS: [&Signal; 3] = [&DNS, &SERVICE_NETWORK, &REACHABILITY];
