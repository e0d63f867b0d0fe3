//! Malformed requests, which get a clear error.

use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::server::{JSON, MERGE, Server, YAML};

/// A body that is no JSON is refused.
pub(super) async fn malformed_json_is_refused(server: Server) -> Result<()> {
    let (maps, widgets) = (server.config_maps().await?, server.widgets().await?);
    for body in [
        "{",
        "",
        "nonsense",
        "[]",
        "7",
        "\"text\"",
        "null",
        "{\"metadata\":",
        "{}{}",
        "\u{0}",
    ] {
        for path in [&maps, &widgets] {
            let response = server.post_as(path, JSON, body).await?;
            check!(matches!(response.code, 400 | 422), (path, body, response));
            check_eq!(
                (&response.body["kind"], &response.body["status"]),
                (&json!("Status"), &json!("Failure"))
            );
        }
    }
    server
        .post_as(&widgets, YAML, "a: [b")
        .await?
        .refused(400, "BadRequest")?;
    Ok(())
}

/// A body that is no text gets a response.
pub(super) async fn binary_body_gets_response(server: Server) -> Result<()> {
    let (maps, widgets) = (server.config_maps().await?, server.widgets().await?);
    let mut body = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#.to_vec();
    body.insert(20, 0xff);
    for path in [maps, widgets] {
        let response = server
            .send(Method::POST, &path, &[("Content-Type", JSON)], body.clone())
            .await?;
        check!(matches!(response.code, 201 | 400 | 422), response);
        check!(response.body.is_object(), response);
    }
    Ok(())
}

/// JSON that nests without end is refused.
pub(super) async fn endless_nesting_is_refused(server: Server) -> Result<()> {
    let (maps, widgets) = (server.config_maps().await?, server.widgets().await?);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(
        r#"{{"apiVersion":"conformance.example.com/v1","kind":"Widget","metadata":{{"name":"a"}},"spec":{{"free":{{"a":{deep}}}}}}}"#
    );
    for path in [&maps, &widgets] {
        let response = server.post_as(path, JSON, &deep).await?;
        check!((400..500).contains(&response.code), response.code);
        check_eq!(response.body["kind"], "Status");
    }
    let response = server
        .send(
            Method::PATCH,
            &format!("{maps}/none"),
            &[("Content-Type", MERGE)],
            deep,
        )
        .await?;
    check!((400..500).contains(&response.code), response.code);
    Ok(())
}

/// Numbers may be of any size.
pub(super) async fn numbers_have_any_size(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    for number in [
        "1e400",
        "-1e400",
        "123456789012345678901234567890",
        "1.5",
        "1e2",
        "-0",
    ] {
        let body = format!(
            r#"{{"apiVersion":"conformance.example.com/v1","kind":"Widget","metadata":{{"generateName":"a"}},"spec":{{"size":{number}}}}}"#
        );
        let response = server.post_as(&path, JSON, &body).await?;
        check!(matches!(response.code, 201 | 400 | 422), (number, response));
    }
    Ok(())
}

/// A wrong type is refused with its field.
pub(super) async fn wrong_type_names_its_field(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    for (spec, field) in [
        (json!({ "size": "big" }), "spec.size"),
        (json!({ "tags": "a" }), "spec.tags"),
        (json!({ "tags": [1] }), "spec.tags[0]"),
        (json!({ "on": "yes" }), "spec.on"),
        (json!([]), "spec"),
        (json!("text"), "spec"),
        (
            json!({ "rules": [{ "operator": 7 }] }),
            "spec.rules[0].operator",
        ),
    ] {
        let widget = json!({
            "apiVersion": "conformance.example.com/v1", "kind": "Widget", "metadata": { "name": "a" }, "spec": spec,
        });
        let response = server.post(&path, &widget).await?;
        check_eq!(response.body["details"]["causes"][0]["field"], field);
        let message = response.refused(422, "Invalid")?;
        check!(message.contains("in body must be of type"), message);
    }
    for metadata in [
        json!([]),
        json!("text"),
        json!({ "name": 7 }),
        json!({ "name": "a", "labels": [] }),
        json!({ "name": "a", "labels": { "a": 1 } }),
    ] {
        let widget = json!({
            "apiVersion": "conformance.example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {},
        });
        server
            .post(&path, &widget)
            .await?
            .refused(400, "BadRequest")?;
    }
    Ok(())
}

pub(super) async fn an_unknown_operator_is_refused(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let widget = json!({
        "apiVersion": "conformance.example.com/v1", "kind": "Widget", "metadata": { "name": "a" },
        "spec": { "rules": [{ "operator": "Equal" }, { "operator": "Similar" }] },
    });
    let message = server.post(&path, &widget).await?.refused(422, "Invalid")?;
    check_eq!(
        message,
        "Widget.conformance.example.com \"a\" is invalid: spec.rules[1].operator: \
         Unsupported value: \"Similar\": supported values: \"Equal\", \"NotEqual\""
    );
    Ok(())
}

pub(super) async fn ten_thousand_names_are_kept(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let tags: Vec<_> = (0..10_000)
        .map(|number| format!("member{number}"))
        .collect();
    let widget = json!({
        "apiVersion": "conformance.example.com/v1", "kind": "Widget", "metadata": { "name": "a" }, "spec": { "tags": tags },
    });
    let created = server.create(&path, &widget).await?;
    check_eq!(
        created["spec"]["tags"].as_array().map(Vec::len),
        Some(10_000)
    );
    Ok(())
}

/// An object of two mebibytes is refused.
pub(super) async fn two_mebibyte_object_is_refused(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let widget = json!({
        "apiVersion": "conformance.example.com/v1", "kind": "Widget", "metadata": { "name": "a" },
        "spec": { "tags": ["x".repeat(2 << 20)] },
    });
    let response = server.post(&path, &widget).await?;
    check_eq!(
        (response.code, &response.body["kind"]),
        (500, &json!("Status"))
    );
    let widget = json!({
        "apiVersion": "conformance.example.com/v1", "kind": "Widget", "metadata": { "name": "a" },
        "spec": { "tags": ["x".repeat(1_800_000)] },
    });
    let response = server.post(&path, &widget).await?;
    check_eq!(
        (response.code, &response.body["message"]),
        (500, &json!("etcdserver: request is too large"))
    );
    let path = server.config_maps().await?;
    let map = json!({ "metadata": { "name": "a" }, "data": { "a": "x".repeat(2 << 20) } });
    let message = server.post(&path, &map).await?.refused(422, "Invalid")?;
    check!(message.contains("Too long"), message);
    Ok(())
}

/// A body of four mebibytes is refused.
pub(super) async fn four_mebibyte_body_is_refused(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let body = json!({ "metadata": { "name": "a" }, "spec": { "tags": ["x".repeat(4 << 20)] } });
    server
        .post(&path, &body)
        .await?
        .refused(413, "RequestEntityTooLarge")?;
    Ok(())
}

pub(super) async fn odd_paths_get_a_response(server: Server) -> Result<()> {
    server.namespace().await?;
    let widgets = format!(
        "/apis/conformance.example.com/v1/namespaces/{}/widgets",
        server.name
    );
    for path in [
        format!("{widgets}/%00"),
        format!("{widgets}/%ff%fe"),
        format!("{widgets}/a%2Fb"),
        format!("{widgets}/%2e%2e"),
        format!("{widgets}/{}", "a".repeat(5000)),
        format!("{widgets}/a/status/b"),
        format!("{widgets}/a/none"),
        "/apis/conformance.example.com/v1/namespaces//widgets/a".to_owned(),
        "/api/v1/namespaces/%00/configmaps/a".to_owned(),
    ] {
        let response = server.get(&path).await?;
        check!((300..500).contains(&response.code), (path, response));
    }
    Ok(())
}

pub(super) async fn odd_queries_get_a_response(server: Server) -> Result<()> {
    let widgets = server.widgets().await?;
    for (query, code) in [
        ("limit=-1", 200),
        ("limit=99999999999999999999", 400),
        ("timeoutSeconds=x&watch=true", 400),
        ("continue=%ff", 400),
        ("labelSelector=%00", 200),
        ("fieldSelector=%ff%fe%3Da", 400),
        ("resourceVersion=-1", 400),
        ("resourceVersion=99999999999999999999999", 400),
        ("&&&", 200),
        ("=", 200),
        ("%", 200),
        ("unknown=1", 200),
        ("labelSelector=((((((((((((((((", 400),
        ("fieldSelector=a%5C", 400),
    ] {
        let response = server.get(&format!("{widgets}?{query}")).await?;
        check_eq!(response.code, code, "{query} {}", response.text);
        let kind = if code == 200 { "WidgetList" } else { "Status" };
        check_eq!(response.body["kind"], kind, "{query}");
    }
    Ok(())
}

pub(super) async fn duplicate_fields_are_reported(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let body = r#"{"apiVersion":"conformance.example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1,"size":2}}"#;
    let strict = server
        .post_as(&format!("{path}?fieldValidation=Strict"), JSON, body)
        .await?;
    check_eq!(
        strict.refused(400, "BadRequest")?,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: duplicate field \"spec.size\""
    );
    let response = server.post_as(&path, JSON, body).await?;
    check_eq!(
        response.warnings(),
        [r#"299 - "duplicate field \"spec.size\"""#]
    );
    check_eq!(response.expect(201)?["spec"]["size"], 2);
    Ok(())
}
