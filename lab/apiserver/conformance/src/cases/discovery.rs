//! Discovery, version, metrics and OpenAPI.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::{
    definitions::GROUP,
    server::{APPLY, JSON, MERGE, Server},
};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns the list element with this value of a field.
fn found<'a>(list: &'a Value, field: &str, value: &str) -> Result<&'a Value> {
    let mut elements = list.as_array().into_iter().flatten();
    elements
        .find(|element| element[field] == value)
        .with_context(|| format!("no {value} in {list}"))
}

fn sorted(list: &Value) -> Vec<&str> {
    let mut sorted: Vec<_> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    sorted.sort_unstable();
    sorted
}

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

pub(super) async fn the_version_is_served(server: Server) -> Result<()> {
    let version = server.get("/version").await?.expect(200)?;
    check_eq!(
        (&version["major"], &version["minor"]),
        (&json!("1"), &json!("36"))
    );
    check!(
        version["gitVersion"]
            .as_str()
            .is_some_and(|version| version.starts_with("v1.36.")),
        version
    );
    for path in ["/livez", "/readyz", "/healthz"] {
        check_eq!(server.get(path).await?.text, "ok", "{path}");
    }
    Ok(())
}

/// Sends requests of several kinds for disruption budgets at a path.
async fn use_budgets(server: &Server, path: &str) -> Result<()> {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "one" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "one" } } },
    });
    let one = format!("{path}/one");
    server
        .create(&format!("{path}?dryRun=All"), &budget)
        .await?;
    server.create(path, &budget).await?;
    let again = server.post(path, &budget).await?;
    again.refused(409, "AlreadyExists")?;
    for _ in 0..2 {
        let path = format!("{one}?fieldManager=me&force=true");
        server.patch(&path, APPLY, &budget).await?.expect(200)?;
    }
    server
        .patch(
            &format!("{one}/status"),
            MERGE,
            &json!({ "status": { "currentHealthy": 1 } }),
        )
        .await?
        .expect(200)?;
    server.get(&one).await?.expect(200)?;
    server.get(path).await?.expect(200)?;
    let everywhere = server.get("/apis/policy/v1/poddisruptionbudgets").await?;
    everywhere.expect(200)?;
    server.delete(&one).await?.expect(200)?;
    server.delete(path).await?.expect(200)?;
    Ok(())
}

pub(super) async fn requests_are_counted(server: Server) -> Result<()> {
    // No other case knows this kind, so the count is exact.
    let path = (server.collection("apis/policy/v1", "poddisruptionbudgets")).await?;
    use_budgets(&server, &path).await?;
    let metrics = server.get("/metrics").await?;
    let mut counted: Vec<&str> = metrics
        .text
        .lines()
        .filter(|line| line.contains("resource=\"poddisruptionbudgets\""))
        .collect();
    counted.retain(|line| line.starts_with("apiserver_request_total{"));
    counted.sort_unstable();
    let mut expected = [
        (200, "", "namespace", "", "DELETE", 1),
        (200, "", "namespace", "", "LIST", 1),
        (200, "", "cluster", "", "LIST", 1),
        (200, "", "resource", "", "APPLY", 2),
        (200, "", "resource", "", "DELETE", 1),
        (200, "", "resource", "", "GET", 1),
        (200, "", "resource", "status", "PATCH", 1),
        (201, "", "resource", "", "POST", 1),
        (201, "All", "resource", "", "POST", 1),
        (409, "", "resource", "", "POST", 1),
    ]
    .map(|(code, dry_run, scope, subresource, verb, count)| {
        format!(
            "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"{dry_run}\",group=\"policy\",\
             resource=\"poddisruptionbudgets\",scope=\"{scope}\",subresource=\"{subresource}\",verb=\"{verb}\",version=\"v1\"}} {count}"
        )
    });
    expected.sort_unstable();
    check_eq!(counted, expected);
    Ok(())
}

pub(super) async fn groups_have_versions(server: Server) -> Result<()> {
    let core = server.get("/api").await?.expect(200)?;
    check_eq!(
        (&core["kind"], &core["versions"]),
        (&json!("APIVersions"), &json!(["v1"]))
    );
    let groups = server.get("/apis").await?.expect(200)?;
    check_eq!(groups["kind"], "APIGroupList");
    let own = found(&groups["groups"], "name", GROUP)?;
    let version = json!({ "groupVersion": format!("{GROUP}/v1"), "version": "v1" });
    check_eq!(
        (&own["preferredVersion"], &own["versions"]),
        (&version, &json!([version]))
    );
    let group = server.get(&format!("/apis/{GROUP}")).await?.expect(200)?;
    check_eq!(
        (&group["kind"], &group["name"], &group["versions"]),
        (&json!("APIGroup"), &json!(GROUP), &own["versions"])
    );
    check_eq!(server.get("/apis/none.example.com").await?.code, 404);
    Ok(())
}

pub(super) async fn versions_have_resources(server: Server) -> Result<()> {
    let list = server
        .get(&format!("/apis/{GROUP}/v1"))
        .await?
        .expect(200)?;
    check_eq!(
        (&list["kind"], &list["groupVersion"]),
        (&json!("APIResourceList"), &json!(format!("{GROUP}/v1")))
    );
    let widgets = found(&list["resources"], "name", "widgets")?;
    check_eq!(
        (
            &widgets["singularName"],
            &widgets["kind"],
            &widgets["namespaced"]
        ),
        (&json!("widget"), &json!("Widget"), &json!(true))
    );
    check_eq!(sorted(&widgets["verbs"]), VERBS);
    check_eq!(widgets["shortNames"], json!(["wd"]));
    check_eq!(widgets["categories"], json!(["conformance"]));
    let status = found(&list["resources"], "name", "widgets/status")?;
    check_eq!(
        (&status["kind"], &status["singularName"]),
        (&json!("Widget"), &json!(""))
    );
    check_eq!(sorted(&status["verbs"]), ["get", "patch", "update"]);
    check_eq!(
        found(&list["resources"], "name", "gadgets")?["namespaced"],
        false
    );
    let core = server.get("/api/v1").await?.expect(200)?;
    for (plural, kind, short) in [
        ("configmaps", "ConfigMap", json!(["cm"])),
        ("services", "Service", json!(["svc"])),
        ("namespaces", "Namespace", json!(["ns"])),
        ("nodes", "Node", json!(["no"])),
        ("pods", "Pod", json!(["po"])),
        ("events", "Event", json!(["ev"])),
        ("endpoints", "Endpoints", json!(["ep"])),
        ("serviceaccounts", "ServiceAccount", json!(["sa"])),
        ("secrets", "Secret", Value::Null),
    ] {
        let resource = found(&core["resources"], "name", plural)?;
        check_eq!(
            (&resource["kind"], &resource["shortNames"]),
            (&json!(kind), &short)
        );
    }
    Ok(())
}

pub(super) async fn discovery_comes_in_one_document(server: Server) -> Result<()> {
    let response = server.get_as("/apis", AGGREGATED).await?;
    check_eq!(
        response
            .headers
            .get("content-type")
            .and_then(|value| value.to_str().ok()),
        Some(AGGREGATED)
    );
    let list = response.expect(200)?;
    check_eq!(
        (&list["kind"], &list["apiVersion"]),
        (
            &json!("APIGroupDiscoveryList"),
            &json!("apidiscovery.k8s.io/v2")
        )
    );
    let group = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|item| item["metadata"]["name"] == GROUP)
        .context("the group is not there")?;
    let version = &group["versions"][0];
    check_eq!(
        (&version["version"], &version["freshness"]),
        (&json!("v1"), &json!("Current"))
    );
    let widgets = found(&version["resources"], "resource", "widgets")?;
    let kind = json!({ "group": GROUP, "version": "v1", "kind": "Widget" });
    check_eq!(
        (&widgets["responseKind"], &widgets["scope"]),
        (&kind, &json!("Namespaced"))
    );
    check_eq!(
        (&widgets["singularResource"], &widgets["shortNames"]),
        (&json!("widget"), &json!(["wd"]))
    );
    check_eq!(widgets["categories"], json!(["conformance"]));
    check_eq!(sorted(&widgets["verbs"]), VERBS);
    check_eq!(widgets["subresources"][0]["subresource"], "status");
    let core = server.get_as("/api", AGGREGATED).await?.expect(200)?;
    found(
        &core["items"][0]["versions"][0]["resources"],
        "resource",
        "configmaps",
    )?;
    let both = server
        .get_as("/apis", &format!("{AGGREGATED},{JSON}"))
        .await?
        .expect(200)?;
    check_eq!(both["kind"], "APIGroupDiscoveryList");
    Ok(())
}

/// Checks the description of patches of a widget.
fn check_patch(patch: &Value) -> Result<()> {
    check_eq!(patch["x-kubernetes-action"], "patch");
    check_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({ "group": GROUP, "version": "v1", "kind": "Widget" })
    );
    for parameter in ["dryRun", "fieldManager", "fieldValidation", "force"] {
        check_eq!(
            found(&patch["parameters"], "name", parameter)?["in"],
            "query"
        );
    }
    let types: Vec<_> = patch["requestBody"]["content"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(type_, _)| type_.as_str())
        .collect();
    check_eq!(
        types,
        [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json"
        ]
    );
    Ok(())
}

pub(super) async fn schemas_are_served(server: Server) -> Result<()> {
    let index = server.get("/openapi/v3").await?.expect(200)?;
    let url = index["paths"][format!("apis/{GROUP}/v1")]["serverRelativeURL"]
        .as_str()
        .unwrap_or_default();
    check!(
        url.starts_with(&format!("/openapi/v3/apis/{GROUP}/v1?hash=")),
        url
    );
    let document = server.get(url).await?.expect(200)?;
    let schemas = document["components"]["schemas"]
        .as_object()
        .context("there are no schemas")?;
    let schema = schemas
        .get("com.example.conformance.v1.Widget")
        .context("there is no Widget")?;
    let identity = json!([{ "group": GROUP, "version": "v1", "kind": "Widget" }]);
    check_eq!(schema["x-kubernetes-group-version-kind"], identity);
    check_eq!(schema["description"], "A thing with a size.");
    check_eq!(
        schema["properties"]["spec"]["properties"]["color"]["enum"],
        json!(["red", "green", "blue"])
    );
    let metadata = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    check_eq!(
        schema["properties"]["metadata"]["allOf"],
        json!([{ "$ref": metadata }])
    );
    check!(
        schemas.contains_key("com.example.conformance.v1.WidgetList"),
        schemas.keys()
    );
    for path in [
        "widgets",
        "namespaces/{namespace}/widgets",
        "namespaces/{namespace}/widgets/{name}",
        "namespaces/{namespace}/widgets/{name}/status",
    ] {
        check!(
            document["paths"][format!("/apis/{GROUP}/v1/{path}")].is_object(),
            path
        );
    }
    let patch = &document["paths"]
        [format!("/apis/{GROUP}/v1/namespaces/{{namespace}}/widgets/{{name}}")]["patch"];
    check_patch(patch)
}

/// Follows the reference of a schema, if it is one.
fn resolved<'a>(schemas: &'a Map<String, Value>, schema: &'a Value) -> &'a Value {
    let reference = schema["allOf"][0]["$ref"].as_str();
    let name = reference.and_then(|reference| reference.rsplit('/').next());
    name.and_then(|name| schemas.get(name)).unwrap_or(schema)
}

/// Built-in schemas describe how lists merge.
pub(super) async fn builtin_schemas_describe_list_merges(server: Server) -> Result<()> {
    let document = server.get("/openapi/v3/api/v1").await?.expect(200)?;
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/services/{name}"]["patch"];
    check!(
        patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object(),
        patch["requestBody"]
    );
    let schemas = document["components"]["schemas"]
        .as_object()
        .context("there are no schemas")?;
    for (kind, part, list, keys) in [
        ("Service", "spec", "ports", json!(["port", "protocol"])),
        ("Service", "status", "conditions", json!(["type"])),
        ("Namespace", "status", "conditions", json!(["type"])),
    ] {
        let whole = schemas
            .values()
            .find(|schema| schema["x-kubernetes-group-version-kind"][0]["kind"] == kind)
            .with_context(|| format!("there is no {kind}"))?;
        let part = resolved(schemas, &whole["properties"][part]);
        let list = resolved(schemas, &part["properties"][list]);
        check_eq!(
            (
                &list["x-kubernetes-list-type"],
                &list["x-kubernetes-list-map-keys"],
                &list["x-kubernetes-patch-strategy"],
                &list["x-kubernetes-patch-merge-key"],
            ),
            (&json!("map"), &keys, &json!("merge"), &keys[0]),
            "{kind}"
        );
    }
    Ok(())
}
