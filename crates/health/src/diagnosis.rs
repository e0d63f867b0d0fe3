//! The location of a fault in a cluster's DNS, from direct checks of its parts.
//!
//! A pod queries the server of its `resolv.conf`: a cache on its node, or the address of the DNS
//! Service, which routes to the DNS pods. Direct checks of the Service and of each pod show which of them
//! fails, and whether over UDP or TCP only.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::dns::DnsClass;
use super::failure::{FailureClass, Server};

/// The transport of a DNS query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// A connection.
    Tcp,
}

impl Transport {
    /// Both transports.
    pub const ALL: [Self; 2] = [Self::Udp, Self::Tcp];

    /// Returns the name in lower case, as messages and metrics use it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

/// The broken part of a cluster's DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// The server that pods of this node query. The servers behind it work.
    NodeCache,
    /// The path from this node through the Service. The pods work.
    ServicePath,
    /// The Service's address, or the pods behind it, which were not checked.
    Service,
    /// The path to the pods, which work. The Service was not checked.
    PathToPods,
    /// One pod of several.
    Pod(SocketAddr),
    /// Several pods, not all.
    SomePods,
    /// All pods.
    EveryPod,
}

impl Location {
    /// Every kind of location, as metrics name it.
    pub const KINDS: [&'static str; 7] = [
        "node_cache",
        "service_path",
        "service",
        "path_to_pods",
        "pod",
        "some_pods",
        "every_pod",
    ];

    /// Returns which of [`Self::KINDS`] it is.
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

/// A located fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Diagnosis {
    /// The broken part.
    pub location: Location,
    /// The only transport that fails; `None` if both do.
    pub only: Option<Transport>,
}

impl fmt::Display for Diagnosis {
    /// Writes `node cache`, or `pod 10.244.0.7, tcp only`.
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

/// The error for a text that is no fault known to this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownDiagnosis;

impl FromStr for Diagnosis {
    type Err = UnknownDiagnosis;

    /// Parses the output of [`fmt::Display`].
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

/// The result of querying one server directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectCheck {
    /// The server.
    pub server: SocketAddr,
    /// The result over UDP.
    pub udp: Result<(), FailureClass>,
    /// The result over TCP.
    pub tcp: Result<(), FailureClass>,
}

impl DirectCheck {
    /// Returns the result over `transport`.
    pub fn over(&self, transport: Transport) -> Result<(), FailureClass> {
        match transport {
            Transport::Udp => self.udp,
            Transport::Tcp => self.tcp,
        }
    }

    fn fails_over(&self, transport: Transport) -> bool {
        self.over(transport).is_err()
    }

    /// Returns the transports over which it fails, or `None` if it works.
    fn failing(&self) -> Option<Vec<Transport>> {
        let mut failing = Transport::ALL.to_vec();
        failing.retain(|&transport| self.fails_over(transport));
        (!failing.is_empty()).then_some(failing)
    }

    /// Returns `true` if it fails over the transport that is needed, or over any if none is.
    fn fails(&self, needed: Option<Transport>) -> bool {
        match needed {
            Some(needed) => self.fails_over(needed),
            None => self.failing().is_some(),
        }
    }
}

/// The direct checks of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectChecks {
    /// The check of the DNS Service; `None` if it was not checked.
    pub service: Option<DirectCheck>,
    /// The checks of the DNS pods.
    pub pods: Vec<DirectCheck>,
}

impl DirectChecks {
    /// Locates the fault behind `round`: the class and the server of a round that failed over
    /// `transport`, or `None` for a round that succeeded. In the latter case any failed check is a fault
    /// that a cache or another pod still masks.
    pub fn diagnose(
        &self,
        round: Option<(FailureClass, SocketAddr)>,
        transport: Transport,
    ) -> Option<Diagnosis> {
        // A server that fails over TCP only explains the failure of a round only if that needed TCP.
        let needed = round.map(|(class, _)| match class {
            class if class == DnsClass::Truncated => Transport::Tcp,
            _ => transport,
        });
        let pods: Vec<_> = self.pods.iter().filter(|pod| pod.fails(needed)).collect();
        let service = self.service.as_ref().filter(|it| it.fails(needed));
        let location = match (pods.as_slice(), service) {
            ([_, ..], _) if pods.len() == self.pods.len() => Location::EveryPod,
            ([pod], _) => Location::Pod(pod.server),
            ([_, ..], _) => Location::SomePods,
            ([], Some(_)) if self.pods.is_empty() => Location::Service,
            ([], Some(_)) => Location::ServicePath,
            ([], None) => return self.in_front(round?.1),
        };
        let broken = if pods.is_empty() {
            service.into_iter().collect()
        } else {
            pods
        };
        // One transport is to blame only if all broken servers agree on it.
        let mut only = broken.iter().map(|check| check.failing());
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

    /// Returns the fault if `server` fails and every check succeeds: the part in front of all checked
    /// servers.
    fn in_front(&self, server: SocketAddr) -> Option<Diagnosis> {
        // If pods query a checked server itself, nothing is in front of it.
        let mut checked = self.service.iter().chain(&self.pods);
        if checked.any(|check| check.server == server) {
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
