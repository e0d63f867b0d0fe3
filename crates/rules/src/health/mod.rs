//! The verdict on a cluster's DNS: from the observation of one probe round to the conditions of the
//! `Cluster`.
//!
//! An [`observation`] moves a node's vote across its [`threshold`]; the votes of all nodes are judged
//! by a [`quorum`]; the leader's [`report`] turns that verdict into conditions. [`diagnosis`] locates
//! a fault, and [`campaign`] decides which agents compete for the lease.

pub mod campaign;
pub mod diagnosis;
pub mod failure;
pub mod observation;
pub mod quorum;
pub mod report;
pub mod threshold;
