//! A query of Prometheus that must hold.

use form_urlencoded::byte_serialize;
use http::{Request, Uri};
use karmada_runtime::client::{Addresses, connect_to_member};
use karmada_runtime::error::Chain;
use kube::{Client, Config};
use serde_json::Value;

use crate::error::Error;
use crate::identity::NAME;

/// The age of a sample beyond which it says nothing: without this, a Prometheus that has lost its targets answers for
/// five minutes as if it had not.
const MAX_AGE: &str = "2m";

/// A query of a Prometheus.
pub(super) struct Query {
    client: Client,
    path: String,
    promql: String,
}

impl Query {
    /// Connects to a Prometheus.
    ///
    /// # Errors
    /// Fails if the URL is none of a server.
    pub(super) fn new(url: &Uri, promql: &str) -> Result<Self, Error> {
        let is_http = matches!(url.scheme_str(), Some("http" | "https"));
        if !is_http || url.query().is_some() {
            // It may have a password, and is not quoted.
            let problem = "--prometheus: write a URL such as http://prometheus:9090";
            return Err(Error::Unusable(problem.to_owned()));
        }
        let config = Config::new(url.clone());
        let client = connect_to_member(config, &Addresses::by_system(), None, NAME)?;
        let query: String = byte_serialize(promql.as_bytes()).collect();
        Ok(Self {
            client,
            // While stores of a Thanos are away, a part of the samples would look like all of them.
            path: format!(
                "/api/v1/query?query={query}&lookback_delta={MAX_AGE}&partial_response=false"
            ),
            promql: promql.to_owned(),
        })
    }

    /// Asks, and returns why the answer is not that all is well.
    pub(super) async fn holds(&self) -> Result<(), String> {
        let request = Request::get(&self.path).body(Vec::new());
        let request = request.map_err(|error| format!("no query: {error}"))?;
        let answer = self.client.request::<Value>(request).await;
        let answer = answer.map_err(|error| format!("Prometheus fails: {}", Chain(&error)))?;
        verdict(&answer).map_err(|reason| format!("`{}` {reason}", self.promql))
    }
}

/// Returns why an answer is not that all is well.
fn verdict(answer: &Value) -> Result<(), String> {
    if answer["status"] != "success" {
        let error = answer["error"].as_str().unwrap_or("is not answered");
        return Err(format!("fails: {error}"));
    }
    // As VictoriaMetrics says it.
    if answer["isPartial"] == true {
        return Err("lacks the samples of stores that are away".to_owned());
    }
    let (kind, result) = (&answer["data"]["resultType"], &answer["data"]["result"]);
    let values: Vec<&Value> = match kind.as_str() {
        Some("scalar") => vec![&result[1]],
        Some("vector") => {
            let elements = result.as_array().into_iter().flatten();
            elements.map(|element| &element["value"][1]).collect()
        }
        _ => return Err("is neither a number nor a list of numbers".to_owned()),
    };
    if values.is_empty() {
        return Err("has no answer".to_owned());
    }
    for value in values {
        let number = value.as_str().and_then(|text| text.parse::<f64>().ok());
        match number {
            Some(number) if number.is_nan() => return Err("is no number".to_owned()),
            Some(number) if number != 0.0 => {}
            Some(_) => return Err("does not hold".to_owned()),
            None => return Err("has an answer without a number".to_owned()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vector(values: &[&str]) -> Value {
        let elements: Vec<_> = values
            .iter()
            .map(|value| json!({ "metric": {}, "value": [1.5, value] }))
            .collect();
        json!({ "status": "success", "data": { "resultType": "vector", "result": elements } })
    }

    /// A query holds if each of its values, of which there is one, is a number other than 0.
    #[test]
    fn holding_query_has_values() {
        let scalar = json!({ "status": "success",
            "data": { "resultType": "scalar", "result": [1.5, "1"] } });
        let matrix = json!({ "status": "success", "data": { "resultType": "matrix" } });
        let error = json!({ "status": "error", "error": "parse error" });
        let mut partial = vector(&["1"]);
        partial["isPartial"] = json!(true);
        for (answer, expected) in [
            (scalar, Ok(())),
            (vector(&["1"]), Ok(())),
            (vector(&["0.25", "+Inf"]), Ok(())),
            (vector(&["1", "0"]), Err("does not hold")),
            (vector(&["NaN"]), Err("is no number")),
            (vector(&[]), Err("has no answer")),
            (matrix, Err("is neither a number nor a list of numbers")),
            (error, Err("fails: parse error")),
            (partial, Err("lacks the samples of stores that are away")),
            (json!({}), Err("fails: is not answered")),
        ] {
            let expected: Result<(), &str> = expected;
            assert_eq!(
                verdict(&answer),
                expected.map_err(str::to_owned),
                "{answer}"
            );
        }
    }

    /// Only a server is asked.
    #[test]
    fn url_is_of_a_server() {
        for url in ["prometheus:9090", "ftp://prometheus", "http://a/?b"] {
            let query = Query::new(&url.parse().unwrap(), "up");
            assert!(query.is_err(), "{url}");
        }
    }
}
