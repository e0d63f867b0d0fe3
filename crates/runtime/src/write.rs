//! Writes to an API, which begin only while leading and end before leadership may be lost.

mod conflict;
mod mode;
mod refusals;
mod request;

use std::future::Future;
use std::time::Duration;

use kube::core::Status;
use objects::message::by_webhook;
use tokio::time::Instant;

pub use self::conflict::is_conflict;
pub use self::mode::{WouldWrite, WriteMode};
pub use self::refusals::Refusals;
pub use self::request::{Sender, build, collection, in_path, submit};
pub(crate) use self::request::{Stored, perform};

use crate::error::Chain;
use crate::lease::Leadership;
use crate::metrics::{APPLIED, WriteMetrics};

/// The longest duration of a write.
const LIMIT: Duration = Duration::from_secs(10);

/// Performs and counts the writes of a program.
#[derive(Clone, Debug)]
pub struct Writer {
    leadership: Leadership,
    metrics: WriteMetrics,
}

/// Errors of a write. The write may have been stored in the cases `TimedOut` and `Api`.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another replica leads now.
    #[error("not leading")]
    NotLeading,
    /// No response in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The API server rejected the write or was not reached.
    #[error("{}", Chain(.0))]
    Api(#[from] kube::Error),
}

/// Classes of write errors by the reaction they require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteErrorKind {
    /// The object differs from the version that was assumed: read it again.
    Conflict,
    /// The object or its namespace does not exist (404).
    Missing,
    /// The API server rejects the content: a retry fails as well.
    Invalid,
    /// A retry may succeed: 429, 5xx, timeouts, lost connections.
    Transient,
}

impl WriteErrorKind {
    /// Returns the class of an answer that refuses a write.
    pub fn of(status: &Status) -> Self {
        match status.code {
            _ if is_conflict(status) => Self::Conflict,
            404 => Self::Missing,
            400 | 403 | 405 | 413 | 415 | 422 => Self::Invalid,
            _ => Self::Transient,
        }
    }
}

impl WriteError {
    /// Returns the class of the error.
    pub fn kind(&self) -> WriteErrorKind {
        match self {
            Self::Api(kube::Error::Api(status)) => WriteErrorKind::of(status),
            _ => WriteErrorKind::Transient,
        }
    }

    /// Returns the API server's reason for a write that it refuses, which names the policy or webhook if it is one. A
    /// webhook without an answer refuses, too, if its `failurePolicy` says so.
    pub fn refusal(&self) -> Option<&str> {
        let Self::Api(kube::Error::Api(status)) = self else {
            return None;
        };
        match self.kind() {
            WriteErrorKind::Invalid => Some(&status.message),
            WriteErrorKind::Transient => by_webhook(&status.message),
            WriteErrorKind::Conflict | WriteErrorKind::Missing => None,
        }
    }

    fn label(&self) -> &'static str {
        match (self, self.kind()) {
            (Self::NotLeading, _) => "not_leading",
            (Self::TimedOut(_), _) => "timed_out",
            (_, WriteErrorKind::Conflict) => "conflict",
            (_, WriteErrorKind::Missing) => "missing",
            (_, WriteErrorKind::Invalid) => "invalid",
            (_, WriteErrorKind::Transient) => "failed",
        }
    }
}

impl Writer {
    /// Creates a writer that writes while `leadership` holds.
    pub fn new(leadership: Leadership, metrics: WriteMetrics) -> Self {
        Self {
            leadership,
            metrics,
        }
    }

    /// Returns `true` while it may write.
    pub fn is_leading(&self) -> bool {
        self.leadership.held_until().is_some()
    }

    /// Performs the request `call` within 10 s and before leadership may be lost. `target` names the
    /// written kind or field in the metrics.
    pub async fn write<T>(
        &self,
        target: &'static str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, WriteError> {
        let result = self.bounded(call).await;
        let outcome = result.as_ref().map_or_else(WriteError::label, |_| APPLIED);
        self.metrics.count(target, outcome);
        result
    }

    async fn bounded<T>(
        &self,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, WriteError> {
        let now = Instant::now();
        let until = self.leadership.held_until().ok_or(WriteError::NotLeading)?;
        let limit = until.saturating_duration_since(now).min(LIMIT);
        // The clock comes first: a process that was suspended past its lease must not continue a
        // request, even one that is ready to be sent.
        tokio::select! {
            biased;
            () = tokio::time::sleep(limit) => Err(if limit < LIMIT {
                WriteError::NotLeading
            } else {
                WriteError::TimedOut(LIMIT)
            }),
            result = call => result.map_err(WriteError::Api),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::conflict::UNFIT;
    use super::*;
    use crate::metrics::OUTCOMES;

    fn writer(leadership: Leadership) -> Writer {
        Writer::new(leadership, WriteMetrics::default())
    }

    /// A write is not begun without leadership.
    #[tokio::test(start_paused = true)]
    async fn follower_writes_nothing() {
        let (leadership, _sender) = Leadership::for_tests();
        let begun = async { panic!("begun") };
        let result: Result<(), _> = writer(leadership).write("test", begun).await;
        assert!(matches!(result, Err(WriteError::NotLeading)));
    }

    /// A write ends before leadership does.
    #[tokio::test(start_paused = true)]
    async fn write_ends_before_leadership() {
        let (leadership, held_until) = Leadership::for_tests();
        let started = Instant::now();
        let until = started + Duration::from_secs(3);
        held_until.send_if_modified(|held| held.replace(until).is_none());
        let result: Result<(), _> = writer(leadership)
            .write("test", std::future::pending())
            .await;
        assert!(matches!(result, Err(WriteError::NotLeading)));
        assert_eq!(started.elapsed(), Duration::from_secs(3));
    }

    /// A write without a response ends after ten seconds.
    #[tokio::test(start_paused = true)]
    async fn unanswered_write_times_out() {
        let started = Instant::now();
        let result: Result<(), _> = writer(Leadership::always())
            .write("test", std::future::pending())
            .await;
        assert!(matches!(result, Err(WriteError::TimedOut(_))));
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[test]
    fn every_outcome_is_known() {
        let errors = [400, 403, 404, 409, 422, 500].map(|code| {
            let status = Status::failure("no", "Reason").with_code(code).boxed();
            WriteError::Api(kube::Error::Api(status))
        });
        let others = [WriteError::NotLeading, WriteError::TimedOut(LIMIT)];
        for error in errors.into_iter().chain(others) {
            assert!(OUTCOMES.contains(&error.label()), "{error}");
        }
    }

    /// A status code determines the class, but for a patch that does not fit: the refusal of a webhook with the same code
    /// is no conflict.
    #[test]
    fn status_code_determines_class() {
        for (code, message, expected) in [
            (409, "no", WriteErrorKind::Conflict),
            (422, UNFIT, WriteErrorKind::Conflict),
            (404, "no", WriteErrorKind::Missing),
            (
                422,
                "admission webhook \"w\" denied the request: no",
                WriteErrorKind::Invalid,
            ),
            (400, UNFIT, WriteErrorKind::Invalid),
            (503, "no", WriteErrorKind::Transient),
        ] {
            let status = Status::failure(message, "Reason").with_code(code).boxed();
            let kind = WriteError::Api(kube::Error::Api(status)).kind();
            assert_eq!(kind, expected, "{code} {message}");
        }
    }

    /// Whoever patches an object that is gone names a uid that the one in its place may not get.
    #[test]
    fn another_uid_is_a_conflict() {
        for (field, expected) in [
            ("metadata.uid", WriteErrorKind::Conflict),
            ("spec.size", WriteErrorKind::Invalid),
        ] {
            let cause = json!({ "reason": "FieldValueInvalid", "field": field });
            let details = json!({ "causes": [cause] });
            let status = json!({ "code": 422, "reason": "Invalid", "details": details });
            let status = from_value(status).unwrap();
            assert_eq!(WriteErrorKind::of(&status), expected, "{field}");
        }
    }
}
