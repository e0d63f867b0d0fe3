//! The API of the hub and those of its members.

use std::sync::LazyLock;

use anyhow::{Result, anyhow};
use embedded_apiserver::ApiServer;

use crate::harness::access::prepared;
use crate::harness::clusters::CLUSTERS;

/// A server with the kinds of a fleet.
static PREPARED: LazyLock<Result<ApiServer, String>> =
    LazyLock::new(|| prepared(fleet_api::definitions()));

/// The servers.
#[derive(Clone, Debug)]
pub(crate) struct Apis {
    pub(crate) hub: ApiServer,
    /// The members, which stay as they are when their clusters leave.
    pub(crate) members: Vec<ApiServer>,
}

impl Apis {
    pub(crate) fn new() -> Result<Self> {
        let prepared = PREPARED.as_ref().map_err(|error| anyhow!("{error}"))?;
        Ok(Self {
            hub: prepared.fork(),
            members: (0..CLUSTERS).map(|_| prepared.fork()).collect(),
        })
    }

    pub(crate) fn member(&self, cluster: u8) -> &ApiServer {
        &self.members[usize::from(cluster)]
    }

    /// Returns every server.
    pub(crate) fn all(&self) -> Vec<ApiServer> {
        [&self.hub]
            .into_iter()
            .chain(&self.members)
            .cloned()
            .collect()
    }
}
