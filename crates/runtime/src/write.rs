//! Writes to an API: only while leading, and never longer than leadership is sure.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Chain;
use crate::lease::Leadership;
use crate::metrics::{APPLIED, WriteMetrics};

/// The longest a write may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Makes the writes of one program, and counts them.
#[derive(Clone, Debug)]
pub struct Writer {
    leadership: Leadership,
    metrics: WriteMetrics,
}

/// Why a write was not made, or not known to be made.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another replica leads now.
    #[error("not leading")]
    NotLeading,
    /// No answer in time; the write may or may not have been made.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The API server refused it, or was not reached.
    #[error("{}", Chain(.0))]
    Api(#[from] kube::Error),
}

/// What a caller can do about a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteErrorKind {
    /// The object is another one than was thought: read it again.
    Conflict,
    /// The object, or what it must be in, is not there.
    Missing,
    /// The API server will not have it, now or later. A failed `test` of a JSON patch is one too.
    Invalid,
    /// It may go through later.
    Transient,
}

impl WriteError {
    /// What can be done about it.
    pub fn kind(&self) -> WriteErrorKind {
        match self {
            Self::Api(kube::Error::Api(status)) => match status.code {
                404 => WriteErrorKind::Missing,
                409 => WriteErrorKind::Conflict,
                400 | 403 | 405 | 413 | 415 | 422 => WriteErrorKind::Invalid,
                _ => WriteErrorKind::Transient,
            },
            _ => WriteErrorKind::Transient,
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
    /// A writer for as long as `leadership` holds.
    pub fn new(leadership: Leadership, metrics: WriteMetrics) -> Self {
        Self {
            leadership,
            metrics,
        }
    }

    /// Makes the write `call` to `target` (a kind or part, for the metrics), within 10 s and before
    /// leadership can be lost.
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
        // The clock first: a process that was stopped for a while must not go on with an old call.
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
    use kube::core::Status;

    use super::*;
    use crate::metrics::OUTCOMES;

    fn writer(leadership: Leadership) -> Writer {
        Writer::new(leadership, WriteMetrics::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_not_begun_without_leadership() {
        let (leadership, _sender) = Leadership::for_tests();
        let begun = async { panic!("begun") };
        let result: Result<(), _> = writer(leadership).write("test", begun).await;
        assert!(matches!(result, Err(WriteError::NotLeading)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_ends_before_leadership_does() {
        let (leadership, held_until) = Leadership::for_tests();
        let started = Instant::now();
        held_until.send_replace(Some(started + Duration::from_secs(3)));
        let result: Result<(), _> = writer(leadership)
            .write("test", std::future::pending())
            .await;
        assert!(matches!(result, Err(WriteError::NotLeading)));
        assert_eq!(started.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_an_answer_ends_after_ten_seconds() {
        let started = Instant::now();
        let result: Result<(), _> = writer(Leadership::always())
            .write("test", std::future::pending())
            .await;
        assert!(matches!(result, Err(WriteError::TimedOut(_))));
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[test]
    fn every_outcome_is_known() {
        let api = |code| {
            let status = Status::failure("no", "Reason").with_code(code).boxed();
            WriteError::Api(kube::Error::Api(status))
        };
        let errors = [400, 403, 404, 409, 422, 500].map(api);
        let others = [WriteError::NotLeading, WriteError::TimedOut(LIMIT)];
        for error in errors.into_iter().chain(others) {
            assert!(OUTCOMES.contains(&error.label()), "{error}");
        }
    }

    #[test]
    fn an_answer_of_the_api_says_what_can_be_done() {
        let kind = |code| {
            let status = Status::failure("no", "Reason").with_code(code).boxed();
            WriteError::Api(kube::Error::Api(status)).kind()
        };
        assert_eq!(kind(409), WriteErrorKind::Conflict);
        assert_eq!(kind(404), WriteErrorKind::Missing);
        assert_eq!(kind(422), WriteErrorKind::Invalid);
        assert_eq!(kind(503), WriteErrorKind::Transient);
    }
}
