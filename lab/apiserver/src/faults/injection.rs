//! Faults, and the requests they concern.

use std::time::Duration;

use crate::request::Verb;

/// A failure that a real API server can inflict on its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Rejects an update, patch or delete with 409 `Conflict`.
    Conflict,
    /// Rejects a request with 429 `TooManyRequests` and a `Retry-After` header.
    TooManyRequests {
        /// The value of `Retry-After`, rounded up to whole seconds.
        retry_after: Duration,
    },
    /// Rejects a request with 401 `Unauthorized`, as for an expired token.
    Unauthorized,
    /// Rejects a request with 403 `Forbidden`, as without a right.
    Forbidden,
    /// Rejects a request with 500 `InternalError`.
    InternalError,
    /// Rejects a request with 503 `ServiceUnavailable`.
    Unavailable,
    /// Delays a response.
    Slow(Duration),
    /// Stores a write and then loses the connection before the response.
    LoseResponse,
    /// Loses the connection before the request is read. Without a limit of times it also cuts open
    /// watches, and if it concerns every request, the socket accepts no connections.
    Disconnect,
    /// Accepts a request and never responds; open watches send nothing more. The connections are
    /// lost when the fault is removed or its time is over.
    Silence,
    /// Loses the connection of a watch instead of its next line.
    CutWatch {
        /// Set to write half of the line first.
        inside_line: bool,
    },
    /// Ends a watch with 410 `Expired` instead of its next line.
    ExpireWatch,
    /// Ends a watch with 500 `InternalError` instead of its next line, as when etcd has no leader.
    FailWatch,
    /// Withholds bookmarks, except the one that ends the initial events.
    WithholdBookmarks,
    /// Delays the events of a watch.
    DelayEvents {
        /// The time from the first event until it and all later ones are written.
        by: Duration,
        /// Set to write only the newest of several events of one object.
        coalesce: bool,
    },
    /// Serves a list from an older state, as far as the history goes back.
    StaleList {
        /// The age of the state, in resource versions.
        versions: u64,
    },
}

impl Fault {
    /// Injects the fault into every nth request (or watch line) that it concerns.
    pub fn every(self, nth: u64) -> Injection {
        Injection::from(self).every(nth)
    }

    /// Limits the fault to a number of times.
    pub fn times(self, times: u64) -> Injection {
        Injection::from(self).times(times)
    }

    /// Ends the fault after a duration.
    pub fn lasting(self, duration: Duration) -> Injection {
        Injection::from(self).lasting(duration)
    }

    /// Limits the fault to one kind of object, by its plural name.
    pub fn kind(self, plural: impl Into<String>) -> Injection {
        Injection::from(self).kind(plural)
    }

    /// Limits the fault to objects with this name.
    pub fn object(self, name: impl Into<String>) -> Injection {
        Injection::from(self).object(name)
    }

    /// Limits the fault to requests about one subresource; that without a name is the object itself.
    pub fn subresource(self, name: impl Into<String>) -> Injection {
        Injection::from(self).subresource(name)
    }

    /// Limits the fault to some verbs.
    pub fn verbs(self, verbs: impl IntoIterator<Item = Verb>) -> Injection {
        Injection::from(self).verbs(verbs)
    }

    /// Limits the fault to clients whose `User-Agent` contains a text.
    pub fn client(self, user_agent: impl Into<String>) -> Injection {
        Injection::from(self).client(user_agent)
    }

    /// Returns the name of the fault.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::TooManyRequests { .. } => "TooManyRequests",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::InternalError => "InternalError",
            Self::Unavailable => "Unavailable",
            Self::Slow(_) => "Slow",
            Self::LoseResponse => "LoseResponse",
            Self::Disconnect => "Disconnect",
            Self::Silence => "Silence",
            Self::CutWatch { .. } => "CutWatch",
            Self::ExpireWatch => "ExpireWatch",
            Self::FailWatch => "FailWatch",
            Self::WithholdBookmarks => "WithholdBookmarks",
            Self::DelayEvents { .. } => "DelayEvents",
            Self::StaleList { .. } => "StaleList",
        }
    }

    /// Returns `true` if the fault is decided once per request with this verb, rather than per
    /// watch line.
    pub(super) fn happens_to(&self, verb: Verb) -> bool {
        match self {
            Self::Conflict => matches!(verb, Verb::Update | Verb::Patch | Verb::Delete),
            Self::LoseResponse => verb.writes(),
            Self::StaleList { .. } => verb == Verb::List,
            Self::CutWatch { .. }
            | Self::ExpireWatch
            | Self::FailWatch
            | Self::WithholdBookmarks
            | Self::DelayEvents { .. } => false,
            Self::TooManyRequests { .. }
            | Self::Unauthorized
            | Self::Forbidden
            | Self::InternalError
            | Self::Unavailable
            | Self::Slow(_)
            | Self::Disconnect
            | Self::Silence => true,
        }
    }
}

/// A fault with its conditions; without any, it hits every request until it is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    pub(super) fault: Fault,
    pub(super) every: u64,
    pub(super) times: Option<u64>,
    pub(super) duration: Option<Duration>,
    plural: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
    verbs: Vec<Verb>,
    client: Option<String>,
}

impl From<Fault> for Injection {
    fn from(fault: Fault) -> Self {
        Self {
            fault,
            every: 1,
            times: None,
            duration: None,
            plural: None,
            name: None,
            subresource: None,
            verbs: Vec::new(),
            client: None,
        }
    }
}

impl Injection {
    /// See [`Fault::every`]; 0 counts as 1.
    #[must_use]
    pub fn every(self, nth: u64) -> Self {
        Self {
            every: nth.max(1),
            ..self
        }
    }

    /// See [`Fault::times`].
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self {
            times: Some(times),
            ..self
        }
    }

    /// See [`Fault::lasting`].
    #[must_use]
    pub fn lasting(self, duration: Duration) -> Self {
        Self {
            duration: Some(duration),
            ..self
        }
    }

    /// See [`Fault::kind`].
    #[must_use]
    pub fn kind(self, plural: impl Into<String>) -> Self {
        Self {
            plural: Some(plural.into()),
            ..self
        }
    }

    /// See [`Fault::object`].
    #[must_use]
    pub fn object(self, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }

    /// See [`Fault::subresource`].
    #[must_use]
    pub fn subresource(self, name: impl Into<String>) -> Self {
        Self {
            subresource: Some(name.into()),
            ..self
        }
    }

    /// See [`Fault::verbs`].
    #[must_use]
    pub fn verbs(self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self {
            verbs: verbs.into_iter().collect(),
            ..self
        }
    }

    /// See [`Fault::client`].
    #[must_use]
    pub fn client(self, user_agent: impl Into<String>) -> Self {
        Self {
            client: Some(user_agent.into()),
            ..self
        }
    }

    pub(super) fn concerns(&self, info: &RequestInfo) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&info.verb))
            && (self.plural.as_ref()).is_none_or(|plural| *plural == info.plural)
            && (self.name.as_ref()).is_none_or(|name| *name == info.name)
            && (self.subresource.as_ref()).is_none_or(|name| *name == info.subresource)
            && (self.client.as_ref()).is_none_or(|client| info.client.contains(client))
    }

    pub(super) fn concerns_everything(&self) -> bool {
        self.verbs.is_empty()
            && self.plural.is_none()
            && self.name.is_none()
            && self.client.is_none()
    }
}

/// The attributes of a request that faults select by.
#[derive(Clone, Debug)]
pub(crate) struct RequestInfo {
    pub(crate) verb: Verb,
    /// Empty if the path names no objects.
    pub(crate) plural: String,
    /// Empty for a whole collection; the group, if its kinds are asked for.
    pub(crate) name: String,
    /// Empty if the request is about the object itself.
    pub(crate) subresource: String,
    /// The `User-Agent`.
    pub(crate) client: String,
}
