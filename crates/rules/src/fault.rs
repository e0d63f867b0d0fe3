//! Where a cluster's DNS is broken, from what answers when it is asked past the way a pod goes.
//!
//! A pod asks the server of its `resolv.conf`: a cache on its node, or the address of the DNS Service.
//! The Service leads to the DNS pods. Asking the Service and each pod directly tells which of them
//! fails, and whether over UDP or TCP only.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::observation::{Failure, FailureClass, Server};

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
pub enum Place {
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

impl Place {
    /// Every kind of place in a word, as metrics name it.
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
pub struct Fault {
    /// What is broken.
    pub place: Place,
    /// The only transport that fails; none when both do.
    pub only: Option<Transport>,
}

impl fmt::Display for Fault {
    /// `node cache`, `pod 10.244.0.7, tcp only`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::NodeCache => f.write_str("node cache"),
            Place::ServicePath => f.write_str("Service path"),
            Place::Service => f.write_str("DNS Service"),
            Place::PathToPods => f.write_str("path to the pods"),
            Place::Pod(pod) => write!(f, "pod {}", Server(pod)),
            Place::SomePods => f.write_str("some pods"),
            Place::EveryPod => f.write_str("every pod"),
        }?;
        match self.only {
            Some(transport) => write!(f, ", {} only", transport.as_str()),
            None => Ok(()),
        }
    }
}

/// The text is no fault that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFault;

impl FromStr for Fault {
    type Err = UnknownFault;

    /// Reads what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let only = Transport::ALL.into_iter().find_map(|transport| {
            let place = text
                .strip_suffix(" only")?
                .strip_suffix(transport.as_str())?;
            Some((place.strip_suffix(", ")?, transport))
        });
        let place = only.map_or(text, |(place, _)| place);
        let place = match place {
            "node cache" => Place::NodeCache,
            "Service path" => Place::ServicePath,
            "DNS Service" => Place::Service,
            "path to the pods" => Place::PathToPods,
            "some pods" => Place::SomePods,
            "every pod" => Place::EveryPod,
            other => {
                let pod = other.strip_prefix("pod ").ok_or(UnknownFault)?;
                let Server(pod) = pod.parse().map_err(|_| UnknownFault)?;
                Place::Pod(pod)
            }
        };
        let only = only.map(|(_, transport)| transport);
        Ok(Self { place, only })
    }
}

/// What came of asking one server directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direct {
    /// The server.
    pub server: SocketAddr,
    /// By datagrams.
    pub udp: Result<(), FailureClass>,
    /// Over a connection.
    pub tcp: Result<(), FailureClass>,
}

impl Direct {
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
pub struct Paths {
    /// The address of the DNS Service; none when it was not asked.
    pub service: Option<Direct>,
    /// Each DNS pod.
    pub pods: Vec<Direct>,
}

impl Paths {
    /// Where the fault is. `round` is the failure of what pods do, over `transport`, if it failed;
    /// when it did not, whatever fails is a fault that something hides so far.
    pub fn fault(&self, round: Option<&Failure>, transport: Transport) -> Option<Fault> {
        // A server that does not speak TCP explains a failure only if TCP was needed.
        let needed = round.map(|failure| match failure.class {
            FailureClass::Truncated => Transport::Tcp,
            _ => transport,
        });
        let fails = |direct: &&Direct| match needed {
            Some(needed) => direct.fails_over(needed),
            None => direct.failing().is_some(),
        };
        let pods: Vec<_> = self.pods.iter().filter(fails).collect();
        let service = self.service.as_ref().filter(fails);
        let place = match (pods.as_slice(), service) {
            ([_, ..], _) if pods.len() == self.pods.len() => Place::EveryPod,
            ([pod], _) => Place::Pod(pod.server),
            ([_, ..], _) => Place::SomePods,
            ([], Some(_)) if self.pods.is_empty() => Place::Service,
            ([], Some(_)) => Place::ServicePath,
            ([], None) => return self.before(round?.server),
        };
        let broken = if pods.is_empty() {
            service.into_iter().collect()
        } else {
            pods
        };
        let mut only = broken.iter().map(|direct| direct.failing());
        let first = only.next().flatten();
        let same = only.all(|failing| failing == first);
        Some(Fault {
            place,
            only: match first.as_deref() {
                Some(&[transport]) if same => Some(transport),
                _ => None,
            },
        })
    }

    /// The fault when only `server` fails: what is asked before all that answers.
    fn before(&self, server: SocketAddr) -> Option<Fault> {
        let mut answers = self.service.iter().chain(&self.pods);
        if answers.any(|direct| direct.server == server) {
            return None;
        }
        let place = match self {
            Self {
                service: Some(_), ..
            } => Place::NodeCache,
            Self { pods, .. } if !pods.is_empty() => Place::PathToPods,
            _ => return None,
        };
        Some(Fault { place, only: None })
    }
}

#[cfg(test)]
mod tests;
