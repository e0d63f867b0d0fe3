//! Events on ingresses, each told when it comes about and not with every reconcile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::{ObjectReference, Service};
use karmada_api::{Cluster, Key, MultiClusterIngress};
use karmada_rules::ingress::kubernetes::Clash;
use karmada_rules::ingress::{BlockChange, Problem};
use kube::Resource;
use kube::runtime::events::{Event, EventType};
use parking_lot::Mutex;

use crate::provider::Obstacle;

/// Tells of ingresses.
pub(crate) struct Notices {
    tell: Box<dyn Fn(ObjectReference, Event) + Send + Sync>,
    /// What was last wrong with each ingress.
    wrong: Mutex<BTreeMap<Key, BTreeSet<Wrong>>>,
}

/// Something that keeps an ingress from being served as it says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wrong {
    /// In the ingress, or what it names.
    Problem(Problem),
    /// At the load balancer.
    Obstacle(Obstacle),
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices")
            .field("wrong", &self.wrong)
            .finish_non_exhaustive()
    }
}

impl Notices {
    /// Passes Events on to `tell`.
    pub(crate) fn new(tell: impl Fn(ObjectReference, Event) + Send + Sync + 'static) -> Self {
        Self {
            tell: Box::new(tell),
            wrong: Mutex::default(),
        }
    }

    /// The clusters of `change` were blocked or unblocked for `ingress`.
    pub(crate) fn changed(&self, ingress: &MultiClusterIngress, change: &BlockChange) {
        let BlockChange { blocked, unblocked } = change;
        let ingress_key = Key::of(ingress);
        for cluster in blocked {
            tracing::info!(ingress = %ingress_key, cluster, "Cluster blocked");
            let note = format!("A Remedy takes the traffic of cluster {cluster} away");
            let event = event(
                EventType::Warning,
                "TrafficBlocked",
                note,
                cluster_named(cluster),
            );
            (self.tell)(ingress.object_ref(&()), event);
        }
        for cluster in unblocked {
            tracing::info!(ingress = %ingress_key, cluster, "Cluster no longer blocked");
            let note = format!("Cluster {cluster} is no longer blocked");
            let event = event(
                EventType::Normal,
                "TrafficUnblocked",
                note,
                cluster_named(cluster),
            );
            (self.tell)(ingress.object_ref(&()), event);
        }
    }

    /// `now` is all that is wrong with `ingress`: what is new is told of.
    pub(crate) fn wrong(&self, ingress: &MultiClusterIngress, now: &BTreeSet<Wrong>) {
        let key = Key::of(ingress);
        let before = self.replace(&key, now.clone());
        for wrong in now.difference(&before) {
            tracing::warn!(ingress = %key, %wrong, "Ingress cannot be served as it says");
            let about = wrong.about(&key.namespace);
            let event = event(EventType::Warning, wrong.reason(), wrong.to_string(), about);
            (self.tell)(ingress.object_ref(&()), event);
        }
    }

    /// The ingress `key` is served no longer.
    pub(crate) fn forget(&self, key: &Key) {
        self.replace(key, BTreeSet::new());
    }

    fn replace(&self, key: &Key, now: BTreeSet<Wrong>) -> BTreeSet<Wrong> {
        let mut wrong = self.wrong.lock();
        let before = if now.is_empty() {
            wrong.remove(key)
        } else {
            wrong.insert(key.clone(), now)
        };
        before.unwrap_or_default()
    }
}

impl Wrong {
    fn reason(&self) -> &'static str {
        match self {
            Self::Problem(Problem::NoTemplate { .. }) => "ServiceNotFound",
            Self::Problem(Problem::NoPort { .. }) => "ServicePortNotFound",
            Self::Obstacle(Obstacle::Clash(_)) => "GatewayClash",
            Self::Obstacle(Obstacle::Refused { .. }) => "GatewayRefused",
        }
    }

    /// The object it is about. Events with the same reason about different objects stay apart.
    fn about(&self, namespace: &str) -> ObjectReference {
        match self {
            Self::Problem(Problem::NoTemplate { service } | Problem::NoPort { service, .. }) => {
                reference::<Service>(Key::new(namespace, service))
            }
            Self::Obstacle(
                Obstacle::Clash(Clash { kind, key }) | Obstacle::Refused { kind, key, .. },
            ) => ObjectReference {
                kind: Some((*kind).to_owned()),
                name: Some(key.name.clone()),
                namespace: Some(key.namespace.clone()),
                ..ObjectReference::default()
            },
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(problem) => problem.fmt(f),
            Self::Obstacle(obstacle) => obstacle.fmt(f),
        }
    }
}

fn cluster_named(name: &str) -> ObjectReference {
    reference::<Cluster>(Key::cluster_scoped(name))
}

fn reference<K: Resource<DynamicType = ()>>(key: Key) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: Some(key.name),
        namespace: Some(key.namespace).filter(|namespace| !namespace.is_empty()),
        ..ObjectReference::default()
    }
}

fn event(type_: EventType, reason: &str, note: String, about: ObjectReference) -> Event {
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note),
        action: "Route".to_owned(),
        secondary: Some(about),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_referred_to_as_the_api_knows_it() {
        let reference = cluster_named("m1");
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
