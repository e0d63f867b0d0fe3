//! Peculiarities of the built-in kinds.

use anyhow::Result;
use serde_json::{Value, json};

use crate::server::{APPLY, Server, name};

pub(super) async fn the_first_namespaces_exist(server: Server) -> Result<()> {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let namespace = server
            .get(&format!("/api/v1/namespaces/{name}"))
            .await?
            .expect(200)?;
        check_eq!(namespace["status"]["phase"], "Active");
    }
    Ok(())
}

pub(super) async fn api_has_own_service(server: Server) -> Result<()> {
    let service = server
        .get("/api/v1/namespaces/default/services/kubernetes")
        .await?
        .expect(200)?;
    check_eq!(
        service["metadata"]["labels"],
        json!({ "component": "apiserver", "provider": "kubernetes" })
    );
    check_eq!(service["spec"]["clusterIP"], "10.96.0.1");
    check_eq!(service["spec"]["type"], "ClusterIP");
    let port = &service["spec"]["ports"][0];
    check_eq!(
        (&port["name"], &port["port"], &port["protocol"]),
        (&json!("https"), &json!(443), &json!("TCP"))
    );
    Ok(())
}

pub(super) async fn a_new_namespace_is_active(server: Server) -> Result<()> {
    let namespace = json!({ "metadata": { "name": server.name } });
    let namespace = server.create("/api/v1/namespaces", &namespace).await?;
    check_eq!(namespace["status"], json!({ "phase": "Active" }));
    check_eq!(namespace["spec"], json!({ "finalizers": ["kubernetes"] }));
    check_eq!(
        namespace["metadata"]["labels"],
        json!({ "kubernetes.io/metadata.name": server.name })
    );
    Ok(())
}

pub(super) async fn service_gets_address_and_defaults(server: Server) -> Result<()> {
    let path = server.collection("api/v1", "services").await?;
    let service = json!({
        "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }, { "name": "b", "port": 81, "targetPort": "x" }] },
    });
    server
        .post(&path, &service)
        .await?
        .refused(422, "Invalid")?;
    let service = json!({ "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] } });
    let service = server.create(&path, &service).await?;
    let spec = &service["spec"];
    check!(
        spec["clusterIP"]
            .as_str()
            .is_some_and(|address| address.starts_with("10.96.")),
        spec
    );
    check_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
    check_eq!(spec["type"], "ClusterIP");
    check_eq!(spec["sessionAffinity"], "None");
    check_eq!(spec["internalTrafficPolicy"], "Cluster");
    check_eq!(spec["ipFamilies"], json!(["IPv4"]));
    check_eq!(spec["ipFamilyPolicy"], "SingleStack");
    check_eq!(
        spec["ports"],
        json!([{ "port": 80, "protocol": "TCP", "targetPort": 80 }])
    );
    check_eq!(service["status"], json!({ "loadBalancer": {} }));
    Ok(())
}

pub(super) async fn service_address_stays(server: Server) -> Result<()> {
    let path = server.collection("api/v1", "services").await?;
    let service = json!({ "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] } });
    let created = server.create(&path, &service).await?;
    let replaced = server
        .put(&format!("{path}/web"), &service)
        .await?
        .expect(200)?;
    check_eq!(replaced["spec"]["clusterIP"], created["spec"]["clusterIP"]);
    let mut moved = created.clone();
    moved["metadata"]["resourceVersion"] = Value::Null;
    moved["spec"]["clusterIP"] = json!("10.96.200.200");
    moved["spec"]["clusterIPs"] = json!(["10.96.200.200"]);
    let message = server
        .put(&format!("{path}/web"), &moved)
        .await?
        .refused(422, "Invalid")?;
    check!(
        message.contains("spec.clusterIPs[0]: Invalid value"),
        message
    );
    Ok(())
}

pub(super) async fn headless_service_has_no_address(server: Server) -> Result<()> {
    let path = server.collection("api/v1", "services").await?;
    let service = json!({ "metadata": { "name": "web" }, "spec": { "clusterIP": "None", "ports": [{ "port": 80 }] } });
    let service = server.create(&path, &service).await?;
    check_eq!(service["spec"]["clusterIP"], "None");
    check_eq!(service["spec"]["clusterIPs"], json!(["None"]));
    Ok(())
}

/// A secret keeps its text encoded.
pub(super) async fn secret_text_is_encoded(server: Server) -> Result<()> {
    let path = server.collection("api/v1", "secrets").await?;
    let secret = json!({ "metadata": { "name": "one" }, "stringData": { "a": "hello" } });
    let secret = server.create(&path, &secret).await?;
    check_eq!(secret["data"], json!({ "a": "aGVsbG8=" }));
    check_eq!(secret.get("stringData"), None);
    check_eq!(secret["type"], "Opaque");
    let bad = json!({ "metadata": { "name": "two" }, "data": { "a": "not base 64!" } });
    server.post(&path, &bad).await?.refused(400, "BadRequest")?;
    Ok(())
}

/// An event about a cluster is accepted in default only.
pub(super) async fn cluster_event_is_default_only(server: Server) -> Result<()> {
    let path = server.collection("api/v1", "events").await?;
    let event = json!({
        "metadata": { "name": server.name }, "reason": "Why", "message": "because", "type": "Normal",
        "involvedObject": { "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": "member1" },
    });
    let message = server.post(&path, &event).await?.refused(422, "Invalid")?;
    check!(
        message.contains(
            "involvedObject.namespace: Invalid value: \"\": does not match event.namespace"
        ),
        message
    );
    server
        .create("/api/v1/namespaces/default/events", &event)
        .await?;
    Ok(())
}

/// An event is the same in both groups.
pub(super) async fn event_is_in_both_groups(server: Server) -> Result<()> {
    let newer = server.collection("apis/events.k8s.io/v1", "events").await?;
    let event = json!({
        "metadata": { "name": "one" }, "eventTime": "2026-01-02T03:04:05.000006Z", "type": "Normal",
        "reason": "Why", "action": "Acting", "note": "because",
        "reportingController": "example.com/tester", "reportingInstance": "tester-1",
        "regarding": { "kind": "Widget", "name": "one", "namespace": server.name },
    });
    let event = server.create(&newer, &event).await?;
    check_eq!(event["apiVersion"], "events.k8s.io/v1");
    check_eq!(event["note"], "because");
    let core = format!("/api/v1/namespaces/{}/events", server.name);
    let core = server.get(&format!("{core}/one")).await?.expect(200)?;
    check_eq!(core["apiVersion"], "v1");
    check_eq!(core["message"], "because");
    check_eq!(core["involvedObject"]["name"], "one");
    check_eq!(core["reportingComponent"], "example.com/tester");
    check_eq!(core["eventTime"], "2026-01-02T03:04:05.000006Z");
    check_eq!(core["metadata"]["uid"], event["metadata"]["uid"]);
    check_eq!(core.get("note"), None);
    Ok(())
}

/// Events are selected by their objects.
pub(super) async fn involved_object_selects_events(server: Server) -> Result<()> {
    let path = server.collection("api/v1", "events").await?;
    for (event, about, reason) in [
        ("one", "a", "Made"),
        ("two", "b", "Made"),
        ("three", "b", "Lost"),
    ] {
        let event = json!({
            "metadata": { "name": event }, "reason": reason, "type": "Normal",
            "involvedObject": { "kind": "Widget", "name": about, "namespace": server.name, "uid": "u" },
        });
        server.create(&path, &event).await?;
    }
    for (selector, expected) in [
        ("involvedObject.name=a", vec!["one"]),
        ("involvedObject.name=b,reason=Lost", vec!["three"]),
        ("involvedObject.kind=Widget,reason!=Made", vec!["three"]),
        (
            "type=Normal,involvedObject.uid=u,involvedObject.name=b",
            vec!["three", "two"],
        ),
        ("metadata.name=two", vec!["two"]),
    ] {
        let list = server
            .get(&format!(
                "{path}?fieldSelector={}",
                selector.replace('=', "%3D")
            ))
            .await?
            .expect(200)?;
        check_eq!(crate::server::names(&list), expected, "{selector}");
    }
    Ok(())
}

pub(super) async fn a_lease_keeps_microseconds(server: Server) -> Result<()> {
    let path = server
        .collection("apis/coordination.k8s.io/v1", "leases")
        .await?;
    let lease = json!({ "metadata": { "name": "one" }, "spec": {
        "holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z",
    } });
    let lease = server.create(&path, &lease).await?;
    check_eq!(lease["spec"]["renewTime"], "2026-01-02T03:04:05.000006Z");
    let bad =
        json!({ "metadata": { "name": "two" }, "spec": { "renewTime": "2026-01-02T03:04:05Z" } });
    server.post(&path, &bad).await?.refused(400, "BadRequest")?;
    let bad = json!({ "metadata": { "name": "two" }, "spec": { "leaseDurationSeconds": 0 } });
    let message = server.post(&path, &bad).await?.refused(422, "Invalid")?;
    check!(
        message.contains("spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"),
        message
    );
    Ok(())
}

/// A replaced lease may be new.
pub(super) async fn put_creates_lease(server: Server) -> Result<()> {
    let path = server
        .collection("apis/coordination.k8s.io/v1", "leases")
        .await?;
    let lease = json!({ "metadata": { "name": "one" }, "spec": {} });
    let lease = server
        .put(&format!("{path}/one"), &lease)
        .await?
        .expect(201)?;
    check_eq!(name(&lease), "one");
    Ok(())
}

fn slice(name: &str, address: &str) -> Value {
    json!({
        "metadata": { "name": name }, "addressType": "IPv4",
        "endpoints": [{ "addresses": [address] }], "ports": [{ "port": 80 }],
    })
}

/// An `EndpointSlice` has addresses of its type.
pub(super) async fn slice_addresses_match_type(server: Server) -> Result<()> {
    let path = server
        .collection("apis/discovery.k8s.io/v1", "endpointslices")
        .await?;
    let created = server.create(&path, &slice("one", "10.1.2.3")).await?;
    check_eq!(
        created["endpoints"],
        json!([{ "addresses": ["10.1.2.3"], "conditions": {} }])
    );
    check_eq!(
        created["ports"],
        json!([{ "name": "", "port": 80, "protocol": "TCP" }])
    );
    for bad in ["fd00::1", "not an address"] {
        server
            .post(&path, &slice("two", bad))
            .await?
            .refused(422, "Invalid")?;
    }
    let mut moved = created.clone();
    moved["addressType"] = json!("IPv6");
    server
        .put(&format!("{path}/one"), &moved)
        .await?
        .refused(422, "Invalid")?;
    Ok(())
}

/// Endpoints are not addresses of the node itself.
pub(super) async fn loopback_endpoints_are_refused(server: Server) -> Result<()> {
    let slices = server
        .collection("apis/discovery.k8s.io/v1", "endpointslices")
        .await?;
    let endpoints = server.collection("api/v1", "endpoints").await?;
    let loopback = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
    let link_local = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
    let multicast = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
    for (type_, address, why) in [
        ("IPv4", "127.0.0.1", loopback),
        ("IPv4", "127.7.0.9", loopback),
        ("IPv6", "::1", loopback),
        ("IPv4", "0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("IPv6", "::", "may not be unspecified (::)"),
        ("IPv4", "169.254.1.1", link_local),
        ("IPv6", "fe80::1", link_local),
        ("IPv4", "224.0.0.1", multicast),
        ("IPv6", "ff02::1", multicast),
    ] {
        let slice = json!({
            "metadata": { "name": "one" }, "addressType": type_,
            "endpoints": [{ "addresses": [address] }], "ports": [{ "port": 80 }],
        });
        let message = server
            .post(&slices, &slice)
            .await?
            .refused(422, "Invalid")?;
        let expected = format!("endpoints[0].addresses[0]: Invalid value: {address:?}: {why}");
        check!(message.contains(&expected), message);
        for list in ["addresses", "notReadyAddresses"] {
            let of_service = json!({ "metadata": { "name": "one" }, "subsets": [{ list: [{ "ip": address }], "ports": [{ "port": 80 }] }] });
            let message = server
                .post(&endpoints, &of_service)
                .await?
                .refused(422, "Invalid")?;
            check!(
                message.contains(&format!(
                    "subsets[0].{list}[0].ip: Invalid value: {address:?}: {why}"
                )),
                message
            );
        }
    }
    let nonsense = json!({ "metadata": { "name": "one" }, "subsets": [{ "addresses": [{ "ip": "nonsense" }] }] });
    let message = server
        .post(&endpoints, &nonsense)
        .await?
        .refused(422, "Invalid")?;
    let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    check!(
        message.contains(&format!(
            "subsets[0].addresses[0].ip: Invalid value: \"nonsense\": {why}"
        )),
        message
    );
    Ok(())
}

pub(super) async fn ingress_needs_path_type(server: Server) -> Result<()> {
    let path = server
        .collection("apis/networking.k8s.io/v1", "ingresses")
        .await?;
    let mut ingress = json!({ "metadata": { "name": "one" }, "spec": { "rules": [{ "host": "a.com", "http": { "paths": [
        { "path": "/", "backend": { "service": { "name": "web", "port": { "number": 80 } } } },
    ] } }] } });
    let message = server
        .post(&path, &ingress)
        .await?
        .refused(422, "Invalid")?;
    check!(
        message.contains("spec.rules[0].http.paths[0].pathType: Required value"),
        message
    );
    ingress["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = json!("Nonsense");
    server
        .post(&path, &ingress)
        .await?
        .refused(422, "Invalid")?;
    ingress["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = json!("Prefix");
    let created = server.create(&path, &ingress).await?;
    check_eq!(created["metadata"]["generation"], 1);
    check_eq!(created["status"], json!({ "loadBalancer": {} }));
    Ok(())
}

pub(super) async fn built_in_kinds_have_types(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = json!({ "metadata": { "name": "one" }, "data": { "a": 1 } });
    let message = server.post(&path, &map).await?.refused(400, "BadRequest")?;
    check!(
        message.starts_with("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "),
        message
    );
    let path = server.collection("api/v1", "services").await?;
    let service = json!({ "metadata": { "name": "one" }, "spec": { "ports": "all" } });
    server
        .post(&path, &service)
        .await?
        .refused(400, "BadRequest")?;
    let service =
        json!({ "metadata": { "name": "one" }, "spec": { "ports": [{ "port": 70_000 }] } });
    server
        .post(&path, &service)
        .await?
        .refused(422, "Invalid")?;
    Ok(())
}

/// A `ConfigMap` may be immutable.
pub(super) async fn config_map_may_be_immutable(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = json!({ "metadata": { "name": "one" }, "data": { "a": "1" }, "immutable": true });
    let mut map = server.create(&path, &map).await?;
    map["data"]["a"] = json!("2");
    let message = server
        .put(&format!("{path}/one"), &map)
        .await?
        .refused(422, "Invalid")?;
    check!(
        message.contains("data: Forbidden: field is immutable when `immutable` is set"),
        message
    );
    Ok(())
}

/// A new `DaemonSet` counts nothing.
pub(super) async fn new_daemon_set_counts_nothing(server: Server) -> Result<()> {
    let path = server.collection("apis/apps/v1", "daemonsets").await?;
    let labels = json!({ "app": "one" });
    let mut set = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "one" }, "spec": {
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "c", "image": "i" }] } },
    } });
    let created = server.create(&path, &set).await?;
    let nothing = json!({ "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0 });
    check_eq!(created["status"], nothing);
    set["metadata"]["name"] = json!("two");
    let applied = server
        .patch(&format!("{path}/two?fieldManager=me"), APPLY, &set)
        .await?
        .expect(201)?;
    check_eq!(applied["status"], nothing);
    Ok(())
}
