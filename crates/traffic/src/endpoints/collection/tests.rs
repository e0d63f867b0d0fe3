use objects::write::Action;
use serde_json::{Value, from_value};

use super::*;
use crate::endpoints::slice_service;

/// Returns a slice of Service `web` in a member.
fn source(name: &str, addresses: &[&str]) -> EndpointSlice {
    let endpoints = addresses.iter().map(|address| {
        json!({ "addresses": [address], "conditions": { "ready": true, "serving": true },
            "nodeName": "n1", "zone": "a", "hints": { "forZones": [{ "name": "a" }] },
            "targetRef": { "kind": "Pod", "name": "web-1" } })
    });
    let endpoints: Vec<Value> = endpoints.collect();
    from_value(json!({
        "metadata": { "name": name, "namespace": "shop", "uid": name, "labels": {
            SERVICE_NAME: "web", SLICE_MANAGED_BY: "endpointslice-controller.k8s.io" } },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    }))
    .unwrap()
}

fn collect(
    need: Need,
    sources: Option<&[EndpointSlice]>,
    collected: &[EndpointSlice],
) -> Plan<LeftToOthers> {
    let shared =
        |slices: &[EndpointSlice]| -> Vec<_> { slices.iter().cloned().map(Arc::new).collect() };
    let sources = sources.map(shared);
    plan(&CollectionFacts {
        kind: ClusterKind::Cluster,
        cluster: "member1",
        service: &Key::new("shop", "web"),
        need,
        sources: sources.as_deref(),
        collected: &shared(collected),
    })
}

/// Returns the copies of these slices, as an API server has stored them.
fn collected(sources: &[EndpointSlice]) -> Vec<EndpointSlice> {
    let writes = collect(Need::Wanted, Some(sources), &[]).writes;
    let created = writes.iter().map(|write| {
        let mut slice: EndpointSlice = from_value(write.body().clone()).unwrap();
        slice.metadata.uid = Some("u".to_owned());
        slice.metadata.resource_version = Some("7".to_owned());
        slice
    });
    created.collect()
}

/// Asserts that nothing is written but the deletion of these.
#[track_caller]
fn assert_deleted(plan: &Plan<LeftToOthers>, slices: &[EndpointSlice]) {
    let deleted = slices.iter().map(|slice| {
        let write = Write::delete("endpoint_slice", ObjectRef::of(slice, &()));
        write.guarded(Guard::Version)
    });
    assert_eq!(plan.writes, deleted.collect::<Vec<_>>());
}

fn theirs(mut slice: EndpointSlice) -> EndpointSlice {
    slice.metadata.name = Some("imported-member1-web-1".to_owned());
    let labels = slice.metadata.labels.as_mut().unwrap();
    labels.remove(OWNER_LABEL);
    slice
}

/// A copy has Karmada's names, and the fields of an endpoint that hold elsewhere.
#[test]
fn copy_has_karmadas_form() {
    let plan = collect(
        Need::Wanted,
        Some(&[source("web-1", &["10.244.1.10"])]),
        &[],
    );
    let [write] = &*plan.writes else {
        panic!("{plan:?}");
    };
    let expected = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": collected_slice("member1", "web-1", "IPv4"), "namespace": "shop",
            "labels": { "kubernetes.io/service-name": "derived-web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.karmada.io",
                "app.kubernetes.io/managed-by": "karmada-rs.io_execution-controller",
                "multicluster.kubernetes.io/service-name": "web",
                "multicluster.kubernetes.io/source-cluster": "member1" },
            "annotations": { "work.karmada.io/namespace": "karmada-es-member1" },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.244.1.10"], "conditions": { "ready": true, "serving": true },
            "nodeName": "n1" }],
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    });
    assert_eq!(write.action, Action::Create(expected));
}

/// On a hub the copy is in the namespace of its member, and is known again there.
#[test]
fn copy_on_hub_names_namespace() {
    let sources = [Arc::new(source("web-1", &["10.244.1.10"]))];
    let service = Key::new("shop", "web");
    let collect = |collected: &[Arc<EndpointSlice>]| {
        plan(&CollectionFacts {
            kind: ClusterKind::MemberCluster,
            cluster: "m1",
            service: &service,
            need: Need::Wanted,
            sources: Some(&sources),
            collected,
        })
    };
    let plan = collect(&[]);
    let copy: EndpointSlice = from_value(plan.writes[0].body().clone()).unwrap();
    let name = collected_slice("m1", "shop.web-1", "IPv4");
    assert_eq!(Key::of(&copy), Key::new("fleet-member-m1", name));
    let told = slice_service(ClusterKind::MemberCluster, &copy);
    assert_eq!(told.as_ref(), Some(&service));
    assert!(is_ours(ClusterKind::MemberCluster, &copy.metadata));
    assert!(!is_ours(ClusterKind::Cluster, &copy.metadata));
    assert_eq!(collect(&[Arc::new(copy)]), Plan::default());
}

/// An equal copy is not written again, and neither is a change of fields that are not copied.
#[test]
fn nothing_is_written_at_rest() {
    let sources = [source("web-1", &["10.244.1.10"]), source("web-2", &[])];
    let collected = collected(&sources);
    assert_eq!(
        collect(Need::Wanted, Some(&sources), &collected),
        Plan::default()
    );
    let mut moved = sources.clone();
    moved[0].endpoints.as_mut().unwrap()[0].zone = Some("b".to_owned());
    assert_eq!(
        collect(Need::Wanted, Some(&moved), &collected),
        Plan::default()
    );
    let mut marked = collected.clone();
    let labels = marked[0].metadata.labels.as_mut().unwrap();
    labels.insert(
        "propagationpolicy.karmada.io/permanent-id".to_owned(),
        "a".to_owned(),
    );
    assert_eq!(
        collect(Need::Wanted, Some(&sources), &marked),
        Plan::default()
    );
}

/// A change of a member's endpoints changes their copy, in the version that was seen.
#[test]
fn change_is_copied() {
    let collected = collected(&[source("web-1", &["10.244.1.10"])]);
    let plan = collect(
        Need::Wanted,
        Some(&[source("web-1", &["10.244.1.11"])]),
        &collected,
    );
    let [write] = &*plan.writes else {
        panic!("{plan:?}");
    };
    assert_eq!(write.object, ObjectRef::of(&collected[0], &()));
    let body = write.guarded_body();
    assert_eq!(body["metadata"]["resourceVersion"], "7");
    assert_eq!(body["endpoints"][0]["addresses"][0], "10.244.1.11");
}

/// A slice that is gone in the member goes here, and all do with the need for them.
#[test]
fn unneeded_slices_go() {
    let both = [
        source("web-1", &["10.244.1.10"]),
        source("web-2", &["10.244.1.11"]),
    ];
    let collected = collected(&both);
    let plan = collect(Need::Wanted, Some(&both[..1]), &collected);
    assert_deleted(&plan, &collected[1..]);
    for sources in [None, Some(&both[..])] {
        let plan = collect(Need::Unwanted, sources, &collected);
        assert_deleted(&plan, &collected);
    }
}

/// Nothing is taken away because of unknown objects.
#[test]
fn unknown_changes_nothing() {
    let source = source("web-1", &["10.244.1.10"]);
    let collected = collected(std::slice::from_ref(&source));
    assert_eq!(collect(Need::Wanted, None, &collected), Plan::default());
    assert_eq!(
        collect(Need::Unclear, Some(&[]), &collected),
        Plan::default()
    );
    assert_eq!(
        collect(Need::Unclear, Some(&[source]), &[]),
        Plan::default()
    );
}

/// Endpoints that a Karmada collects are left to it, ours give way, and its own are never deleted.
#[test]
fn other_collector_is_left_alone() {
    let sources = [source("web-1", &["10.244.1.10"])];
    let ours = collected(&sources);
    let theirs = theirs(ours[0].clone());
    let both = [ours[0].clone(), theirs.clone()];
    let plan = collect(Need::Wanted, Some(&sources), &both);
    assert_eq!(plan.events, [LeftToOthers]);
    assert_deleted(&plan, &ours);
    let plan = collect(Need::Unwanted, Some(&[]), &[theirs]);
    assert_eq!(plan, Plan::default());
}

fn cluster(mode: &str) -> ClusterView {
    from_value(json!({ "metadata": { "name": "member1" }, "spec": { "syncMode": mode } })).unwrap()
}

/// The endpoints are wanted of an exported Service that was propagated to a cluster which we reach.
#[test]
fn need_follows_export_work_and_cluster() {
    let (push, pull) = (cluster("Push"), cluster("Pull"));
    let export = ServiceExport::default();
    let leaving = json!({ "metadata": { "deletionTimestamp": "2026-11-20T08:00:00Z" } });
    let leaving: ServiceExport = from_value(leaving).unwrap();
    let (here, work) = (Cached::Present(&push), Cached::Present(()));
    let exported = Cached::Present(&export);
    for (cluster, export, work, need) in [
        (here, exported, work, Need::Wanted),
        (here, exported, Cached::Absent, Need::Unwanted),
        (here, exported, Cached::Unread, Need::Unclear),
        (here, Cached::Absent, work, Need::Unwanted),
        (here, Cached::Absent, Cached::Unread, Need::Unwanted),
        (here, Cached::Unread, work, Need::Unclear),
        (here, Cached::Present(&leaving), work, Need::Unwanted),
        (Cached::Absent, exported, work, Need::Unwanted),
        (Cached::Unread, exported, work, Need::Unclear),
        (Cached::Present(&pull), exported, work, Need::Unclear),
    ] {
        let case = format!("{cluster:?} {export:?} {work:?}");
        assert_eq!(Need::of(cluster, export, work), need, "{case}");
    }
}
