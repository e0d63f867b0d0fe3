//! Instant queries, as Prometheus, Thanos and `VictoriaMetrics` answer them.

use serde_json::Value;

/// The path of an instant query.
pub const QUERY_PATH: &str = "/api/v1/query";
/// The parameter of every query: while stores of a Thanos are away, a part of the samples would look like all of them.
pub const NOT_PARTIAL: (&str, &str) = ("partial_response", "false");

/// Returns the values in an answer: that of a scalar, or those of a vector.
///
/// # Errors
/// Returns the reason why it has none.
pub fn values(answer: &Value) -> Result<Vec<f64>, String> {
    if answer["status"] == "error" {
        let kind = answer["errorType"].as_str().unwrap_or("unknown");
        let error = answer["error"].as_str().unwrap_or("unknown");
        return Err(format!("{kind}: {error}"));
    }
    if answer["status"] != "success" {
        return Err("the answer is none of Prometheus".to_owned());
    }
    // As VictoriaMetrics says it.
    if answer["isPartial"] == true {
        return Err("the answer lacks the samples of stores that are away".to_owned());
    }
    let result = &answer["data"]["result"];
    let samples: Vec<&Value> = match answer["data"]["resultType"].as_str() {
        Some("scalar") => vec![result],
        Some("vector") => {
            let elements = result.as_array().into_iter().flatten();
            elements.map(|element| &element["value"]).collect()
        }
        Some(kind) => {
            return Err(format!(
                "the answer is a {kind}, neither a scalar nor a vector"
            ));
        }
        None => return Err("the answer has no result".to_owned()),
    };
    let values = samples.into_iter().map(|sample| {
        let value = sample[1].as_str().and_then(|text| text.parse().ok());
        value.ok_or_else(|| "the answer has a value that is no number".to_owned())
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn success(kind: &str, result: &Value) -> Value {
        json!({ "status": "success", "data": { "resultType": kind, "result": result } })
    }

    /// Reads the answers of Prometheus 3, and those of `VictoriaMetrics` where data are missing.
    #[test]
    fn answers_are_read() {
        let element = json!([{ "metric": {}, "value": [1, "+Inf"] }]);
        let no_number = json!([{ "metric": {}, "value": [1, 2] }]);
        let mut partial = success("scalar", &json!([1, "2"]));
        partial["isPartial"] = json!(true);
        let error = json!({ "status": "error", "errorType": "execution", "error": "too many" });
        for (answer, expected) in [
            (success("scalar", &json!([1, "2.5"])), Ok(vec![2.5])),
            (success("vector", &element), Ok(vec![f64::INFINITY])),
            (success("vector", &json!([])), Ok(vec![])),
            (success("vector", &no_number), Err("no number")),
            (success("matrix", &json!([])), Err("a matrix")),
            (success("string", &json!([1, "2"])), Err("a string")),
            (partial, Err("stores that are away")),
            (error, Err("execution: too many")),
            (json!({ "status": "success" }), Err("no result")),
            (json!({}), Err("none of Prometheus")),
            (Value::Null, Err("none of Prometheus")),
        ] {
            match (values(&answer), expected) {
                (Ok(values), Ok(expected)) => assert_eq!(values, expected),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (read, _) => panic!("{answer}: {read:?}"),
            }
        }
    }
}
