//! A query of Prometheus that must hold.

use form_urlencoded::Serializer;
use health::prometheus::{NOT_PARTIAL, QUERY_PATH, values};
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
        let parameters = Serializer::new(String::new())
            .append_pair("query", promql)
            .append_pair("lookback_delta", MAX_AGE)
            .extend_pairs([NOT_PARTIAL])
            .finish();
        Ok(Self {
            client,
            path: format!("{QUERY_PATH}?{parameters}"),
            promql: promql.to_owned(),
        })
    }

    /// Asks, and returns why the answer is not that all is well.
    pub(super) async fn holds(&self) -> Result<(), String> {
        let request = Request::get(&self.path).body(Vec::new());
        let request = request.map_err(|error| format!("no query: {error}"))?;
        let answer = self.client.request::<Value>(request).await;
        let answer = answer.map_err(|error| format!("Prometheus fails: {}", Chain(&error)))?;
        verdict(&answer).map_err(|reason| format!("`{}`: {reason}", self.promql))
    }
}

/// Returns why an answer is not that all is well.
fn verdict(answer: &Value) -> Result<(), String> {
    let values = values(answer)?;
    let problem = if values.is_empty() {
        "the answer is empty"
    } else if values.iter().any(|value| value.is_nan()) {
        "a value is NaN"
    } else if values.contains(&0.0) {
        "a value is 0"
    } else {
        return Ok(());
    };
    Err(problem.to_owned())
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
        for (answer, expected) in [
            (vector(&["1"]), Ok(())),
            (vector(&["0.25", "+Inf"]), Ok(())),
            (vector(&["1", "0"]), Err("a value is 0")),
            (vector(&["NaN"]), Err("a value is NaN")),
            (vector(&[]), Err("the answer is empty")),
            (Value::Null, Err("the answer is none of Prometheus")),
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
