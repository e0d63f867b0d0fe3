//! The objects that a template refers to, by kind of template.

use std::collections::{BTreeMap, BTreeSet};

use objects::{Metadata, api_version, kind};
use serde_json::Value;

use super::{Dependency, Labels};
use crate::interpret::needs;

/// The label that names the Service of an `EndpointSlice`.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Returns the objects that have to be in a cluster before the template's Pods start there, or before its
/// certificates are served, or before it reaches an imported service.
pub fn references(object: &Value) -> BTreeSet<Dependency> {
    let mut found = References {
        namespace: object.namespace(),
        found: BTreeSet::new(),
    };
    if let Some(needs) = needs(object) {
        for pod in needs.pods {
            found.pod(pod);
        }
        for (kind, name) in needs.objects {
            found.add(kind, &name.into(), "");
        }
        return found.found;
    }
    let pod = match (api_version(object), kind(object)) {
        ("v1", "Pod") => "/spec",
        // Karmada lets nothing follow a ReplicaSet.
        ("apps/v1", "Deployment" | "StatefulSet" | "DaemonSet") | ("batch/v1", "Job") => {
            "/spec/template/spec"
        }
        ("batch/v1", "CronJob") => "/spec/jobTemplate/spec/template/spec",
        ("networking.k8s.io/v1", "Ingress") => {
            for tls in items(object, "/spec/tls") {
                found.add("Secret", tls, "/secretName");
            }
            return found.found;
        }
        // The objects that Karmada makes in the control plane for the clusters that import the service.
        ("multicluster.x-k8s.io/v1alpha1" | "multicluster.x-k8s.io/v1beta1", "ServiceImport") => {
            found.derived_service(object.name());
            return found.found;
        }
        _ => return BTreeSet::new(),
    };
    if let Some(pod) = object.pointer(pod) {
        found.pod(pod);
    }
    // The claims of these names are made in the cluster, from the templates.
    for claim in items(object, "/spec/volumeClaimTemplates") {
        let name = claim.pointer("/metadata/name").and_then(Value::as_str);
        found.found.retain(|dependency| {
            dependency.kind != "PersistentVolumeClaim" || Some(&*dependency.name) != name
        });
    }
    found.found
}

/// Returns the objects in `namespace` that have to be in a cluster before Pods with the spec `pod` start there.
pub fn pod_references(pod: &Value, namespace: &str) -> BTreeSet<Dependency> {
    let mut found = References {
        namespace,
        found: BTreeSet::new(),
    };
    found.pod(pod);
    found.found
}

struct References<'a> {
    namespace: &'a str,
    found: BTreeSet<Dependency>,
}

impl References<'_> {
    /// Adds the object of the name at `path`, if there is one.
    fn add(&mut self, kind: &str, value: &Value, path: &str) {
        let name = value.pointer(path).and_then(Value::as_str);
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.found.insert(Dependency {
                api_version: "v1".to_owned(),
                kind: kind.to_owned(),
                namespace: self.namespace.to_owned(),
                name: name.to_owned(),
                label_selector: None,
            });
        }
    }

    /// Adds the Service of a `ServiceImport`, with its addresses.
    fn derived_service(&mut self, import: &str) {
        // As Karmada's ServiceImportController names it.
        let name = format!("derived-{import}");
        let namespace = self.namespace.to_owned();
        let selected = (SERVICE_NAME.to_owned(), name.clone());
        self.found.insert(Dependency {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            namespace: namespace.clone(),
            name,
            label_selector: None,
        });
        self.found.insert(Dependency {
            api_version: "discovery.k8s.io/v1".to_owned(),
            kind: "EndpointSlice".to_owned(),
            namespace,
            name: String::new(),
            label_selector: Some(Labels {
                match_labels: BTreeMap::from([selected]),
                match_expressions: Vec::new(),
            }),
        });
    }

    fn pod(&mut self, pod: &Value) {
        for containers in ["/containers", "/initContainers", "/ephemeralContainers"] {
            for container in items(pod, containers) {
                self.container(container);
            }
        }
        for volume in items(pod, "/volumes") {
            self.volume(volume);
        }
        for secret in items(pod, "/imagePullSecrets") {
            self.add("Secret", secret, "/name");
        }
        // Every namespace of every cluster has one of its own.
        if pod.get("serviceAccountName") != Some(&"default".into()) {
            self.add("ServiceAccount", pod, "/serviceAccountName");
        }
    }

    fn container(&mut self, container: &Value) {
        for variable in items(container, "/env") {
            self.add("ConfigMap", variable, "/valueFrom/configMapKeyRef/name");
            self.add("Secret", variable, "/valueFrom/secretKeyRef/name");
        }
        for source in items(container, "/envFrom") {
            self.add("ConfigMap", source, "/configMapRef/name");
            self.add("Secret", source, "/secretRef/name");
        }
    }

    fn volume(&mut self, volume: &Value) {
        self.add("ConfigMap", volume, "/configMap/name");
        self.add("Secret", volume, "/secret/secretName");
        let claim = "/persistentVolumeClaim/claimName";
        self.add("PersistentVolumeClaim", volume, claim);
        for source in items(volume, "/projected/sources") {
            self.add("ConfigMap", source, "/configMap/name");
            self.add("Secret", source, "/secret/name");
        }
        // The credentials of storage.
        self.add("Secret", volume, "/azureFile/secretName");
        self.add("Secret", volume, "/csi/nodePublishSecretRef/name");
        for storage in [
            "cephfs",
            "cinder",
            "flexVolume",
            "iscsi",
            "rbd",
            "scaleIO",
            "storageos",
        ] {
            self.add("Secret", volume, &format!("/{storage}/secretRef/name"));
        }
    }
}

/// Returns the elements of a list; none if it is no list.
fn items<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = value.pointer(path).and_then(Value::as_array);
    list.into_iter().flatten()
}
