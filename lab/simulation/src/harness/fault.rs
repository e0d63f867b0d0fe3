//! The APIs of a world, and their faults.

use std::time::Duration;

use embedded_apiserver::{Fault, Injection};

/// An API of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    /// The one that all programs share.
    Hub,
    /// That of a member.
    Member(u8),
}

/// The requests to which a fault is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The kind of object, by its plural name.
    pub plural: &'static str,
    /// The part of the object, or all of it.
    pub part: Option<Part>,
}

impl About {
    /// Limits a fault to a kind of object, by its plural name.
    pub const fn kind(plural: &'static str) -> Self {
        let part = None;
        Self { plural, part }
    }
}

/// A part of an object that has a path of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are Kubernetes'")]
pub enum Part {
    Spec,
    Status,
}

/// A fault of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "all but `Late` are faults of the embedded server with these names"
)]
pub enum ApiFault {
    Conflicts {
        every: u8,
    },
    TooManyRequests {
        seconds: u8,
    },
    Unauthorized,
    Forbidden,
    InternalErrors {
        every: u8,
    },
    Unavailable,
    Slow {
        millis: u16,
    },
    LoseResponses {
        every: u8,
    },
    Outage,
    Silence,
    CutWatches {
        inside_line: bool,
    },
    ExpireWatches,
    FailWatches,
    WithholdBookmarks,
    DelayEvents {
        millis: u16,
        coalesce: bool,
    },
    StaleLists {
        versions: u8,
    },
    /// A write is delayed, and then stored even if the program has abandoned it.
    Late {
        millis: u16,
    },
}

impl ApiFault {
    /// Returns the injection of the fault into an embedded server.
    ///
    /// # Errors
    /// The delay of a write, which is a fault of the connection.
    pub(crate) fn injection(self) -> Result<Injection, Duration> {
        Ok(match self {
            Self::Conflicts { every } => Fault::Conflict.every(every.into()),
            Self::TooManyRequests { seconds } => {
                let retry_after = Duration::from_secs(seconds.into());
                Fault::TooManyRequests { retry_after }.into()
            }
            Self::Unauthorized => Fault::Unauthorized.into(),
            Self::Forbidden => Fault::Forbidden.into(),
            Self::InternalErrors { every } => Fault::InternalError.every(every.into()),
            Self::Unavailable => Fault::Unavailable.into(),
            Self::Slow { millis: by } => Fault::Slow(millis(by)).into(),
            Self::LoseResponses { every } => Fault::LoseResponse.every(every.into()),
            Self::Outage => Fault::Disconnect.into(),
            Self::Silence => Fault::Silence.into(),
            Self::CutWatches { inside_line } => Fault::CutWatch { inside_line }.into(),
            Self::ExpireWatches => Fault::ExpireWatch.into(),
            Self::FailWatches => Fault::FailWatch.into(),
            Self::WithholdBookmarks => Fault::WithholdBookmarks.into(),
            Self::DelayEvents {
                millis: by,
                coalesce,
            } => {
                let by = millis(by);
                Fault::DelayEvents { by, coalesce }.into()
            }
            Self::StaleLists { versions } => Fault::StaleList {
                versions: versions.into(),
            }
            .into(),
            Self::Late { millis: by } => return Err(millis(by)),
        })
    }
}

fn millis(millis: u16) -> Duration {
    Duration::from_millis(millis.into())
}
