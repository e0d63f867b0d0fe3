use std::fmt;

use k8s_openapi::api::networking::v1::{HTTPIngressPath, IngressBackend};
use karmada_api::gateway_api::HttpPathMatch;
use objects::qualified_name::is_subdomain;

/// The longest path (`HTTPPathMatch.value`).
const LONGEST: usize = 1024;
const EXACT: &str = "Exact";
const PREFIX: &str = "PathPrefix";

/// The requests of a host that a route is for, by their path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::ingress) enum RoutePath {
    /// This path alone.
    Exact(String),
    /// This path and all below it, without a slash at its end.
    Prefix(String),
}

impl fmt::Display for RoutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, value) = self.parts();
        write!(f, "{kind} {value}")
    }
}

impl RoutePath {
    /// Returns the path of an Ingress.
    ///
    /// # Errors
    /// Returns the reason why an `HTTPRoute` cannot have it: an API server would refuse the whole route.
    pub(super) fn of_ingress(path: &HTTPIngressPath) -> Result<Self, &'static str> {
        let value = path.path.as_deref().filter(|path| !path.is_empty());
        let value = value.unwrap_or("/");
        let made = match path.path_type.as_str() {
            EXACT => Self::Exact(value.to_owned()),
            "Prefix" => Self::prefix(value),
            // As most ingress controllers read it.
            "ImplementationSpecific" if !is_pattern(value) => Self::prefix(value),
            "ImplementationSpecific" => {
                return Err(
                    "is a pattern that only some ingress controllers know; write it as Prefix or Exact",
                );
            }
            _ => {
                return Err(
                    "has a pathType that does not exist; write Prefix, Exact or ImplementationSpecific",
                );
            }
        };
        if is_valid(value) {
            Ok(made)
        } else {
            Err("cannot be the path of an HTTPRoute; it takes no //, /./, /../, %2F, # or space")
        }
    }

    /// Returns the path of a route, and `None` for a regular expression.
    pub(in crate::ingress) fn of_route(path: Option<&HttpPathMatch>) -> Option<Self> {
        let kind = path.and_then(|path| path.type_.as_deref());
        let value = path.and_then(|path| path.value.as_deref()).unwrap_or("/");
        match kind.unwrap_or(PREFIX) {
            EXACT => Some(Self::Exact(value.to_owned())),
            PREFIX => Some(Self::prefix(value)),
            _ => None,
        }
    }

    /// Returns the path of an Ingress that leads to `backend`.
    pub(in crate::ingress) fn to_ingress(&self, backend: IngressBackend) -> HTTPIngressPath {
        let (kind, value) = match self {
            Self::Exact(value) => (EXACT, value),
            Self::Prefix(value) => ("Prefix", value),
        };
        HTTPIngressPath {
            backend,
            path: Some(value.clone()),
            path_type: kind.to_owned(),
        }
    }

    fn prefix(value: &str) -> Self {
        let value = value.trim_end_matches('/');
        Self::Prefix(if value.is_empty() { "/" } else { value }.to_owned())
    }

    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Exact(value) => (EXACT, value),
            Self::Prefix(value) => (PREFIX, value),
        }
    }

    /// Returns the match of a route.
    pub(super) fn to_match(&self) -> HttpPathMatch {
        let (kind, value) = self.parts();
        HttpPathMatch {
            type_: Some(kind.to_owned()),
            value: Some(value.to_owned()),
        }
    }
}

/// Returns `true` for a host that an `HTTPRoute` can have. Empty is every host.
pub(super) fn is_host(host: &str) -> bool {
    host.is_empty() || is_subdomain(host.strip_prefix("*.").unwrap_or(host))
}

fn is_pattern(path: &str) -> bool {
    path.contains(|c: char| "*()[]{}^$|?+\\".contains(c))
}

/// Returns `true` for a path that the API takes (rules of `HTTPPathMatch`, Gateway API 1.5).
fn is_valid(path: &str) -> bool {
    const REFUSED: [&str; 6] = ["//", "/./", "/../", "%2f", "%2F", "#"];
    path.len() <= LONGEST
        && path.starts_with('/')
        && !REFUSED.iter().any(|refused| path.contains(refused))
        && !path.ends_with("/..")
        && !path.ends_with("/.")
        && has_only_path_characters(path)
}

fn has_only_path_characters(path: &str) -> bool {
    let mut escapes = path.split('%');
    escapes.next().is_some_and(is_plain)
        && escapes.all(|text| {
            let hex = text.as_bytes().get(..2);
            hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) && is_plain(text)
        })
}

fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || "-/._~!$&'()*+,;=:@".contains(c))
}
