use karmada_api::provider::ProviderIngress;

use super::document::revised;
use crate::ingress::{Desired, ServedClusters};

/// Returns the clusters that a document has addresses of, by Service.
pub fn clusters(document: &ProviderIngress) -> ServedClusters {
    let mut held = ServedClusters::new();
    for backend in &document.backends {
        let clusters = backend.endpoints.iter().map(|one| one.cluster.clone());
        let service = backend.reference.service.clone();
        held.entry(service).or_default().extend(clusters);
    }
    held.retain(|_, clusters| !clusters.is_empty());
    held
}

/// Returns the document without the addresses for which `is_cut` holds of their Service and cluster; `None` if it has none.
///
/// # Errors
/// Fails if the document cannot be written as JSON.
pub fn without(
    document: &ProviderIngress,
    is_cut: impl Fn(&str, &str) -> bool,
) -> serde_json::Result<Option<ProviderIngress>> {
    let mut rest = document.clone();
    for backend in &mut rest.backends {
        let service = &backend.reference.service;
        backend
            .endpoints
            .retain(|one| !is_cut(service, &one.cluster));
    }
    if rest.backends == document.backends {
        return Ok(None);
    }
    revised(rest).map(Some)
}

/// Returns `true` if a cluster must get no request for a Service, which the routes may no longer name.
pub fn is_excluded(desired: &Desired, service: &str, cluster: &str) -> bool {
    let backend = desired.backend(service);
    match backend.and_then(|backend| backend.cluster(cluster)) {
        Some(cluster) => cluster.admission.is_excluded(),
        None => desired.excluded.contains(cluster),
    }
}
