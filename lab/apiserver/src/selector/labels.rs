//! Label selectors (`k8s.io/apimachinery/pkg/labels`): comma-separated requirements, each `key`,
//! `!key`, `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)` or `key>1`.

use std::collections::{BTreeMap, BTreeSet};

use crate::names;

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl Requirement {
    pub(super) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::Exists => value.is_some(),
            Operator::Absent => value.is_none(),
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            // `notin` and `!=` also match objects without the label.
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Above(bound) => number.is_some_and(|number| number > *bound),
            Operator::Below(bound) => number.is_some_and(|number| number < *bound),
        }
    }
}

/// Parses a selector.
///
/// # Errors
/// Returns a message with the token that was found and those that were expected.
pub(super) fn parse(selector: &str) -> Result<Vec<Requirement>, String> {
    // As in kube-apiserver, whose lexer takes a NUL for the end of the text.
    let selector = selector.split('\0').next().unwrap_or_default();
    let mut tokens = Tokens { rest: selector };
    let mut requirements = Vec::new();
    if tokens.peek().is_empty() {
        return Ok(requirements);
    }
    loop {
        let first = tokens.peek();
        if first != "!" && !is_word(first) {
            return Err(format!(
                "found '{first}', expected: !, identifier, or 'end of string'"
            ));
        }
        let requirement = requirement(&mut tokens);
        requirements
            .push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
        match tokens.next() {
            "" => return Ok(requirements),
            "," if tokens.peek() == "!" || is_word(tokens.peek()) => {}
            "," => {
                let found = tokens.peek();
                return Err(format!("found '{found}', expected: identifier after ','"));
            }
            found => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
        }
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let is_absent = tokens.peek() == "!";
    if is_absent {
        tokens.next();
    }
    let key = word(tokens)?;
    if let Some(why) = names::qualified_name(&key) {
        return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
    }
    let operator = match tokens.peek() {
        _ if is_absent => Operator::Absent,
        "" | "," => Operator::Exists,
        operator => {
            tokens.next();
            match operator {
                "in" => Operator::In(checked(&key, list(tokens)?)?),
                "notin" => Operator::NotIn(checked(&key, list(tokens)?)?),
                "=" | "==" => Operator::In(checked(&key, value(tokens)?)?),
                "!=" => Operator::NotIn(checked(&key, value(tokens)?)?),
                ">" => Operator::Above(number(&value(tokens)?)?),
                "<" => Operator::Below(number(&value(tokens)?)?),
                found => {
                    return Err(format!(
                        "found '{found}', expected: in, notin, =, ==, !=, gt, lt"
                    ));
                }
            }
        }
    };
    Ok(Requirement { key, operator })
}

fn word(tokens: &mut Tokens<'_>) -> Result<String, String> {
    match tokens.next() {
        word if is_word(word) => Ok(word.to_owned()),
        found => Err(format!("found '{found}', expected: identifier")),
    }
}

/// Reads the value after an operator, which may be empty.
fn value(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, String> {
    let value = match tokens.peek() {
        "" | "," => String::new(),
        _ => word(tokens)?,
    };
    Ok(BTreeSet::from([value]))
}

/// Reads the values in parentheses. Nothing between two commas is an empty value.
fn list(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, String> {
    let open = tokens.next();
    if open != "(" {
        return Err(format!("found '{open}' expected: '('"));
    }
    let mut values = BTreeSet::new();
    loop {
        values.insert(match tokens.peek() {
            word if is_word(word) => tokens.next().to_owned(),
            _ => String::new(),
        });
        match tokens.next() {
            ")" => return Ok(values),
            "," => {}
            found => return Err(format!("found '{found}', expected: ',' or ')'")),
        }
    }
}

fn checked(key: &str, values: BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    let wrong = (values.iter().enumerate())
        .find_map(|(index, value)| Some((index, value, names::label_value(value)?)));
    match wrong {
        Some((index, value, why)) => Err(format!(
            "values[{index}][{key}]: Invalid value: {value:?}: {why}"
        )),
        None => Ok(values),
    }
}

fn number(values: &BTreeSet<String>) -> Result<i64, String> {
    let value = values.first().map(String::as_str).unwrap_or_default();
    value.parse().map_err(|_| {
        format!(
            "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an \
             integer"
        )
    })
}

/// The tokens of a selector: words, and operators of one or two characters.
#[derive(Clone, Copy)]
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    /// Consumes the next token; empty at the end.
    fn next(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let length = match rest.get(..2) {
            Some("==" | "!=") => 2,
            _ if rest.starts_with(is_sign) => 1,
            _ => rest
                .find(|letter: char| is_sign(letter) || letter.is_whitespace())
                .unwrap_or(rest.len()),
        };
        let (token, rest) = rest.split_at(length);
        self.rest = rest;
        token
    }

    /// Returns the next token without consuming it.
    fn peek(&self) -> &'a str {
        Self { rest: self.rest }.next()
    }
}

fn is_sign(letter: char) -> bool {
    "=!(),<>".contains(letter)
}

fn is_word(token: &str) -> bool {
    token.starts_with(|letter| !is_sign(letter))
}
