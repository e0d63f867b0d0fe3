//! The API of the fleet and those of its members.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use anyhow::{Result, anyhow};
use embedded_apiserver::ApiServer;
use parking_lot::Mutex;

use crate::harness::access::prepared;

/// A server with the kinds of a fleet.
static FLEET: LazyLock<Result<ApiServer, String>> = LazyLock::new(|| {
    let definitions = karmada_api::crd::fleet();
    prepared(definitions.map_err(|error| error.to_string())?)
});

/// The servers.
#[derive(Clone, Debug)]
pub(crate) struct Apis {
    pub(crate) fleet: ApiServer,
    /// The members with the number of each, by the addresses at which Clusters name them. One that joins again is a
    /// new one.
    pub(crate) members: Arc<Mutex<BTreeMap<String, (u8, ApiServer)>>>,
    /// Set once the API of the fleet shows Deployments with a further default.
    pub(crate) is_upgraded: Arc<AtomicBool>,
}

impl Apis {
    pub(crate) fn new() -> Result<Self> {
        let fleet = FLEET.as_ref().map_err(|error| anyhow!("{error}"))?;
        Ok(Self {
            fleet: fleet.fork(),
            members: Arc::default(),
            is_upgraded: Arc::default(),
        })
    }

    /// Returns the member at an address.
    pub(crate) fn member(&self, endpoint: &str) -> Option<ApiServer> {
        let members = self.members.lock();
        members.get(endpoint).map(|(_, member)| member.clone())
    }

    /// Returns every server.
    pub(crate) fn all(&self) -> Vec<ApiServer> {
        let members = self.members.lock();
        let members = members.values().map(|(_, member)| member);
        [&self.fleet].into_iter().chain(members).cloned().collect()
    }
}
