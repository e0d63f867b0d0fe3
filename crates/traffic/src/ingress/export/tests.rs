use serde_json::from_value;

use super::super::fixtures::{some_time, template};
use super::*;

fn exporter() -> Exporter {
    Exporter::new(&"karmada-rs.io/ingress-controller".parse().unwrap())
}

fn service() -> Key {
    Key::new("ns", "s")
}

fn with_uid(uid: &str) -> Service {
    let mut template = template("s", &[("web", 80)]);
    template.metadata.uid = Some(uid.to_owned());
    template
}

fn facts<'a>(template: &'a Service, clusters: &[&'a str]) -> ExportFacts<'a> {
    ExportFacts {
        need: Need::Needed,
        template: Cached::Present(template),
        clusters: Cached::Present(clusters.iter().copied().collect()),
        export: Cached::Absent,
        policy: Cached::Absent,
    }
}

fn plan(facts: &ExportFacts<'_>) -> Plan<LeftToOthers> {
    exporter().plan(&service(), facts)
}

/// Returns each action with the kind of its object.
fn shown(change: &Plan<LeftToOthers>) -> Vec<String> {
    let shown = change.writes.iter().map(|write| {
        let verb = match write.action {
            Action::Create(_) => "create",
            Action::Merge(_) => "update",
            _ => "delete",
        };
        format!("{verb} {}", write.object.resource.kind)
    });
    shown.collect()
}

/// Returns the objects that are created for Service `s` in these clusters, as an API server stores them.
fn created(template: &Service, clusters: &[&str]) -> (ServiceExport, PropagationPolicy) {
    let change = plan(&facts(template, clusters));
    assert_eq!(
        shown(&change),
        ["create PropagationPolicy", "create ServiceExport"]
    );
    let mut policy: PropagationPolicy = from_value(change.writes[0].body().clone()).unwrap();
    let mut export: ServiceExport = from_value(change.writes[1].body().clone()).unwrap();
    export.metadata.uid = Some("e".to_owned());
    policy.metadata.uid = Some("p".to_owned());
    policy.metadata.resource_version = Some("7".to_owned());
    (export, policy)
}

/// A service of an ingress is exported to the clusters of its binding.
#[test]
fn export_follows_the_binding() {
    let template = with_uid("u");
    let (export, policy) = created(&template, &["m2", "m1"]);
    let export = serde_json::to_value(export).unwrap();
    let labels =
        serde_json::json!({ "app.kubernetes.io/managed-by": "karmada-rs.io_ingress-controller" });
    let owner = serde_json::json!([
        { "apiVersion": "v1", "kind": "Service", "name": "s", "uid": "u" }
    ]);
    assert_eq!(
        export,
        serde_json::json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ServiceExport",
            "metadata": {
                "name": "s", "namespace": "ns", "uid": "e",
                "labels": labels, "ownerReferences": owner,
            },
        })
    );
    assert_eq!(policy.metadata.name.as_deref(), Some("export-s"));
    let policy = serde_json::to_value(policy).unwrap();
    assert_eq!(policy["metadata"]["ownerReferences"], owner);
    assert_eq!(
        policy["spec"],
        serde_json::json!({
            "resourceSelectors": [{
                "apiVersion": "multicluster.x-k8s.io/v1alpha1",
                "kind": "ServiceExport",
                "name": "s",
            }],
            "placement": { "clusterAffinity": { "clusterNames": ["m1", "m2"] } },
        })
    );
}

/// An export that is up to date is unchanged and follows the binding.
#[test]
fn current_export_is_unchanged() {
    let template = with_uid("u");
    let (export, policy) = created(&template, &["m1"]);
    let [same, moved] = [&["m1"][..], &["m1", "m2"][..]].map(|clusters| {
        plan(&ExportFacts {
            export: Cached::Present(&export),
            policy: Cached::Present(&policy),
            ..facts(&template, clusters)
        })
    });
    assert_eq!(same, Plan::default());
    assert_eq!(shown(&moved), ["update PropagationPolicy"]);
    let names = json!({ "clusterAffinity": { "clusterNames": ["m1", "m2"] } });
    let sent = moved.writes[0].guarded_body();
    assert_eq!(sent["metadata"]["resourceVersion"], "7");
    assert_eq!(sent["spec"]["placement"], names);
}

/// The defaults that Karmada adds to a policy are no difference.
#[test]
fn karmadas_defaults_make_no_difference() {
    let template = with_uid("u");
    let (export, mut policy) = created(&template, &["m1"]);
    policy.spec.priority = Some(0);
    policy.spec.preemption = Some("Never".to_owned());
    policy.spec.scheduler_name = Some("default-scheduler".to_owned());
    policy.spec.resource_selectors[0].namespace = Some("ns".to_owned());
    policy.spec.placement.as_mut().unwrap()["replicaScheduling"] = json!({});
    let existing = ExportFacts {
        export: Cached::Present(&export),
        policy: Cached::Present(&policy),
        ..facts(&template, &["m1"])
    };
    assert_eq!(plan(&existing), Plan::default());
}

/// An export is removed once nobody needs it or it has no clusters or another owner.
#[test]
fn unneeded_export_is_removed() {
    let template = with_uid("u");
    let (export, policy) = created(&template, &["m1"]);
    let existing = ExportFacts {
        export: Cached::Present(&export),
        policy: Cached::Present(&policy),
        ..facts(&template, &["m1"])
    };
    let again = with_uid("u2");
    let mut leaving = with_uid("u");
    leaving.metadata.deletion_timestamp = Some(some_time());
    let unneeded = ExportFacts {
        need: Need::Unneeded,
        ..existing.clone()
    };
    let nowhere = ExportFacts {
        clusters: Cached::Present(BTreeSet::new()),
        ..existing.clone()
    };
    let of = |template| ExportFacts {
        template,
        ..existing.clone()
    };
    let assert_removed = |facts: &ExportFacts<'_>| {
        let change = plan(facts);
        let removed = ["delete ServiceExport", "delete PropagationPolicy"];
        assert_eq!(shown(&change), removed, "{facts:?}");
        let uids = change
            .writes
            .iter()
            .map(|write| write.object.uid.as_deref());
        assert_eq!(uids.collect::<Vec<_>>(), [Some("e"), Some("p")]);
        assert!(change.writes.iter().all(|write| write.guard == Guard::Uid));
    };
    for facts in [
        unneeded,
        nowhere,
        of(Cached::Absent),
        of(Cached::Present(&leaving)),
        of(Cached::Present(&again)),
    ] {
        assert_removed(&facts);
    }
    let unbound = ExportFacts {
        clusters: Cached::Absent,
        ..existing
    };
    assert_removed(&unbound);
}

/// An owner that another tool adds changes nothing.
#[test]
fn added_owner_changes_nothing() {
    let template = with_uid("u");
    let (mut export, mut policy) = created(&template, &["m1"]);
    for metadata in [&mut export.metadata, &mut policy.metadata] {
        let theirs = OwnerReference {
            uid: "theirs".to_owned(),
            ..OwnerReference::default()
        };
        let owners = metadata.owner_references.as_mut().unwrap();
        owners.insert(0, theirs);
    }
    let existing = ExportFacts {
        export: Cached::Present(&export),
        policy: Cached::Present(&policy),
        ..facts(&template, &["m1"])
    };
    assert_eq!(plan(&existing), Plan::default());
}

/// An export is not created while a policy of ours that does not fit is still there.
#[test]
fn leaving_policy_delays_export() {
    let (before, template) = (with_uid("u"), with_uid("u2"));
    let (_, mut policy) = created(&before, &["m1"]);
    let needed = facts(&template, &["m1"]);
    let change = plan(&ExportFacts {
        policy: Cached::Present(&policy),
        ..needed.clone()
    });
    assert_eq!(shown(&change), ["delete PropagationPolicy"]);
    policy.metadata.deletion_timestamp = Some(some_time());
    let leaving = plan(&ExportFacts {
        policy: Cached::Present(&policy),
        ..needed
    });
    assert_eq!(leaving, Plan::default());
}

/// An export of another owner is left alone and gets no policy.
#[test]
fn foreign_export_is_left_alone() {
    let template = with_uid("u");
    let mut theirs = ServiceExport::default();
    theirs.metadata.name = Some("s".to_owned());
    let facts = ExportFacts {
        export: Cached::Present(&theirs),
        ..facts(&template, &["m1"])
    };
    let left = Plan {
        events: vec![LeftToOthers],
        ..Plan::default()
    };
    assert_eq!(plan(&facts), left);
    let (_, policy) = created(&template, &["m1"]);
    let with_ours = ExportFacts {
        policy: Cached::Present(&policy),
        ..facts
    };
    let change = plan(&with_ours);
    assert_eq!(shown(&change), ["delete PropagationPolicy"]);
}

/// The policy of a service with a long name has a shortened one and leads to the service.
#[test]
fn long_policy_name_is_shortened() {
    for length in [1, 56, 57, 63] {
        let name = "s".repeat(length);
        let template = with_uid("u");
        let change = exporter().plan(&Key::new("ns", &name), &facts(&template, &["m1"]));
        let policy = change.writes[0].body().clone();
        let mut policy: PropagationPolicy = from_value(policy).unwrap();
        let policy_name = policy.metadata.name.clone().unwrap();
        assert_eq!(policy_name, Exporter::policy_name(&name));
        assert!(policy_name.len() <= 63, "{policy_name}");
        let is_readable = policy_name == format!("export-{name}");
        assert_eq!(is_readable, length <= 56, "{policy_name}");
        assert_eq!(Exporter::exported(&policy), Some(name.as_str()));
        let owners = policy.metadata.owner_references.take();
        assert_eq!(Exporter::exported(&policy), Some(name.as_str()));
        policy.metadata.owner_references = owners;
        policy.spec = PropagationSpec::default();
        assert_eq!(Exporter::exported(&policy), Some(name.as_str()));
        policy.metadata.owner_references = None;
        assert_eq!(Exporter::exported(&policy), None);
    }
    let mut other = "s".repeat(63);
    let name = Exporter::policy_name(&other);
    other.replace_range(62.., "t");
    assert_ne!(Exporter::policy_name(&other), name);
}

/// Whatever cannot be read changes nothing.
#[test]
fn unread_facts_change_nothing() {
    let template = with_uid("u");
    let needed = facts(&template, &["m1"]);
    for unread in [
        ExportFacts {
            need: Need::Unclear,
            ..needed.clone()
        },
        ExportFacts {
            template: Cached::Unread,
            ..needed.clone()
        },
        ExportFacts {
            clusters: Cached::Unread,
            ..needed.clone()
        },
        ExportFacts {
            export: Cached::Unread,
            ..needed.clone()
        },
        ExportFacts {
            policy: Cached::Unread,
            ..needed
        },
    ] {
        assert_eq!(plan(&unread), Plan::default());
    }
}
