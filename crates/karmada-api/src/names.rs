//! The names, labels, annotations and finalizers by which Karmada's objects refer to each other.

use objects::Key;
use objects::qualified_name::is_subdomain;

/// The namespace of the Leases of clusters that report on themselves, and of the Secrets of most others.
pub const CLUSTER_NAMESPACE: &str = "karmada-cluster";

/// The label on a template and its binding with the ID of the [`PropagationPolicy`] that claims them.
///
/// [`PropagationPolicy`]: crate::PropagationPolicy
pub const POLICY_ID: &str = "propagationpolicy.karmada.io/permanent-id";
/// The annotation with that policy's namespace.
pub const POLICY_NAMESPACE: &str = "propagationpolicy.karmada.io/namespace";
/// The annotation with that policy's name.
pub const POLICY_NAME: &str = "propagationpolicy.karmada.io/name";
/// The label with the ID of the [`ClusterPropagationPolicy`](crate::ClusterPropagationPolicy).
pub const CLUSTER_POLICY_ID: &str = "clusterpropagationpolicy.karmada.io/permanent-id";
/// The annotation with that policy's name.
pub const CLUSTER_POLICY_NAME: &str = "clusterpropagationpolicy.karmada.io/name";

/// The finalizer of a `PropagationPolicy`.
pub const POLICY_FINALIZER: &str = "karmada.io/propagation-policy-controller";
/// The finalizer of a `ClusterPropagationPolicy`.
pub const CLUSTER_POLICY_FINALIZER: &str = "karmada.io/cluster-propagation-policy-controller";
/// The finalizer of a `ResourceBinding`.
pub const BINDING_FINALIZER: &str = "karmada.io/binding-controller";
/// The finalizer of a `ResourceBinding` whose dependencies follow it.
pub const DEPENDENCIES_FINALIZER: &str = "karmada.io/binding-dependencies-distributor";
/// The finalizer of a `ClusterResourceBinding`.
pub const CLUSTER_BINDING_FINALIZER: &str = "karmada.io/cluster-resource-binding-controller";
/// The finalizer of a `Work`.
pub const WORK_FINALIZER: &str = "karmada.io/execution-controller";

/// The label with the ID of a `ResourceBinding`, on itself, its Works and their manifests.
pub const BINDING_ID: &str = "resourcebinding.karmada.io/permanent-id";
/// The label with the ID of a `ClusterResourceBinding`.
pub const CLUSTER_BINDING_ID: &str = "clusterresourcebinding.karmada.io/permanent-id";
/// The label with the ID of a `Work`, on itself and its manifests.
pub const WORK_ID: &str = "work.karmada.io/permanent-id";
/// The annotation of a Work and its manifests with the namespace of their `ResourceBinding`.
pub const BINDING_NAMESPACE: &str = "resourcebinding.karmada.io/namespace";
/// The annotation with the name of that binding.
pub const BINDING_NAME: &str = "resourcebinding.karmada.io/name";
/// The annotation with the name of the `ClusterResourceBinding`.
pub const CLUSTER_BINDING_NAME: &str = "clusterresourcebinding.karmada.io/name";

/// The annotation of a binding with the objects that follow it, as JSON.
pub const DEPENDENCIES: &str = "resourcebinding.karmada.io/dependencies";
/// The beginning of the labels of an attached binding, one for each binding that requires it. The values
/// are the IDs of these.
const DEPENDED_BY: &str = "resourcebinding.karmada.io/depended-by-";

/// The annotation of a manifest with the namespace of its Work.
pub const WORK_NAMESPACE: &str = "work.karmada.io/namespace";
/// The annotation of a manifest with the name of its Work.
pub const WORK_NAME: &str = "work.karmada.io/name";
/// The annotation of a template, a Work and its manifests: `abort` or `overwrite`.
pub const CONFLICT_RESOLUTION: &str = "work.karmada.io/conflict-resolution";
/// The label of every object that Karmada has put into a member: `true`.
pub const MANAGED: &str = "karmada.io/managed";

/// The annotation of a manifest with the uid of its template.
pub const TEMPLATE_UID: &str = "resourcetemplate.karmada.io/uid";
/// The annotation of a manifest with the generation of its template.
pub const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";
/// The annotation of a manifest with the keys of its labels.
pub const MANAGED_LABELS: &str = "resourcetemplate.karmada.io/managed-labels";
/// The annotation of a manifest with the keys of its annotations.
pub const MANAGED_ANNOTATIONS: &str = "resourcetemplate.karmada.io/managed-annotations";
/// The label of a template whose replicas another controller scales in the member: `true`.
pub const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";

/// The annotation of a Work with the changes of its override policies.
pub const APPLIED_OVERRIDES: &str = "policy.karmada.io/applied-overrides";
/// The annotation of a Work with the changes of its cluster override policies.
pub const APPLIED_CLUSTER_OVERRIDES: &str = "policy.karmada.io/applied-cluster-overrides";
/// The annotation of a binding with the placement that was scheduled last.
pub const APPLIED_PLACEMENT: &str = "policy.karmada.io/applied-placement";
/// The annotation of a binding with the name of the group of clusters that was used last.
pub const SCHEDULED_AFFINITY: &str = "karmada-rs.io/scheduled-affinity";
/// The annotation of a binding with the policy it follows, and the fingerprint of its template then.
pub const ACTIVATED: &str = "karmada-rs.io/activated";
/// The annotation of a template that waits for an edit before it gets a binding: its fingerprint and generation.
pub const CLAIMED_FINGERPRINT: &str = "karmada-rs.io/claimed-fingerprint";
/// The label of a binding that another program than a policy's made.
pub const MANAGED_BY: &str = "binding.karmada.io/managed-by";
/// The annotation of a Work with its generation at the last change of its manifests.
pub const MANIFEST_GENERATION: &str = "karmada-rs.io/manifest-generation";

/// The annotation of a Work with the node ports that the control plane has allocated to its Service, joined by commas: a
/// member that refuses one may have another in its place. The program that watches templates has it on these, too.
pub const ALLOCATED_NODE_PORTS: &str = "karmada-rs.io/allocated-node-ports";

/// The field of a member's report on a Service with its node ports there, by the names of their ports, where these need not
/// be those of the template.
pub const NODE_PORTS: &str = "nodePorts";

/// The label of an `EndpointSlice` with the name of its Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label of an `EndpointSlice` with the name of the program that keeps it.
pub const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The value of [`SLICE_MANAGED_BY`] on the slices that were collected from members.
pub const SLICE_COLLECTOR: &str = "endpointslice-controller.karmada.io";
/// The value of [`SLICE_MANAGED_BY`] on the slices with a cluster's nodes, in its execution namespace.
pub const NODE_PUBLISHER: &str = "cluster-controller.karmada-rs.io";
/// The annotation of an `EndpointSlice` that Karmada has dispatched with the cluster whose endpoints it has.
pub const PROVISION_CLUSTER: &str = "endpointslice.karmada.io/provision-cluster";
/// The label of an imported `EndpointSlice` with the name of the Service in the clusters that export it, by the Multi-Cluster
/// Services API.
pub const IMPORTED_SERVICE_NAME: &str = "multicluster.kubernetes.io/service-name";
/// The label of an imported `EndpointSlice` with the cluster whose endpoints it has, by the Multi-Cluster Services API.
pub const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
/// The beginning of the name of the Service to which the slices collected of a Service belong.
pub const DERIVED_PREFIX: &str = "derived-";

/// Returns the name of the copy of the `EndpointSlice` `name` of a member: Karmada's
/// `imported-<cluster>-<name>`, and a hash, because two clusters, or two address types, may lead to one such name.
pub fn collected_slice(cluster: &str, name: &str, address_type: &str) -> String {
    let hash = fnv1a_32(format!("{cluster}/{name}/{address_type}").as_bytes());
    let readable: String = name.chars().take(READABLE).collect();
    let readable = readable.trim_end_matches(['-', '.']);
    format!(
        "imported-{cluster}-{readable}-{}",
        safe_encode(&hash.to_string())
    )
}

/// Returns the name of the binding of the template `name` of kind `kind`.
pub fn binding(kind: &str, name: &str) -> String {
    format!("{name}-{kind}").replace(':', ".").to_lowercase()
}

/// Returns the text for the name of a template where that, in the names of bindings and Works, is another's or
/// not valid: as much of it as is valid, and a hash of the group, the kind and the exact name.
fn distinct(group: &str, kind: &str, name: &str) -> String {
    let hash = fnv1a_32(format!("{group}/{kind}/{name}").as_bytes()).to_string();
    let hash = safe_encode(&hash);
    let readable = name.chars().take(READABLE).map(|c| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
        _ => '-',
    });
    let readable: String = readable.collect();
    match readable.trim_matches('-') {
        "" => hash,
        readable => format!("{readable}-{hash}"),
    }
}

/// The length of a template's name that [`distinct`] keeps: with the longest kind, and a hash twice, there is room
/// for it in a name.
const READABLE: usize = 160;

/// Returns the names that the binding of a template may have, the better one first: Karmada's, if it is valid for
/// the binding and its Works, and one that no other template's has.
pub fn bindings(group: &str, kind: &str, name: &str) -> impl Iterator<Item = String> {
    let karmadas = binding(kind, name);
    let is_valid = is_subdomain(&karmadas) && is_subdomain(&work(kind, "", name));
    let distinct = binding(kind, &distinct(group, kind, name));
    Some(karmadas)
        .filter(|_| is_valid)
        .into_iter()
        .chain([distinct])
}

/// Returns the name of the Works of the binding `binding` of a template. `namespace` is empty for a cluster-scoped
/// one.
pub fn works(binding: &str, group: &str, kind: &str, namespace: &str, name: &str) -> String {
    let distinct = distinct(group, kind, name);
    let karmadas = work(kind, namespace, name);
    if binding == self::binding(kind, &distinct) || !is_subdomain(&karmadas) {
        return work(kind, namespace, &distinct);
    }
    karmadas
}

/// Returns the name of the Work of an object. `namespace` is empty for a cluster-scoped one.
///
/// A Work has it in common with Karmada's, which hashes a text of namespace, name and kind with FNV-1a.
pub fn work(kind: &str, namespace: &str, name: &str) -> String {
    let name = name.replace(':', ".").to_lowercase();
    let hashed = if namespace.is_empty() {
        format!("{name}-{kind}")
    } else {
        format!("{namespace}-{name}-{kind}")
    };
    let hash = fnv1a_32(hashed.to_lowercase().as_bytes()).to_string();
    format!("{name}-{}", safe_encode(&hash))
}

/// Returns the label of an attached binding that the binding `referrer` requires.
pub fn depended_by(referrer: &Key) -> String {
    let Key { namespace, name } = referrer;
    let hash = fnv1a_32(format!("{namespace}/{name}").as_bytes());
    format!("{DEPENDED_BY}{}", safe_encode(&hash.to_string()))
}

/// Returns the FNV-1a hash of 32 bits.
pub fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Returns the text in an alphabet that makes no words, as Kubernetes encodes the hashes in names.
pub fn safe_encode(text: &str) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let letters = text.bytes();
    let letters = letters.map(|byte| ALPHABET[usize::from(byte) % ALPHABET.len()]);
    letters.map(char::from).collect()
}
/// The annotation of the Secret of a member with the `apiEndpoint` for which its token was stored.
pub const TOKEN_ENDPOINT: &str = "karmada-rs.io/api-endpoint";
/// The annotation of the Secret of a member whose token may be sent to a server that no certificate identifies: `true`.
pub const TOKEN_INSECURE: &str = "karmada-rs.io/insecure";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_equal_those_of_karmada() {
        assert_eq!(binding("Deployment", "nginx"), "nginx-deployment");
        assert_eq!(
            binding("ClusterRole", "system:test"),
            "system.test-clusterrole"
        );
        assert_eq!(work("Deployment", "default", "nginx"), "nginx-687f7fb96f");
        assert_eq!(
            work("ClusterRole", "", "system:test"),
            "system.test-6dd6b7d769"
        );
        assert_eq!(work("Deployment", "shop", "web"), "web-56d6c779bb");
        assert_eq!(work("Service", "shop", "web"), "web-b97f76f44");
        assert_eq!(
            work("ConfigMap", "shop", "web-settings"),
            "web-settings-6bcc888469"
        );
        assert_eq!(work("Namespace", "", "shop"), "shop-55c4c4674c");
        assert_eq!(
            depended_by(&Key::new("shop", "web-deployment")),
            "resourcebinding.karmada.io/depended-by-8546649456"
        );
    }

    /// Names that a template of the API may have and a binding may not: each has a valid one of its own, apart
    /// from those that are Karmada's.
    #[test]
    fn every_name_gets_valid_ones() {
        let longest = "x".repeat(253);
        let names = [
            "reader",
            "Reader",
            "READER",
            "shop:reader",
            "shop.reader",
            "shop::reader",
            "shop..reader",
            "shop@reader",
            "shop_reader",
            "-reader",
            "reader-",
            "reader.",
            "@",
            "::",
            "a b",
            "a?b",
            "a#b",
            "é",
            "è",
            &longest[..240],
            &longest[..243],
            &longest[..250],
            &longest,
        ];
        let mut seen = std::collections::BTreeSet::new();
        for (group, kind) in [
            ("", "Pod"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("example.com", "ClusterRole"),
            ("example.com", longest[..63].to_owned().as_str()),
        ] {
            for name in names {
                let distinct = bindings(group, kind, name).last().unwrap();
                assert!(seen.insert(distinct), "{name}");
                for binding in bindings(group, kind, name) {
                    let work = works(&binding, group, kind, "shop", name);
                    assert!(
                        is_subdomain(&binding) && is_subdomain(&work),
                        "{binding} {work}"
                    );
                }
            }
        }
        for (name, expected) in [("nginx", "nginx-deployment"), ("A:b", "a.b-deployment")] {
            let first = bindings("apps", "Deployment", name).next();
            assert_eq!(first.as_deref(), Some(expected));
        }
    }

    /// Clusters and slices whose names read alike have copies of their own, all with valid names.
    #[test]
    fn alike_slices_differ_by_hash() {
        let longest = format!("{}.b", "a".repeat(READABLE - 1)).repeat(2);
        let names = [
            collected_slice("a", "b-web", "IPv4"),
            collected_slice("a-b", "web", "IPv4"),
            collected_slice("a-b", "web", "IPv6"),
            collected_slice(&"c".repeat(48), &longest[..253], "IPv4"),
        ];
        for (i, name) in names.iter().enumerate() {
            assert!(
                is_subdomain(name) && !names[i + 1..].contains(name),
                "{name}"
            );
        }
        assert_eq!(names[1], "imported-a-b-web-865c444464");
    }

    /// A binding of a name that is not ours keeps the Works that Karmada made.
    #[test]
    fn works_follow_their_binding() {
        let works = |binding| works(binding, "", "Service", "shop", "web");
        assert_eq!(works("web-service"), "web-b97f76f44");
        assert_eq!(works("other-service"), "web-b97f76f44");
        let distinct = bindings("", "Service", "web").last().unwrap();
        assert_ne!(works(&distinct), "web-b97f76f44");
    }
}
