//! Writes that the API refuses, again and again, of which whoever is concerned is told once.

use std::collections::BTreeMap;

use objects::message::by_webhook;
use parking_lot::Mutex;

use super::WriteError;

/// The reason for which the last write to each part `K` that is ours was refused, or the webhook that refused it.
#[derive(Debug)]
pub struct Refusals<K>(Mutex<BTreeMap<K, String>>);

impl<K> Default for Refusals<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Refusals<K> {
    /// Takes in the result of a write to `part`, and returns the reason for which it was refused, if that is news.
    pub fn note<T>(&self, part: K, result: &Result<T, WriteError>) -> Option<String> {
        let mut refusals = self.0.lock();
        match result {
            Ok(_) => {
                refusals.remove(&part);
                None
            }
            Err(error) => {
                let reason = error.refusal()?;
                // A webhook may give another reason with each attempt, such as the time.
                let by = by_webhook(reason).unwrap_or(reason).to_owned();
                let is_news = refusals.get(&part) != Some(&by);
                refusals.insert(part, by);
                is_news.then(|| reason.to_owned())
            }
        }
    }

    /// Forgets `part`.
    pub fn forget(&self, part: &K) {
        self.0.lock().remove(part);
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn failed(code: u16, message: &str) -> Result<(), WriteError> {
        let status = Status::failure(message, "Reason").with_code(code);
        Err(WriteError::Api(kube::Error::Api(status.boxed())))
    }

    /// The same reason is told once for each part, and anew after a success.
    #[test]
    fn each_reason_is_told_once() {
        let refusals = Refusals::default();
        let denied = failed(403, "policy 'a' denied");
        assert_eq!(
            refusals.note("status", &denied).as_deref(),
            Some("policy 'a' denied")
        );
        assert_eq!(refusals.note("status", &denied), None);
        assert_eq!(refusals.note("status", &failed(503, "away")), None);
        assert_eq!(refusals.note("status", &failed(409, "newer")), None);
        assert_eq!(refusals.note("status", &denied), None);
        assert!(refusals.note("finalizers", &denied).is_some());
        assert!(
            refusals
                .note("status", &failed(422, "policy 'b' denied"))
                .is_some()
        );
        assert_eq!(refusals.note("status", &Ok(())), None);
        assert!(refusals.note("status", &denied).is_some());
        refusals.forget(&"status");
        assert!(refusals.note("status", &denied).is_some());
    }

    /// A webhook that gives another reason with each attempt is told once, with the first.
    #[test]
    fn changing_reason_is_told_once() {
        let refusals = Refusals::default();
        let denied =
            |at: &str| format!("admission webhook \"w\" denied the request: frozen at {at}");
        let attempts = ["10:00:00", "10:00:30"].map(|at| failed(403, &denied(at)));
        let told = attempts.map(|result| refusals.note("status", &result));
        assert_eq!(told, [Some(denied("10:00:00")), None]);
    }

    /// A webhook that must answer and does not is told once, by its name: the rest is another text each time.
    #[test]
    fn silent_webhook_is_told_once() {
        let refusals = Refusals::default();
        let attempts = [41022, 41023].map(|port| {
            let cause = format!("read tcp 10.0.0.5:{port}->10.0.0.9:443: connection reset by peer");
            let called = format!("failed calling webhook \"validate.example.com\": {cause}");
            failed(500, &format!("Internal error occurred: {called}"))
        });
        let told = attempts.map(|result| refusals.note("status", &result));
        let reason =
            "Internal error occurred: failed calling webhook \"validate.example.com\"".to_owned();
        assert_eq!(told, [Some(reason), None]);
    }
}
