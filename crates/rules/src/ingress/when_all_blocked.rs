//! The choice between failing open and failing closed, by a flag or by an annotation of one ingress.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The annotation that overrides `--when-all-blocked` for one ingress.
pub const WHEN_ALL_BLOCKED_ANNOTATION: &str = "networking.karmada-rs.io/when-all-blocked";

/// The behaviour while every cluster of a backend Service is blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhenAllBlocked {
    /// The clusters that a condition blocked are readmitted: a probe that is wrong everywhere must not
    /// leave the load balancer without a backend.
    #[default]
    FailOpen,
    /// The Service is not served.
    FailClosed,
}

/// The error for a text that is no [`WhenAllBlocked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidWhenAllBlocked;

impl fmt::Display for InvalidWhenAllBlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be fail-open or fail-closed")
    }
}

impl std::error::Error for InvalidWhenAllBlocked {}

impl FromStr for WhenAllBlocked {
    type Err = InvalidWhenAllBlocked;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "fail-open" => Ok(Self::FailOpen),
            "fail-closed" => Ok(Self::FailClosed),
            _ => Err(InvalidWhenAllBlocked),
        }
    }
}

impl fmt::Display for WhenAllBlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FailOpen => "fail-open",
            Self::FailClosed => "fail-closed",
        })
    }
}

/// Returns the value of the annotation, and the text of one that cannot be parsed, which counts as
/// `default`.
pub(super) fn annotated(
    metadata: &ObjectMeta,
    default: WhenAllBlocked,
) -> (WhenAllBlocked, Option<String>) {
    let annotations = metadata.annotations.as_ref();
    let Some(text) = annotations.and_then(|a| a.get(WHEN_ALL_BLOCKED_ANNOTATION)) else {
        return (default, None);
    };
    match text.parse() {
        Ok(value) => (value, None),
        Err(InvalidWhenAllBlocked) => (default, Some(text.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The annotation overrides the flag and a bad value does not.
    #[test]
    fn annotation_overrides_the_flag() {
        let (open, closed) = (WhenAllBlocked::FailOpen, WhenAllBlocked::FailClosed);
        let with = |value: &str| ObjectMeta {
            annotations: Some([(WHEN_ALL_BLOCKED_ANNOTATION.to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        };
        assert_eq!(annotated(&with("fail-closed"), open), (closed, None));
        assert_eq!(annotated(&with("fail-open"), closed), (open, None));
        let bad = Some("open".to_owned());
        assert_eq!(annotated(&with("open"), closed), (closed, bad));
        assert_eq!(annotated(&ObjectMeta::default(), closed), (closed, None));
    }
}
