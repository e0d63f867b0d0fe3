//! Keeps the Service of each `ServiceImport`, which has the collected slices as its endpoints.

use std::collections::BTreeSet;
use std::sync::Arc;

use karmada_api::names::DERIVED_PREFIX;
use karmada_runtime::commit::Committer;
use karmada_runtime::controller::{self, Controller};
use karmada_runtime::dynamic::{DynamicEvent, DynamicWatches, ServedKind, WatchState};
use karmada_runtime::error::BoxError;
use karmada_runtime::lease::Leadership;
use karmada_runtime::program::Program;
use karmada_runtime::queue::Queue;
use karmada_runtime::untyped::Untyped;
use karmada_runtime::write::WriteErrorKind;
use kube::runtime::watcher::Config;
use kube::{Client, Resource};
use objects::write::Write;
use objects::{GroupVersionKind, Key};
use parking_lot::Mutex;
use traffic::endpoints::{DERIVED, DERIVED_TARGET, derive_service, derived_service};

/// Keeps the Services of imports.
struct Importer {
    watches: DynamicWatches,
    known: Arc<Known>,
    committer: Committer,
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
    committer: Committer,
    leadership: Leadership,
) {
    let known = Arc::new(Known::default());
    let observing = Arc::clone(&known);
    let (watches, watching) = DynamicWatches::new(client, selected, move |kind, event| {
        observing.observe(kind, event);
    });
    watches.want([import_kind(), service_kind()].into());
    program.run_until_stopped("imports", watching);
    let queue = known.queue.clone();
    let importer = Importer {
        watches,
        known,
        committer,
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
        let name = derived_service(key);
        let Some(import) = self.watches.get(&imports, key) else {
            self.committer.forget(DERIVED_TARGET, &name);
            return Ok(());
        };
        let service = self.watches.get(&services, &name);
        let service = service.map(|service| service.value());
        match derive_service(&import.value(), service.as_ref()) {
            Some(write) => self.write(&import, write).await,
            None => Ok(()),
        }
    }
}

impl Importer {
    async fn write(&self, import: &Untyped, write: Write) -> Result<(), BoxError> {
        let served = self.watches.served(&import_kind());
        let about = served.map(|served| import.object_ref(&served.resource));
        let write = write.about(about.into_iter().collect());
        match self.committer.write(&write, None).await {
            // The watch shows a change meanwhile.
            Err(error)
                if matches!(
                    error.kind(),
                    WriteErrorKind::Conflict | WriteErrorKind::Missing
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
            // One of this name is somebody else's, and serves as well.
            Ok(_) => Ok(()),
        }
    }
}
