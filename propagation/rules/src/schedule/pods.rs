//! The room that Pods take of a cluster.

use karmada_api::Component;
use objects::amounts::Amounts;
use serde_json::Value;

/// Pods that need the same each, and their number.
pub(super) type Pods = (Amounts, i128);

/// Returns the Pods of components.
pub(super) fn of_components(components: &[Component]) -> Vec<Pods> {
    let pods = components.iter().map(|component| {
        let request = request(component.replica_requirements.as_ref());
        (request, i128::from(component.replicas))
    });
    pods.collect()
}

/// Returns the room that one replica with these requirements takes of a cluster.
pub(super) fn request(requirements: Option<&Value>) -> Amounts {
    let mut request = Amounts::read(requirements.and_then(|needs| needs.get("resourceRequest")));
    request.add(&one_pod());
    request
}

pub(super) fn one_pod() -> Amounts {
    Amounts::from_iter([("pods", "1")])
}
