//! The endpoints of the placed Services, collected into the namespace of the cluster on the hub, where an ingress-controller
//! reads them.
//!
//! Trouble with any of it holds up no Work: what it watches has no gate of readiness, and it has a queue of its own.

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
use karmada_runtime::watch::{Decoded, events, kept};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::Key;
use objects::write::Write;
use parking_lot::Mutex;
use tokio::time::sleep;
use traffic::ClusterKind;
use traffic::endpoints::{
    COLLECTED, CollectionFacts, CollectionPlan, Need, Selection, is_ours, plan, service_on_hub,
    source_service,
};

use crate::index::Agent;

/// The least time between two writes of the endpoints of a Service: a rollout changes them with each pod.
const PACE: Duration = Duration::from_secs(1);
/// The time for further Works after one that brings other Services: each such change lists anew.
const BURST: Duration = Duration::from_millis(100);

/// The slices in the member, and those on the hub.
pub(crate) struct Endpoints {
    cluster: String,
    agent: Arc<Agent>,
    known: Arc<Mutex<Known>>,
}

struct Known {
    /// Those in the member, by their Services.
    slices: Store<EndpointSlice, Key>,
    /// The Services of which all have been listed.
    listed: BTreeSet<Key>,
    /// Those on the hub, by the Services that they are of.
    collected: Store<EndpointSlice, Key>,
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
        let known = Known {
            slices: in_member(),
            listed: BTreeSet::new(),
            collected: Store::by(|slice| service_on_hub(slice).into_iter().collect()),
        };
        let endpoints = Arc::new(Self {
            cluster: cluster.to_owned(),
            agent: Arc::clone(agent),
            known: Arc::new(Mutex::new(known)),
        });
        let own: Api<Decoded<EndpointSlice>> = Api::namespaced(hub.clone(), &agent.namespace);
        let rows = endpoints.collected_rows();
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

    /// Returns what the slices on the hub wake: their Service.
    fn collected_rows(self: &Arc<Self>) -> Watch<Known, EndpointSlice, Key> {
        let (queue, placed) = (self.agent.queues.services.clone(), Arc::clone(self));
        Watch::new(&self.known, |known| &mut known.collected)
            .follows(move |known, change| {
                for service in known.collected.concerned(change) {
                    queue.add_paced(service, PACE);
                }
            })
            .wakes_when_known(&self.agent.queues.services, move |known, _| {
                placed.services(known)
            })
    }

    /// Returns the Services that are placed, or of which there are slices on the hub.
    fn services(&self, known: &Known) -> BTreeSet<Key> {
        let collected = known.collected.keys();
        let collected = collected.flat_map(|key| known.collected.targets(key));
        let mut services = self.agent.index.lock().services();
        services.extend(collected.cloned());
        services
    }

    async fn watch_member(&self, member: Client) {
        loop {
            let placed = self.agent.index.lock().services();
            let selected = Selection::of(&placed, placed.iter());
            tokio::select! {
                () = self.follow(&selected, member.clone()) => {}
                () = self.until_others_are_placed(&selected) => {}
            }
        }
    }

    async fn follow(&self, selected: &Selection, member: Client) {
        if selected.services().is_empty() {
            self.forget();
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

    /// Forgets the slices in the member, which nobody needs.
    fn forget(&self) {
        let mut known = self.known.lock();
        known.slices = in_member();
        known.listed.clear();
    }

    async fn until_others_are_placed(&self, selected: &Selection) {
        loop {
            self.agent.placed.notified().await;
            sleep(BURST).await;
            if !selected.is_right_for(&self.agent.index.lock().services()) {
                return;
            }
        }
    }

    /// Takes in an event of the slices in the member, which are those that are `selected`.
    fn observe(&self, selected: &Selection, event: Event<Decoded<EndpointSlice>>) {
        let is_listed = matches!(event, Event::InitDone);
        let mut known = self.known.lock();
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

    /// Plans what is collected of a Service; `None` while it is not known what was collected before.
    fn plan(&self, service: &Key) -> Option<CollectionPlan> {
        let index = self.agent.index.lock();
        let is_placed = index.works.keys_of(service).next().is_some();
        let need = match (is_placed, index.works.unread().is_empty()) {
            (true, _) => Need::Wanted,
            (false, true) => Need::Unwanted,
            (false, false) => Need::Unclear,
        };
        let are_works_listed = index.works.is_listed();
        drop(index);
        let known = self.known.lock();
        if !are_works_listed || !known.collected.is_listed() {
            return None;
        }
        let mut unread = known.slices.unread().iter();
        let is_read = !unread.any(|key| key.namespace == service.namespace);
        let is_known = is_read && known.listed.contains(service);
        let sources: Option<Vec<_>> = is_known.then(|| known.slices.of(service).cloned().collect());
        let collected: Vec<_> = known.collected.of(service).cloned().collect();
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

fn in_member() -> Store<EndpointSlice, Key> {
    Store::by(|slice: &EndpointSlice| source_service(&slice.metadata).into_iter().collect())
}

/// Brings the collected slices of one Service to those in the member.
pub(crate) struct EndpointReconciler {
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) hub: Client,
    pub(crate) committer: Committer,
}

impl Controller for EndpointReconciler {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        let known = self.endpoints.known.lock();
        self.endpoints.services(&known).into_iter().collect()
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
        if !matches!(outcome, Outcome::Exists(_)) {
            return Ok(());
        }
        // The watch may lag behind, or show it no more because somebody has taken its marks.
        let key = &write.object.key;
        let own: Api<EndpointSlice> = Api::namespaced(self.hub.clone(), &key.namespace);
        let found = own.get_metadata_opt(&key.name).await?;
        let kind = ClusterKind::MemberCluster;
        if found.is_some_and(|found| !is_ours(kind, &found.metadata)) {
            let problem = format!(
                "EndpointSlice {key} exists on the hub without the marks of those that this program collects: delete it"
            );
            return Err(problem.into());
        }
        Ok(())
    }
}
