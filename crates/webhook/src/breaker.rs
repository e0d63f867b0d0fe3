//! Whether a webhook is called at all: one that did not answer is left alone for a while, and then called once.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::WebhookError;

/// The time for which a webhook is not called after it did not answer. It doubles each time.
const SHORTEST: Duration = Duration::from_secs(1);
/// No longer than the pauses of whoever waits for it.
const LONGEST: Duration = Duration::from_secs(30);

/// The breaker of a webhook that may be silent; closed at first.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Option<Silence>);

#[derive(Debug)]
struct Silence {
    error: WebhookError,
    pause: Duration,
    /// When the next call may be made.
    end: Instant,
    /// True once the first call after the pause was made.
    is_tried: bool,
}

impl Breaker {
    /// Lets a call pass that takes `limit` at most, or fails it as the last one failed.
    ///
    /// # Errors
    /// Fails during a pause, and while a first call after it is being made.
    pub(crate) fn admit(&mut self, now: Instant, limit: Duration) -> Result<(), WebhookError> {
        match &mut self.0 {
            Some(silence) if now < silence.end => Err(silence.error.clone()),
            Some(silence) => {
                silence.end = now + limit;
                silence.is_tried = true;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Notes the outcome of a call. Returns `true` if the webhook falls silent with it.
    pub(crate) fn note<T>(&mut self, outcome: &Result<T, WebhookError>, now: Instant) -> bool {
        let Err(error @ WebhookError::Unanswered(_)) = outcome else {
            self.0 = None;
            return false;
        };
        let before = self.0.take();
        let is_news = before.is_none();
        let pause = before.map_or(SHORTEST, |silence| {
            if silence.is_tried {
                (silence.pause * 2).min(LONGEST)
            } else {
                // One of those that were made together with the first.
                silence.pause
            }
        });
        self.0 = Some(Silence {
            error: error.clone(),
            pause,
            end: now + pause,
            is_tried: false,
        });
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    fn silence() -> Result<(), WebhookError> {
        Err(WebhookError::Unanswered("silent".to_owned()))
    }

    /// Case I83: after a silence one call is made, and no other until it has an answer; then all are.
    #[test]
    fn one_call_ends_a_silence() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.admit(start, LIMIT), Ok(()));
        assert!(breaker.note(&silence(), start));
        assert_eq!(breaker.admit(start, LIMIT), silence());
        let later = start + SHORTEST;
        assert_eq!(breaker.admit(later, LIMIT), Ok(()));
        assert_eq!(breaker.admit(later, LIMIT), silence());
        breaker.note(&Ok(()), later);
        assert_eq!(breaker.admit(later, LIMIT), Ok(()));
    }

    /// Case I83: pauses grow up to a bound, once for calls that were made together, and a call that never ends holds
    /// up others no longer than it may take.
    #[test]
    fn pauses_grow() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        breaker.note(&silence(), now);
        assert!(!breaker.note(&silence(), now));
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            let pause = Duration::from_secs(seconds);
            assert_eq!(breaker.admit(now + pause / 2, LIMIT), silence());
            now += pause;
            assert_eq!(breaker.admit(now, LIMIT), Ok(()));
            now += LIMIT;
            breaker.note(&silence(), now);
        }
        now += LONGEST;
        assert_eq!(breaker.admit(now, LIMIT), Ok(()));
        assert_eq!(breaker.admit(now + LIMIT, LIMIT), Ok(()));
    }

    /// A webhook with an answer that it must not give is there: it is no silence.
    #[test]
    fn wrong_answer_is_no_silence() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        breaker.note(&silence(), now);
        let wrong: Result<(), _> = Err(WebhookError::Invalid("wrong".to_owned()));
        assert!(!breaker.note(&wrong, now));
        assert_eq!(breaker.admit(now, LIMIT), Ok(()));
    }
}
