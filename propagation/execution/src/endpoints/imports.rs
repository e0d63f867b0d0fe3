//! Keeps the Service of each `ServiceImport`, which has the collected slices as its endpoints.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use karmada_api::names::DERIVED_PREFIX;
use karmada_runtime::controller::{self, Controller};
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches, ServedKind, WatchState};
use karmada_runtime::error::BoxError;
use karmada_runtime::events::{EventReason, EventRecorder};
use karmada_runtime::lease::Leadership;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::untyped::Untyped;
use karmada_runtime::write::{self, Refusals, WriteErrorKind, WriteMode};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType};
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use traffic::endpoints::{DERIVED, DerivedPlan, derived_service};

use crate::reason::Reason;

/// The label of the writes in the metrics.
const TARGET: &str = "derived_service";

/// Keeps the Services of imports.
struct Importer {
    watches: DynamicWatches,
    known: Arc<Known>,
    client: Client,
    writes: WriteMode,
    /// Absent if nothing is written.
    events: Option<EventRecorder>,
    refusals: Refusals<Key>,
}

/// The imports, and the queue of those to be reconciled.
#[derive(Debug, Default)]
struct Known {
    imports: Mutex<BTreeSet<Key>>,
    queue: Queue<Key>,
}

/// Spawns the loop as a task of `program`. Where the API does not serve the kind, or does not let us list it, there is
/// nothing to do.
pub(super) fn spawn(
    program: &mut Program,
    client: Client,
    writes: WriteMode,
    events: Option<EventRecorder>,
    leadership: Leadership,
) {
    let known = Arc::new(Known::default());
    let observing = Arc::clone(&known);
    let observe = move |kind: &GroupVersionKind, event| observing.observe(kind, event);
    let (watches, watching) = DynamicWatches::new(client.clone(), selected, observe);
    watches.want([import_kind(), service_kind()].into());
    program.run_until_stopped("imports", watching);
    let queue = known.queue.clone();
    let importer = Importer {
        watches,
        known,
        client,
        writes,
        events,
        refusals: Refusals::default(),
    };
    controller::spawn(program, "serviceimport", importer, queue, leadership);
}

fn import_kind() -> GroupVersionKind {
    GroupVersionKind::new("multicluster.x-k8s.io/v1alpha1", "ServiceImport")
}

fn service_kind() -> GroupVersionKind {
    GroupVersionKind::new("v1", "Service")
}

/// Returns which objects of a kind are watched: of the Services, those that were derived.
fn selected(kind: &ServedKind) -> Config {
    match &*kind.resource.kind {
        "Service" => Config::default().labels(DERIVED),
        _ => Config::default(),
    }
}

impl Known {
    /// Wakes the imports that an event of imports, or of their Services, concerns.
    fn observe(&self, kind: &GroupVersionKind, event: DynamicEvent) {
        match event {
            DynamicEvent::Changed(changes) if *kind == import_kind() => {
                for change in changes {
                    let mut imports = self.imports.lock();
                    if change.new.is_some() {
                        imports.insert(change.key.clone());
                    } else {
                        imports.remove(&change.key);
                    }
                    drop(imports);
                    self.queue.add(change.key);
                }
            }
            DynamicEvent::Changed(changes) => {
                let imports = changes.iter().filter_map(|change| {
                    let import = change.key.name.strip_prefix(DERIVED_PREFIX)?;
                    Some(Key::new(&change.key.namespace, import))
                });
                self.queue.add_all(imports);
            }
            DynamicEvent::Listed => self.queue.add_all(self.all()),
            DynamicEvent::Unkept(..)
            | DynamicEvent::NotServed
            | DynamicEvent::Forbidden
            | DynamicEvent::Failing => {}
        }
    }

    fn all(&self) -> Vec<Key> {
        self.imports.lock().iter().cloned().collect()
    }
}

impl Controller for Importer {
    type Key = Key;

    fn keys(&self) -> Vec<Key> {
        self.known.all()
    }

    async fn reconcile(&self, key: &Key) -> Result<(), BoxError> {
        let kinds = [import_kind(), service_kind()];
        let states = kinds.each_ref().map(|kind| self.watches.state(kind));
        if states != [WatchState::Complete; 2] {
            return Ok(());
        }
        let [imports, services] = kinds;
        let Some(import) = self.watches.get(&imports, key) else {
            self.refusals.forget(key);
            return Ok(());
        };
        let name = Key::new(&key.namespace, derived_service(&key.name));
        let service = self.watches.get(&services, &name);
        let service = service.map(|service| service.value());
        let plan = DerivedPlan::of(&import.value(), service.as_ref());
        self.carry_out(&import, &name, plan).await
    }
}

impl Importer {
    async fn carry_out(
        &self,
        import: &Untyped,
        service: &Key,
        plan: DerivedPlan,
    ) -> Result<(), BoxError> {
        let services: Api<Service> = Api::namespaced(self.client.clone(), &service.namespace);
        let written = match plan {
            DerivedPlan::Unchanged => return Ok(()),
            DerivedPlan::Create(body) => {
                let parameters = PostParams::default();
                let call = write::create(&services, &parameters, &body);
                self.writes.write(TARGET, call).await
            }
            DerivedPlan::Change(body) => {
                let (parameters, patch) = (PatchParams::default(), Patch::Merge(&body));
                let call = write::patch(&services, &service.name, &parameters, &patch);
                self.writes.write(TARGET, call).await
            }
        };
        if let Some(reason) = self.refusals.note(Key::of(import), &written) {
            self.record(import, service, &reason);
        }
        match written.map(drop) {
            // One of this name is somebody else's, and serves as well. What has changed meanwhile the watch shows.
            Err(error)
                if matches!(
                    error.kind(),
                    WriteErrorKind::Conflict | WriteErrorKind::Missing
                ) =>
            {
                Ok(())
            }
            written => Ok(written?),
        }
    }

    /// Records on an import why its Service was refused.
    fn record(&self, import: &Untyped, service: &Key, reason: &str) {
        let note = format!("Service {service} cannot be written for the import: {reason}");
        let served = self.watches.served(&import_kind());
        let (Some(events), Some(served)) = (&self.events, served) else {
            return;
        };
        let event = Event {
            type_: EventType::Warning,
            reason: Reason::DeriveServiceFailed.as_str().to_owned(),
            note: Some(note),
            action: "Import".to_owned(),
            secondary: None,
        };
        events.record(import.object_ref(&served.resource), event);
    }
}
