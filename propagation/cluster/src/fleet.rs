//! The connections to the members.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use karmada_api::ClusterView;
use karmada_runtime::members::{Background, ConnectError, MemberAccess, Unverified, Way};
use kube::Client;
use parking_lot::Mutex;

use crate::member::Member;

/// The members to which there are connections.
pub(crate) struct Fleet {
    way: Way,
    background: Background,
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
    pub(crate) fn new(way: Way, background: Background) -> Self {
        Self {
            way,
            background,
            unverified: Unverified::default(),
            members: Mutex::default(),
        }
    }

    /// Returns the mode of the clusters that are served.
    pub(crate) fn sync_mode(&self) -> &'static str {
        self.way.sync_mode()
    }

    /// Returns the member, and connects to it if that has not been done, or not in the way that the
    /// cluster and its Secret ask for.
    pub(crate) async fn member(
        self: &Arc<Self>,
        name: &str,
        cluster: &ClusterView,
    ) -> Result<Arc<Member>, ConnectError> {
        let known = self.connected(name).filter(|member| member.is_of(cluster));
        if let Some(member) = &known
            && !self.members.lock().doubted.contains(name)
        {
            return Ok(Arc::clone(member));
        }
        let (client, connect) = match &self.way {
            Way::Secrets(client, connect) => (client, connect),
            // Its credentials are renewed where it was made.
            Way::Own(client) => {
                let known = known.unwrap_or_else(|| self.keep(name, client.clone(), None, cluster));
                return Ok(known);
            }
        };
        let (access, secret) = MemberAccess::read(client, cluster).await?;
        if let Some(member) = known.filter(|member| member.access.as_ref() == Some(&access)) {
            self.members.lock().doubted.remove(name);
            return Ok(member);
        }
        let client = connect(&access, &secret)?;
        self.unverified.warn(name, &access);
        Ok(self.keep(name, client, Some(access), cluster))
    }

    /// Keeps a connection to a member from now on.
    fn keep(
        self: &Arc<Self>,
        name: &str,
        client: Client,
        access: Option<MemberAccess>,
        cluster: &ClusterView,
    ) -> Arc<Member> {
        let (member, watches) = Member::new(client, access, cluster);
        let member = Arc::new(member);
        let (fleet, cluster) = (Arc::downgrade(self), name.to_owned());
        let failed = Arc::downgrade(&member);
        self.background.run(name, watches, move || {
            // The next probe connects anew.
            if let Some(fleet) = fleet.upgrade() {
                fleet.disconnect_failed(&cluster, &failed);
            }
        });
        let mut members = self.members.lock();
        members.doubted.remove(name);
        members
            .connected
            .insert(name.to_owned(), Arc::clone(&member));
        member
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

    /// Ends this connection to a member, unless another has taken its place.
    fn disconnect_failed(&self, name: &str, failed: &Weak<Member>) {
        let connected = self.connected(name);
        if connected.is_some_and(|member| Arc::downgrade(&member).ptr_eq(failed)) {
            self.disconnect(name);
        }
    }

    /// Ends the connections to all members.
    pub(crate) fn disconnect_all(&self) {
        *self.members.lock() = Members::default();
    }
}
