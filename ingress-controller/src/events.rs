//! The Events recorded on ingresses, each when its reason arises and not with every reconcile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use karmada_api::gateway_api::HttpRoute;
use karmada_api::{Cluster, MultiClusterIngress};
use karmada_runtime::events::EventReason;
use kube::Resource;
use kube::runtime::events::{Event, EventType};
use objects::Key;
use parking_lot::Mutex;
use tokio::time::Instant;
use traffic::ingress::http_route::{Refusal, route_of};
use traffic::ingress::{BlockChange, Problem};

use crate::ingresses::Part;
use crate::provider::{Obstacle, RelatedObject};
use crate::reason::Reason;

const INGRESS_API_VERSION: &str = "networking.karmada.io/v1alpha1";
const INGRESS_KIND: &str = "MultiClusterIngress";

/// The time within which an obstacle that others word anew is no news.
const REWORDED: Duration = Duration::from_mins(5);
/// The most obstacles of an ingress in one place that are recorded: a member may report any number of addresses.
const MOST: usize = 100;

/// The place where obstacles are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The `HTTPRoute`, in a version that is not served.
    Refused,
    /// The ingress as it is served.
    Ingress,
    /// A load balancer, by its own place among all.
    LoadBalancer(usize),
}

/// Records the Events of ingresses.
pub(crate) struct IngressEvents {
    record: Box<dyn Fn(ObjectReference, Event) + Send + Sync>,
    /// The obstacles of each ingress that were last recorded, by where they are met.
    recorded: Mutex<BTreeMap<Key, BTreeMap<Place, Vec<Recorded>>>>,
    /// The changes that were recorded, though the status of the ingress does not show them.
    unshown: Mutex<BTreeMap<Key, BlockChange>>,
    /// The obstacle to the export of each Service, and the ingresses on which it is recorded.
    exports: Mutex<BTreeMap<Key, (Recorded, BTreeSet<Key>)>>,
}

/// An obstacle that was recorded.
#[derive(Debug)]
struct Recorded {
    obstacle: Obstacle,
    at: Instant,
}

impl Recorded {
    fn now(obstacle: Obstacle) -> Self {
        Self {
            obstacle,
            at: Instant::now(),
        }
    }

    /// Returns `true` if `obstacle` is the same, or the same in other words. Others put the time or an address into theirs, which
    /// differ with each attempt.
    fn is(&self, obstacle: &Obstacle) -> bool {
        let Obstacle { reason, object, .. } = &self.obstacle;
        let is_reworded = (reason, object) == (&obstacle.reason, &obstacle.object)
            && is_worded_by_others(*reason)
            && self.at.elapsed() < REWORDED;
        self.obstacle == *obstacle || is_reworded
    }
}

fn is_worded_by_others(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::GatewayRefused
            | Reason::RouteNotAccepted
            | Reason::DnsRecordNotServed
            | Reason::ExportRefused
    )
}

impl fmt::Debug for IngressEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IngressEvents")
            .field("recorded", &self.recorded)
            .finish_non_exhaustive()
    }
}

impl IngressEvents {
    /// Creates a recorder that passes Events on to `record`.
    pub(crate) fn new(record: impl Fn(ObjectReference, Event) + Send + Sync + 'static) -> Self {
        Self {
            record: Box::new(record),
            recorded: Mutex::default(),
            unshown: Mutex::default(),
            exports: Mutex::default(),
        }
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
        let key = Key::of(ingress);
        for cluster in &change.blocked {
            tracing::info!(ingress = %key, cluster, "Cluster blocked");
            let note = format!("A Remedy takes the traffic of cluster {cluster} away");
            let related = cluster_reference(cluster);
            self.record(
                ingress,
                EventType::Warning,
                Reason::TrafficBlocked,
                note,
                related,
            );
        }
        for cluster in &change.unblocked {
            tracing::info!(ingress = %key, cluster, "Cluster no longer blocked");
            let note = format!("Cluster {cluster} is no longer blocked");
            let related = cluster_reference(cluster);
            self.record(
                ingress,
                EventType::Normal,
                Reason::TrafficUnblocked,
                note,
                related,
            );
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
        for obstacle in self.news(&key, place, current) {
            let reason = obstacle.reason;
            tracing::warn!(ingress = %key, reason = reason.as_str(), %obstacle, "Ingress is not served as desired");
            let related = reference(&obstacle.object);
            self.record(
                ingress,
                EventType::Warning,
                reason,
                obstacle.message,
                related,
            );
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

    /// Records `obstacle` to the export of `service` on those of `ingresses`, which route there, that
    /// have no Event of it yet. `None` if there is none any more.
    pub(crate) fn export(
        &self,
        service: &Key,
        obstacle: Option<Obstacle>,
        ingresses: &[Arc<MultiClusterIngress>],
    ) {
        let mut exports = self.exports.lock();
        let before = exports.remove(service);
        let Some(obstacle) = obstacle else {
            return;
        };
        let before = before.filter(|(known, _)| known.is(&obstacle));
        let (known, mut recorded) =
            before.unwrap_or_else(|| (Recorded::now(obstacle.clone()), BTreeSet::new()));
        for ingress in ingresses {
            if recorded.insert(Key::of(&**ingress)) {
                let (reason, note) = (obstacle.reason, obstacle.message.clone());
                let related = reference(&obstacle.object);
                // Users may well export a Service themselves.
                let type_ = match reason {
                    Reason::ExportNotOurs => EventType::Normal,
                    _ => EventType::Warning,
                };
                self.record(ingress, type_, reason, note, related);
            }
        }
        exports.insert(service.clone(), (known, recorded));
    }

    /// Records on `ingresses` that another client undoes every write to the object `key`, with which we
    /// export a Service that they route to.
    pub(crate) fn export_contested(
        &self,
        kind: &'static str,
        key: &Key,
        ingresses: &[Arc<MultiClusterIngress>],
    ) {
        tracing::warn!(kind, object = %key, "Another writer undoes every write, will write again after growing pauses");
        let note = format!(
            "another client undoes every write to {kind} {key}; this controller writes again after growing pauses, up to 5 minutes"
        );
        let object = RelatedObject {
            api_version: None,
            kind,
            key: key.clone(),
        };
        for ingress in ingresses {
            let (note, related) = (note.clone(), reference(&object));
            self.record(
                ingress,
                EventType::Warning,
                Reason::ExportContested,
                note,
                related,
            );
        }
    }

    /// Records that `manager` undoes every write to this part of `ingress`.
    pub(crate) fn contested(
        &self,
        ingress: &MultiClusterIngress,
        part: Part,
        manager: Option<&str>,
    ) {
        let key = Key::of(ingress);
        let manager = manager.unwrap_or("another client");
        let fields = part.shown(&key);
        tracing::warn!(ingress = %key, manager, fields, "Another writer undoes every write, will write again after growing pauses");
        let note = format!(
            "{manager} undoes every write to {fields}; this controller writes again after growing pauses, up to 5 minutes"
        );
        let reason = match part {
            Part::Finalizers | Part::Release => Reason::FinalizersContested,
            Part::Status => Reason::StatusContested,
            Part::LoadBalancer => Reason::LoadBalancerContested,
        };
        self.record(ingress, EventType::Warning, reason, note, own(ingress));
    }

    /// Records that the API refuses every write to this part of `ingress`.
    pub(crate) fn refused(&self, ingress: &MultiClusterIngress, part: Part, reason: &str) {
        let key = Key::of(ingress);
        let fields = part.shown(&key);
        tracing::warn!(ingress = %key, fields, reason, "The API refuses a write, will try again");
        let note = format!("the API refuses every write to {fields}: {reason}");
        let kind = EventType::Warning;
        self.record(ingress, kind, Reason::WriteRefused, note, own(ingress));
    }

    /// Forgets the ingress `key`, which is no longer served.
    pub(crate) fn forget(&self, key: &Key) {
        self.recorded.lock().remove(key);
        self.unshown.lock().remove(key);
    }

    /// Takes in all obstacles of an ingress in one place, and returns those that are news.
    fn news(&self, key: &Key, place: Place, current: &BTreeSet<Obstacle>) -> Vec<Obstacle> {
        let mut recorded = self.recorded.lock();
        let mut places = recorded.remove(key).unwrap_or_default();
        let before = places.remove(&place).unwrap_or_default();
        let (mut known, mut gone): (Vec<_>, Vec<_>) = before
            .into_iter()
            .partition(|one| current.contains(&one.obstacle));
        let mut news = Vec::new();
        for obstacle in current.iter().take(MOST) {
            if known.iter().any(|one| one.obstacle == *obstacle) {
                continue;
            }
            if let Some(same) = gone.iter().position(|one| one.is(obstacle)) {
                known.push(gone.swap_remove(same));
            } else {
                known.push(Recorded::now(obstacle.clone()));
                news.push(obstacle.clone());
            }
        }
        if !known.is_empty() {
            places.insert(place, known);
        }
        if !places.is_empty() {
            recorded.insert(key.clone(), places);
        }
        news
    }

    /// Records an Event. The API server keeps Events of one reason apart only if they refer to
    /// different objects, hence `related`.
    fn record(
        &self,
        ingress: &MultiClusterIngress,
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
        (self.record)(regarding(ingress), event);
    }
}

/// Returns the obstacle that `problem` is for the ingress `key`.
pub(crate) fn obstacle(problem: &Problem, key: &Key) -> Obstacle {
    let (reason, service) = match problem {
        Problem::NoTemplate { service } => (Reason::ServiceNotFound, service),
        Problem::NoPort { service, .. } => (Reason::ServicePortNotFound, service),
        Problem::Readmitted { service, .. } => (Reason::TrafficReadmitted, service),
        Problem::AllBlocked { service, .. } => (Reason::AllClustersBlocked, service),
        Problem::NoEndpoints { service, .. } => (Reason::NoEndpoints, service),
        Problem::Unusable { service, .. } => (Reason::AddressUnusable, service),
        Problem::Misspelt(_) | Problem::Withheld { .. } => {
            return Obstacle {
                reason: match problem {
                    Problem::Withheld { .. } => Reason::AnnotationWithheld,
                    _ => Reason::InvalidAnnotation,
                },
                object: own_object(key),
                message: problem.to_string(),
            };
        }
    };
    Obstacle {
        reason,
        object: RelatedObject {
            api_version: Some(Service::API_VERSION),
            kind: Service::KIND,
            key: Key::new(&key.namespace, service),
        },
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

fn own(ingress: &MultiClusterIngress) -> ObjectReference {
    reference(&own_object(&Key::of(ingress)))
}

/// Returns the object that is served under `key`.
fn own_object(key: &Key) -> RelatedObject {
    match route_of(key) {
        Some(route) => RelatedObject {
            api_version: Some(HttpRoute::API_VERSION),
            kind: HttpRoute::KIND,
            key: route,
        },
        None => RelatedObject {
            api_version: Some(INGRESS_API_VERSION),
            kind: INGRESS_KIND,
            key: key.clone(),
        },
    }
}

/// Returns the object that an Event of `ingress` is about.
fn regarding(ingress: &MultiClusterIngress) -> ObjectReference {
    let metadata = ingress.object_ref(&());
    ObjectReference {
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        ..own(ingress)
    }
}

fn cluster_reference(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(Cluster::api_version(&()).into_owned()),
        kind: Some(Cluster::kind(&()).into_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

fn reference(object: &RelatedObject) -> ObjectReference {
    ObjectReference {
        api_version: object.api_version.map(ToOwned::to_owned),
        kind: Some(object.kind.to_owned()),
        name: Some(object.key.name.clone()),
        namespace: Some(object.key.namespace.clone()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(service: &str, words: &str) -> Obstacle {
        Obstacle {
            reason: Reason::GatewayRefused,
            object: RelatedObject {
                api_version: None,
                kind: "Service",
                key: Key::new("ns", service),
            },
            message: words.to_owned(),
        }
    }

    /// What others word anew with each attempt is recorded from time to time, and what is new at once.
    #[tokio::test(start_paused = true)]
    async fn reworded_obstacle_is_no_news() {
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&notes);
        let events = IngressEvents::new(move |_, event| log.lock().push(event.note.unwrap()));
        let ingress = crate::fixtures::ingress("i", &["s"]);
        let record = |obstacles: &[Obstacle]| {
            let obstacles = obstacles.iter().cloned().collect();
            events.obstacles(&ingress, Place::LoadBalancer(0), &obstacles);
            std::mem::take(&mut *notes.lock())
        };
        assert_eq!(record(&[refused("s", "at 1")]), ["at 1"]);
        assert_eq!(record(&[refused("s", "at 2")]), [""; 0]);
        let other = refused("t", "too");
        assert_eq!(record(&[refused("s", "at 3"), other.clone()]), ["too"]);
        tokio::time::advance(REWORDED).await;
        assert_eq!(record(&[refused("s", "at 4"), other]), ["at 4"]);
        assert_eq!(record(&[]), [""; 0]);
        assert_eq!(record(&[refused("s", "at 4")]), ["at 4"]);
    }

    /// A member may report any number of addresses that cannot be used.
    #[test]
    fn obstacles_are_bounded() {
        let count = Arc::<Mutex<usize>>::default();
        let counted = Arc::clone(&count);
        let events = IngressEvents::new(move |_, _| *counted.lock() += 1);
        let ingress = crate::fixtures::ingress("i", &["s"]);
        let many = (0..10 * MOST).map(|n| refused(&format!("s{n}"), "it is"));
        events.obstacles(&ingress, Place::Ingress, &many.collect());
        assert_eq!(*count.lock(), MOST);
    }

    /// An ingress is referred to as the API knows it.
    #[test]
    fn ingress_reference_matches_api() {
        assert_eq!(MultiClusterIngress::api_version(&()), INGRESS_API_VERSION);
        assert_eq!(MultiClusterIngress::kind(&()), INGRESS_KIND);
    }

    /// A cluster is referred to as the API knows it.
    #[test]
    fn cluster_reference_matches_api() {
        let reference = cluster_reference("m1");
        assert_eq!(
            reference.api_version.as_deref(),
            Some("cluster.karmada.io/v1alpha1")
        );
        assert_eq!(reference.kind.as_deref(), Some("Cluster"));
        assert_eq!(
            (reference.name.as_deref(), reference.namespace),
            (Some("m1"), None)
        );
    }
}
