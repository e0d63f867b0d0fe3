//! The answers of gopher-lua 1.1.1 to the same lines, as the fixtures have them.

use serde::Deserialize;

use super::run;
use crate::error::ScriptError;

/// A line, and its outcome.
#[derive(Deserialize)]
struct Recorded {
    lua: String,
    #[serde(default)]
    returns: Vec<String>,
    /// The error that it raised.
    raises: Option<String>,
}

/// The lines whose errors are raised by Lua itself, which says it in other words.
const WORDED_BY_LUA: [&str; 9] = [
    "table index is nil",
    "attempt to compare",
    "cannot perform concat",
    "cannot perform add",
    "attempt to index",
    "__len undefined",
    "gone",
    "assertion failed!",
    "attempt to call",
];

#[track_caller]
fn compare(fixture: &str) {
    let recorded: Vec<Recorded> = serde_json::from_str(fixture).unwrap();
    assert!(!recorded.is_empty());
    for Recorded {
        lua,
        returns,
        raises,
    } in recorded
    {
        let result = run(&lua);
        match (raises, result) {
            (None, Ok(values)) => {
                assert_eq!(values, returns, "{lua}");
            }
            (Some(message), Err(ScriptError::Run(error))) => {
                let is_luas = WORDED_BY_LUA.iter().any(|text| message.starts_with(text));
                assert!(is_luas || error.ends_with(&message), "{lua}: {error}");
            }
            (raises, result) => panic!("{lua}: {raises:?} {result:?}"),
        }
    }
}

/// Case I72: numbers have the text that they have there.
#[test]
fn numbers_are_written_alike() {
    compare(include_str!("../fixtures/numbers.json"));
}

/// Case I72: `string.format` is Go's.
#[test]
fn formats_are_alike() {
    compare(include_str!("../fixtures/format.json"));
}

/// Case I72: patterns find the same, and are refused in the same words.
#[test]
fn patterns_find_the_same() {
    compare(include_str!("../fixtures/strings.json"));
}

/// Case I72: lists, errors and dates are alike.
#[test]
fn tables_and_dates_are_alike() {
    compare(include_str!("../fixtures/tables.json"));
}

/// Case I72: `pairs` goes by key, numbers first, whatever the order in which a table was filled; gopher-lua's own order
/// is that, or none for decoded JSON.
#[test]
fn pairs_go_by_key() {
    let listed = "local list = {} for key, value in pairs(t) do list[#list + 1] = key .. '=' .. value end return table.concat(list, ' ')";
    for filled in [
        "local t = { b = 2, [10] = 5, a = 1, [2] = 4, c = 3 }",
        "local t = {} t.c = 3 t[2] = 4 t.a = 1 t[10] = 5 t.b = 2 t.d = 1 t.d = nil",
    ] {
        let values = run(&format!("{filled} {listed}")).unwrap();
        assert_eq!(values, ["string 2=4 10=5 a=1 b=2 c=3"], "{filled}");
    }
    let emptied =
        "local t = { a = 1, b = 2 } for key in pairs(t) do t.a, t.b = nil, nil end return next(t)";
    assert_eq!(run(emptied).unwrap(), ["nil nil"]);
}

/// Case I72: `..` is no function that could be replaced: it writes numbers as C does.
#[test]
fn joined_numbers_are_short() {
    let values = run("return 1e15 .. '', 1/3 .. '', 10 .. 20, 'x' .. 2^53").unwrap();
    let expected = ["1e+15", "0.33333333333333", "1020", "x9.007199254741e+15"];
    assert_eq!(values, expected.map(|text| format!("string {text}")));
}

/// Case I72: digits without end are zeros, of which Rust's own formatting would panic for so many.
#[test]
fn many_digits_are_written() {
    let values = run(
        "return #string.format('%.70000f', 1/3), string.format('%.70000e', 1.5):sub(-5), #string.format('%.70000g', 0.5)",
    );
    assert_eq!(
        values.unwrap(),
        ["number 70002", "string 0e+00", "number 3"]
    );
}
