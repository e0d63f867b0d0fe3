//! Where a cluster's DNS is broken, from what answers when it is asked past the way a pod goes.
//!
//! A pod asks the server of its `resolv.conf`: a cache on its node, or the address of the DNS Service.
//! The Service leads to the DNS pods. Asking the Service and each pod directly tells which of them
//! fails, and whether over UDP or TCP only.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::failure::{FailureClass, Server};

/// How a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// By datagrams.
    Udp,
    /// Over a connection.
    Tcp,
}

impl Transport {
    /// Both, as a server is asked directly.
    pub const ALL: [Self; 2] = [Self::Udp, Self::Tcp];

    /// In lower case, as messages and metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// The server that pods of this node ask: what is behind it answers.
    NodeCache,
    /// The way from this node through the Service: the pods answer.
    ServicePath,
    /// The Service's address, or what is behind it: the pods were not asked.
    Service,
    /// The way to the pods, which answer; the Service was not asked.
    PathToPods,
    /// One pod of several.
    Pod(SocketAddr),
    /// Several pods, not all.
    SomePods,
    /// All pods.
    EveryPod,
}

impl Location {
    /// Every kind of location in a word, as metrics name it.
    pub const KINDS: [&'static str; 7] = [
        "node_cache",
        "service_path",
        "service",
        "path_to_pods",
        "pod",
        "some_pods",
        "every_pod",
    ];

    /// Which of [`Self::KINDS`] it is.
    pub fn kind(self) -> &'static str {
        match self {
            Self::NodeCache => "node_cache",
            Self::ServicePath => "service_path",
            Self::Service => "service",
            Self::PathToPods => "path_to_pods",
            Self::Pod(_) => "pod",
            Self::SomePods => "some_pods",
            Self::EveryPod => "every_pod",
        }
    }
}

/// What is broken, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Diagnosis {
    /// What is broken.
    pub location: Location,
    /// The only transport that fails; none when both do.
    pub only: Option<Transport>,
}

impl fmt::Display for Diagnosis {
    /// `node cache`, `pod 10.244.0.7, tcp only`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location {
            Location::NodeCache => f.write_str("node cache"),
            Location::ServicePath => f.write_str("Service path"),
            Location::Service => f.write_str("DNS Service"),
            Location::PathToPods => f.write_str("path to the pods"),
            Location::Pod(pod) => write!(f, "pod {}", Server(pod)),
            Location::SomePods => f.write_str("some pods"),
            Location::EveryPod => f.write_str("every pod"),
        }?;
        match self.only {
            Some(transport) => write!(f, ", {} only", transport.as_str()),
            None => Ok(()),
        }
    }
}

/// The text is no fault that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownDiagnosis;

impl FromStr for Diagnosis {
    type Err = UnknownDiagnosis;

    /// Reads what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, UnknownDiagnosis> {
        let only = Transport::ALL.into_iter().find_map(|transport| {
            let location = text
                .strip_suffix(" only")?
                .strip_suffix(transport.as_str())?;
            Some((location.strip_suffix(", ")?, transport))
        });
        let location = only.map_or(text, |(location, _)| location);
        let location = match location {
            "node cache" => Location::NodeCache,
            "Service path" => Location::ServicePath,
            "DNS Service" => Location::Service,
            "path to the pods" => Location::PathToPods,
            "some pods" => Location::SomePods,
            "every pod" => Location::EveryPod,
            other => {
                let pod = other.strip_prefix("pod ").ok_or(UnknownDiagnosis)?;
                let Server(pod) = pod.parse().map_err(|_| UnknownDiagnosis)?;
                Location::Pod(pod)
            }
        };
        let only = only.map(|(_, transport)| transport);
        Ok(Self { location, only })
    }
}

/// What came of asking one server directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectCheck {
    /// The server.
    pub server: SocketAddr,
    /// By datagrams.
    pub udp: Result<(), FailureClass>,
    /// Over a connection.
    pub tcp: Result<(), FailureClass>,
}

impl DirectCheck {
    /// What came of asking it over `transport`.
    pub fn over(&self, transport: Transport) -> Result<(), FailureClass> {
        match transport {
            Transport::Udp => self.udp,
            Transport::Tcp => self.tcp,
        }
    }

    fn fails_over(&self, transport: Transport) -> bool {
        self.over(transport).is_err()
    }

    /// The transports over which it fails, if it does.
    fn failing(&self) -> Option<Vec<Transport>> {
        let mut failing = Transport::ALL.to_vec();
        failing.retain(|&transport| self.fails_over(transport));
        (!failing.is_empty()).then_some(failing)
    }
}

/// What was asked directly in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectChecks {
    /// The address of the DNS Service; none when it was not asked.
    pub service: Option<DirectCheck>,
    /// Each DNS pod.
    pub pods: Vec<DirectCheck>,
}

impl DirectChecks {
    /// Locates the fault behind `round`: the class and the server of a round that failed over
    /// `transport`, or `None` after one that succeeded, when whatever fails here is a fault that
    /// something still masks.
    pub fn diagnose(
        &self,
        round: Option<(FailureClass, SocketAddr)>,
        transport: Transport,
    ) -> Option<Diagnosis> {
        // A server that does not speak TCP explains a failure only if TCP was needed.
        let needed = round.map(|(class, _)| match class {
            FailureClass::Truncated => Transport::Tcp,
            _ => transport,
        });
        let fails = |direct: &&DirectCheck| match needed {
            Some(needed) => direct.fails_over(needed),
            None => direct.failing().is_some(),
        };
        let pods: Vec<_> = self.pods.iter().filter(fails).collect();
        let service = self.service.as_ref().filter(fails);
        let location = match (pods.as_slice(), service) {
            ([_, ..], _) if pods.len() == self.pods.len() => Location::EveryPod,
            ([pod], _) => Location::Pod(pod.server),
            ([_, ..], _) => Location::SomePods,
            ([], Some(_)) if self.pods.is_empty() => Location::Service,
            ([], Some(_)) => Location::ServicePath,
            ([], None) => return self.before(round?.1),
        };
        let broken = if pods.is_empty() {
            service.into_iter().collect()
        } else {
            pods
        };
        let mut only = broken.iter().map(|direct| direct.failing());
        let first = only.next().flatten();
        let same = only.all(|failing| failing == first);
        Some(Diagnosis {
            location,
            only: match first.as_deref() {
                Some(&[transport]) if same => Some(transport),
                _ => None,
            },
        })
    }

    /// The fault when only `server` fails: what is asked before all that answers.
    fn before(&self, server: SocketAddr) -> Option<Diagnosis> {
        let mut answers = self.service.iter().chain(&self.pods);
        if answers.any(|direct| direct.server == server) {
            return None;
        }
        let location = match self {
            Self {
                service: Some(_), ..
            } => Location::NodeCache,
            Self { pods, .. } if !pods.is_empty() => Location::PathToPods,
            _ => return None,
        };
        Some(Diagnosis {
            location,
            only: None,
        })
    }
}

#[cfg(test)]
mod tests;
