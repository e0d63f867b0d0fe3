//! The Events recorded on ingresses, each when its reason arises and not with every reconcile.

mod exports;
mod recorded;
mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use karmada_api::MultiClusterIngress;
use karmada_runtime::commit::{self, Notices};
use karmada_runtime::events::EventReason;
use kube::runtime::events::{Event, EventType};
use objects::Key;
use objects::write::Write;
use parking_lot::Mutex;
use traffic::ClusterKind;
use traffic::ingress::http_route::Refusal;
use traffic::ingress::{BlockChange, NodeObstacle, Problem};

pub(crate) use self::recorded::Place;
use self::recorded::{RecordedExports, RecordedObstacles};
use self::references::{cluster, own_object, reference, service};
use crate::ingresses::{Part, object};
use crate::provider::Obstacle;
use crate::reason::Reason;

/// Records the Events of ingresses.
pub(crate) struct IngressEvents {
    /// The kind of the clusters.
    kind: ClusterKind,
    record: Box<dyn Fn(ObjectReference, Event) + Send + Sync>,
    obstacles: Mutex<RecordedObstacles>,
    /// The changes that were recorded, though the status of the ingress does not show them.
    unshown: Mutex<BTreeMap<Key, BlockChange>>,
    exports: Mutex<RecordedExports>,
}

impl fmt::Debug for IngressEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IngressEvents")
            .field("obstacles", &self.obstacles)
            .finish_non_exhaustive()
    }
}

impl IngressEvents {
    /// Creates a recorder that passes Events on to `record`.
    pub(crate) fn new(
        kind: ClusterKind,
        record: impl Fn(ObjectReference, Event) + Send + Sync + 'static,
    ) -> Self {
        Self {
            kind,
            record: Box::new(record),
            obstacles: Mutex::default(),
            unshown: Mutex::default(),
            exports: Mutex::default(),
        }
    }

    /// Returns the recorder of Events about a write that the API refuses, or another client undoes.
    pub(crate) fn notices(self: &Arc<Self>) -> Notices {
        let events = Arc::clone(self);
        Box::new(move |write, obstacle| match (Part::of(write), obstacle) {
            (Some(part), obstacle) => events.unwritten(write, part, obstacle),
            (None, commit::Obstacle::Contested(manager)) => {
                events.export_contested(write, manager);
            }
            // Whoever decides about exports tells.
            (None, commit::Obstacle::Refused(_)) => {}
        })
    }

    /// Records the obstacle to a write of a part of an ingress.
    fn unwritten(&self, write: &Write, part: Part, obstacle: commit::Obstacle<'_>) {
        let fields = part.shown(&write.object);
        let (reason, note) = match obstacle {
            commit::Obstacle::Refused(reason) => {
                tracing::warn!(ingress = %write.object.key, fields, reason, "The API refuses a write, will try again");
                let note = format!("the API refuses every write to {fields}: {reason}");
                (Reason::WriteRefused, note)
            }
            commit::Obstacle::Contested(manager) => {
                let note = format!(
                    "{manager} undoes every write to {fields}; this controller writes again after growing pauses, up to 5 minutes"
                );
                let reason = match part {
                    Part::Finalizers | Part::Release => Reason::FinalizersContested,
                    Part::Status => Reason::StatusContested,
                    Part::LoadBalancer => Reason::LoadBalancerContested,
                };
                (reason, note)
            }
        };
        let object = write.object.reference();
        self.record(object.clone(), EventType::Warning, reason, note, object);
    }

    /// Records which clusters were blocked or unblocked for `ingress`, as its status shows now.
    pub(crate) fn traffic_changed(&self, ingress: &MultiClusterIngress, change: &BlockChange) {
        let told = self.unshown.lock().remove(&Key::of(ingress));
        self.record_change(ingress, &change.since(&told.unwrap_or_default()));
    }

    /// Records which clusters were blocked or unblocked for `ingress`, whose status does not show it: the load balancer
    /// waits for no status.
    pub(crate) fn traffic_changed_unshown(
        &self,
        ingress: &MultiClusterIngress,
        change: &BlockChange,
    ) {
        let mut unshown = self.unshown.lock();
        let told = unshown.insert(Key::of(ingress), change.clone());
        drop(unshown);
        self.record_change(ingress, &change.since(&told.unwrap_or_default()));
    }

    fn record_change(&self, ingress: &MultiClusterIngress, change: &BlockChange) {
        let (key, about) = (Key::of(ingress), object(ingress).reference());
        for name in &change.blocked {
            tracing::info!(ingress = %key, cluster = name, "Cluster blocked");
            let note = format!("A Remedy takes the traffic of cluster {name} away");
            let (kind, reason) = (EventType::Warning, Reason::TrafficBlocked);
            self.record(about.clone(), kind, reason, note, cluster(self.kind, name));
        }
        for name in &change.unblocked {
            tracing::info!(ingress = %key, cluster = name, "Cluster no longer blocked");
            let note = format!("Cluster {name} is no longer blocked");
            let (kind, reason) = (EventType::Normal, Reason::TrafficUnblocked);
            self.record(about.clone(), kind, reason, note, cluster(self.kind, name));
        }
    }

    /// Records those of `current`, all obstacles of `ingress` in `place`, that are new since the last call.
    pub(crate) fn obstacles(
        &self,
        ingress: &MultiClusterIngress,
        place: Place,
        current: &BTreeSet<Obstacle>,
    ) {
        let key = Key::of(ingress);
        let news = self.obstacles.lock().replace(&key, place, current);
        for obstacle in news {
            let reason = obstacle.reason;
            tracing::warn!(ingress = %key, reason = reason.as_str(), %obstacle, "Ingress is not served as desired");
            let (about, related) = (object(ingress).reference(), reference(&obstacle.object));
            self.record(about, EventType::Warning, reason, obstacle.message, related);
        }
    }

    /// Records why the newest version of the `HTTPRoute` that is read as `ingress` is not served, if that is news.
    pub(crate) fn refusal(&self, ingress: &MultiClusterIngress, refusal: Option<&Refusal>) {
        let refusals = refusal.into_iter().map(|refusal| Obstacle {
            reason: Reason::RouteRefused,
            object: own_object(&Key::of(ingress)),
            message: refusal.to_string(),
        });
        self.obstacles(ingress, Place::Refused, &refusals.collect());
    }

    /// Forgets the ingress `key`, which is no longer served.
    pub(crate) fn forget(&self, key: &Key) {
        self.obstacles.lock().forget(key);
        self.unshown.lock().remove(key);
    }

    /// Records an Event. The API server keeps Events of one reason apart only if they refer to
    /// different objects, hence `related`.
    fn record(
        &self,
        about: ObjectReference,
        type_: EventType,
        reason: Reason,
        note: String,
        related: ObjectReference,
    ) {
        let event = Event {
            type_,
            reason: reason.as_str().to_owned(),
            note: Some(note),
            action: "Route".to_owned(),
            secondary: Some(related),
        };
        (self.record)(about, event);
    }
}

/// Returns the obstacle that `problem` is for the ingress `key`.
pub(crate) fn obstacle(problem: &Problem, key: &Key) -> Obstacle {
    let (reason, of) = match problem {
        Problem::NoTemplate { service } => (Reason::ServiceNotFound, Some(service)),
        Problem::NoPort { service, .. } => (Reason::ServicePortNotFound, Some(service)),
        Problem::Readmitted { service, .. } => (Reason::TrafficReadmitted, Some(service)),
        Problem::AllBlocked { service, .. } => (Reason::AllClustersBlocked, Some(service)),
        Problem::NoEndpoints { service, .. } => (Reason::NoEndpoints, Some(service)),
        Problem::Unusable { service, .. } => (Reason::AddressUnusable, Some(service)),
        Problem::Nodes {
            service, obstacle, ..
        } => {
            let reason = match obstacle {
                NodeObstacle::ExternalTrafficPolicyLocal => Reason::ExternalTrafficPolicyLocal,
                NodeObstacle::Unpublished => Reason::NodesUnpublished,
                NodeObstacle::Unallocated(_) => Reason::NodePortMissing,
            };
            (reason, Some(service))
        }
        Problem::SharedAddress { service, .. } => (Reason::AddressShared, Some(service)),
        Problem::InvalidAnnotation(_) => (Reason::InvalidAnnotation, None),
        Problem::Withheld { .. } => (Reason::AnnotationWithheld, None),
    };
    Obstacle {
        reason,
        object: of.map_or_else(|| own_object(key), |name| service(key, name)),
        message: problem.to_string(),
    }
}

/// Returns the obstacle that it is for the ingress `key` if a load balancer fails as a whole.
pub(crate) fn failure(reason: Reason, key: &Key, message: String) -> Obstacle {
    Obstacle {
        reason,
        object: own_object(key),
        message,
    }
}
