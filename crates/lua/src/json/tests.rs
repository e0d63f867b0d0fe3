use mlua::Lua;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::deadline::Deadline;

fn there_and_back(json: &Json) -> Json {
    let lua = Lua::new();
    let value = decode(&lua, json).unwrap();
    let whole = if json.is_array() {
        Empty::List
    } else {
        Empty::Object
    };
    encode(&value, whole, &[json], Deadline::start()).unwrap()
}

fn encoded(code: &str) -> Result<Json, String> {
    let lua = Lua::new();
    let value = lua.load(code).eval();
    let value = value.map_err(|error| error.to_string())?;
    encode(&value, Empty::Object, &[], Deadline::start()).map_err(|error| match error {
        EncodeError::Invalid(message) => message,
        EncodeError::Halt(error) => error.to_string(),
    })
}

/// Case I71: a null vanishes, and later elements of a list move up.
#[test]
fn nulls_vanish() {
    let json = json!({ "a": null, "list": [1, null, 2], "deep": { "b": null, "c": 1 } });
    let expected = json!({ "list": [1, 2], "deep": { "c": 1 } });
    assert_eq!(there_and_back(&json), expected);
}

/// Case I71: integers stay integers, also those that a double has not.
#[test]
fn integers_stay() {
    let json =
        json!({ "a": 9_007_199_254_740_993_i64, "b": u64::MAX, "c": 1.5, "d": -3, "e": 1e300 });
    assert_eq!(there_and_back(&json), json);
    assert_eq!(
        encoded("return { a = 3.0, b = 2^53, c = 1e20 }").unwrap(),
        json!({
        "a": 3, "b": 9_007_199_254_740_992_i64, "c": 1e20 })
    );
}

/// Case I71: a value without a form in JSON is told in Karmada's words.
#[test]
fn odd_tables_are_refused() {
    for (code, message) in [
        ("return { 1, nil, 3 }", "cannot encode sparse array"),
        ("return { [2] = 1 }", "cannot encode sparse array"),
        (
            "return { 1, a = 2 }",
            "cannot encode mixed or invalid key types",
        ),
        (
            "return { [true] = 1 }",
            "cannot encode mixed or invalid key types",
        ),
        ("return { a = print }", "cannot encode function to JSON"),
        ("return { a = 0/0 }", "json: unsupported value: NaN"),
        ("return { a = 1/0 }", "json: unsupported value: inf"),
        (
            "local t = {} t.t = t return t",
            "cannot encode recursively nested tables to JSON",
        ),
    ] {
        assert_eq!(encoded(code).unwrap_err(), message, "{code}");
    }
    let doubled =
        "local t = { string.rep('x', 2 ^ 20) } for i = 1, 40 do t = { t, t } end return t";
    assert_eq!(encoded(doubled).unwrap_err(), "the result is too large");
}

/// Case I71: a table that stands at two places is at both, and one that is empty inside of others is left out.
#[test]
fn shared_and_empty_tables() {
    let shared = "local t = { 1 } return { a = t, b = t }";
    assert_eq!(encoded(shared).unwrap(), json!({ "a": [1], "b": [1] }));
    for (code, expected) in [
        (
            "return { a = {}, b = { c = {} }, d = 1 }",
            json!({ "b": {}, "d": 1 }),
        ),
        ("return { a = { {}, 1, {} } }", json!({ "a": [1] })),
        ("return { a = { {} } }", json!({ "a": [] })),
    ] {
        assert_eq!(encoded(code).unwrap(), expected, "{code}");
    }
}

/// Returns objects as an API has them: without nulls.
fn objects() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e15_f64..1e15)
            .prop_filter("no integer", |n| n.fract() != 0.0)
            .prop_map(Json::from),
        "[a-zA-Z*?|#@. äß0-9]{0,8}".prop_map(Json::from),
    ];
    let tree = leaf.prop_recursive(4, 40, 5, |inner| {
        let name = "[a-z*?|#@.0-9]{1,4}";
        let fields = prop::collection::btree_map(name, inner.clone(), 0..5);
        prop_oneof![
            fields.prop_map(|fields| Json::Object(fields.into_iter().collect())),
            prop::collection::vec(inner, 1..4).prop_map(Json::Array),
        ]
    });
    let name = "[a-z]{1,4}";
    prop::collection::btree_map(name, tree, 0..5)
        .prop_map(|fields| Json::Object(fields.into_iter().collect()))
}

proptest! {
    /// Case I71: an object that a script does not touch comes back as it was.
    #[test]
    fn objects_come_back(object in objects()) {
        prop_assert_eq!(there_and_back(&object), object);
    }
}
