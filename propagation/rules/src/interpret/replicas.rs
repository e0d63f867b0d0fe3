//! The replicas of a template, and the needs of each.

use serde_json::{Map, Value, json};

use objects::amounts::Amounts;
use objects::{api_version, kind};

/// The part of a template that is divided among clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// The replicas; `None` for a kind without replicas, and for none at all.
    pub count: Option<i32>,
    /// The needs of one replica, as a binding has them: `nodeClaim` and `resourceRequest`.
    pub requirements: Option<Value>,
}

impl Replicas {
    /// Reads the replicas of a template of one of Kubernetes' own kinds.
    pub(super) fn of(object: &Value) -> Self {
        let spec = object.get("spec");
        let (count, pod) = match (api_version(object), kind(object)) {
            // As Karmada counts: a ReplicaSet has none, and is whole in each cluster.
            ("apps/v1", "Deployment" | "StatefulSet") => (
                number(object, "/spec/replicas").unwrap_or(1),
                pod_template(object),
            ),
            ("batch/v1", "Job") => {
                let parallelism = number(object, "/spec/parallelism").unwrap_or(1);
                let completions = number(object, "/spec/completions").unwrap_or(parallelism);
                (parallelism.min(completions), pod_template(object))
            }
            ("v1", "Pod") => (1, spec),
            _ => return Self::default(),
        };
        Self::new(count, pod.and_then(pod_requirements))
    }

    /// Creates `count` replicas, each with the same requirements.
    pub(super) fn new(count: i64, requirements: Option<Value>) -> Self {
        Self {
            // Go leaves a zero out, and a binding that has it would be written by turns.
            count: i32::try_from(count).ok().filter(|&count| count > 0),
            requirements,
        }
    }
}

fn number(object: &Value, path: &str) -> Option<i64> {
    object.pointer(path)?.as_i64()
}

fn pod_template(object: &Value) -> Option<&Value> {
    object.pointer("/spec/template/spec")
}

/// Returns the requirements of a Pod with the spec `pod`, as a binding has them.
pub fn pod_requirements(pod: &Value) -> Option<Value> {
    let mut requirements = Map::new();
    if let Some(claim) = node_claim(pod) {
        requirements.insert("nodeClaim".to_owned(), claim);
    }
    let request = Amounts::of_pod(pod).texts();
    if !request.is_empty() {
        requirements.insert("resourceRequest".to_owned(), json!(request));
    }
    (!requirements.is_empty()).then(|| requirements.into())
}

/// Returns the demands on the node of a replica.
pub(super) fn node_claim(pod: &Value) -> Option<Value> {
    let affinity = pod
        .pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution")
        .filter(|affinity| affinity.is_object());
    let selector = pod.get("nodeSelector");
    let selector = selector.filter(|s| s.as_object().is_some_and(|s| !s.is_empty()));
    let tolerations = pod.get("tolerations");
    let tolerations = tolerations.filter(|t| t.as_array().is_some_and(|t| !t.is_empty()));
    let parts = [
        ("hardNodeAffinity", affinity),
        ("nodeSelector", selector),
        ("tolerations", tolerations),
    ];
    let claim: Map<String, Value> = parts
        .into_iter()
        .filter_map(|(name, part)| Some((name.to_owned(), part?.clone())))
        .collect();
    (!claim.is_empty()).then(|| claim.into())
}

/// Returns `true` if the requirements of a binding ask for the same as `ours`, whatever their quantities look like.
pub fn same_requirements(ours: Option<&Value>, theirs: Option<&Value>) -> bool {
    // The binding may have `namespace` and `priorityClassName`, too, which a feature of Karmada adds.
    let class = part(ours, "priorityClassName");
    let [own, other] = [ours, theirs].map(|of| Amounts::read(part(of, "resourceRequest")));
    part(ours, "nodeClaim") == part(theirs, "nodeClaim")
        && own == other
        && (class.is_none() || class == part(theirs, "priorityClassName"))
}

fn part<'a>(requirements: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    requirements?.get(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
        json!({ "apiVersion": api_version, "kind": kind, "spec": spec })
    }

    fn count(api_version: &str, kind: &str, spec: &Value) -> Option<i32> {
        Replicas::of(&object(api_version, kind, spec)).count
    }

    #[test]
    fn replicas_are_counted_by_kind() {
        let three = json!({ "replicas": 3 });
        for kind in ["Deployment", "StatefulSet"] {
            assert_eq!(count("apps/v1", kind, &three), Some(3), "{kind}");
        }
        assert_eq!(count("apps/v1", "Deployment", &json!({})), Some(1));
        assert_eq!(
            count("apps/v1", "Deployment", &json!({ "replicas": 0 })),
            None
        );
        for kind in ["ReplicaSet", "DaemonSet"] {
            assert_eq!(count("apps/v1", kind, &three), None, "{kind}");
        }
        assert_eq!(count("example.com/v1", "Deployment", &three), None);
        for (parallelism, completions) in [(5, Some(2)), (2, Some(5)), (2, None)] {
            let job = json!({ "parallelism": parallelism, "completions": completions });
            assert_eq!(count("batch/v1", "Job", &job), Some(2), "{job}");
        }
        assert_eq!(count("v1", "Pod", &json!({})), Some(1));
        assert_eq!(count("v1", "Service", &json!({})), None);
    }

    fn request(pod: &Value) -> Value {
        let requirements = Replicas::of(&object("v1", "Pod", pod)).requirements;
        requirements.unwrap_or_default()["resourceRequest"].clone()
    }

    /// A pod needs the resources that the kube-scheduler counts.
    #[test]
    fn pod_needs_match_kube_scheduler() {
        let of = |cpu: &str, memory: &str| json!({ "resources": { "requests": { "cpu": cpu, "memory": memory } } });
        let sidecar =
            json!({ "restartPolicy": "Always", "resources": { "requests": { "cpu": "1" } } });
        let table = [
            (json!({ "containers": [{}] }), json!(null)),
            (
                json!({ "containers": [of("100m", "64Mi"), of("1.5", "1Gi")] }),
                json!({ "cpu": "1600m", "memory": "1088Mi" }),
            ),
            // The greatest init container, resource by resource.
            (
                json!({ "containers": [of("100m", "64Mi")], "initContainers": [of("2", "1Mi")] }),
                json!({ "cpu": "2", "memory": "64Mi" }),
            ),
            (
                json!({ "containers": [of("1", "64Mi")], "initContainers": [sidecar, of("3", "1Mi")] }),
                json!({ "cpu": "4", "memory": "64Mi" }),
            ),
            (
                json!({ "containers": [of("1", "64Mi")], "overhead": { "cpu": "250m" } }),
                json!({ "cpu": "1250m", "memory": "64Mi" }),
            ),
            (
                json!({ "containers": [{ "resources": { "limits": { "cpu": "1", "x.io/gpu": 2 }, "requests": { "cpu": "0" } } }] }),
                json!({ "x.io/gpu": "2" }),
            ),
        ];
        for (pod, expected) in table {
            assert_eq!(request(&pod), expected, "{pod}");
        }
    }

    /// A node is claimed by selector affinity and tolerations.
    #[test]
    fn node_claim_has_three_parts() {
        let required = json!({ "nodeSelectorTerms": [] });
        let pod = json!({
            "nodeSelector": { "disk": "ssd" },
            "tolerations": [{ "operator": "Exists" }],
            "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } },
        });
        let requirements = Replicas::of(&object("v1", "Pod", &pod)).requirements;
        assert_eq!(
            requirements,
            Some(json!({ "nodeClaim": {
                "nodeSelector": { "disk": "ssd" },
                "tolerations": [{ "operator": "Exists" }],
                "hardNodeAffinity": required,
            } }))
        );
        let empty = json!({ "nodeSelector": {}, "tolerations": [], "affinity": null });
        assert_eq!(
            Replicas::of(&object("v1", "Pod", &empty)).requirements,
            None
        );
    }

    /// Requirements are compared by amount and without the additions of Karmada.
    #[test]
    fn requirements_compare_by_amount() {
        let ours = json!({ "resourceRequest": { "cpu": "100m" } });
        let theirs = json!({ "namespace": "shop", "resourceRequest": { "cpu": "0.1" } });
        assert!(same_requirements(Some(&ours), Some(&theirs)));
        assert!(!same_requirements(Some(&ours), None));
        let more = json!({ "resourceRequest": { "cpu": "200m" } });
        assert!(!same_requirements(Some(&ours), Some(&more)));
    }

    /// An object of any shape is read without harm.
    #[test]
    fn any_shape_is_read() {
        for spec in [
            json!(null),
            json!(1),
            json!({ "template": [], "replicas": "3" }),
            json!({ "replicas": 1e30 }),
        ] {
            Replicas::of(&object("apps/v1", "Deployment", &spec));
        }
        let odd = json!({ "containers": [1, { "resources": { "requests": { "cpu": [], "memory": "x" } } }], "initContainers": {} });
        assert_eq!(request(&odd), json!(null));
    }
}
