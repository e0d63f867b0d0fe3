//! The connections to the members.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;

use apply::Applier;
use futures::StreamExt;
use interpreters::Interpreters;
use k8s_openapi::api::core::v1::Secret;
use karmada_api::{ClusterView, execution_namespace};
use karmada_runtime::client::Validity;
use karmada_runtime::members::{Background, ConnectError, MemberAccess, Unverified, Way};
use karmada_runtime::watch::{Decoded, events};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::customization::SharedCustomizations;
use crate::endpoints::{SharedEndpoints, member};
use crate::index::Works;
use crate::ownership::{KarmadaWork, selected};

/// The objects of the Works of a member.
pub(crate) type Member = Applier<KarmadaWork>;

/// The members to which there are connections.
pub(crate) struct Fleet {
    way: Way,
    works: Arc<Works>,
    interpreters: Arc<Interpreters>,
    /// Absent if no endpoints are collected.
    endpoints: Option<Arc<SharedEndpoints>>,
    background: Background,
    unverified: Unverified,
    connections: Mutex<BTreeMap<String, Slot>>,
    /// The members that were tried, each with `true` if it was reached the last time.
    reached: Mutex<BTreeMap<String, bool>>,
    /// The validity of the tokens with which the members were connected last, as far as it is known.
    tokens: Mutex<BTreeMap<String, Validity>>,
}

/// A place for a connection; its lock is held while one is made.
type Slot = Arc<tokio::sync::Mutex<Option<Connection>>>;

/// A connection to a member. Dropped, it ends its watches.
struct Connection {
    member: Arc<Member>,
    _ends: tokio_util::sync::DropGuard,
}

impl Fleet {
    pub(crate) fn new(
        way: Way,
        customizations: &SharedCustomizations,
        endpoints: Option<Arc<SharedEndpoints>>,
        background: Background,
    ) -> Self {
        Self {
            way,
            works: Arc::clone(&customizations.works),
            interpreters: Arc::clone(&customizations.interpreters),
            endpoints,
            background,
            unverified: Unverified::default(),
            connections: Mutex::default(),
            reached: Mutex::default(),
            tokens: Mutex::default(),
        }
    }

    /// Returns the mode of the clusters that are served.
    pub(crate) fn sync_mode(&self) -> &'static str {
        self.way.sync_mode()
    }

    /// Returns the member, and connects to it if that has not been done.
    pub(crate) async fn member(
        self: &Arc<Self>,
        name: &str,
        cluster: &ClusterView,
    ) -> Result<Arc<Member>, ConnectError> {
        let slot = Arc::clone(self.connections.lock().entry(name.to_owned()).or_default());
        // Whoever comes meanwhile waits, and finds it made.
        let mut slot = slot.lock().await;
        if let Some(connection) = &*slot {
            return Ok(Arc::clone(&connection.member));
        }
        let connection = self.connect(name, cluster).await?;
        let member = Arc::clone(&connection.member);
        *slot = Some(connection);
        Ok(member)
    }

    async fn connect(
        self: &Arc<Self>,
        name: &str,
        cluster: &ClusterView,
    ) -> Result<Connection, ConnectError> {
        let (client, access) = match &self.way {
            Way::Secrets(karmada, connect) => {
                let (access, secret) = MemberAccess::read(karmada, cluster).await?;
                let client = connect(&access, &secret)?;
                self.unverified.warn(name, &access);
                let mut tokens = self.tokens.lock();
                match access.validity() {
                    Some(validity) => tokens.insert(name.to_owned(), validity),
                    None => tokens.remove(name),
                };
                drop(tokens);
                (client, Some((karmada.clone(), access)))
            }
            Way::Own(client) => (client.clone(), None),
        };
        let (works, cluster_name) = (Arc::clone(&self.works), name.to_owned());
        let owner = KarmadaWork {
            namespace: execution_namespace(name),
            interpreters: Arc::clone(&self.interpreters),
        };
        let collecting = collect(self.endpoints.clone(), name.to_owned(), client.clone());
        let (member, watches) = Applier::new(client, owner, selected(), move |wake| {
            works.wake_one(&cluster_name, wake);
        });
        member.want(self.works.index.lock().kinds(name));
        let ended = CancellationToken::new();
        let ends = ended.clone().drop_guard();
        let (fleet, cluster) = (Arc::clone(self), cluster.clone());
        let (of_cluster, is_over) = (name.to_owned(), ended.clone());
        let renewal = async move {
            match access {
                Some((karmada, access)) => {
                    fleet.renew(karmada, of_cluster, cluster, access).await;
                }
                None => pending().await,
            }
        };
        let running = async move {
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = watches => {}
                () = collecting => {}
                () = renewal => {}
            }
        };
        let (fleet, cluster) = (Arc::downgrade(self), name.to_owned());
        self.background.run(name, running, move || {
            // Another may have taken its place meanwhile.
            if let Some(fleet) = fleet.upgrade().filter(|_| !is_over.is_cancelled()) {
                fleet.disconnect(&cluster);
                fleet.works.wake(&cluster);
            }
        });
        Ok(Connection {
            member: Arc::new(member),
            _ends: ends,
        })
    }

    /// Watches the one Secret of a cluster, and ends the connection when its credentials change.
    async fn renew(
        self: Arc<Self>,
        karmada: Client,
        name: String,
        cluster: ClusterView,
        access: MemberAccess,
    ) {
        let Ok((namespace, secret_name)) = MemberAccess::secret_of(&cluster) else {
            return;
        };
        let secrets = Api::<Decoded<Secret>>::namespaced(karmada, namespace);
        let one = Config::default().fields(&format!("metadata.name={secret_name}"));
        let mut changes = std::pin::pin!(events(secrets, one));
        while let Some(event) = changes.next().await {
            let (Event::Apply(Decoded::Valid(secret)) | Event::InitApply(Decoded::Valid(secret))) =
                event
            else {
                // Without a Secret, the credentials at hand are as good as any.
                continue;
            };
            if MemberAccess::new(&cluster, &secret).is_ok_and(|renewed| renewed != access) {
                tracing::info!(
                    cluster = name,
                    "The credentials of the cluster have changed"
                );
                self.disconnect(&name);
                self.works.wake(&name);
            }
        }
    }

    /// Ends the connection to a member, of which nothing is known any more; the next Work makes a new one.
    pub(crate) fn disconnect(&self, name: &str) {
        self.refused(name);
        self.reached.lock().remove(name);
        self.tokens.lock().remove(name);
    }

    /// Ends the connection to a member that refuses its credentials; the next Work makes a new one. Its metrics stay: no
    /// alert lasts on those that come and go with each attempt.
    pub(crate) fn refused(&self, name: &str) {
        self.connections.lock().remove(name);
    }

    /// Watches these kinds in a member from now on.
    pub(crate) fn rewatch(&self, name: &str, kinds: BTreeSet<GroupVersionKind>) {
        // While it is being made, the connection takes the kinds from the index itself.
        if let Some(member) = self.connected(name) {
            member.want(kinds);
        }
    }

    /// Forgets a Work of a member.
    pub(crate) fn forget(&self, name: &str, work: &Key) {
        if let Some(member) = self.connected(name) {
            member.forget(work);
        }
    }

    fn connected(&self, name: &str) -> Option<Arc<Member>> {
        let slot = self.connections.lock().get(name).map(Arc::clone)?;
        let connection = slot.try_lock().ok()?;
        let connection = connection.as_ref()?;
        Some(Arc::clone(&connection.member))
    }

    /// Notes whether a member was reached.
    pub(crate) fn note_reached(&self, name: &str, reached: bool) {
        self.reached.lock().insert(name.to_owned(), reached);
    }

    /// Returns `false` if a member was not reached the last time it was tried.
    pub(crate) fn was_reached(&self, name: &str) -> bool {
        self.reached.lock().get(name).copied().unwrap_or(true)
    }

    /// Returns the members that were tried, and if they were reached the last time.
    pub(crate) fn reached(&self) -> BTreeMap<String, bool> {
        self.reached.lock().clone()
    }

    /// Returns the members whose token has a known end, and the validity of each.
    pub(crate) fn tokens(&self) -> BTreeMap<String, Validity> {
        self.tokens.lock().clone()
    }
}

/// Watches the endpoints in a member, if any are collected, and never returns.
async fn collect(endpoints: Option<Arc<SharedEndpoints>>, name: String, client: Client) {
    match endpoints {
        Some(endpoints) => member::watch(&endpoints, &name, client).await,
        None => pending().await,
    }
}
