//! The API of the hub and those of its members.

use std::sync::LazyLock;

use anyhow::{Result, anyhow};
use embedded_apiserver::ApiServer;

use crate::clock;
use crate::harness::clusters::CLUSTERS;

/// A server with the kinds of a fleet. Every run gets forks of it, because compiling the definitions takes longer than
/// most runs.
static PREPARED: LazyLock<Result<ApiServer, String>> = LazyLock::new(|| {
    let server = ApiServer::starting_at(clock::now());
    for definition in fleet_api::definitions() {
        let installed = server.install(&definition);
        installed.map_err(|error| error.to_string())?;
    }
    Ok(server)
});

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
