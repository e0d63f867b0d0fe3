//! How errors are shown: once, at the edge, with their sources and without repeats.

use std::error::Error;
use std::fmt;

/// Any error of a task.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Shows an error and its sources on one line, `what: why: why`. What a library repeats of a source in
/// its own text is left out, and an API error is what the API server said.
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut next = Some(self.0);
        while let Some(error) = next {
            if let Some(kube::Error::Api(status)) = error.downcast_ref() {
                let (code, reason, message) = (status.code, &status.reason, &status.message);
                parts.push(format!(
                    "the API server answered {code} {reason}: {message}"
                ));
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
        let line = parts.join(": ");
        f.write_str(&line.split_whitespace().collect::<Vec<_>>().join(" "))
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

    #[test]
    fn an_api_error_is_what_the_server_said() {
        let status = kube::core::Status::failure("no such right", "Forbidden").with_code(403);
        let error =
            kube::runtime::watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()));
        assert_eq!(
            Chain(&error).to_string(),
            "failed to perform initial object list: the API server answered 403 Forbidden: no such right"
        );
    }

    #[test]
    fn a_chain_is_one_line_without_repeats() {
        let error = Separate(Embeds(std::io::Error::other("no such file")));
        assert_eq!(
            Chain(&error).to_string(),
            "starting: reading the file: no such file"
        );
    }
}
