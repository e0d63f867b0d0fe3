//! The objects of steps, built from the small numbers in a step.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use lab_parts::mutations::mutations;
use serde_json::{Value, json};

use super::kinds::NAMESPACE;
use super::program::CONTROLLER;
use super::step::{Backends, Class, ConditionState, Expires, RemedyShape};
use crate::harness::clusters;

/// The names of the classes. The first one is ours in a new fleet.
const CLASSES: [&str; 2] = ["karmada-rs", "other"];

pub(crate) fn service_name(service: u8) -> &'static str {
    if service == 0 { "web" } else { "api" }
}

pub(crate) fn ingress_name(ingress: u8) -> String {
    format!("i{ingress}")
}

pub(crate) fn remedy_name(remedy: u8) -> String {
    format!("r{remedy}")
}

pub(crate) fn class_name(class: u8) -> &'static str {
    CLASSES[usize::from(class) % CLASSES.len()]
}

pub(crate) fn condition_type(reporter: bool) -> &'static str {
    if reporter {
        "HealthReporterReady"
    } else {
        "ServiceDomainNameResolutionReady"
    }
}

/// Builds the parts of a Cluster that are not ours, as Karmada fills them in.
pub(crate) fn foreign() -> Value {
    let resources = json!([{ "name": "deployments", "kind": "Deployment" }]);
    json!({
        "spec": {
            "syncMode": "Push", "apiEndpoint": "https://192.0.2.7:6443", "zones": ["a"],
            "secretRef": { "namespace": "karmada-cluster", "name": "m" },
            "taints": [{ "key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z" }],
        },
        "status": {
            "kubernetesVersion": "v1.36.3",
            "apiEnablements": [{ "groupVersion": "apps/v1", "resources": resources }],
            "nodeSummary": { "totalNum": 3, "readyNum": 3 },
            "resourceSummary": { "allocatable": { "cpu": "8" } },
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "ClusterReady", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
            }],
        },
    })
}

/// Returns these parts as other clients may leave them: each time with one value that is removed, null or
/// of another type. The type of a condition stays: without it, it may be one of ours.
pub(crate) static FOREIGN_MUTATIONS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let shared = ["", "/status", "/status/conditions", "/status/conditions/0"];
    let all = mutations(&foreign()).into_iter();
    let theirs = all.filter(|mutation| {
        let path = mutation.path.as_str();
        !shared.contains(&path) && path != "/status/conditions/0/type"
    });
    theirs.map(|mutation| mutation.object).collect()
});

/// Builds a condition of a cluster. Those that are False have no time and no reason, as careless clients
/// leave them.
pub(crate) fn condition(reporter: bool, verdict: ConditionState) -> Value {
    let is_careless = verdict == ConditionState::Unhealthy;
    let time = (!is_careless).then_some("2026-01-01T00:00:00Z");
    json!({
        "type": condition_type(reporter), "status": verdict.to_string(),
        "reason": if is_careless { "" } else { "Simulated" },
        "message": "", "lastTransitionTime": time,
    })
}

/// Builds an IngressClass.
pub(crate) fn class(ours: bool, default: bool) -> Value {
    let controller = if ours {
        CONTROLLER
    } else {
        "example.com/other"
    };
    let annotation = "ingressclass.kubernetes.io/is-default-class";
    json!({
        "metadata": { "annotations": { annotation: default.to_string() } },
        "spec": { "controller": controller },
    })
}

/// Builds the binding that places a Service in these clusters.
pub(crate) fn binding(service: &str, to: u8) -> Value {
    let clusters = clusters::names(to).into_iter();
    let clusters: Vec<Value> = clusters.map(|name| json!({ "name": name })).collect();
    let resource = json!({
        "apiVersion": "v1", "kind": "Service", "namespace": NAMESPACE, "name": service,
    });
    json!({ "spec": { "resource": resource, "clusters": clusters } })
}

/// Builds the slice of a Service that Karmada collects from a cluster.
pub(crate) fn endpoint_slice(service: u8, cluster: u8, endpoints: u8) -> Value {
    let addresses: Vec<Value> = (0..=endpoints)
        .skip(usize::from(endpoints == 2) * 3)
        .map(|n| json!({ "addresses": [format!("10.{cluster}.{service}.{n}")] }))
        .collect();
    json!({
        "metadata": {
            "labels": {
                "kubernetes.io/service-name": format!("derived-{}", service_name(service)),
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
            },
            "annotations": {
                "work.karmada.io/namespace": format!("karmada-es-{}", clusters::name(cluster)),
            },
        },
        "addressType": "IPv4",
        "endpoints": addresses,
        "ports": [{ "name": "http", "port": 8080 + u16::from(endpoints), "protocol": "TCP" }],
    })
}

/// Builds a Remedy that is created at `now`.
pub(crate) fn remedy(of: &RemedyShape, now: Timestamp) -> Value {
    let mut spec = json!({});
    if let Some(bits) = of.clusters {
        spec["clusterAffinity"] = json!({ "clusterNames": clusters::names(bits) });
    }
    if let Some(matches) = &of.matches {
        let matches = matches.iter().map(|one| {
            json!({ "clusterConditionMatch": {
                    "conditionType": condition_type(one.reporter),
                    "operator": if one.equal { "Equal" } else { "NotEqual" },
                    "conditionStatus": one.status.to_string(),
                } })
        });
        spec["decisionMatches"] = matches.collect();
    }
    let actions = ["TrafficControl", "Cordon"].into_iter().enumerate();
    let wanted = actions.filter(|(n, _)| of.actions & (1 << n) != 0);
    spec["actions"] = wanted.map(|(_, action)| json!(action)).collect();
    let mut annotations = json!({});
    if let Some(value) = of.observe_only {
        annotations["remedy.karmada-rs.io/observe-only"] = json!(value);
    }
    if let Some(expires) = of.expires {
        annotations["remedy.karmada-rs.io/expires-at"] = match expires {
            Expires::After(seconds) => {
                json!((now + SignedDuration::from_secs(seconds.into())).to_string())
            }
            Expires::Unreadable => json!("tomorrow"),
        };
    }
    json!({ "metadata": { "annotations": annotations }, "spec": spec })
}

/// Builds one of three variants of the ports of a Service.
pub(crate) fn service_ports(variant: u8) -> Value {
    let http = json!({ "name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080 });
    let https = json!({ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 8443 });
    match variant {
        0 => json!([http]),
        1 => json!([http, https]),
        _ => json!([https]),
    }
}

/// Builds an ingress.
pub(crate) fn ingress(ingress: u8, class: Class, backends: Backends) -> Value {
    let backend = |service: u8, port: Value| json!({ "service": { "name": service_name(service), "port": port } });
    let rule = |service: u8| {
        json!([{
            "host": format!("i{ingress}.example.com"),
            "http": { "paths": [{
                "path": "/", "pathType": "Prefix",
                "backend": backend(service, json!({ "number": 80 })),
            }] },
        }])
    };
    let named = json!({ "name": "http" });
    let mut spec = match backends {
        Backends::Rule(service) => json!({ "rules": rule(service) }),
        Backends::Default(service) => json!({ "defaultBackend": backend(service, named) }),
        Backends::Both => json!({ "rules": rule(0), "defaultBackend": backend(1, named) }),
    };
    if let Class::Named(class) = class {
        spec["ingressClassName"] = json!(class_name(class));
    }
    json!({ "spec": spec })
}
