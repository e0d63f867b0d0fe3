//! The slices of a member that are needed.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use karmada_api::names::SERVICE_NAME;
use objects::Key;

/// The controllers of a member that write the endpoints of its own pods, and of Endpoints that its users wrote. Those
/// of others may be imported from another cluster: they would come back as if they were here.
const KEPT_BY_MEMBER: &str = "endpointslice.kubernetes.io/managed-by in \
     (endpointslice-controller.k8s.io,endpointslicemirroring-controller.k8s.io)";

/// The longest list of names in a selector, in bytes. It is part of a URL, of which servers and proxies accept some
/// thousand bytes.
const LONGEST: usize = 2_000;

/// The slices of a member that are watched: those that the member sends, and of them those that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    selector: String,
    services: BTreeSet<Key>,
}

impl Selection {
    /// Selects the slices of the `needed` Services by their names, or all if these are too many to be named. Kept are
    /// those of all Services `brought` to the member that are sent: none is listed anew once it is needed, too.
    pub fn of<'a>(needed: &BTreeSet<Key>, brought: impl Iterator<Item = &'a Key>) -> Self {
        let names = names(needed);
        let selector = selector(&names);
        let is_sent =
            |service: &&Key| selector == KEPT_BY_MEMBER || names.contains(service.name.as_str());
        let services = brought.filter(is_sent).cloned().collect();
        Self { selector, services }
    }

    /// Returns the label selector of the slices that the member sends.
    pub fn selector(&self) -> &str {
        &self.selector
    }

    /// Returns the Services with slices that are kept.
    pub fn services(&self) -> &BTreeSet<Key> {
        &self.services
    }

    /// Returns `true` if the slice with this metadata is kept.
    pub fn keeps(&self, slice: &ObjectMeta) -> bool {
        source_service(slice).is_some_and(|service| self.services.contains(&service))
    }

    /// Returns `true` if it is right for these Services, too, and nothing has to be listed anew.
    pub fn is_right_for(&self, needed: &BTreeSet<Key>) -> bool {
        needed.is_subset(&self.services) && self.selector == selector(&names(needed))
    }
}

fn names(services: &BTreeSet<Key>) -> BTreeSet<&str> {
    services
        .iter()
        .map(|service| service.name.as_str())
        .collect()
}

fn selector(names: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = names.iter().copied().collect();
    let names = names.join(",");
    match names.len() {
        0 => String::new(),
        1..=LONGEST => format!("{KEPT_BY_MEMBER},{SERVICE_NAME} in ({names})"),
        _ => KEPT_BY_MEMBER.to_owned(),
    }
}

/// Returns the Service to which the slice with this metadata belongs in a member.
pub fn source_service(slice: &ObjectMeta) -> Option<Key> {
    let service = slice.labels.as_ref()?.get(SERVICE_NAME)?;
    Some(Key::new(slice.namespace.clone()?, service))
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn service(namespace: &str, n: usize) -> Key {
        Key::new(namespace, format!("service-{n:04}"))
    }

    fn services(count: usize) -> BTreeSet<Key> {
        (0..count).map(|n| service("shop", n)).collect()
    }

    /// A selector names the Services, as long as it fits into a URL.
    #[test]
    fn selector_names_few_services() {
        let [none, two, many, most] = [0, 2, 150, 200].map(|count| {
            let needed = services(count);
            Selection::of(&needed, needed.iter()).selector
        });
        assert_eq!(none, "");
        assert_eq!(
            two,
            "endpointslice.kubernetes.io/managed-by in (endpointslice-controller.k8s.io,\
             endpointslicemirroring-controller.k8s.io),kubernetes.io/service-name in (service-0000,service-0001)"
        );
        assert!(many.ends_with(",service-0149)"));
        assert_eq!(most, KEPT_BY_MEMBER);
    }

    fn slice(service: &Key) -> ObjectMeta {
        let labels = json!({ SERVICE_NAME: service.name });
        from_value(json!({ "namespace": service.namespace, "labels": labels })).unwrap()
    }

    /// Only slices of the Services brought to a member are kept of its answer: neither a namesake's in another
    /// namespace, nor another's where all are sent.
    #[test]
    fn strangers_are_not_kept() {
        for count in [1, 200] {
            let needed = services(count);
            let selection = Selection::of(&needed, needed.iter());
            assert!(selection.keeps(&slice(&service("shop", 0))));
            assert!(!selection.keeps(&slice(&service("other", 0))));
            assert!(!selection.keeps(&slice(&service("shop", 200))));
            assert!(!selection.keeps(&ObjectMeta::default()));
        }
    }

    /// A further Service is listed anew only if the member has to send more, or its answer was not kept.
    #[test]
    fn further_service_may_be_kept_already() {
        let (brought, few, many) = (services(202), services(1), services(200));
        let is_right = |needed: &BTreeSet<Key>, further: Key| {
            let selection = Selection::of(needed, brought.iter());
            assert!(selection.is_right_for(needed));
            let mut needed = needed.clone();
            needed.insert(further);
            selection.is_right_for(&needed)
        };
        assert!(!is_right(&few, service("shop", 1)));
        assert!(is_right(&many, service("shop", 201)));
        assert!(!is_right(&many, service("shop", 202)));
        assert!(!is_right(&few, service("other", 0)));
    }
}
