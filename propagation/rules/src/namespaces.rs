//! The Works of Namespaces. Every member gets every Namespace of the users at once, so that one exists
//! before anything is propagated into it.

use karmada_api::{ClusterView, Work, execution_namespace, names};
use objects::write::Write;
use objects::{Key, Metadata};
use serde_json::Value;

use super::manifest::{self, Marks};
use super::overrides::{OverrideError, Overrides};
use super::template::Skipped;
use super::works::{DesiredWork, bound, namespace_owner};

/// The label of a Namespace that stays out of the members: `true`.
pub const SKIP_LABEL: &str = "namespace.karmada.io/skip-auto-propagation";

/// Returns `true` if a Namespace goes to the members. Those of Karmada itself do not, nor does that of Kubernetes that each has
/// anyway, nor do those whose users say so.
pub fn is_propagated(namespace: &Value, skipped: &Skipped) -> bool {
    let name = namespace.name();
    let is_reserved = ["default", "karmada-system", "karmada-cluster"].contains(&name)
        || name.starts_with("karmada-es-");
    let is_deleting = namespace.pointer("/metadata/deletionTimestamp").is_some();
    let is_skipped = skipped.has_namespace(name) || is_kept_out(namespace);
    !name.is_empty() && !is_reserved && !is_skipped && !is_deleting
}

/// Returns `true` if users keep a Namespace out of the members, by its label.
pub fn is_kept_out(namespace: &Value) -> bool {
    let skip = namespace.label(SKIP_LABEL);
    skip.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Returns the name that the Works of a Namespace have in every cluster.
pub fn work_name(namespace: &str) -> String {
    names::work("Namespace", "", namespace)
}

/// Plans the Work of a Namespace that [`is_propagated`] in one cluster. `new_id` is the ID of a new Work.
///
/// # Errors
///
/// Fails if a cluster override policy cannot be applied: the Work stays as it is then.
pub fn plan(
    namespace: &Value,
    cluster: &ClusterView,
    overrides: &Overrides<'_>,
    current: Option<&Work>,
    new_id: impl FnOnce() -> String,
) -> Result<Option<Write>, OverrideError> {
    let cluster_name = cluster.metadata.name.as_deref().unwrap_or_default();
    // No Work can be made in the namespace of a cluster that is leaving.
    if current.is_none() && cluster.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    // A policy selects the Namespace: its binding has the Work now.
    if current.and_then(|work| bound(&work.metadata)).is_some() {
        return Ok(None);
    }
    let name = namespace.name();
    let key = Key::new(execution_namespace(cluster_name), work_name(name));
    let labels = current.and_then(|work| work.metadata.labels.as_ref());
    let work_id = labels
        .and_then(|labels| labels.get(names::WORK_ID))
        .map_or_else(new_id, Clone::clone);

    let mut manifest = namespace.clone();
    // Policies of a namespace select objects in it, never the Namespace.
    let overrides = Overrides {
        cluster_policies: overrides.cluster_policies.clone(),
        policies: Vec::new(),
    };
    let applied = overrides.apply(&mut manifest, cluster)?;
    manifest::strip(&mut manifest);
    let marks = Marks {
        template_uid: namespace.uid(),
        template_generation: namespace.generation(),
        work: &key,
        work_id: &work_id,
        binding: None,
    };
    manifest::mark(&mut manifest, &marks);
    let desired = DesiredWork {
        key,
        labels: [(names::WORK_ID.to_owned(), work_id)].into(),
        annotations: [].into(),
        applied,
        owner: Some(namespace_owner(namespace)),
        suspended: None,
        preserved: None,
        manifest,
        follows_claim: true,
    };
    Ok(desired.write(current))
}

#[cfg(test)]
mod tests {
    use objects::write::Action;
    use serde_json::{from_value, json, to_value};

    use super::super::fixtures::{self, cluster};
    use super::*;

    fn shop() -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": "shop",
                "uid": "da9d4727-7934-4ef9-9d66-e3a87a49b307",
                "creationTimestamp": "2026-11-21T23:51:01Z",
                "resourceVersion": "363",
                "labels": { "kubernetes.io/metadata.name": "shop" },
                "managedFields": [],
            },
            "spec": { "finalizers": ["kubernetes"] },
            "status": { "phase": "Active" },
        })
    }

    fn write(current: Option<&Work>) -> Option<Write> {
        let (member, none) = (cluster("member1"), Overrides::default());
        plan(&shop(), &member, &none, current, || "new".to_owned()).unwrap()
    }

    /// The works of Karmada are taken over as they are.
    #[test]
    fn karmadas_works_are_taken_over() {
        for member in ["member1", "member2", "member3"] {
            let work = fixtures::work(member, "shop-55c4c4674c");
            let none = Overrides::default();
            let write = plan(&shop(), &cluster(member), &none, Some(&work), String::new);
            assert_eq!(write, Ok(None), "{member}");
            let manifest = &work.spec.workload.manifests[0];
            let uid = manifest["metadata"]["labels"][names::WORK_ID]
                .as_str()
                .unwrap();
            let created = plan(&shop(), &cluster(member), &none, None, || uid.to_owned()).unwrap();
            let body = created.as_ref().unwrap().body();
            assert_eq!(body["spec"], to_value(&work.spec).unwrap(), "{member}");
            let metadata = to_value(&work.metadata).unwrap();
            for field in [
                "name",
                "namespace",
                "labels",
                "finalizers",
                "ownerReferences",
            ] {
                assert_eq!(body["metadata"][field], metadata[field], "{field}");
            }
            assert_eq!(body["metadata"].get("annotations"), None);
        }
    }

    /// A new label of a namespace is written and a deleting work awaited.
    #[test]
    fn new_label_is_written() {
        let mut work = fixtures::work("member1", "shop-55c4c4674c");
        let labels = work.spec.workload.manifests[0].pointer_mut("/metadata/labels");
        labels.unwrap()["kubernetes.io/metadata.name"] = "old".into();
        let Some(Action::Json(patch)) = write(Some(&work)).map(|write| write.action) else {
            panic!("not patched");
        };
        let paths: Vec<_> = patch.paths().map(ToString::to_string).collect();
        assert_eq!(paths, ["/spec/workload"]);
        work.metadata.deletion_timestamp = work.metadata.creation_timestamp.clone();
        assert_eq!(write(Some(&work)), None);
    }

    /// A cluster that is leaving gets no new namespace.
    #[test]
    fn leaving_cluster_gets_none() {
        let mut leaving = cluster("member1");
        leaving.metadata.deletion_timestamp = from_value(json!("2026-11-22T00:00:00Z")).unwrap();
        let write = plan(&shop(), &leaving, &Overrides::default(), None, String::new);
        assert_eq!(write, Ok(None));
    }

    fn goes_out(name: &str, label: Option<&str>) -> bool {
        let mut namespace = json!({ "metadata": { "name": name } });
        if let Some(label) = label {
            namespace["metadata"]["labels"] = json!({ SKIP_LABEL: label });
        }
        is_propagated(&namespace, &Skipped::default())
    }

    /// Namespaces of the system and those that users skip stay out of members.
    #[test]
    fn system_namespaces_stay_out() {
        assert!(goes_out("shop", None));
        assert!(goes_out("karmada-essay", None));
        // That is up to a flag.
        assert!(goes_out("kube-prometheus", None));
        assert!(goes_out("shop", Some("false")));
        for skipped in ["true", "True", "TRUE"] {
            assert!(!goes_out("shop", Some(skipped)));
        }
        for reserved in [
            "",
            "default",
            "karmada-system",
            "karmada-cluster",
            "karmada-es-m1",
        ] {
            assert!(!goes_out(reserved, None), "{reserved}");
        }
        let mut deleting = shop();
        deleting["metadata"]["deletionTimestamp"] = "2026-11-22T00:00:00Z".into();
        let skipped = Skipped {
            namespaces: vec!["sh.p".parse().unwrap()],
            ..Skipped::default()
        };
        assert!(!is_propagated(&shop(), &skipped));
        assert!(!is_propagated(&deleting, &Skipped::default()));
    }
}
