//! Tables and partial metadata, which `kubectl` and caches request in place of objects.

use anyhow::Result;
use serde_json::{Value, json};

use super::patches::widget;
use crate::server::{MERGE, Server, TABLE, text, version};

const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// Returns name, type, format and priority of each column.
fn columns(table: &Value) -> Vec<String> {
    let columns = table["columnDefinitions"].as_array().into_iter().flatten();
    columns
        .map(|column| {
            let (name, type_, format) = (
                text(&column["name"]),
                text(&column["type"]),
                text(&column["format"]),
            );
            format!("{name}:{type_}:{format}:{}", column["priority"])
        })
        .collect()
}

/// A custom table has the columns of its definition.
pub(super) async fn custom_table_has_defined_columns(server: Server) -> Result<()> {
    let spec = json!({ "tags": ["a", "b"], "color": "red", "rules": [
        { "operator": "Equal", "host": "a.com" }, { "operator": "Equal", "host": "b.com" }] });
    let (one, _) = widget(&server, spec).await?;
    let ready = json!({ "status": { "conditions": [
        { "type": "Other", "status": "False" }, { "type": "Ready", "status": "True" }] } });
    let stored = server
        .patch(&format!("{one}/status"), MERGE, &ready)
        .await?
        .expect(200)?;
    let table = server.get_as(&one, TABLE).await?.expect(200)?;
    check_eq!(
        (&table["kind"], &table["apiVersion"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"))
    );
    check_eq!(
        table["metadata"],
        json!({ "resourceVersion": version(&stored) })
    );
    check_eq!(
        columns(&table),
        [
            "Name:string:name:0",
            "Size:integer::0",
            "Tags:string::0",
            "Hosts:string::0",
            "Ready:string::0",
            "Color:string::1",
            "Age:date::0",
        ]
    );
    check_eq!(table["columnDefinitions"][5]["description"], "The paint.");
    check_eq!(
        table["columnDefinitions"][1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.size"
    );
    let cells = &table["rows"][0]["cells"];
    check_eq!(
        cells.as_array().map(|cells| cells[..6].to_vec()),
        Some(vec![
            json!("one"),
            json!(3),
            json!(r#"["a","b"]"#),
            json!("a.com"),
            json!("True"),
            json!("red")
        ])
    );
    check!(
        cells[6].as_str().is_some_and(|age| age.ends_with('s')),
        cells
    );
    Ok(())
}

/// A cell without a value is null.
pub(super) async fn empty_cell_is_null(server: Server) -> Result<()> {
    let (one, _) = widget(&server, json!({})).await?;
    let table = server.get_as(&one, TABLE).await?.expect(200)?;
    let cells = table["rows"][0]["cells"]
        .as_array()
        .map(|cells| cells[..6].to_vec());
    check_eq!(
        cells,
        Some(vec![
            json!("one"),
            json!(3),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null
        ])
    );
    Ok(())
}

/// A definition without columns shows the age.
pub(super) async fn columnless_definition_shows_age(server: Server) -> Result<()> {
    let table = server
        .get_as("/apis/conformance.example.com/v1/gadgets", TABLE)
        .await?
        .expect(200)?;
    check_eq!(columns(&table), ["Name:string:name:0", "Age:date::0"]);
    Ok(())
}

/// The columns of built-in kinds, by the path of a collection.
const COLUMNS: [(&str, &str); 27] = [
    (
        "/api/v1/namespaces",
        "Name:string:name:0 Status:string::0 Age:string::0",
    ),
    (
        "/api/v1/configmaps",
        "Name:string:name:0 Data:string::0 Age:string::0",
    ),
    (
        "/api/v1/secrets",
        "Name:string:name:0 Type:string::0 Data:string::0 Age:string::0",
    ),
    (
        "/api/v1/services",
        "Name:string:name:0 Type:string::0 Cluster-IP:string::0 External-IP:string::0 \
      Port(s):string::0 Age:string::0 Selector:string::1",
    ),
    (
        "/api/v1/endpoints",
        "Name:string:name:0 Endpoints:string::0 Age:string::0",
    ),
    (
        "/api/v1/nodes",
        "Name:string:name:0 Status:string::0 Roles:string::0 Age:string::0 Version:string::0 \
      Internal-IP:string::1 External-IP:string::1 OS-Image:string::1 Kernel-Version:string::1 Container-Runtime:string::1",
    ),
    (
        "/api/v1/pods",
        "Name:string:name:0 Ready:string::0 Status:string::0 Restarts:string::0 Age:string::0 \
      IP:string::1 Node:string::1 Nominated Node:string::1 Readiness Gates:string::1",
    ),
    (
        "/api/v1/persistentvolumeclaims",
        "Name:string:name:0 Status:string::0 Volume:string::0 Capacity:string::0 Access Modes:string::0 \
      StorageClass:string::0 VolumeAttributesClass:string::0 Age:string::0 VolumeMode:string::1",
    ),
    (
        "/apis/apps/v1/deployments",
        "Name:string:name:0 Ready:string::0 Up-to-date:string::0 Available:string::0 Age:string::0 \
      Containers:string::1 Images:string::1 Selector:string::1",
    ),
    (
        "/apis/apps/v1/replicasets",
        "Name:string:name:0 Desired:integer::0 Current:integer::0 Ready:integer::0 Age:string::0 \
      Containers:string::1 Images:string::1 Selector:string::1",
    ),
    (
        "/apis/apps/v1/statefulsets",
        "Name:string:name:0 Ready:string::0 Age:string::0 Containers:string::1 Images:string::1",
    ),
    (
        "/apis/apps/v1/daemonsets",
        "Name:string:name:0 Desired:integer::0 Current:integer::0 Ready:integer::0 Up-to-date:integer::0 \
      Available:integer::0 Node Selector:string::0 Age:string::0 Containers:string::1 Images:string::1 \
      Selector:string::1",
    ),
    (
        "/apis/batch/v1/jobs",
        "Name:string:name:0 Status:string::0 Completions:string::0 Duration:string::0 Age:string::0 \
      Containers:string::1 Images:string::1 Selector:string::1",
    ),
    (
        "/apis/batch/v1/cronjobs",
        "Name:string:name:0 Schedule:string::0 Timezone:string::0 Suspend:boolean::0 Active:integer::0 \
      Last Schedule:string::0 Age:string::0 Containers:string::1 Images:string::1 Selector:string::1",
    ),
    (
        "/apis/autoscaling/v2/horizontalpodautoscalers",
        "Name:string:name:0 Reference:string::0 Targets:string::0 MinPods:string::0 MaxPods:string::0 \
      Replicas:string::0 Age:string::0",
    ),
    (
        "/api/v1/serviceaccounts",
        "Name:string:name:0 Age:string::0",
    ),
    (
        "/api/v1/events",
        "Last Seen:string::0 Type:string::0 Reason:string::0 Object:string::0 Subobject:string::1 \
      Source:string::1 Message:string::0 First Seen:string::1 Count:string::1 Name:string:name:1",
    ),
    (
        "/apis/events.k8s.io/v1/events",
        "Last Seen:string::0 Type:string::0 Reason:string::0 Object:string::0 Subobject:string::1 \
      Source:string::1 Message:string::0 First Seen:string::1 Count:string::1 Name:string:name:1",
    ),
    (
        "/apis/discovery.k8s.io/v1/endpointslices",
        "Name:string:name:0 AddressType:string::0 Ports:string::0 Endpoints:string::0 Age:string::0",
    ),
    (
        "/apis/coordination.k8s.io/v1/leases",
        "Name:string:name:0 Holder:string::0 Age:string::0",
    ),
    (
        "/apis/networking.k8s.io/v1/ingresses",
        "Name:string:name:0 Class:string::0 Hosts:string::0 Address:string::0 Ports:string::0 Age:string::0",
    ),
    (
        "/apis/networking.k8s.io/v1/ingressclasses",
        "Name:string:name:0 Controller:string::0 Parameters:string::0 Age:string::0",
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "Name:string:name:0 Created At:date::0",
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/roles",
        "Name:string:name:0 Created At:date::0",
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "Name:string:name:0 Created At:date::0",
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        "Name:string:name:0 Role:string::0 Age:string::0 \
      Users:string::1 Groups:string::1 ServiceAccounts:string::1",
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "Name:string:name:0 Role:string::0 Age:string::0 \
      Users:string::1 Groups:string::1 ServiceAccounts:string::1",
    ),
];

pub(super) async fn built_in_kinds_have_columns(server: Server) -> Result<()> {
    for (path, expected) in COLUMNS {
        let table = server
            .get_as(&format!("{path}?limit=1"), TABLE)
            .await?
            .expect(200)?;
        check_eq!(columns(&table).join(" "), expected, "{path}");
    }
    Ok(())
}

/// Returns objects of built-in kinds with the cells of their rows; the age is `AGE`.
fn rows() -> [(&'static str, &'static str, Value, Value); 6] {
    [
        (
            "api/v1",
            "services",
            json!({ "spec": { "clusterIP": "None", "selector": { "a": "b" },
            "ports": [{ "name": "a", "port": 80 }, { "name": "b", "port": 53, "protocol": "UDP" }] } }),
            json!([
                "one",
                "ClusterIP",
                "None",
                "<none>",
                "80/TCP,53/UDP",
                "AGE",
                "a=b"
            ]),
        ),
        (
            "api/v1",
            "configmaps",
            json!({ "data": { "a": "b" } }),
            json!(["one", 1, "AGE"]),
        ),
        (
            "api/v1",
            "secrets",
            json!({ "stringData": { "a": "b" } }),
            json!(["one", "Opaque", 1, "AGE"]),
        ),
        (
            "apis/coordination.k8s.io/v1",
            "leases",
            json!({ "spec": { "holderIdentity": "me" } }),
            json!(["one", "me", "AGE"]),
        ),
        (
            "apis/discovery.k8s.io/v1",
            "endpointslices",
            json!({ "addressType": "IPv4",
            "ports": [{ "name": "a", "port": 80 }, { "name": "b", "port": 81 }, { "name": "c", "port": 82 }, { "name": "d", "port": 83 }],
            "endpoints": [{ "addresses": ["10.0.0.1"] }, { "addresses": ["10.0.0.2"] }] }),
            json!([
                "one",
                "IPv4",
                "80,81,82 + 1 more...",
                "10.0.0.1,10.0.0.2",
                "AGE"
            ]),
        ),
        (
            "apis/networking.k8s.io/v1",
            "ingresses",
            json!({ "spec": { "ingressClassName": "c", "tls": [{ "hosts": ["a"] }],
            "rules": [{ "host": "a" }, { "host": "b" }, { "host": "c" }, { "host": "d" }] } }),
            json!(["one", "c", "a,b,c + 1 more...", "", "80, 443", "AGE"]),
        ),
    ]
}

/// Built-in kinds fill their cells.
pub(super) async fn builtin_kinds_fill_cells(server: Server) -> Result<()> {
    for (version, plural, mut object, expected) in rows() {
        let path = server.collection(version, plural).await?;
        object["metadata"] = json!({ "name": "one" });
        server.create(&path, &object).await?;
        let table = server
            .get_as(&format!("{path}/one"), TABLE)
            .await?
            .expect(200)?;
        let mut cells = table["rows"][0]["cells"].clone();
        let age = columns(&table)
            .iter()
            .position(|column| column.starts_with("Age:"))
            .unwrap_or_default();
        check!(
            cells[age].as_str().is_some_and(|age| age.ends_with('s')),
            cells
        );
        cells[age] = json!("AGE");
        check_eq!(cells, expected, "{plural}");
    }
    Ok(())
}

/// The objects that operators list most, each with its spec, its status and the cells of its row; the age is `AGE`.
const WORKLOADS: &str = include_str!("workloads.json");

pub(super) async fn workloads_fill_their_cells(server: Server) -> Result<()> {
    let workloads: Vec<(String, String, Value, Value, Value)> = serde_json::from_str(WORKLOADS)?;
    for (version, plural, spec, status, expected) in workloads {
        let path = server.collection(&version, &plural).await?;
        let object = json!({ "metadata": { "name": "one" }, "spec": spec });
        server.create(&path, &object).await?;
        let one = format!("{path}/one");
        let status = json!({ "status": status });
        let reported = server
            .patch(&format!("{one}/status"), MERGE, &status)
            .await?;
        reported.expect(200)?;
        let table = server.get_as(&one, TABLE).await?.expect(200)?;
        let mut cells = table["rows"][0]["cells"].clone();
        let age = columns(&table)
            .iter()
            .position(|column| column.starts_with("Age:"));
        cells[age.unwrap_or_default()] = json!("AGE");
        let cells = cells.as_array().cloned().unwrap_or_default();
        // The selector of a Job has its uid.
        let compared = expected.as_array().map_or(0, Vec::len);
        check_eq!(
            json!(cells[..compared.min(cells.len())]),
            expected,
            "{plural}"
        );
    }
    Ok(())
}

/// A row has as much of its object as was requested.
pub(super) async fn row_holds_requested_object(server: Server) -> Result<()> {
    let (path, map) = server.config_map().await?;
    let row = async |query: &str| -> Result<Value> {
        let table = server
            .get_as(&format!("{path}?{query}"), TABLE)
            .await?
            .expect(200)?;
        Ok(table["rows"][0]["object"].clone())
    };
    check_eq!(row("includeObject=None").await?, Value::Null);
    let partial = json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": map["metadata"] });
    check_eq!(row("").await?, partial);
    check_eq!(row("includeObject=Metadata").await?, partial);
    check_eq!(row("includeObject=Object").await?, map);
    let response = server
        .get_as(&format!("{path}?includeObject=All"), TABLE)
        .await?;
    response.refused(400, "BadRequest")?;
    Ok(())
}

pub(super) async fn a_table_has_pages(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    for name in ["a", "b", "c"] {
        server
            .create(&path, &json!({ "metadata": { "name": name } }))
            .await?;
    }
    let table = server
        .get_as(&format!("{path}?limit=2"), TABLE)
        .await?
        .expect(200)?;
    check_eq!(table["metadata"]["remainingItemCount"], 1);
    check!(table["metadata"]["continue"].is_string(), table["metadata"]);
    check_eq!(table["rows"].as_array().map(Vec::len), Some(2));
    Ok(())
}

pub(super) async fn watched_table_names_columns_once(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    server
        .create(&path, &json!({ "metadata": { "name": "one" } }))
        .await?;
    let mut watch = server
        .watch_as(&format!("{path}?watch=true"), TABLE)
        .await?;
    let first = watch.expect("ADDED").await?;
    check_eq!(first["kind"], "Table");
    check_eq!(columns(&first).len(), 3);
    check_eq!(first["rows"][0]["cells"][0], "one");
    let second = server
        .create(&path, &json!({ "metadata": { "name": "two" } }))
        .await?;
    let event = watch.expect("ADDED").await?;
    check_eq!(event["columnDefinitions"], Value::Null);
    check_eq!(
        event["metadata"],
        json!({ "resourceVersion": version(&second) })
    );
    check_eq!(event["rows"][0]["object"]["metadata"], second["metadata"]);
    Ok(())
}

pub(super) async fn metadata_comes_alone(server: Server) -> Result<()> {
    let (one, widget) = widget(&server, json!({ "color": "red" })).await?;
    let partial = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": widget["metadata"],
    });
    check_eq!(server.get_as(&one, METADATA).await?.expect(200)?, partial);
    let path = server.widgets().await?;
    let list = server.get_as(&path, METADATA_LIST).await?.expect(200)?;
    check_eq!(list["kind"], "PartialObjectMetadataList");
    check_eq!(list["items"][0]["metadata"], widget["metadata"]);
    check_eq!(list["items"][0].get("spec"), None);
    server
        .get_as(&path, METADATA)
        .await?
        .refused(406, "NotAcceptable")?;
    let mut watch = server
        .watch_as(&format!("{path}?watch=true"), METADATA)
        .await?;
    check_eq!(watch.expect("ADDED").await?, partial);
    Ok(())
}

/// A written object can come back as a table.
pub(super) async fn write_can_return_table(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let body = json!({ "metadata": { "name": "one" } }).to_string();
    let headers = [("Accept", TABLE), ("Content-Type", "application/json")];
    let table = server
        .send(http::Method::POST, &path, &headers, body)
        .await?
        .expect(201)?;
    check_eq!(table["kind"], "Table");
    check_eq!(table["rows"][0]["cells"][0], "one");
    Ok(())
}

/// A media type that cannot be served is not acceptable.
pub(super) async fn unservable_form_is_not_acceptable(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    for accept in ["text/html", "application/json;as=Chart;v=v1;g=meta.k8s.io"] {
        let message = server
            .get_as(&path, accept)
            .await?
            .refused(406, "NotAcceptable")?;
        check!(
            message.starts_with("only the following media types are accepted: application/json"),
            message
        );
    }
    check_eq!(
        server
            .get_as(&path, "application/vnd.kubernetes.protobuf")
            .await?
            .code,
        406
    );
    for accept in [
        "*/*",
        "application/*",
        "application/vnd.kubernetes.protobuf,application/json",
        "application/json; charset=utf-8",
    ] {
        server.get_as(&path, accept).await?.expect(200)?;
    }
    Ok(())
}
