//! What goes wrong, to whom, and how often.

use std::time::Duration;

use super::Occasion;
use crate::request::Verb;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An update, patch or delete is refused with 409 `Conflict`.
    Conflict,
    /// 429 `TooManyRequests` with `Retry-After`, which has whole seconds.
    TooManyRequests {
        /// How long the client is told to wait.
        retry_after: Duration,
    },
    /// 500 `InternalError`.
    InternalError,
    /// 503 `ServiceUnavailable`.
    Unavailable,
    /// The answer comes this much later.
    Slow(Duration),
    /// A write is stored, and then the connection is lost before the answer.
    LoseAnswer,
    /// The connection is lost before the request is looked at. If it happens without limit of
    /// times, open watches are cut as well, and a socket takes no connection where it concerns all.
    Disconnect,
    /// The request is taken and never answered; open watches say nothing more. When the fault is
    /// removed or its time is over, the connections are lost.
    Silence,
    /// The connection of a watch is lost when it has something to say.
    CutWatch {
        /// Whether half of the line is written first.
        inside_line: bool,
    },
    /// A watch that has something to say ends with 410 `Expired` in its place.
    ExpireWatch,
    /// No bookmarks, but for the one that ends the initial events.
    WithholdBookmarks,
    /// A watch says what happened this much later.
    DelayEvents {
        /// From the first event to when it and all since are written.
        by: Duration,
        /// Whether of several events of one object only the newest is written.
        coalesce: bool,
    },
    /// A list shows an older state, as far as the history goes back.
    StaleList {
        /// How many versions ago.
        versions: u64,
    },
}

impl Fault {
    /// The fault at every nth request (or watch line) it can happen to.
    pub fn every(self, nth: u64) -> Injection {
        Injection::from(self).every(nth)
    }

    /// The fault a number of times.
    pub fn times(self, times: u64) -> Injection {
        Injection::from(self).times(times)
    }

    /// The fault for a while.
    pub fn lasting(self, duration: Duration) -> Injection {
        Injection::from(self).lasting(duration)
    }

    /// The fault for one kind of object, by its plural name.
    pub fn kind(self, plural: impl Into<String>) -> Injection {
        Injection::from(self).kind(plural)
    }

    /// The fault for one object.
    pub fn object(self, name: impl Into<String>) -> Injection {
        Injection::from(self).object(name)
    }

    /// The fault for some verbs.
    pub fn verbs(self, verbs: impl IntoIterator<Item = Verb>) -> Injection {
        Injection::from(self).verbs(verbs)
    }

    /// The fault for clients whose `User-Agent` contains a text.
    pub fn client(self, user_agent: impl Into<String>) -> Injection {
        Injection::from(self).client(user_agent)
    }

    /// Whether it is decided once for each request with this verb.
    pub(super) fn happens_to(&self, verb: Verb) -> bool {
        match self {
            Self::Conflict => matches!(verb, Verb::Update | Verb::Patch | Verb::Delete),
            Self::LoseAnswer => verb.writes(),
            Self::StaleList { .. } => verb == Verb::List,
            Self::CutWatch { .. }
            | Self::ExpireWatch
            | Self::WithholdBookmarks
            | Self::DelayEvents { .. } => false,
            Self::TooManyRequests { .. }
            | Self::InternalError
            | Self::Unavailable
            | Self::Slow(_)
            | Self::Disconnect
            | Self::Silence => true,
        }
    }
}

/// A fault, what it happens to and how often; without limits, everything and always.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    pub(super) fault: Fault,
    pub(super) every: u64,
    pub(super) times: Option<u64>,
    pub(super) duration: Option<Duration>,
    plural: Option<String>,
    name: Option<String>,
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
            verbs: Vec::new(),
            client: None,
        }
    }
}

impl Injection {
    /// See [`Fault::every`]; 0 is 1.
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

    pub(super) fn concerns(&self, occasion: &Occasion) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&occasion.verb))
            && (self.plural.as_ref()).is_none_or(|plural| *plural == occasion.plural)
            && (self.name.as_ref()).is_none_or(|name| *name == occasion.name)
            && (self.client.as_ref()).is_none_or(|client| occasion.client.contains(client))
    }

    pub(super) fn concerns_everything(&self) -> bool {
        self.verbs.is_empty()
            && self.plural.is_none()
            && self.name.is_none()
            && self.client.is_none()
    }
}
