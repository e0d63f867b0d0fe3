//! How errors are shown: once, at the edge, with their sources and without repeats.

use std::error::Error;
use std::fmt;

/// Any error of a task.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Shows an error and its sources on one line, `what: why: why`, leaving out a source whose text
/// the one before it already holds, as libraries that embed their source in their own text do.
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = one_line(self.0);
        f.write_str(&shown)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            let text = one_line(error);
            if !shown.contains(&text) {
                write!(f, ": {text}")?;
                shown = text;
            }
            source = error.source();
        }
        Ok(())
    }
}

/// kube prints an API error with its whole `Status` in debug form; the server's message is enough.
fn one_line(error: &(dyn Error + 'static)) -> String {
    let text = match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => {
            format!(
                "the API server answered {} {}: {}",
                status.code, status.reason, status.message
            )
        }
        _ => error.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
    fn a_chain_is_one_line_without_repeats() {
        let error = Separate(Embeds(std::io::Error::other("no such file")));
        assert_eq!(
            Chain(&error).to_string(),
            "starting: reading the file: no such file"
        );
    }
}
