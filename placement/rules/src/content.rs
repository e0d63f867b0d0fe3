//! The objects of a snapshot: which may be in one, with which of their fields, and in which order.

use objects::allocated::Allocated;
use objects::apis::Apis;
use objects::fields::remove;
use objects::{Metadata, kind};
use serde_json::{Value, json};

/// The settings of a hub that decide about the objects to be placed.
#[derive(Clone, Debug, Default)]
pub struct Hub {
    /// True if the hub runs workloads itself, so that its volumes are its own.
    pub runs_workloads: bool,
    /// Namespaces that are never placed, beside those that no hub places.
    pub skipped_namespaces: Vec<String>,
    /// The kinds that are placed.
    pub kinds: PlacedKinds,
}

/// The kinds that a hub places, beside those that none does.
#[derive(Clone, Debug)]
pub enum PlacedKinds {
    /// All but these.
    AllBut(Apis),
    /// These alone.
    Only(Apis),
}

impl Default for PlacedKinds {
    fn default() -> Self {
        Self::AllBut(Apis::default())
    }
}

impl PlacedKinds {
    pub(super) fn contain(&self, object: &Value) -> bool {
        match self {
            Self::AllBut(skipped) => !skipped.contain(object),
            Self::Only(allowed) => allowed.contain(object),
        }
    }
}

/// Returns `true` if the object may be placed, when a selector selects it or its namespace.
pub fn is_placeable(object: &Value, hub: &Hub) -> bool {
    !object.is_deleting()
        && hub.kinds.contain(object)
        && !is_of_a_control_plane(object)
        && !is_made_where_it_is(object, hub)
}

/// Returns `true` for an object of a kind that is an envelope and nothing else.
pub(crate) fn is_envelope(object: &Value) -> bool {
    objects::api_version(object).starts_with("placement.kubernetes-fleet.io/")
        && matches!(kind(object), "ClusterResourceEnvelope" | "ResourceEnvelope")
}

/// Returns `true` for kinds by which a control plane works: placed, they would take the fleet with them.
fn is_of_a_control_plane(object: &Value) -> bool {
    let api_version = objects::api_version(object);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if group == "networking.fleet.azure.com" {
        // The objects of fleet-networking that users write travel; those that its controllers make do not.
        let made = [
            "ServiceImport",
            "TrafficManagerBackend",
            "TrafficManagerProfile",
        ];
        return made.contains(&kind(object));
    }
    // On an API that is shared with a Karmada, its policies and bindings stay there.
    !is_envelope(object) && OF_FLEETS.iter().any(|family| group.ends_with(family))
}

/// The domains of fleets' kinds.
const OF_FLEETS: [&str; 3] = [".kubernetes-fleet.io", ".kubefleet.dev", ".karmada.io"];

/// The domains of the controllers that keep the EndpointSlices of a cluster. Slices of anybody else are people's.
const OF_CONTROL_PLANES: [&str; 3] = [".k8s.io", ".karmada.io", ".azure.com"];

/// The groups whose objects are about the cluster that they are in.
const OF_A_CLUSTER: [&str; 3] = ["coordination.k8s.io", "events.k8s.io", "metrics.k8s.io"];

/// Returns `true` if each cluster makes the object itself, from another one or for itself.
fn is_made_where_it_is(object: &Value, hub: &Hub) -> bool {
    match (objects::api_version(object), kind(object)) {
        ("v1", "Pod" | "Node" | "Event") => true,
        (version, _) if OF_A_CLUSTER.contains(&objects::group(version)) => true,
        // Each cluster's own CronJob makes its runs, too.
        ("apps/v1", "ReplicaSet" | "ControllerRevision") | ("batch/v1", "Job") => {
            let owners = objects::metadata::field(object, "ownerReferences");
            let owners = owners.and_then(Value::as_array);
            owners.is_some_and(|owners| !owners.is_empty())
        }
        ("v1", "ConfigMap") => object.name() == "kube-root-ca.crt",
        ("v1", "ServiceAccount") => object.name() == "default",
        ("v1", "Secret") => {
            object["type"] == "kubernetes.io/service-account-token"
                && object
                    .annotation("kubernetes.io/service-account.name")
                    .is_some()
        }
        ("v1", "PersistentVolumeClaim") => hub.runs_workloads,
        ("discovery.k8s.io/v1", "EndpointSlice") => {
            let writer = object.label("endpointslice.kubernetes.io/managed-by");
            writer.is_some_and(|writer| OF_CONTROL_PLANES.iter().any(|one| writer.ends_with(one)))
        }
        _ => false,
    }
}

/// Fields of the metadata that only the server of the object knows.
const OF_THE_SERVER: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Annotations that clients and controllers keep for themselves.
const OF_CONTROLLERS: [&str; 2] = [
    "deployment.kubernetes.io/revision",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// Labels by which the controller of Jobs finds the Pods of one.
const OF_A_JOB: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];

/// Annotations by which a claim is bound to a volume of its cluster.
const OF_A_BOUND_CLAIM: [&str; 5] = [
    "pv.kubernetes.io/bind-completed",
    BOUND_BY_CONTROLLER,
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
];

/// The annotation of a claim whose volume, and of a volume whose claim, was chosen by the controller of its cluster, and by
/// nobody else.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Returns an object as KubeFleet's snapshots have it: without most of the fields that count on the hub only.
pub fn content(mut object: Value) -> Value {
    remove(&mut object, "", &["status"]);
    remove(&mut object, "/metadata", &OF_THE_SERVER);
    remove(&mut object, "/metadata/annotations", &OF_CONTROLLERS);
    remove_empty_annotations(&mut object);
    match (objects::api_version(&object), kind(&object)) {
        ("v1", "Service") => strip_service(&mut object),
        ("batch/v1", "Job") => strip_job(&mut object),
        _ => {}
    }
    object
}

/// Returns an object of KubeFleet's snapshots as ours have it: nothing ties it to the hub. `allocated` are the fields that
/// the hub has allocated to it.
pub(super) fn portable(content: &Value, allocated: Option<&Allocated>) -> Value {
    let mut object = content.clone();
    // Whoever would take it off is not in the members.
    remove(&mut object, "/metadata", &["finalizers"]);
    if let Some(allocated) = allocated {
        allocated.remove_from(&mut object);
    }
    match (objects::api_version(&object), kind(&object)) {
        ("v1", "PersistentVolume") => strip_volume(&mut object),
        ("v1", "PersistentVolumeClaim") => strip_claim(&mut object),
        ("batch/v1", "Job") if object["spec"]["manualSelector"] != true => {
            remove(&mut object, "/metadata/labels", &OF_A_JOB);
        }
        _ => {}
    }
    object
}

fn strip_claim(claim: &mut Value) {
    if claim.annotation(BOUND_BY_CONTROLLER).is_some() {
        remove(claim, "/spec", &["volumeName"]);
    }
    remove(claim, "/metadata/annotations", &OF_A_BOUND_CLAIM);
    remove_empty_annotations(claim);
}

fn strip_volume(volume: &mut Value) {
    if volume.annotation(BOUND_BY_CONTROLLER).is_some() {
        remove(volume, "/spec", &["claimRef"]);
    }
    // By the uid of a claim of the hub, another cluster takes the volume for released, and may delete its data.
    remove(volume, "/spec/claimRef", &["resourceVersion", "uid"]);
    remove(volume, "/metadata/annotations", &[BOUND_BY_CONTROLLER]);
    remove_empty_annotations(volume);
}

fn remove_empty_annotations(object: &mut Value) {
    if object.pointer("/metadata/annotations") == Some(&json!({})) {
        remove(object, "/metadata", &["annotations"]);
    }
}

fn strip_service(service: &mut Value) {
    // A headless Service has none in every cluster.
    if service["spec"]["clusterIP"] != "None" {
        remove(service, "/spec", &["clusterIP", "clusterIPs"]);
    }
    remove(service, "/spec", &["healthCheckNodePort"]);
    let ports = service.pointer_mut("/spec/ports");
    for port in ports.and_then(Value::as_array_mut).into_iter().flatten() {
        remove(port, "", &["nodePort"]);
    }
}

fn strip_job(job: &mut Value) {
    if job["spec"]["manualSelector"] != true {
        // Emptied, they stay: the hash says so.
        remove(job, "/spec/selector/matchLabels", &OF_A_JOB);
        remove(job, "/spec/template/metadata/labels", &OF_A_JOB);
        // Older servers have a null there.
        remove(job, "/spec/template/metadata", &["creationTimestamp"]);
    }
}

/// Kinds in the order in which they are placed: each stands behind those that it may need.
const ORDER: [&str; 32] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Sorts objects as a snapshot has them: by kind, those of unknown kinds last, then by namespace and name. The hash is one
/// of the order, too (KubeFleet, `sortResources`).
pub fn sort(objects: &mut [Value]) {
    objects.sort_by_cached_key(place);
}

fn place(object: &Value) -> (usize, String, String) {
    let (api_version, kind) = (objects::api_version(object), kind(object));
    let key = format!("{}/{}", object.namespace(), object.name());
    if let Some(order) = ORDER.iter().position(|known| *known == kind) {
        return (order, api_version.to_owned(), key);
    }
    let slash = if api_version.contains('/') { "" } else { "/" };
    (
        ORDER.len(),
        format!("{slash}{api_version}, Kind={kind}"),
        key,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{self, fixture};
    use super::*;

    /// The snapshots of a running KubeFleet are as we would have them.
    #[test]
    fn recorded_content_is_kept_whole() {
        for name in fixtures::RESOURCE_SNAPSHOTS {
            let selected = fixture(name)["spec"]["selectedResources"].clone();
            let Value::Array(selected) = selected else {
                panic!("{name}")
            };
            let contents: Vec<_> = selected.iter().cloned().map(content).collect();
            assert_eq!(contents, selected, "{name}");
        }
    }

    /// Cases F100 and F101: the fields that tie an object to the hub stay there. A
    /// claim keeps a volume that a user has chosen, and a volume such a claim.
    #[test]
    fn ties_to_the_hub_stay() {
        let volume = |annotations: Value, claim: Value| {
            let mut volume = json!({ "apiVersion": "v1", "kind": "PersistentVolume",
                "metadata": { "name": "disk", "annotations": annotations },
                "spec": { "claimRef": claim } });
            remove_empty_annotations(&mut volume);
            volume
        };
        let bound_to =
            json!({ "namespace": "shop", "name": "orders", "resourceVersion": "7", "uid": "u" });
        let claim = |annotations: Value, spec: Value| {
            let mut claim = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": { "name": "orders", "annotations": annotations }, "spec": spec });
            remove_empty_annotations(&mut claim);
            claim
        };
        let bound = json!({
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
            "volume.kubernetes.io/selected-node": "hub-node-7",
            "volume.kubernetes.io/storage-provisioner": "disk.csi.example.com",
        });
        let chosen = json!({ "pv.kubernetes.io/bind-completed": "yes", "example.com/mine": "a" });
        let labels = json!({ "controller-uid": "u", "app": "a" });
        let job = json!({ "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": "a", "labels": labels }, "spec": {} });
        let held = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "ledger", "finalizers": ["ledger.example.com/settle"] } });
        for (object, expected) in [
            (
                claim(
                    bound,
                    json!({ "volumeName": "pvc-0", "storageClassName": "standard" }),
                ),
                claim(json!({}), json!({ "storageClassName": "standard" })),
            ),
            (
                claim(chosen, json!({ "volumeName": "mine" })),
                claim(
                    json!({ "example.com/mine": "a" }),
                    json!({ "volumeName": "mine" }),
                ),
            ),
            (
                volume(json!({}), bound_to.clone()),
                volume(json!({}), json!({ "namespace": "shop", "name": "orders" })),
            ),
            (
                volume(
                    json!({ "pv.kubernetes.io/bound-by-controller": "yes" }),
                    bound_to,
                ),
                json!({ "apiVersion": "v1", "kind": "PersistentVolume",
                    "metadata": { "name": "disk" }, "spec": {} }),
            ),
            (
                job,
                json!({ "apiVersion": "batch/v1", "kind": "Job",
                    "metadata": { "name": "a", "labels": { "app": "a" } }, "spec": {} }),
            ),
            (
                held,
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ledger" } }),
            ),
        ] {
            assert_eq!(portable(&content(object), None), expected);
        }
    }

    /// Case F12.
    #[test]
    fn recorded_order_is_ours() {
        for name in fixtures::RESOURCE_SNAPSHOTS {
            let selected = fixture(name)["spec"]["selectedResources"].clone();
            let mut sorted = selected.as_array().cloned().unwrap();
            sorted.reverse();
            sort(&mut sorted);
            assert_eq!(Value::from(sorted), selected, "{name}");
        }
    }

    /// Case F12: the order of KubeFleet's `TestSortResources` for kinds in several groups and for namespaces: a swap makes no
    /// new snapshot.
    #[test]
    fn order_is_kubefleets() {
        let expected = [
            ("v1", "LimitRange", "shop"),
            ("v1", "ConfigMap", "shop-eu"),
            ("v1", "ConfigMap", "shop"),
            ("serving.knative.dev/v1", "Service", "shop"),
            ("v1", "Service", "shop"),
            ("apps/v1", "Deployment", "shop"),
            ("apps/v1beta1", "Deployment", "shop"),
            ("v1", "Endpoints", "shop"),
            ("argoproj.io/v1alpha1", "Rollout", "shop"),
            ("cert-manager.io/v1", "Certificate", "shop"),
        ]
        .map(|(api_version, kind, namespace)| {
            json!({ "apiVersion": api_version, "kind": kind,
                "metadata": { "namespace": namespace, "name": "x" } })
        });
        let mut sorted = expected.clone();
        sorted.reverse();
        sort(&mut sorted);
        assert_eq!(sorted, expected);
    }

    /// The server's fields, status and owners stay on the hub; finalizers and labels travel.
    #[test]
    fn fields_of_the_server_stay() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 2,
                "creationTimestamp": "2026-11-25T16:44:19Z", "managedFields": [], "selfLink": "/x",
                "ownerReferences": [{ "uid": "o" }], "labels": { "app": "web" }, "finalizers": ["a/b"],
                "annotations": { "deployment.kubernetes.io/revision": "3" },
            },
            "spec": { "replicas": 2 },
            "status": { "replicas": 2 },
        });
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "shop", "labels": { "app": "web" },
                "finalizers": ["a/b"] },
            "spec": { "replicas": 2 },
        });
        assert_eq!(content(object), expected);
    }

    #[test]
    fn addresses_of_services_stay() {
        let service = |spec: Value| json!({ "apiVersion": "v1", "kind": "Service", "spec": spec });
        let addressed = service(json!({
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "healthCheckNodePort": 30000,
            "ports": [{ "port": 80, "nodePort": 30080 }],
        }));
        assert_eq!(
            content(addressed),
            service(json!({ "ports": [{ "port": 80 }] }))
        );
        let headless = service(json!({ "clusterIP": "None", "clusterIPs": ["None"] }));
        assert_eq!(content(headless.clone()), headless);
    }

    fn job(manual: bool) -> Value {
        let labels = json!({ "controller-uid": "u", "mine": "x" });
        json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": {
            "manualSelector": manual, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels } },
        } })
    }

    #[test]
    fn manual_selectors_of_jobs_travel() {
        assert_eq!(content(job(true)), job(true));
        let stripped = content(job(false));
        for labels in [
            "/spec/selector/matchLabels",
            "/spec/template/metadata/labels",
        ] {
            assert_eq!(
                stripped.pointer(labels),
                Some(&json!({ "mine": "x" })),
                "{labels}"
            );
        }
    }

    fn named(name: &str) -> Value {
        json!({ "metadata": { "name": name } })
    }

    /// Cases F11 and F105.
    #[test]
    fn what_clusters_make_stays() {
        let owned = json!({ "metadata": { "ownerReferences": [{ "uid": "o" }] } });
        let token = json!({ "type": "kubernetes.io/service-account-token",
            "metadata": { "annotations": { "kubernetes.io/service-account.name": "runner" } } });
        let managed = json!({ "metadata": { "labels": {
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" } } });
        let by_staff = json!({ "metadata": { "labels": {
            "endpointslice.kubernetes.io/managed-by": "staff" } } });
        let deleting = json!({ "metadata": { "deletionTimestamp": "2026-11-25T16:44:19Z" } });
        for (api_version, kind, rest, placeable) in [
            ("v1", "ConfigMap", json!({}), true),
            ("v1", "ConfigMap", deleting, false),
            ("v1", "ConfigMap", named("kube-root-ca.crt"), false),
            ("v1", "ServiceAccount", named("default"), false),
            ("v1", "ServiceAccount", named("runner"), true),
            ("v1", "Secret", token, false),
            ("batch/v1", "Job", owned.clone(), false),
            ("batch/v1", "Job", json!({}), true),
            ("apps/v1", "ReplicaSet", owned, false),
            ("apps/v1", "ReplicaSet", json!({}), true),
            ("discovery.k8s.io/v1", "EndpointSlice", managed, false),
            ("discovery.k8s.io/v1", "EndpointSlice", by_staff, true),
            ("v1", "Pod", json!({}), false),
            ("v1", "PersistentVolumeClaim", json!({}), true),
        ] {
            let mut object = json!({ "apiVersion": api_version, "kind": kind,
                "metadata": { "name": "a", "namespace": "shop" } });
            json_patch::merge(&mut object, &rest);
            assert_eq!(
                is_placeable(&object, &Hub::default()),
                placeable,
                "{object}"
            );
        }
        let claim = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": "a", "namespace": "shop" } });
        let runs_workloads = Hub {
            runs_workloads: true,
            ..Hub::default()
        };
        assert!(!is_placeable(&claim, &runs_workloads));
    }

    /// The fleet itself is not placed.
    #[test]
    fn control_planes_stay() {
        let fleet = "placement.kubernetes-fleet.io/v1beta1";
        let networking = "networking.fleet.azure.com/v1alpha1";
        for (api_version, kind, placeable) in [
            (fleet, "ClusterResourcePlacement", false),
            (fleet, "ResourceEnvelope", true),
            ("x.karmada.io/v1", "ResourceEnvelope", false),
            ("cluster.kubernetes-fleet.io/v1", "MemberCluster", false),
            ("policy.karmada.io/v1alpha1", "PropagationPolicy", false),
            ("karmada.example.com/v1", "Toy", true),
            (networking, "ServiceImport", false),
            (networking, "ServiceExport", true),
        ] {
            let object = json!({ "apiVersion": api_version, "kind": kind });
            assert_eq!(
                is_placeable(&object, &Hub::default()),
                placeable,
                "{object}"
            );
        }
    }
}
