//! A query that is to hold in a Prometheus. The leader alone asks, since the answer is the same for all nodes.
//!
//! A Prometheus that is away, an error, an empty answer, a part of one and NaN are no vote. An answer is no proof of freshness
//! either: for five minutes Prometheus finds the last sample of a target that is gone, and says the time of the query. So each query
//! comes with the longest age of a sample, `lookback_delta`.

use std::path::PathBuf;
use std::time::Duration;

use form_urlencoded::Serializer;
use futures::FutureExt;
use futures::future::BoxFuture;
use health::failure::FailureClass;
use health::prometheus::{NOT_PARTIAL, QUERY_PATH, values};
use health::signal::Voters;
use serde::Deserialize;
use serde_json::Value;

use super::exchange::Location;
use super::kind::{Attempt, Kind, length};
use super::unmet::Unmet;

/// The comparison does not hold of the value.
const NOT_HOLDING: FailureClass = FailureClass::new(0, "not-holding");
/// The largest response that is read, in bytes.
const LARGEST: usize = 64 * 1024;
/// The default of `maxAge`, in periods.
const PERIODS: u32 = 2;

/// An instant query.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Prometheus {
    /// Without the path of its API.
    url: String,
    query: String,
    /// The comparison that is to hold of the value, such as `value < 0.05`.
    holds: String,
    /// Of which of several series.
    #[serde(default)]
    series: Option<Series>,
    /// The longest age of a sample.
    #[serde(default)]
    max_age: Option<String>,
    #[serde(default)]
    ca: Option<PathBuf>,
    #[serde(default)]
    token: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Series {
    Any,
    All,
}

/// A comparison of the value with a number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Comparison {
    operator: Operator,
    number: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    NotEqual,
}

/// Longer ones first: `<` begins `<=`, too.
const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Comparison {
    fn parse(text: &str) -> Result<Self, String> {
        let problem = "holds is no comparison of the value, such as value < 0.05";
        let rest = text.trim().strip_prefix("value").map(str::trim_start);
        let parsed = rest.and_then(|rest| {
            let mut operators = OPERATORS.into_iter();
            let (number, operator) = operators
                .find_map(|(sign, operator)| Some((rest.strip_prefix(sign)?, operator)))?;
            let number: f64 = number.trim().parse().ok()?;
            number.is_finite().then_some(Self { operator, number })
        });
        parsed.ok_or_else(|| problem.to_owned())
    }

    #[expect(
        clippy::float_cmp,
        reason = "who writes == means it, as in a query of Prometheus"
    )]
    fn holds(self, value: f64) -> bool {
        match self.operator {
            Operator::Less => value < self.number,
            Operator::AtMost => value <= self.number,
            Operator::Greater => value > self.number,
            Operator::AtLeast => value >= self.number,
            Operator::Equal => value == self.number,
            Operator::NotEqual => value != self.number,
        }
    }
}

impl Prometheus {
    fn location<'a>(&'a self, url: &'a str) -> Location<'a> {
        Location {
            url,
            ca: self.ca.as_ref(),
            token: self.token.as_ref(),
        }
    }

    /// Returns the longest age of a sample, if the file says one.
    fn given_age(&self) -> Result<Option<Duration>, String> {
        let given = self.max_age.as_deref();
        given.map(|text| length("maxAge", text)).transpose()
    }

    fn parameters(&self, age: Duration, timeout: Duration) -> String {
        Serializer::new(String::new())
            .append_pair("query", &self.query)
            .append_pair("lookback_delta", &format!("{}ms", age.as_millis()))
            .append_pair("timeout", &format!("{}ms", timeout.as_millis().max(1)))
            .extend_pairs([NOT_PARTIAL])
            .finish()
    }

    /// Returns whether it holds of the values, of which NaN is none.
    fn judge(&self, values: &[f64], comparison: Comparison) -> Result<bool, String> {
        if values.len() > 1 && self.series.is_none() {
            let count = values.len();
            return Err(format!(
                "the answer has {count} series: aggregate them, or say series: any or series: all"
            ));
        }
        let mut known = values.iter().filter(|value| !value.is_nan()).peekable();
        if known.peek().is_none() {
            let problem = if values.is_empty() {
                "the answer is empty"
            } else {
                "the value is NaN"
            };
            return Err(problem.to_owned());
        }
        Ok(match self.series {
            Some(Series::Any) => known.any(|value| comparison.holds(*value)),
            Some(Series::All) | None => known.all(|value| comparison.holds(*value)),
        })
    }
}

impl Kind for Prometheus {
    fn check(&self) -> Result<(), String> {
        if self.url.contains('?') {
            return Err("url has a query of its own: that is in the field query".to_owned());
        }
        if self.query.trim().is_empty() {
            return Err("query is empty".to_owned());
        }
        Comparison::parse(&self.holds)?;
        self.given_age()?;
        self.location(&self.url).check()
    }

    fn classes(&self) -> &'static [FailureClass] {
        &[NOT_HOLDING]
    }

    fn voters(&self) -> Voters {
        Voters::Leader
    }

    fn warnings(&self) -> Vec<String> {
        let warning = "the query may end in a comparison without bool: its answer is empty where that does not hold, which is no vote";
        let warns = ends_in_comparison(&self.query);
        warns.then(|| warning.to_owned()).into_iter().collect()
    }

    fn observe<'a>(&'a self, attempt: &'a Attempt<'a>) -> BoxFuture<'a, Result<(), Unmet>> {
        async move {
            let comparison = Comparison::parse(&self.holds).map_err(Unmet::unobserved)?;
            let url = format!("{}{QUERY_PATH}", self.url.trim_end_matches('/'));
            let left = attempt
                .deadline
                .saturating_duration_since(tokio::time::Instant::now());
            let age = self.given_age().map_err(Unmet::unobserved)?;
            let parameters = self.parameters(age.unwrap_or(attempt.period * PERIODS), left);
            let location = self.location(&url);
            let answer = location.get(Some(&parameters), LARGEST, attempt).await;
            let answer = answer.map_err(|unmet| match unmet {
                // Silence is no verdict on the measured value.
                Unmet::Failed { failure, details } => {
                    Unmet::unobserved(format!("Prometheus does not answer: {failure}: {details}"))
                }
                unobserved @ Unmet::Unobserved(_) => unobserved,
            })?;
            let response: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let values = values(&response).map_err(|problem| {
                let problem = format!("status {}: {problem}", answer.status);
                Unmet::unobserved(answer.without_token(&problem))
            })?;
            match self.judge(&values, comparison) {
                Ok(true) => Ok(()),
                Ok(false) => {
                    let shown: Vec<_> = values.iter().take(3).map(ToString::to_string).collect();
                    let details = format!("{} is not {}", shown.join(", "), self.holds);
                    Err(Unmet::failed(NOT_HOLDING, answer.server, details))
                }
                Err(problem) => {
                    let problem = with_warnings(&problem, &response);
                    Err(Unmet::unobserved(answer.without_token(&problem)))
                }
            }
        }
        .boxed()
    }
}

/// Adds the warnings of Prometheus to a problem.
fn with_warnings(problem: &str, response: &Value) -> String {
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let texts = warnings.filter_map(Value::as_str);
    let all: Vec<_> = std::iter::once(problem).chain(texts).collect();
    all.join("; ")
}

/// Returns `true` if a comparison without `bool` stands at the outermost level of a query, as far as its signs tell.
fn ends_in_comparison(query: &str) -> bool {
    let mut depth = 0_i32;
    let mut quote = None;
    let mut outer = String::new();
    for c in query.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, c) if depth == 0 => outer.push(c),
            _ => {}
        }
    }
    let mut signs = OPERATORS.into_iter().map(|(sign, _)| sign);
    signs.any(|sign| outer.contains(sign)) && !outer.contains("bool")
}

#[cfg(test)]
mod tests;
