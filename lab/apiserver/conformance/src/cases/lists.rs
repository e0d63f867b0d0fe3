//! Lists: pages and selectors.

use anyhow::Result;
use serde_json::json;

use crate::server::{Server, names, version};

/// Creates `ConfigMap`s `a` to `e`, each with its name as label `is` and some with further labels.
async fn five(server: &Server) -> Result<String> {
    let path = server.config_maps().await?;
    for name in ["e", "b", "d", "a", "c"] {
        let mut map = json!({ "metadata": { "name": name, "labels": { "is": name } } });
        if matches!(name, "a" | "b") {
            map["metadata"]["labels"]["early"] = json!("yes");
        }
        server.create(&path, &map).await?;
    }
    Ok(path)
}

/// A list is sorted and has a version.
pub(super) async fn list_is_sorted_and_versioned(server: Server) -> Result<()> {
    let path = five(&server).await?;
    let list = server.get(&path).await?.expect(200)?;
    check_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("ConfigMapList"), &json!("v1"))
    );
    check_eq!(names(&list), ["a", "b", "c", "d", "e"]);
    check!(version(&list).parse::<u64>().is_ok(), list["metadata"]);
    check_eq!(list["items"][0].get("kind"), None);
    Ok(())
}

pub(super) async fn custom_list_items_have_types(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    let empty = server.get(&path).await?.expect(200)?;
    check_eq!(
        (&empty["kind"], &empty["items"]),
        (&json!("WidgetList"), &json!([]))
    );
    let widget = json!({
        "apiVersion": "conformance.example.com/v1", "kind": "Widget", "metadata": { "name": "one" }, "spec": {},
    });
    server.create(&path, &widget).await?;
    let list = server.get(&path).await?.expect(200)?;
    check_eq!(list["items"][0]["kind"], "Widget");
    check_eq!(list["items"][0]["apiVersion"], "conformance.example.com/v1");
    Ok(())
}

pub(super) async fn pages_follow_each_other(server: Server) -> Result<()> {
    let path = five(&server).await?;
    let mut found = Vec::new();
    let mut next = String::new();
    let mut left = vec![];
    loop {
        let page = server
            .get(&format!("{path}?limit=2&continue={next}"))
            .await?
            .expect(200)?;
        found.extend(names(&page).into_iter().map(ToOwned::to_owned));
        left.push(page["metadata"]["remainingItemCount"].clone());
        page["metadata"]["continue"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut next);
        if next.is_empty() {
            break;
        }
    }
    check_eq!(found, ["a", "b", "c", "d", "e"]);
    check_eq!(left, [json!(3), json!(1), json!(null)]);
    Ok(())
}

/// All pages show the objects of the time of the first.
pub(super) async fn later_pages_show_first_version(server: Server) -> Result<()> {
    let path = five(&server).await?;
    let page = server.get(&format!("{path}?limit=2")).await?.expect(200)?;
    server
        .create(&path, &json!({ "metadata": { "name": "cc" } }))
        .await?;
    server.delete(&format!("{path}/d")).await?.expect(200)?;
    let next = page["metadata"]["continue"].as_str().unwrap_or_default();
    let rest = server
        .get(&format!("{path}?limit=9&continue={next}"))
        .await?
        .expect(200)?;
    check_eq!(names(&rest), ["c", "d", "e"]);
    check_eq!(version(&rest), version(&page));
    Ok(())
}

/// A page that begins nowhere is refused.
pub(super) async fn malformed_continue_is_refused(server: Server) -> Result<()> {
    let path = five(&server).await?;
    for token in ["nonsense", "e30", "%25"] {
        let response = server
            .get(&format!("{path}?limit=2&continue={token}"))
            .await?;
        let message = response.refused(400, "BadRequest")?;
        check!(message.contains("continue key is not valid"), message);
    }
    for (query, why) in [
        (
            "limit=many",
            "strconv.ParseInt: parsing \"many\": invalid syntax",
        ),
        (
            "limit=99999999999999999999",
            "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
        ),
        (
            "timeoutSeconds=x",
            "strconv.ParseInt: parsing \"x\": invalid syntax",
        ),
    ] {
        check_eq!(
            server
                .get(&format!("{path}?{query}"))
                .await?
                .refused(400, "BadRequest")?,
            why
        );
    }
    Ok(())
}

pub(super) async fn labels_select(server: Server) -> Result<()> {
    let path = five(&server).await?;
    for (selector, expected) in [
        ("is%3Da", "a"),
        ("is%3D%3Da", "a"),
        ("is!%3Da", "b,c,d,e"),
        ("is+in+(a,c)", "a,c"),
        ("is%20notin%20(a,c)", "b,d,e"),
        ("early", "a,b"),
        ("!early", "c,d,e"),
        ("early%3Dyes,is!%3Da", "b"),
        ("nothing%3Da", ""),
        ("nothing!%3Da", "a,b,c,d,e"),
        ("nothing+notin+(a)", "a,b,c,d,e"),
        ("", "a,b,c,d,e"),
    ] {
        let list = server
            .get(&format!("{path}?labelSelector={selector}"))
            .await?
            .expect(200)?;
        check_eq!(names(&list).join(","), expected, "{selector}");
    }
    Ok(())
}

pub(super) async fn malformed_label_selectors_are_refused(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    for (bad, why) in [
        (
            "is+in+a",
            "unable to parse requirement: found 'a' expected: '('",
        ),
        (
            "is+in+(a",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a+b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "%3Da",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        (
            "is%3D%3D%3Da",
            "unable to parse requirement: found '=', expected: identifier",
        ),
        ("is%3Db%20c", "found 'c', expected: ',' or 'end of string'"),
        ("is,", "found '', expected: identifier after ','"),
        ("!is%3Da", "found '=', expected: ',' or 'end of string'"),
        (
            "is%3Eb",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "-is",
            "unable to parse requirement: <nil>: Invalid value: \"-is\": name part must consist of alphanumeric characters",
        ),
        (
            "is%3D-",
            "unable to parse requirement: values[0][is]: Invalid value: \"-\": a valid label must be an empty string or consist of",
        ),
    ] {
        let message = server
            .get(&format!("{path}?labelSelector={bad}"))
            .await?
            .refused(400, "BadRequest")?;
        check!(message.starts_with(why), (bad, message));
    }
    Ok(())
}

pub(super) async fn labels_select_by_number(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    for (name, weight) in [("a", "5"), ("b", "50"), ("c", "heavy")] {
        let map = json!({ "metadata": { "name": name, "labels": { "weight": weight } } });
        server.create(&path, &map).await?;
    }
    for (selector, expected) in [("weight%3E5", "b"), ("weight%3C50", "a")] {
        let list = server
            .get(&format!("{path}?labelSelector={selector}"))
            .await?
            .expect(200)?;
        check_eq!(names(&list).join(","), expected, "{selector}");
    }
    Ok(())
}

pub(super) async fn fields_select(server: Server) -> Result<()> {
    let path = five(&server).await?;
    for (selector, expected) in [
        ("metadata.name%3Da".to_owned(), "a"),
        ("metadata.name!%3Da".to_owned(), "b,c,d,e"),
        (format!("metadata.namespace%3D{}", server.name), "a,b,c,d,e"),
        ("metadata.namespace%3Dother".to_owned(), ""),
        (String::new(), "a,b,c,d,e"),
    ] {
        let list = server
            .get(&format!("{path}?fieldSelector={selector}"))
            .await?
            .expect(200)?;
        check_eq!(names(&list).join(","), expected, "{selector}");
    }
    let message = server
        .get(&format!("{path}?fieldSelector=data.a%3Db"))
        .await?
        .refused(400, "BadRequest")?;
    check_eq!(
        message,
        r#""data.a" is not a known field selector: only "metadata.name", "metadata.namespace""#
    );
    for (bad, why) in [
        (
            "nonsense",
            "invalid selector: 'nonsense'; can't understand 'nonsense'",
        ),
        (
            "metadata.name%3Da%3Db",
            "invalid field selector: unescaped character in value: 61",
        ),
        (
            "metadata.name%3D%5Cx",
            "invalid field selector: invalid escape sequence: \\x",
        ),
    ] {
        let message = server
            .get(&format!("{path}?fieldSelector={bad}"))
            .await?
            .refused(400, "BadRequest")?;
        check_eq!(message, why);
    }
    Ok(())
}

/// Custom resources are selected by fields they name.
pub(super) async fn selectable_fields_select_custom_resources(server: Server) -> Result<()> {
    let path = server.widgets().await?;
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        let widget = json!({
            "apiVersion": "conformance.example.com/v1", "kind": "Widget",
            "metadata": { "name": name }, "spec": { "color": color },
        });
        server.create(&path, &widget).await?;
    }
    let list = server
        .get(&format!("{path}?fieldSelector=spec.color%3Dred"))
        .await?
        .expect(200)?;
    check_eq!(names(&list), ["a", "c"]);
    let list = server
        .get(&format!(
            "{path}?fieldSelector=spec.color!%3Dred,metadata.name%3Db"
        ))
        .await?
        .expect(200)?;
    check_eq!(names(&list), ["b"]);
    let message = server
        .get(&format!("{path}?fieldSelector=spec.size%3D3"))
        .await?
        .refused(400, "BadRequest")?;
    check!(
        message.contains("field label not supported: spec.size"),
        message
    );
    Ok(())
}

pub(super) async fn all_namespaces_are_listed_together(server: Server) -> Result<()> {
    five(&server).await?;
    let list = server
        .get("/api/v1/configmaps?labelSelector=is")
        .await?
        .expect(200)?;
    let own = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|map| map["metadata"]["namespace"] == server.name.as_str());
    check_eq!(own.count(), 5);
    Ok(())
}

/// A list can be of an older version.
pub(super) async fn list_may_be_older(server: Server) -> Result<()> {
    let path = five(&server).await?;
    let before = server.get(&path).await?.expect(200)?;
    server.delete(&format!("{path}/a")).await?.expect(200)?;
    let exact = format!(
        "{path}?resourceVersion={}&resourceVersionMatch=Exact",
        version(&before)
    );
    let list = server.get(&exact).await?.expect(200)?;
    check_eq!(names(&list), ["a", "b", "c", "d", "e"]);
    check_eq!(version(&list), version(&before));
    let newer = format!(
        "{path}?resourceVersion={}&resourceVersionMatch=NotOlderThan",
        version(&before)
    );
    let list = server.get(&newer).await?.expect(200)?;
    check!(
        version(&list).parse::<u64>()? >= version(&before).parse::<u64>()?,
        version(&list)
    );
    let any = server
        .get(&format!("{path}?resourceVersion=0&limit=2"))
        .await?
        .expect(200)?;
    check_eq!(
        (names(&any), any["metadata"]["remainingItemCount"].clone()),
        (vec!["b", "c", "d", "e"], json!(null))
    );
    let page = server
        .get(&format!(
            "{path}?resourceVersion={}&limit=2",
            version(&before)
        ))
        .await?
        .expect(200)?;
    check_eq!(
        (names(&page), version(&page)),
        (vec!["a", "b"], version(&before))
    );
    Ok(())
}

/// A version that is none is refused.
pub(super) async fn malformed_version_is_refused(server: Server) -> Result<()> {
    let path = five(&server).await?;
    for (query, code, reason) in [
        ("resourceVersionMatch=Exact", 422, "Invalid"),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            422,
            "Invalid",
        ),
        (
            "resourceVersion=1&resourceVersionMatch=Sometimes",
            422,
            "Invalid",
        ),
    ] {
        server
            .get(&format!("{path}?{query}"))
            .await?
            .refused(code, reason)?;
    }
    let both = server
        .get(&format!("{path}?resourceVersionMatch=Sometimes"))
        .await?;
    check_eq!(
        both.body["details"]["causes"].as_array().map(Vec::len),
        Some(2)
    );
    let why = "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax";
    let message = server
        .get(&format!("{path}?resourceVersion=abc"))
        .await?
        .refused(400, "BadRequest")?;
    check_eq!(message, format!("invalid resource version: {why}"));
    let response = server.get(&format!("{path}/a?resourceVersion=abc")).await?;
    check_eq!(
        (response.code, &response.body["message"]),
        (500, &json!(why))
    );
    Ok(())
}

/// Reading at a version is not older.
pub(super) async fn read_is_not_older(server: Server) -> Result<()> {
    let path = server.config_maps().await?;
    let map = server
        .create(&path, &json!({ "metadata": { "name": "one" } }))
        .await?;
    for query in [
        format!("resourceVersion={}", version(&map)),
        "resourceVersion=".to_owned(),
    ] {
        check_eq!(
            server
                .get(&format!("{path}/one?{query}"))
                .await?
                .expect(200)?,
            map,
            "{query}"
        );
    }
    Ok(())
}
