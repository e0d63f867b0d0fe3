//! The endpoints of the placed Services, collected into the namespace of the cluster on the hub, where an ingress-controller
//! reads them.
//!
//! Trouble with any of it holds up no Work: its watches have no gate of readiness, and it has a queue of its own.

use std::collections::BTreeSet;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_runtime::commit::{Committer, Outcome};
use karmada_runtime::controller::Controller;
use karmada_runtime::error::BoxError;
use karmada_runtime::program::Program;
use karmada_runtime::store::Store;
use karmada_runtime::wakes::Watch;
use karmada_runtime::watch::{Decoded, events, kept, until_outdated};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::Key;
use objects::write::{Plan, Write};
use parking_lot::Mutex;
use traffic::endpoints::{COLLECTED, CollectionFacts, Need, Selection, plan, source_service};
use traffic::{ClusterKind, LeftToOthers};

use crate::index::{Agent, Index, StoredWork, brings_others};

/// The least time between two writes of the endpoints of a Service: a rollout changes them with each pod.
const PACE: Duration = Duration::from_secs(1);

/// The slices in the member, beside those on the hub, which the agent knows.
pub(crate) struct Endpoints {
    cluster: String,
    agent: Arc<Agent>,
    in_member: Mutex<InMember>,
}

struct InMember {
    /// By their Services.
    slices: Store<EndpointSlice, Key>,
    /// The Services of which all have been listed.
    listed: BTreeSet<Key>,
}

impl Endpoints {
    /// Keeps both known, and wakes the Services that they belong to.
    pub(crate) fn watch(
        program: &mut Program,
        hub: &Client,
        member: Client,
        cluster: &str,
        agent: &Arc<Agent>,
    ) -> Arc<Self> {
        let endpoints = Arc::new(Self {
            cluster: cluster.to_owned(),
            agent: Arc::clone(agent),
            in_member: Mutex::new(InMember::new()),
        });
        let own: Api<Decoded<EndpointSlice>> = Api::namespaced(hub.clone(), &agent.namespace);
        let rows = collected_rows(agent);
        let mut observe = rows.into_observer(program, &EndpointSlice::kind(&()));
        program.run_until_stopped("collected", async move {
            let mut changes = pin!(events(own, Config::default().labels(COLLECTED)));
            while let Some(event) = changes.next().await {
                observe(event);
            }
        });
        let watching = Arc::clone(&endpoints);
        program.run_until_stopped("endpoints", async move {
            watching.watch_member(member).await;
        });
        endpoints
    }

    async fn watch_member(&self, member: Client) {
        loop {
            let placed = self.agent.index.lock().services();
            let selected = Selection::of(&placed, placed.iter());
            tokio::select! {
                () = self.follow(&selected, member.clone()) => {}
                () = until_outdated(&self.agent.placed, || self.needs_others(&selected)) => {}
            }
        }
    }

    async fn follow(&self, selected: &Selection, member: Client) {
        if selected.services().is_empty() {
            // Nobody needs the facts about the member.
            *self.in_member.lock() = InMember::new();
            return pending().await;
        }
        let sent = Config::default().labels(selected.selector());
        let mut changes = pin!(events(Api::<Decoded<EndpointSlice>>::all(member), sent));
        while let Some(event) = changes.next().await {
            if let Some(event) = kept(event, |slice| selected.keeps(slice)) {
                self.observe(selected, event);
            }
        }
    }

    fn needs_others(&self, selected: &Selection) -> bool {
        !selected.is_right_for(&self.agent.index.lock().services())
    }

    /// Takes in an event of the slices in the member, which are those that are `selected`.
    fn observe(&self, selected: &Selection, event: Event<Decoded<EndpointSlice>>) {
        let is_listed = matches!(event, Event::InitDone);
        let mut known = self.in_member.lock();
        let changes = known.slices.observe(event);
        if is_listed {
            known.listed.clone_from(selected.services());
        }
        let concerned = changes.objects.iter();
        let concerned = concerned.flat_map(|change| known.slices.concerned(change));
        let mut woken: BTreeSet<Key> = concerned.collect();
        if is_listed || !changes.mended.is_empty() {
            woken.extend(known.listed.iter().cloned());
        }
        drop(known);
        for service in woken {
            self.agent.queues.services.add_paced(service, PACE);
        }
    }

    /// Plans the collection of a Service; `None` before the lists of Works and slices are known.
    fn plan(&self, service: &Key) -> Option<Plan<LeftToOthers>> {
        let index = self.agent.index.lock();
        if !index.works.is_listed() || !index.collected.is_listed() {
            return None;
        }
        let is_placed = index.works.keys_of(service).next().is_some();
        let need = match (is_placed, index.works.unread().is_empty()) {
            (true, _) => Need::Wanted,
            (false, true) => Need::Unwanted,
            (false, false) => Need::Unclear,
        };
        let collected: Vec<_> = index.collected.of(service).cloned().collect();
        drop(index);
        let known = self.in_member.lock();
        let mut unread = known.slices.unread().iter();
        let is_read = !unread.any(|key| key.namespace == service.namespace);
        let is_known = is_read && known.listed.contains(service);
        let sources: Option<Vec<_>> = is_known.then(|| known.slices.of(service).cloned().collect());
        drop(known);
        Some(plan(&CollectionFacts {
            kind: ClusterKind::MemberCluster,
            cluster: &self.cluster,
            service,
            need,
            sources: sources.as_deref(),
            collected: &collected,
        }))
    }
}

impl InMember {
    fn new() -> Self {
        Self {
            slices: Store::by(|slice| source_service(&slice.metadata).into_iter().collect()),
            listed: BTreeSet::new(),
        }
    }
}

/// Adds to the `rows` of Works the keys that they wake here: the Services that one brings, or no longer; and all once one is known
/// that could not be read, for it might have brought any.
pub(crate) fn add_rows(
    agent: &Agent,
    rows: Watch<Index, StoredWork, Key>,
) -> Watch<Index, StoredWork, Key> {
    let placed = Arc::clone(&agent.placed);
    rows.wakes(&agent.queues.services, move |index, change| {
        if !change.differs(brings_others) {
            return BTreeSet::new();
        }
        placed.notify_one();
        index.works.concerned(change)
    })
    .wakes_when_known(&agent.queues.services, |index, _| {
        index.services_to_collect()
    })
}

/// Returns the row of the slices on the hub, which wake their Service.
fn collected_rows(agent: &Agent) -> Watch<Index, EndpointSlice, Key> {
    let queue = agent.queues.services.clone();
    Watch::new(&agent.index, |index| &mut index.collected)
        .follows(move |index, change| {
            for service in index.collected.concerned(change) {
                queue.add_paced(service, PACE);
            }
        })
        .wakes_when_known(&agent.queues.services, |index, _| {
            index.services_to_collect()
        })
}

/// Brings the collected slices of one Service to those in the member.
pub(crate) struct EndpointReconciler {
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) committer: Committer,
}

impl Controller for EndpointReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let index = self.endpoints.agent.index.lock();
        index.services_to_collect().into_iter().collect()
    }

    async fn reconcile(&self, service: &Key) -> Result<(), BoxError> {
        let plan = self.endpoints.plan(service).unwrap_or_default();
        // One that fails keeps no address of a gone pod served.
        let mut done = Ok(());
        for write in &plan.writes {
            done = done.and(self.write(write).await);
        }
        done
    }
}

impl EndpointReconciler {
    async fn write(&self, write: &Write) -> Result<(), BoxError> {
        let outcome = self.committer.write(write, None).await?;
        // One that exists is mostly ours: the watch may lag behind.
        if matches!(outcome, Outcome::Exists(_)) && self.committer.is_taken(write).await? {
            let problem = format!(
                "EndpointSlice {} exists on the hub without the marks of those that this program collects: delete it",
                write.object.key
            );
            return Err(problem.into());
        }
        Ok(())
    }
}
