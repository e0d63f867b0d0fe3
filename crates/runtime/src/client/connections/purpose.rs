//! The purposes of requests.

use http::{Method, Uri};

use crate::client::requests::verb;

/// The API group of leases.
const LEASES: &str = "/apis/coordination.k8s.io/";

/// The purpose of a request: none waits for one of another purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To hold a lease, which is lost if it takes long.
    Lease,
    /// Whatever has its answer soon: writes, reads, lists.
    Requests,
    /// To watch, for minutes.
    Watches,
}

impl Purpose {
    /// All of them, each at its own place.
    pub(super) const ALL: [Self; 3] = [Self::Lease, Self::Requests, Self::Watches];

    /// Returns the purpose of a request.
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        match verb(method, uri) {
            "watch" => Self::Watches,
            // A list has those of a whole fleet, perhaps.
            "list" => Self::Requests,
            _ if uri.path().contains(LEASES) => Self::Lease,
            _ => Self::Requests,
        }
    }

    /// Returns its name in logs and metrics.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Requests => "requests",
            Self::Watches => "watches",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lease is renewed beside requests of other kinds and all watches, those of leases included.
    #[test]
    fn leases_are_apart() {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/n/leases";
        let lease = &format!("{leases}/l");
        let watch = "?watch=true&resourceVersion=1";
        for (method, path, expected) in [
            ("GET", lease, Purpose::Lease),
            ("PATCH", lease, Purpose::Lease),
            ("POST", &leases.to_owned(), Purpose::Lease),
            ("PATCH", &format!("/member{lease}"), Purpose::Lease),
            ("GET", &leases.to_owned(), Purpose::Requests),
            ("GET", &format!("{leases}{watch}"), Purpose::Watches),
            ("GET", &format!("/api/v1/pods{watch}"), Purpose::Watches),
            ("GET", &"/api/v1/pods".to_owned(), Purpose::Requests),
            (
                "POST",
                &"/api/v1/namespaces/n/pods".to_owned(),
                Purpose::Requests,
            ),
        ] {
            let (method, uri) = (method.parse().unwrap(), path.parse().unwrap());
            assert_eq!(Purpose::of(&method, &uri), expected, "{method} {path}");
        }
        for (place, purpose) in Purpose::ALL.into_iter().enumerate() {
            assert_eq!(purpose as usize, place);
        }
    }
}
