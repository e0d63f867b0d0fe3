use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::{IngressBackend, IngressSpec};
use karmada_api::{ResourceBinding, ServiceLocation, names};
use objects::Key;

use super::facts::Facts;
use super::placed::located_by;
use crate::ClusterKind;
use crate::cached::Cached;

/// Returns the names of the Services in the rules and the default backend of an ingress.
pub fn services(spec: &IngressSpec) -> BTreeSet<&str> {
    backends(spec)
        .filter_map(|backend| Some(backend.service.as_ref()?.name.as_str()))
        .collect()
}

/// Returns the names of the Secrets in the TLS of an ingress.
pub fn secrets(spec: &IngressSpec) -> BTreeSet<&str> {
    let tls = spec.tls.iter().flatten();
    let names = tls.filter_map(|tls| tls.secret_name.as_deref());
    names.filter(|name| !name.is_empty()).collect()
}

/// Returns every backend of an ingress.
pub(super) fn backends(spec: &IngressSpec) -> impl Iterator<Item = &IngressBackend> {
    let rules = spec.rules.iter().flatten();
    let paths = rules
        .filter_map(|rule| rule.http.as_ref())
        .flat_map(|http| &http.paths);
    paths.map(|path| &path.backend).chain(&spec.default_backend)
}

/// Returns the names that the binding of `service` may have, if it cannot be read and nothing else tells whose it
/// is.
pub fn binding_names(service: &str) -> impl Iterator<Item = String> {
    names::bindings("", "Service", service)
}

/// Returns the binding of `service` among those of its namespace, whatever its name; of several, the one that is
/// named as Karmada's are.
pub fn binding_of<'a>(
    bindings: impl Iterator<Item = &'a ResourceBinding>,
    service: &str,
) -> Option<&'a ResourceBinding> {
    let bound = bindings.filter(|binding| bound_service(binding) == Some(service));
    bound.min_by_key(|binding| {
        let mut names = binding_names(service);
        let place = names.position(|name| binding.metadata.name.as_ref() == Some(&name));
        place.unwrap_or(usize::MAX)
    })
}

/// Returns the Service that `binding` binds, if any. A `Service` of another API group does not count, nor does one
/// of another namespace.
pub fn bound_service(binding: &ResourceBinding) -> Option<&str> {
    let resource = &binding.spec.resource;
    let is_service = resource.api_version == "v1" && resource.kind == "Service";
    let namespace = resource.namespace.as_deref();
    let is_here = namespace.is_none() || namespace == binding.metadata.namespace.as_deref();
    (is_service && is_here).then_some(resource.name.as_str())
}

/// Returns the networking.k8s.io Ingress that `binding` binds, if any.
pub fn bound_ingress(binding: &ResourceBinding) -> Option<&str> {
    let resource = &binding.spec.resource;
    let group = resource.api_version.split_once('/').map(|(group, _)| group);
    let is_ingress = group == Some("networking.k8s.io") && resource.kind == "Ingress";
    let namespace = resource.namespace.as_deref();
    let is_here = namespace.is_none() || namespace == binding.metadata.namespace.as_deref();
    (is_ingress && is_here).then_some(resource.name.as_str())
}

/// Returns the clusters to which the resource was scheduled, by the binding itself or by one that depends
/// on it, and those to which it is still applied: a cluster under graceful eviction still serves.
pub fn bound_clusters(binding: &ResourceBinding) -> BTreeSet<&str> {
    let scheduled = binding.spec.clusters.iter().flatten();
    let snapshots = binding.spec.required_by.iter().flatten();
    let required = snapshots.flat_map(|snapshot| snapshot.clusters.iter().flatten());
    let targets = scheduled.chain(required).map(|target| &target.name);
    let status = binding.status.as_ref();
    let items = status.and_then(|status| status.aggregated_status.as_ref());
    let applied = items
        .into_iter()
        .flatten()
        .filter(|item| item.applied == Some(true))
        .map(|item| &item.cluster_name);
    targets.chain(applied).map(String::as_str).collect()
}

/// Returns the clusters in which `service` runs: those of its binding, or on a hub those of its placements.
pub fn service_clusters<'a>(
    namespace: &str,
    service: &str,
    facts: &'a impl Facts,
) -> Cached<BTreeSet<&'a str>> {
    if facts.cluster_kind() == ClusterKind::Cluster {
        return facts.binding(namespace, service).map(bound_clusters);
    }
    let service = Key::new(namespace, service);
    let placements = facts.placements(&service);
    placements.map_or(Cached::Unread, located_by)
}

/// Returns the clusters of each Service that `spec` names, sorted by name. A Service without a binding has
/// no entry; one with an unreadable binding keeps its entry in `previous`.
pub fn service_locations(
    namespace: &str,
    spec: &IngressSpec,
    previous: &[ServiceLocation],
    facts: &impl Facts,
) -> Vec<ServiceLocation> {
    services(spec)
        .into_iter()
        .filter_map(
            |service| match service_clusters(namespace, service, facts) {
                Cached::Present(clusters) => Some(location(service, &clusters)),
                Cached::Absent => None,
                Cached::Unread => previous.iter().find(|l| l.name == service).cloned(),
            },
        )
        .collect()
}

fn location(service: &str, clusters: &BTreeSet<&str>) -> ServiceLocation {
    let clusters: Vec<String> = clusters.iter().map(|&c| c.to_owned()).collect();
    ServiceLocation {
        name: service.to_owned(),
        clusters: Some(clusters).filter(|clusters| !clusters.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use karmada_api::{
        AggregatedStatusItem, BindingSnapshot, ResourceBindingStatus, TargetCluster,
    };
    use proptest::prelude::*;

    use super::super::fixtures::{Fixture, binding, ingress, location};
    use super::*;

    /// The services of an ingress are those of its rules and its default backend.
    #[test]
    fn services_of_rules_and_default() {
        let spec = ingress("i", &["b", "a", "b"], Some("c")).spec.ingress;
        assert_eq!(services(&spec), ["a", "b", "c"].into());
        let empty = IngressSpec::default();
        assert_eq!(services(&empty), [].into());
    }

    fn target(cluster: &str) -> TargetCluster {
        TargetCluster {
            name: cluster.into(),
            ..TargetCluster::default()
        }
    }

    fn item(cluster: &str, applied: Option<bool>) -> AggregatedStatusItem {
        AggregatedStatusItem {
            cluster_name: cluster.into(),
            applied,
            ..AggregatedStatusItem::default()
        }
    }

    /// A service is where it was scheduled or required or is still applied.
    #[test]
    fn applied_cluster_still_counts() {
        let mut binding = binding("s", &["m2", "m1"]);
        binding.spec.required_by = Some(vec![BindingSnapshot {
            clusters: Some(vec![target("m3"), target("m1")]),
            ..BindingSnapshot::default()
        }]);
        binding.status = Some(ResourceBindingStatus {
            aggregated_status: Some(vec![
                item("evicted", Some(true)),
                item("failed", Some(false)),
                item("new", None),
            ]),
            ..ResourceBindingStatus::default()
        });
        let expected = ["evicted", "m1", "m2", "m3"].into();
        assert_eq!(bound_clusters(&binding), expected);
    }

    /// Only a binding of a core service of that name counts.
    #[test]
    fn only_core_service_counts() {
        let mut knative = binding("s", &["m1"]);
        knative.spec.resource.api_version = "serving.knative.dev/v1".into();
        let mut other_kind = binding("s", &["m1"]);
        other_kind.spec.resource.kind = "Deployment".into();
        let mut other_name = binding("s", &["m1"]);
        other_name.spec.resource.name = "t".into();
        for binding in [knative, other_kind, other_name] {
            let fixture = Fixture::default().with_binding("s", binding);
            assert_locations(&["s"], &[], &fixture, &[]);
        }
    }

    /// A Service of another group, as Knative's, may have the binding of Karmada's name: the name tells nothing.
    #[test]
    fn binding_is_found_by_resource() {
        let mut knative = binding("s", &["m1"]);
        knative.metadata.name = Some("s-service".into());
        knative.spec.resource.api_version = "serving.knative.dev/v1".into();
        let mut core = binding("s", &["m2"]);
        core.metadata.name = binding_names("s").last();
        let mut elsewhere = binding("s", &["m3"]);
        elsewhere.metadata.namespace = Some("ns".into());
        elsewhere.spec.resource.namespace = Some("other".into());
        let mut third = core.clone();
        third.metadata.name = Some("a".into());
        let all = [knative, elsewhere, third, core.clone()];
        assert_eq!(binding_of(all.iter(), "s"), Some(&core));
        assert_eq!(binding_of(all[..2].iter(), "s"), None);
        assert_eq!(binding_of(all[..3].iter(), "s"), Some(&all[2]));
    }

    /// Locations are sorted and a service without a binding has none.
    #[test]
    fn locations_are_sorted() {
        let fixture = Fixture::default()
            .with_binding("b", binding("b", &["m2", "m1", "m2"]))
            .with_binding("a", binding("a", &[]))
            .with_binding("unnamed", binding("unnamed", &["m1"]));
        let expected = [location("a", &[]), location("b", &["m1", "m2"])];
        assert_locations(&["b", "missing", "a"], &[], &fixture, &expected);
    }

    /// A service with an unreadable binding keeps its location.
    #[test]
    fn unreadable_binding_keeps_location() {
        let fixture = Fixture {
            unread_bindings: ["s".to_owned(), "new".to_owned()].into(),
            ..Fixture::default()
        };
        let previous = [location("other", &["m9"]), location("s", &["m1"])];
        assert_locations(
            &["s", "new"],
            &previous,
            &fixture,
            &[location("s", &["m1"])],
        );
    }

    #[track_caller]
    fn assert_locations(
        services: &[&str],
        previous: &[ServiceLocation],
        fixture: &Fixture,
        expected: &[ServiceLocation],
    ) {
        let spec = ingress("i", services, None).spec.ingress;
        let found = service_locations("ns", &spec, previous, fixture);
        assert_eq!(found, expected);
    }

    proptest! {
        /// The order does not matter and deciding twice changes nothing.
        #[test]
        fn order_does_not_matter(
            services in proptest::collection::vec("[a-d]", 0..6),
            clusters in proptest::collection::vec("m[0-4]", 0..6),
        ) {
            let services: Vec<&str> = services.iter().map(String::as_str).collect();
            let clusters: Vec<&str> = clusters.iter().map(String::as_str).collect();
            let decide = |services: &[&str], clusters: &[&str], previous: &[ServiceLocation]| {
                let fixture = Fixture::default().with_binding("a", binding("a", clusters));
                let spec = ingress("i", services, None).spec.ingress;
                service_locations("ns", &spec, previous, &fixture)
            };
            let once = decide(&services, &clusters, &[]);
            prop_assert_eq!(&once, &decide(&services, &clusters, &once));
            let (mut services, mut clusters) = (services, clusters);
            services.reverse();
            clusters.reverse();
            prop_assert_eq!(&once, &decide(&services, &clusters, &[]));
        }
    }
}
