//! The statement of one interpreter on one operation.

use propagation_rules::customization::Operation;
use serde::Serialize;
use serde_json::Value;

/// The answer of one interpreter, as it is printed.
#[derive(Debug, Serialize)]
pub(super) struct Statement {
    operation: &'static str,
    interpreter: String,
    /// Whether it counts.
    pub(super) decides: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Statement {
    pub(super) fn new(
        operation: Operation,
        interpreter: String,
        decides: bool,
        answer: Result<Value, String>,
    ) -> Self {
        let (answer, error) = match answer {
            Ok(answer) => (Some(answer), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            operation: operation.name(),
            interpreter,
            decides,
            answer,
            error,
        }
    }
}
