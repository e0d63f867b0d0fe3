//! The metrics and labels of a query of Prometheus, as far as its words tell them.

use std::collections::BTreeSet;

/// The metrics and labels of a query.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) series: Vec<Series>,
    /// The labels by which it groups and matches.
    pub(super) grouped: BTreeSet<String>,
}

/// A selector of series.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Series {
    /// The name of the metric, or a pattern of names.
    pub(super) name: String,
    /// The labels that it selects by.
    pub(super) labels: Vec<String>,
}

/// The words that are followed by labels.
const GROUPING: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];
/// The words between vectors.
const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];
/// The series of Prometheus itself that have no page of ours.
const OF_PROMETHEUS: [&str; 2] = ["ALERTS", "ALERTS_FOR_STATE"];

/// Reads a query.
pub(super) fn parse(query: &str) -> Query {
    let mut parsed = Query::default();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        if is_of_word(first) && !first.is_ascii_digit() {
            let (word, after) = split_word(rest);
            rest = after.trim_start();
            if GROUPING.contains(&word) {
                let (labels, after) = enclosed(rest, '(', ')');
                let labels = labels.split(',').map(|label| label.trim().to_owned());
                parsed
                    .grouped
                    .extend(labels.filter(|label| !label.is_empty()));
                rest = after;
            } else if !is_called(rest) && !OPERATORS.contains(&word) {
                let (matchers, after) = enclosed(rest, '{', '}');
                rest = after;
                if !OF_PROMETHEUS.contains(&word) {
                    parsed.series.push(Series::new(word, matchers));
                }
            }
        } else if first == '{' {
            let (matchers, after) = enclosed(rest, '{', '}');
            parsed.series.push(Series::new("", matchers));
            rest = after;
        } else if first == '[' {
            rest = enclosed(rest, '[', ']').1;
        } else if first == '"' {
            rest = enclosed(rest, '"', '"').1;
        } else if first.is_ascii_digit() {
            rest = split_word(rest).1;
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    parsed
}

impl Series {
    fn new(name: &str, matchers: &str) -> Self {
        let mut series = Self {
            name: name.to_owned(),
            labels: Vec::new(),
        };
        let mut rest = matchers;
        while let Some((label, after)) = rest.split_once(['=', '!']) {
            let mut quoted = after.splitn(3, '"').skip(1);
            let (value, after) = (quoted.next(), quoted.next());
            match label.trim_matches([' ', ',']) {
                "__name__" => value.unwrap_or_default().clone_into(&mut series.name),
                label => series.labels.push(label.to_owned()),
            }
            rest = after.unwrap_or_default();
        }
        series
    }
}

/// Returns `true` if the text after a word makes it a function or an aggregation, as in `sum by (job) (…)`.
fn is_called(rest: &str) -> bool {
    rest.starts_with('(') || matches!(split_word(rest).0, "by" | "without")
}

fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == ':'
}

/// Splits the word off at the start of a text.
fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|character| !is_of_word(character));
    text.split_at(end.unwrap_or(text.len()))
}

/// Splits off the part between two brackets at the start of a text; nothing if there is none.
fn enclosed(text: &str, open: char, close: char) -> (&str, &str) {
    let inside = text.strip_prefix(open);
    let split = inside.and_then(|inside| inside.split_once(close));
    split.unwrap_or(("", text))
}

#[test]
fn words_of_queries_are_told_apart() {
    let query = r#"sum by (job, code) (increase({__name__=~"a_.+_b", code!~"4..|5.."}[5m])) / on (job) c_d{x="1"} > 0.5 and e unless time() - label_replace(f, "to", "$1", "from", "(.+)")"#;
    let parsed = parse(query);
    let series = |name: &str, labels: &[&str]| Series {
        name: name.to_owned(),
        labels: labels.iter().map(ToString::to_string).collect(),
    };
    let expected = [
        series("a_.+_b", &["code"]),
        series("c_d", &["x"]),
        series("e", &[]),
        series("f", &[]),
    ];
    assert_eq!(parsed.series, expected);
    assert_eq!(parsed.grouped, ["code", "job"].map(str::to_owned).into());
}
