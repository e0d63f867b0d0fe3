//! The slices of a member that are needed.

use std::collections::BTreeSet;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use karmada_api::names::SERVICE_NAME;
use objects::Key;

/// The controllers of a member that write the endpoints of its own pods, and of Endpoints that its users wrote. What
/// others write may be imported from another cluster: it would come back as if it were here.
const KEPT_BY_MEMBER: &str = "endpointslice.kubernetes.io/managed-by in \
     (endpointslice-controller.k8s.io,endpointslicemirroring-controller.k8s.io)";

/// The longest list of names in a selector, in bytes. It is part of a URL, of which servers and proxies accept some
/// thousand bytes.
const LONGEST: usize = 2_000;

/// Returns the label selector of the slices of these Services in a member; of all of them, if they are too many to
/// be named.
pub fn sources(services: &BTreeSet<String>) -> String {
    let names: Vec<&str> = services.iter().map(String::as_str).collect();
    let names = names.join(",");
    if names.len() > LONGEST {
        return KEPT_BY_MEMBER.to_owned();
    }
    format!("{KEPT_BY_MEMBER},{SERVICE_NAME} in ({names})")
}

/// Returns the Service to which a slice in a member belongs.
pub fn source_service(slice: &EndpointSlice) -> Option<Key> {
    let metadata = &slice.metadata;
    let service = metadata.labels.as_ref()?.get(SERVICE_NAME)?;
    Some(Key::new(metadata.namespace.clone()?, service))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A selector names the Services, as long as it fits into a URL.
    #[test]
    fn selector_names_few_services() {
        let named =
            |count: usize| sources(&(0..count).map(|n| format!("service-{n:04}")).collect());
        assert_eq!(
            named(2),
            "endpointslice.kubernetes.io/managed-by in (endpointslice-controller.k8s.io,\
             endpointslicemirroring-controller.k8s.io),kubernetes.io/service-name in (service-0000,service-0001)"
        );
        assert!(named(150).ends_with(",service-0149)"));
        assert_eq!(named(200), KEPT_BY_MEMBER);
    }
}
