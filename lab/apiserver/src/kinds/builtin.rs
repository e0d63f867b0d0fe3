//! The built-in kinds, with the properties that their Rust types lack.

use std::sync::{Arc, LazyLock};

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Event, Namespace, Node, PersistentVolumeClaim, Pod, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event as NewEvent;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::custom;
use super::kind::{Kind, Selectable, Storage};
use crate::names::NameRule;
use crate::schema::Schema;

/// Returns the built-in kinds, which are compiled once per process.
pub(super) fn all() -> &'static [Arc<Kind>] {
    static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
        let kinds = core().into_iter().chain(grouped());
        kinds.flatten().map(Arc::new).collect()
    });
    &KINDS
}

fn core() -> Vec<Option<Kind>> {
    vec![
        kind::<Namespace>("ns", false).map(|kind| {
            let kind = kind
                .with_status()
                .named(NameRule::Label)
                .selecting(&["status.phase"]);
            kind.returning_deleted()
        }),
        kind::<ConfigMap>("cm", true),
        kind::<Secret>("", true).map(|kind| kind.selecting(&["type"])),
        kind::<Service>("svc", true).map(|kind| {
            let kind = kind.with_status().named(NameRule::Label).in_category("all");
            kind.selecting(&["spec.clusterIP", "spec.type"])
                .returning_deleted()
                .created_by_put()
        }),
        kind::<Endpoints>("ep", true).map(Kind::created_by_put),
        kind::<Node>("no", false).map(|kind| kind.with_status().selecting(&["spec.unschedulable"])),
        kind::<Pod>("po", true).map(|kind| {
            let kind = kind.with_status().in_category("all");
            kind.selecting(&["spec.nodeName", "status.phase"])
        }),
        kind::<PersistentVolumeClaim>("pvc", true)
            .map(|kind| kind.with_status().returning_deleted()),
        kind::<ServiceAccount>("sa", true).map(Kind::returning_deleted),
        kind::<Event>("ev", true).map(|mut kind| {
            kind.storage.selectable = event_fields("involvedObject", "reportingComponent");
            let source = &["source.component", "reportingComponent"];
            kind.storage
                .selectable
                .push(Selectable::named("source", source));
            kind.created_by_put()
        }),
    ]
}

fn grouped() -> Vec<Option<Kind>> {
    vec![
        kind::<NewEvent>("ev", true).map(|mut kind| {
            kind.storage.selectable = event_fields("regarding", "reportingController");
            kind.created_by_put()
        }),
        kind::<EndpointSlice>("", true).map(Kind::with_generation),
        kind::<Lease>("", true).map(|mut kind| {
            kind.storage.unconditional_update = false;
            kind.created_by_put()
        }),
        kind::<Ingress>("ing", true).map(|kind| kind.with_status().with_generation()),
        kind::<IngressClass>("", false).map(Kind::with_generation),
        kind::<NetworkPolicy>("netpol", true).map(Kind::with_generation),
        kind::<Deployment>("deploy", true).map(Kind::of_workloads),
        kind::<DaemonSet>("ds", true).map(Kind::of_workloads),
        kind::<ReplicaSet>("rs", true).map(Kind::of_workloads),
        kind::<StatefulSet>("sts", true).map(Kind::of_workloads),
        kind::<Job>("", true).map(Kind::of_workloads),
        kind::<CronJob>("cj", true).map(Kind::of_workloads),
        kind::<HorizontalPodAutoscaler>("hpa", true)
            .map(|kind| kind.with_status().in_category("all")),
        kind::<PodDisruptionBudget>("pdb", true).map(|kind| kind.with_status().with_generation()),
        kind::<Role>("", true).map(Kind::of_access),
        kind::<RoleBinding>("", true).map(Kind::of_access),
        kind::<ClusterRole>("", false).map(Kind::of_access),
        kind::<ClusterRoleBinding>("", false).map(Kind::of_access),
        kind::<CustomResourceDefinition>("crd", false).map(|mut kind| {
            kind.short_names.push("crds".to_owned());
            kind.storage.unconditional_update = false;
            kind.with_status()
                .with_generation()
                .in_category("api-extensions")
        }),
    ]
}

/// Creates a kind, or `None` if its schema does not compile, which a test rules out.
fn kind<K: k8s_openapi::Resource + JsonSchema>(short: &str, namespaced: bool) -> Option<Kind> {
    Some(Kind {
        group: K::GROUP.to_owned(),
        version: K::VERSION.to_owned(),
        kind: K::KIND.to_owned(),
        list_kind: format!("{}List", K::KIND),
        plural: K::URL_PATH_SEGMENT.to_owned(),
        singular: K::KIND.to_lowercase(),
        short_names: (!short.is_empty())
            .then(|| short.to_owned())
            .into_iter()
            .collect(),
        categories: Vec::new(),
        namespaced,
        has_status: false,
        columns: Vec::new(),
        schema: Arc::new(Schema::builtin::<K>().ok()?),
        custom: false,
        storage: Storage {
            unconditional_update: true,
            ..Storage::default()
        },
    })
}

impl Kind {
    fn with_status(mut self) -> Self {
        self.has_status = true;
        self
    }

    fn with_generation(mut self) -> Self {
        self.storage.generation = true;
        self
    }

    fn named(mut self, rule: NameRule) -> Self {
        self.storage.names = rule;
        self
    }

    fn selecting(mut self, paths: &[&str]) -> Self {
        self.storage
            .selectable
            .extend(paths.iter().map(|path| Selectable::path(path)));
        self
    }

    fn in_category(mut self, category: &str) -> Self {
        self.categories.push(category.to_owned());
        self
    }

    fn created_by_put(mut self) -> Self {
        self.storage.create_on_update = true;
        self
    }

    fn returning_deleted(mut self) -> Self {
        self.storage.returns_deleted = true;
        self
    }

    fn of_workloads(self) -> Self {
        self.with_status().with_generation().in_category("all")
    }

    fn of_access(self) -> Self {
        self.named(NameRule::PathSegment).created_by_put()
    }
}

/// Returns the selectable fields of an Event, whose object and controller are named differently in
/// its two groups.
fn event_fields(object: &str, controller: &str) -> Vec<Selectable> {
    let of_object = [
        "kind",
        "namespace",
        "name",
        "uid",
        "apiVersion",
        "resourceVersion",
        "fieldPath",
    ]
    .map(|field| {
        let stored = format!("involvedObject.{field}");
        Selectable::named(&format!("{object}.{field}"), &[&stored])
    });
    let controller = Selectable::named(controller, &["reportingComponent"]);
    let own = ["reason", "type"].map(Selectable::path);
    of_object
        .into_iter()
        .chain([controller])
        .chain(own)
        .collect()
}

/// Fills in defaults that the schemas of built-in kinds do not contain.
pub(crate) fn complete(kind: &Kind, object: &mut Value) {
    if kind.custom {
        return;
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "namespaces") => complete_namespace(object),
        ("", "secrets") => complete_secret(object),
        ("", "services") => complete_service(object),
        ("", "pods" | "persistentvolumeclaims") => complete_phase(object),
        ("discovery.k8s.io", "endpointslices") => complete_endpoint_slice(object),
        _ if kind.is_definition() => custom::complete(object),
        _ => {}
    }
}

fn set_default(object: &mut Value, field: &str, default: impl FnOnce() -> Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.entry(field).or_insert_with(default);
    }
}

fn complete_namespace(namespace: &mut Value) {
    let name = namespace["metadata"]["name"].clone();
    set_default(&mut namespace["metadata"], "labels", || json!({}));
    if let (Some(labels), Value::String(name)) =
        (namespace["metadata"]["labels"].as_object_mut(), name)
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
    set_default(namespace, "spec", || json!({}));
    set_default(&mut namespace["spec"], "finalizers", || json!([]));
    // The finalizer of the namespace controller, which every namespace has in its spec.
    if let Some(finalizers) = namespace["spec"]["finalizers"].as_array_mut()
        && !finalizers.iter().any(|one| one == "kubernetes")
    {
        finalizers.push("kubernetes".into());
    }
    set_default(namespace, "status", || json!({}));
    set_default(&mut namespace["status"], "phase", || json!("Active"));
}

fn complete_secret(secret: &mut Value) {
    set_default(secret, "type", || json!("Opaque"));
    let Some(texts) = secret.get("stringData").and_then(Value::as_object).cloned() else {
        return;
    };
    let Some(fields) = secret.as_object_mut() else {
        return;
    };
    fields.remove("stringData");
    let data = fields
        .entry("data")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(data) = data.as_object_mut() {
        for (name, text) in texts {
            // `stringData` is write-only, and takes precedence over `data`.
            let text = text.as_str().unwrap_or_default().as_bytes().to_vec();
            data.insert(name, json!(ByteString(text)));
        }
    }
}

fn complete_service(service: &mut Value) {
    set_default(service, "spec", || json!({}));
    let spec = &mut service["spec"];
    set_default(spec, "type", || json!("ClusterIP"));
    set_default(spec, "sessionAffinity", || json!("None"));
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        set_default(port, "protocol", || json!("TCP"));
        let number = port["port"].clone();
        // An unset target port is the port itself (`SetDefaults_Service`).
        set_default(port, "targetPort", || number);
    }
    set_default(service, "status", || json!({}));
    set_default(&mut service["status"], "loadBalancer", || json!({}));
}

/// Begins the life of a pod or a claim.
fn complete_phase(object: &mut Value) {
    set_default(object, "status", || json!({}));
    set_default(&mut object["status"], "phase", || json!("Pending"));
}

fn complete_endpoint_slice(slice: &mut Value) {
    for port in slice
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        set_default(port, "name", || json!(""));
        set_default(port, "protocol", || json!("TCP"));
    }
}

#[cfg(test)]
mod tests {
    /// Every schema of a built-in kind compiles.
    #[test]
    fn every_builtin_schema_compiles() {
        assert_eq!(super::all().len(), 29);
    }
}
