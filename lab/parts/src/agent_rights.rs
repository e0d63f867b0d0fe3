//! The rights that a Karmada grants the agent of one cluster, for an API without authorization.

/// Returns the requests that the agent of `cluster` has no right to. Each is a method and a path.
///
/// The rights are those of Karmada's `system:karmada:CLUSTER:agent` and `…:agent-work`.
pub fn beyond_rights(requests: impl IntoIterator<Item = String>, cluster: &str) -> Vec<String> {
    let requests = requests.into_iter();
    requests
        .filter(|request| !is_granted(request, cluster))
        .collect()
}

/// The methods granted on each path. `*` is any segment, `{cluster}` the agent's own cluster.
const GRANTED: &[(&str, &str)] = &[
    // Discovery is open to every account.
    ("GET", "/apis/*/*"),
    ("GET POST", "/apis/cluster.karmada.io/v1alpha1/clusters"),
    (
        "GET DELETE",
        "/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}",
    ),
    (
        "PUT",
        "/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}/status",
    ),
    (
        "GET",
        "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations",
    ),
    (
        "GET",
        "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations",
    ),
    ("GET", "/api/v1/services"),
    ("GET", "/api/v1/namespaces/*"),
    ("POST", "/api/v1/namespaces/*/events"),
    ("PATCH PUT", "/api/v1/namespaces/*/events/*"),
    ("POST", "/apis/coordination.k8s.io/v1/namespaces/*/leases"),
    (
        "GET PUT",
        "/apis/coordination.k8s.io/v1/namespaces/*/leases/*",
    ),
    (
        "GET POST",
        "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{cluster}/works",
    ),
    (
        "GET PUT DELETE",
        "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{cluster}/works/*",
    ),
    (
        "PATCH PUT",
        "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{cluster}/works/*/status",
    ),
];

fn is_granted(request: &str, cluster: &str) -> bool {
    let (method, path) = request.split_once(' ').unwrap_or_default();
    GRANTED.iter().any(|(methods, granted)| {
        let granted = granted.replace("{cluster}", cluster);
        let is_path = granted.split('/').count() == path.split('/').count()
            && granted
                .split('/')
                .zip(path.split('/'))
                .all(|(granted, segment)| granted == "*" || granted == segment);
        is_path && methods.split(' ').any(|granted| granted == method)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent writes its own Works and status, by replacement, and lists no others.
    #[test]
    fn agent_reaches_its_own_cluster() {
        let works = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works";
        let clusters = "/apis/cluster.karmada.io/v1alpha1/clusters";
        let granted = [
            format!("GET {works}"),
            format!("PUT {works}/a"),
            format!("PATCH {works}/a/status"),
            format!("PUT {clusters}/m1/status"),
        ];
        assert_eq!(beyond_rights(granted, "m1"), [""; 0]);
        let refused = [
            "GET /apis/work.karmada.io/v1alpha1/works".to_owned(),
            format!("PATCH {works}/a"),
            format!("PATCH {clusters}/m1/status"),
            format!("PUT {clusters}/m2/status"),
            "POST /apis/events.k8s.io/v1/namespaces/default/events".to_owned(),
        ];
        assert_eq!(beyond_rights(refused.clone(), "m1"), refused);
    }
}
