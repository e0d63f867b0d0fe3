//! The manifest of a Work: a template in the form that Karmada gives it.
//!
//! Karmada's webhook rewrites the manifests of every Work to that form, so one that differed from it would
//! be written again and again.

use karmada_api::names;
use objects::fields::remove;
use objects::{Key, Metadata, kind, metadata};
use serde_json::{Map, Value};
use traffic::ClusterKind;
use traffic::endpoints::is_ours;

use super::claim::Claim;

/// The fields of a template's metadata that belong to the control plane's copy of it.
const OWN_METADATA: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];
const REVISION_ANNOTATIONS: [&str; 2] = [
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
];
const SELECTED_NODE_ANNOTATION: &str = "volume.kubernetes.io/selected-node";
const SERVICE_ACCOUNT_UID_ANNOTATION: &str = "kubernetes.io/service-account.uid";
const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
const CONTROLLER_UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const JOB_NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// The keys of a template's claim: its policy, of either scope.
pub(super) const CLAIM_KEYS: [&str; 5] = [
    names::POLICY_ID,
    names::POLICY_NAMESPACE,
    names::POLICY_NAME,
    names::CLUSTER_POLICY_ID,
    names::CLUSTER_POLICY_NAME,
];

/// The marks by which a manifest refers to its template, its Work and its binding.
#[derive(Clone, Debug)]
pub struct Marks<'a> {
    /// The template's uid.
    pub template_uid: &'a str,
    /// The template's generation; `None` for kinds without.
    pub template_generation: Option<i64>,
    /// The Work.
    pub work: &'a Key,
    /// The Work's ID.
    pub work_id: &'a str,
    /// The binding; `None` for a Namespace, which has none.
    pub binding: Option<BindingMarks<'a>>,
}

/// The marks by which a manifest refers to its binding.
#[derive(Clone, Debug)]
pub struct BindingMarks<'a> {
    /// The label that holds the binding's ID.
    pub id_label: &'static str,
    /// The binding's ID.
    pub id: &'a str,
    /// The annotations that name the binding.
    pub reference: Vec<(&'static str, &'a str)>,
    /// The value of the annotation [`names::CONFLICT_RESOLUTION`].
    pub conflict_resolution: &'static str,
}

/// Removes the fields that belong to the control plane's copy of a template, or are set by the API server of each
/// cluster on its own.
pub fn strip(object: &mut Value) {
    remove(object, "", &["status"]);
    remove(object, "/metadata", &OWN_METADATA);
    remove(
        object,
        "/metadata/annotations",
        &[names::CLAIMED_FINGERPRINT, names::ALLOCATED_NODE_PORTS],
    );
    // Whichever the group: Karmada's webhook does not ask for it, and Volcano's Jobs end as those of Kubernetes do.
    match kind(object) {
        "Deployment" => remove(object, "/metadata/annotations", &REVISION_ANNOTATIONS),
        "Service" => strip_service(object),
        "Job" => strip_job(object),
        "ServiceAccount" => strip_service_account(object),
        "Secret" => strip_secret(object),
        "EndpointSlice" if is_ours(ClusterKind::Cluster, &*object) => strip_slice(object),
        "PersistentVolumeClaim" => {
            remove(object, "/metadata/annotations", &[SELECTED_NODE_ANNOTATION]);
        }
        _ => {}
    }
}

fn strip_service(service: &mut Value) {
    let address = service.pointer("/spec/clusterIP").and_then(Value::as_str);
    // A headless Service asks for no address, here as in every cluster.
    if address.is_some_and(|address| address != "None") {
        remove(service, "/spec", &["clusterIP", "clusterIPs"]);
    }
}

fn strip_job(job: &mut Value) {
    remove(job, "/spec", &["ttlSecondsAfterFinished"]);
    if job.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let labels = "/spec/template/metadata/labels";
    remove(job, "/spec/selector/matchLabels", &CONTROLLER_UID_LABELS);
    remove(job, labels, &CONTROLLER_UID_LABELS);
    remove(job, labels, &JOB_NAME_LABELS);
}

/// Removes the nodes of the cluster from which the endpoints were collected: another has others, some of the same names.
fn strip_slice(slice: &mut Value) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten() {
        remove(endpoint, "", &["nodeName"]);
    }
}

fn strip_service_account(account: &mut Value) {
    let prefix = format!("{}-token-", account.name());
    if let Some(secrets) = account.get_mut("secrets").and_then(Value::as_array_mut) {
        secrets.retain(|secret| {
            let name = secret.get("name").and_then(Value::as_str);
            !name.is_some_and(|name| name.starts_with(&prefix))
        });
    }
}

fn strip_secret(secret: &mut Value) {
    if secret.get("type").and_then(Value::as_str) != Some(SERVICE_ACCOUNT_TOKEN) {
        return;
    }
    remove(
        secret,
        "/metadata/annotations",
        &[SERVICE_ACCOUNT_UID_ANNOTATION],
    );
    // Karmada's form of such a Secret has a null here.
    if let Some(data) = secret.get_mut("data") {
        *data = Value::Null;
    }
}

/// Adds the marks to a template that was revised, overridden and stripped.
pub fn mark(object: &mut Value, marks: &Marks<'_>) {
    let mut label_keys = String::new();
    metadata::edit(object, "labels", |labels| {
        labels.insert(names::MANAGED.to_owned(), "true".into());
        labels.insert(names::WORK_ID.to_owned(), marks.work_id.into());
        if let Some(binding) = &marks.binding {
            labels.insert(binding.id_label.to_owned(), binding.id.into());
        }
        label_keys = joined_keys(labels);
    });
    metadata::edit(object, "annotations", |annotations| {
        let mut annotate = |key: &str, value: &str| {
            annotations.insert(key.to_owned(), value.into());
        };
        annotate(names::TEMPLATE_UID, marks.template_uid);
        if let Some(generation) = marks.template_generation.filter(|&g| g > 0) {
            annotate(names::TEMPLATE_GENERATION, &generation.to_string());
        }
        annotate(names::WORK_NAMESPACE, &marks.work.namespace);
        annotate(names::WORK_NAME, &marks.work.name);
        if let Some(binding) = &marks.binding {
            annotate(names::CONFLICT_RESOLUTION, binding.conflict_resolution);
            for (key, value) in &binding.reference {
                annotate(key, value);
            }
        }
        annotate(names::MANAGED_LABELS, &label_keys);
        // The list of the annotations' keys has its own key, too.
        annotate(names::MANAGED_ANNOTATIONS, "");
        let annotation_keys = joined_keys(annotations);
        annotations.insert(
            names::MANAGED_ANNOTATIONS.to_owned(),
            annotation_keys.into(),
        );
    });
}

fn joined_keys(map: &Map<String, Value>) -> String {
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys.join(",")
}

/// Returns the annotation by which a Work and its manifest resolve conflicts. The template's own wins
/// over that of the binding.
pub fn conflict_resolution(object: &Value, in_binding: Option<&str>) -> &'static str {
    const ABORT: &str = "abort";
    const OVERWRITE: &str = "overwrite";
    match object.annotation(names::CONFLICT_RESOLUTION) {
        Some(ABORT) => ABORT,
        Some(OVERWRITE) => OVERWRITE,
        _ if in_binding == Some(karmada_api::policy::CONFLICT_OVERWRITE) => OVERWRITE,
        _ => ABORT,
    }
}

/// Returns `true` if two manifests ask for the same in the member. A claim does not change the objects that a member
/// runs, nor does a generation that counts such changes: neither is worth a write to every member. The name
/// of another policy is, once the template follows it.
pub fn is_same(left: &Value, right: &Value, follows_claim: bool) -> bool {
    if left == right {
        return true;
    }
    let policies = (Claim::of(left), Claim::of(right));
    let is_handed_over =
        matches!(&policies, (Some(left), Some(right)) if left.policy() != right.policy());
    !(follows_claim && is_handed_over) && without_claim(left) == without_claim(right)
}

fn is_claim(key: &str) -> bool {
    CLAIM_KEYS.contains(&key) || key == names::TEMPLATE_GENERATION
}

fn without_claim(manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    for field in ["labels", "annotations"] {
        metadata::edit(&mut manifest, field, |map| {
            map.retain(|key, _| !is_claim(key));
            for list in [names::MANAGED_LABELS, names::MANAGED_ANNOTATIONS] {
                if let Some(Value::String(keys)) = map.get_mut(list) {
                    let kept: Vec<&str> = keys.split(',').filter(|key| !is_claim(key)).collect();
                    *keys = kept.join(",");
                }
            }
        });
    }
    manifest
}

#[cfg(test)]
mod tests;
