//! The connections to the members.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmada_api::ClusterView;
use karmada_runtime::client::Addresses;
use karmada_runtime::members::{Background, ConnectError, MemberAccess, Unverified};
use kube::Client;
use parking_lot::Mutex;

use crate::identity::NAME;
use crate::member::Member;

/// The members to which there are connections.
pub(crate) struct Fleet {
    client: Client,
    background: Background,
    addresses: Addresses,
    unverified: Unverified,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    connected: BTreeMap<String, Arc<Member>>,
    /// Those whose credentials may have changed.
    doubted: BTreeSet<String>,
}

impl Fleet {
    pub(crate) fn new(client: Client, background: Background, addresses: Addresses) -> Self {
        Self {
            client,
            background,
            addresses,
            unverified: Unverified::default(),
            members: Mutex::default(),
        }
    }

    /// Returns the member, and connects to it if that has not been done, or not in the way that the
    /// cluster and its Secret ask for.
    pub(crate) async fn member(
        &self,
        name: &str,
        cluster: &ClusterView,
    ) -> Result<Arc<Member>, ConnectError> {
        let known = self.connected(name).filter(|member| member.is_of(cluster));
        if let Some(member) = &known
            && !self.members.lock().doubted.contains(name)
        {
            return Ok(Arc::clone(member));
        }
        let (access, secret) = MemberAccess::read(&self.client, cluster).await?;
        if let Some(member) = known.filter(|member| member.access == access) {
            self.members.lock().doubted.remove(name);
            return Ok(member);
        }
        let client = access.client(&secret, &self.addresses, NAME)?;
        self.unverified.warn(name, &access);
        let (member, watches) = Member::new(client, access, cluster);
        let member = Arc::new(member);
        self.background.run(watches);
        let mut members = self.members.lock();
        members.doubted.remove(name);
        members
            .connected
            .insert(name.to_owned(), Arc::clone(&member));
        Ok(member)
    }

    fn connected(&self, name: &str) -> Option<Arc<Member>> {
        self.members.lock().connected.get(name).map(Arc::clone)
    }

    /// Has the Secret of a member read again before it is used the next time.
    pub(crate) fn doubt(&self, name: &str) {
        self.members.lock().doubted.insert(name.to_owned());
    }

    /// Ends the connection to a member.
    pub(crate) fn disconnect(&self, name: &str) {
        let mut members = self.members.lock();
        members.connected.remove(name);
        members.doubted.remove(name);
    }
}
