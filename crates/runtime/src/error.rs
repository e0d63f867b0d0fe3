//! The form of errors in logs and messages: on one line, with their sources, without repetition, and without a word of a
//! text that may hold a credential.

mod exec;
mod quoting;

use std::error::Error;
use std::fmt;

pub use self::exec::ExecError;
pub(crate) use self::exec::printable;

/// An error of any type.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Displays an error and its sources on one line, `outer: inner: innermost`: the part of it that may leave the process. Omits
/// the text of a source where an outer error repeats it, shows an API error by its status alone, and of an error that quotes
/// a text that could not be read only [the kind of mistake](objects::Mistake).
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut next = Some(self.0);
        while let Some(error) = next {
            // Its sources repeat the status in other words.
            if let Some(kube::Error::Api(status)) = error.downcast_ref() {
                let (code, reason, message) = (status.code, &status.reason, &status.message);
                let answer = format!("the API server answered {code} {reason}: {message}");
                push_unless_said(&mut parts, answer);
                break;
            }
            if let Some(disclosed) = quoting::disclosed(error) {
                push_unless_said(&mut parts, disclosed);
                break;
            }
            let text = error.to_string();
            next = error.source();
            let own = match next.map(ToString::to_string) {
                Some(source) => text
                    .replace(&source, "")
                    .trim_end_matches([':', ' '])
                    .to_owned(),
                None => text,
            };
            if !own.is_empty() {
                parts.push(own);
            }
        }
        // Some libraries break lines within a message; a log event is one line.
        let line = parts.join(": ");
        f.write_str(&line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Adds the text of an error, unless the error around it shows it so already.
fn push_unless_said(parts: &mut Vec<String>, shown: String) {
    if !parts.last().is_some_and(|outer| outer.ends_with(&shown)) {
        parts.push(shown);
    }
}

/// The last error of an operation that is retried, so that one that persists is a warning only once.
#[derive(Debug, Default)]
pub struct LastError(Option<String>);

impl LastError {
    /// Remembers `error` and returns `true` if it differs from the one before.
    pub fn replace(&mut self, error: &str) -> bool {
        let is_new = self.0.as_deref() != Some(error);
        if is_new {
            self.0 = Some(error.to_owned());
        }
        is_new
    }

    /// Forgets the error after a success.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("reading\nthe file: {0}")]
    struct Embeds(#[source] std::io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("starting")]
    struct Separate(#[source] Embeds);

    /// An API error is shown by its status.
    #[test]
    fn api_error_shows_status() {
        let status = kube::core::Status::failure("no such right", "Forbidden").with_code(403);
        let error =
            kube::runtime::watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()));
        assert_eq!(
            Chain(&error).to_string(),
            "failed to perform initial object list: the API server answered 403 Forbidden: no such right"
        );
    }

    #[derive(Debug, thiserror::Error)]
    #[error("writing: {}", Chain(.0))]
    struct Shows(#[source] kube::Error);

    /// An error that shows its source as a chain does is not followed by the same again.
    #[test]
    fn shown_status_is_not_repeated() {
        let status = kube::core::Status::failure("no such namespace", "NotFound").with_code(404);
        let error = Shows(kube::Error::Api(status.boxed()));
        assert_eq!(
            Chain(&error).to_string(),
            "writing: the API server answered 404 NotFound: no such namespace"
        );
    }

    /// A chain is one line without repeats.
    #[test]
    fn chain_is_one_line() {
        let error = Separate(Embeds(std::io::Error::other("no such file")));
        assert_eq!(
            Chain(&error).to_string(),
            "starting: reading the file: no such file"
        );
    }

    /// An error is new until it repeats and again after a success.
    #[test]
    fn repeated_error_is_old() {
        let mut last = LastError::default();
        assert!(last.replace("a") && !last.replace("a") && last.replace("b"));
        last.clear();
        assert!(last.replace("b"));
    }
}
