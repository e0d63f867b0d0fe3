//! The choices that a flag makes for all ingresses, and an annotation for one.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A choice among named values.
pub(super) trait Choice: Copy + fmt::Display + FromStr<Err = InvalidChoice> {
    /// The annotation that overrides the flag for one ingress.
    const ANNOTATION: &'static str;
}

/// The error for a text that is none of the values of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvalidChoice(&'static [&'static str]);

impl fmt::Display for InvalidChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "must be {}", self.0.join(" or "))
    }
}

impl std::error::Error for InvalidChoice {}

/// An annotation with a value that is none of its choice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvalidAnnotation {
    /// Its key.
    pub annotation: &'static str,
    /// Its value.
    pub value: String,
    /// The values that there are.
    pub allowed: InvalidChoice,
    /// The value that is in effect.
    pub effective: String,
}

macro_rules! choice {
    (
        $(#[$doc:meta])* $name:ident, $annotation:ident = $key:literal,
        { $(#[$first_doc:meta])* $first:ident = $first_text:literal, $($(#[$value_doc:meta])* $value:ident = $text:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $(#[$first_doc])*
            #[default]
            $first,
            $($(#[$value_doc])* $value,)*
        }

        /// The annotation that overrides the flag of this choice for one ingress.
        pub const $annotation: &str = $key;

        impl Choice for $name {
            const ANNOTATION: &'static str = $key;
        }

        impl FromStr for $name {
            type Err = InvalidChoice;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $first_text => Ok(Self::$first),
                    $($text => Ok(Self::$value),)*
                    _ => Err(InvalidChoice(&[$first_text, $($text),*])),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    Self::$first => $first_text,
                    $(Self::$value => $text,)*
                })
            }
        }
    };
}

choice! {
    /// The behaviour while every cluster of a backend Service is blocked.
    WhenAllBlocked, WHEN_ALL_BLOCKED_ANNOTATION = "networking.karmada-rs.io/when-all-blocked",
    {
        /// The clusters that a condition blocked are readmitted: a probe that is wrong everywhere must not
        /// leave the load balancer without a backend.
        FailOpen = "fail-open",
        /// The Service is not served.
        FailClosed = "fail-closed",
    }
}

choice! {
    /// The addresses in a member to which requests for a backend Service are sent.
    BackendAddresses, BACKEND_ADDRESSES_ANNOTATION = "networking.karmada-rs.io/backend-addresses",
    {
        /// Those of its endpoints, as Karmada collects them.
        Endpoints = "endpoints",
        /// Those of its load balancer there, at the Service's port.
        LoadBalancers = "load-balancers",
        /// Those of the member's own ingress controller, for the Ingress of the name of the `MultiClusterIngress`.
        Ingresses = "ingresses",
    }
}

/// The addresses of members that can be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PossibleAddresses {
    /// All that there are.
    #[default]
    All,
    /// Those of endpoints: no report of the members is read.
    Endpoints,
    /// Those that members report: nobody who asks reaches an endpoint.
    Reported,
}

impl PossibleAddresses {
    /// Returns an error unless these addresses can be had.
    pub(super) fn check(self, addresses: BackendAddresses) -> Result<(), InvalidChoice> {
        let is_endpoints = addresses == BackendAddresses::Endpoints;
        match self {
            Self::Endpoints if !is_endpoints => Err(InvalidChoice(&["endpoints"])),
            Self::Reported if is_endpoints => Err(InvalidChoice(&["load-balancers", "ingresses"])),
            _ => Ok(()),
        }
    }
}

choice! {
    /// The clusters that serve the Services of one host. No flag says so for all ingresses.
    Serving, SERVE_ANNOTATION = "networking.karmada-rs.io/serve",
    {
        /// Each Service is served where it can be.
        Apart = "apart",
        /// A Service is served where every Service of the host can be, while there is such a cluster.
        Together = "together",
    }
}

/// Returns the choice of the annotation, and the annotation if its value is none; then `default` counts.
pub(super) fn annotated<C: Choice>(
    metadata: &ObjectMeta,
    default: C,
) -> (C, Option<InvalidAnnotation>) {
    let annotations = metadata.annotations.as_ref();
    let Some(text) = annotations.and_then(|a| a.get(C::ANNOTATION)) else {
        return (default, None);
    };
    match text.parse() {
        Ok(value) => (value, None),
        Err(allowed) => {
            let invalid = InvalidAnnotation {
                annotation: C::ANNOTATION,
                value: text.clone(),
                allowed,
                effective: default.to_string(),
            };
            (default, Some(invalid))
        }
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
        let (value, invalid) = annotated(&with("open"), closed);
        let invalid = invalid.unwrap();
        assert_eq!((value, invalid.effective.as_str()), (closed, "fail-closed"));
        assert_eq!(invalid.value, "open");
        assert_eq!(
            invalid.allowed.to_string(),
            "must be fail-open or fail-closed"
        );
        assert_eq!(annotated(&ObjectMeta::default(), closed), (closed, None));
        assert_eq!("ingresses".parse(), Ok(BackendAddresses::Ingresses));
    }
}
