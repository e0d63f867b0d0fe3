//! Cells of custom resources, from the columns of their `CustomResourceDefinition`.

use jiff::Timestamp;
use jsonpath_rust::{
    parser::{model::JpQuery, parse_json_path},
    query::js_path_process,
};
use serde_json::{Value, json};

use super::age;
use crate::kinds::Column;

/// The limit of a JSONPath in bytes: longer than any realistic one, and short enough for the
/// recursion of the parser.
const LONGEST_PATH: usize = 1000;

/// The compiled column of a table.
pub(super) struct Cell<'a> {
    type_: &'a str,
    path: Option<JpQuery>,
}

impl<'a> Cell<'a> {
    pub(super) fn new(column: &'a Column) -> Self {
        let path = standard(&column.json_path);
        Self {
            type_: &column.type_,
            path: (path.len() <= LONGEST_PATH)
                .then(|| parse_json_path(&path).ok())
                .flatten(),
        }
    }

    /// Returns the first value of the path in the column's type, or null if there is none or it has
    /// another type.
    pub(super) fn of(&self, object: &Value, now: Timestamp) -> Value {
        let found = self
            .path
            .as_ref()
            .and_then(|path| js_path_process(path, object).ok());
        let Some(value) = found.and_then(|found| found.into_iter().next()) else {
            return Value::Null;
        };
        let value = value.val();
        match (self.type_, value) {
            (_, Value::Null) => Value::Null,
            ("string", Value::String(text)) => json!(text),
            ("string", other) => json!(other.to_string()),
            ("integer", Value::Number(number)) => whole(number),
            ("number", Value::Number(number)) => json!(number.as_f64()),
            ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(time)) => json!(age::since(Some(time), now)),
            _ => Value::Null,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a cell for people")]
fn whole(number: &serde_json::Number) -> Value {
    json!(
        number
            .as_i64()
            .or_else(|| number.as_f64().map(|number| number as i64))
    )
}

/// Translates a path from the Kubernetes dialect to RFC 9535: it starts with `$`, and a name with
/// `\.` is quoted.
fn standard(path: &str) -> String {
    let mut standard = "$".to_owned();
    let mut rest = path;
    while let Some(escape) = rest.find("\\.") {
        let begin = rest[..escape].rfind(['.', ']']).unwrap_or(0);
        let mut name = String::new();
        let mut characters = rest[begin..].char_indices().skip(1).peekable();
        let end = loop {
            match characters.next() {
                Some((_, '\\')) if matches!(characters.peek(), Some((_, '.'))) => {
                    name.push('.');
                    characters.next();
                }
                Some((at, '.' | '[')) => break begin + at,
                Some((_, character)) => name.push(character),
                None => break rest.len(),
            }
        };
        standard.push_str(&rest[..begin]);
        standard.extend(["[", &json!(name).to_string(), "]"]);
        rest = &rest[end..];
    }
    standard.push_str(rest);
    standard
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Cell, standard};
    use crate::kinds::Column;

    fn cell(type_: &str, path: &str, object: &Value) -> Value {
        let column = Column {
            name: "Column".to_owned(),
            type_: type_.to_owned(),
            description: String::new(),
            priority: 0,
            json_path: path.to_owned(),
        };
        Cell::new(&column).of(object, "2026-11-21T09:00:00Z".parse().unwrap())
    }

    /// A cell is the first value its path finds.
    #[test]
    fn cell_is_paths_first_value() {
        let object = json!({
            "metadata": { "annotations": { "example.com/of.dots": "dotted" },
                          "creationTimestamp": "2026-11-21T08:58:00Z" },
            "spec": { "actions": ["A", "B"], "replicas": 3, "share": 1.5, "paused": true,
                      "rules": [{ "host": "a.com" }, { "host": "b.com" }] },
            "status": { "conditions": [{ "type": "Other", "status": "False" },
                                       { "type": "Active", "status": "True" }] },
        });
        for (type_, path, shown) in [
            ("string", ".spec.actions", json!(r#"["A","B"]"#)),
            ("string", ".spec.rules[*].host", json!("a.com")),
            ("string", ".spec.rules[1].host", json!("b.com")),
            (
                "string",
                r#".status.conditions[?(@.type=="Active")].status"#,
                json!("True"),
            ),
            (
                "string",
                r".metadata.annotations.example\.com/of\.dots",
                json!("dotted"),
            ),
            (
                "string",
                ".metadata.annotations['example.com/of.dots']",
                json!("dotted"),
            ),
            ("string", ".spec.replicas", json!("3")),
            ("integer", ".spec.replicas", json!(3)),
            ("integer", ".spec.share", json!(1)),
            ("number", ".spec.share", json!(1.5)),
            ("boolean", ".spec.paused", json!(true)),
            ("date", ".metadata.creationTimestamp", json!("2m")),
            ("integer", ".spec.paused", Value::Null),
            ("string", ".spec.nothing", Value::Null),
            ("string", ".spec[", Value::Null),
            ("string", "", json!(object.to_string())),
        ] {
            assert_eq!(cell(type_, path, &object), shown, "{path}");
        }
    }

    /// A path that nests without end is no path.
    #[test]
    fn endless_path_is_none() {
        let path = format!(".a[?{}", "(".repeat(100_000));
        assert_eq!(cell("string", &path, &json!({ "a": [1] })), Value::Null);
        let path = format!(".a[?{}", "(".repeat(900));
        assert_eq!(cell("string", &path, &json!({ "a": [1] })), Value::Null);
    }

    /// An escaped dot belongs to the name.
    #[test]
    fn escaped_dot_is_literal() {
        assert_eq!(standard(r".a\.b.c"), r#"$["a.b"].c"#);
        assert_eq!(standard(r".x.a\.b\.c[0]"), r#"$.x["a.b.c"][0]"#);
        assert_eq!(standard(r".x[0].a\.b"), r#"$.x[0]["a.b"]"#);
        assert_eq!(standard(".x"), "$.x");
    }
}
