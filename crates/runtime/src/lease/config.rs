//! The configuration of a campaign.

use std::time::Duration;

use tokio::sync::watch;
use uuid::Uuid;

/// A lease and the replica that campaigns for it.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// The lease's namespace; the campaign waits while it is missing.
    pub namespace: String,
    /// The lease's name.
    pub name: String,
    /// The name of this host; the holder identity is `<host>_<id>`.
    pub host: String,
    /// The identifier of this process. A host name alone would let a restarted replica take itself for
    /// the leader of its last life.
    pub id: Uuid,
    /// The mode of the campaign, which may change at any time.
    pub mode: watch::Receiver<CampaignMode>,
}

/// The eagerness of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignMode {
    /// Sends no requests and watches nothing, unless this replica holds the lease.
    Off,
    /// Campaigns as one of many: retries a failed request after a random time up to this one.
    Spread(Duration),
    /// Campaigns as one of few: retries a failed request soon.
    Eager,
    /// Gives the lease back if this replica holds it, and sends no requests then.
    Withdrawn,
}

impl LeaseConfig {
    /// Creates the configuration of a campaign that is eager while the program runs.
    pub fn eager(namespace: String, name: impl Into<String>, host: String) -> Self {
        Self {
            namespace,
            name: name.into(),
            host,
            id: Uuid::new_v4(),
            mode: watch::channel(CampaignMode::Eager).1,
        }
    }
}
