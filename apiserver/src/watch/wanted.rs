//! Where a watch begins and what it wants.

use std::time::Duration;

use super::line::Line;
use crate::error::{ApiError, Cause};
use crate::request::{Query, unsupported};
use crate::selector::Selector;
use crate::store::{Change, Collection};

/// How long a watch lasts that does not say; a real one takes between 30 and 60 minutes.
const DEFAULT_DURATION: Duration = Duration::from_mins(45);

/// Where a watch begins and what it wants.
#[derive(Debug)]
pub(super) struct Wanted {
    version: Option<u64>,
    /// Whether the objects there are come first; as the version says, if it does not say.
    initial: Option<bool>,
    pub(super) bookmarks: bool,
    pub(super) duration: Duration,
}

impl Wanted {
    pub(super) fn new(query: &Query) -> Result<Self, ApiError> {
        let initial = query.choice("sendInitialEvents");
        let match_ = query.text("resourceVersionMatch");
        let forbidden = |field: &str, why: &str| {
            ApiError::invalid_options("ListOptions", &[Cause::forbidden(field, why)])
        };
        match (initial, match_) {
            (None, None) | (Some(_), Some("NotOlderThan")) => {}
            (Some(_), None | Some("Exact")) => {
                return Err(forbidden(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
            (None, Some(_)) => {
                return Err(forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            (Some(_), Some(other)) => {
                let field = "resourceVersionMatch";
                return Err(unsupported("ListOptions", field, other, &["NotOlderThan"]));
            }
        }
        let seconds = query.number("timeoutSeconds")?.unwrap_or_default();
        let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
        Ok(Self {
            version: query.version()?,
            initial,
            bookmarks: query.flag("allowWatchBookmarks"),
            duration: seconds
                .map_or(DEFAULT_DURATION, Duration::from_secs)
                .min(DEFAULT_DURATION),
        })
    }

    /// The first lines, and the version they lead up to.
    pub(super) fn first(
        &self,
        collection: &Collection,
        selector: &Selector,
        now: u64,
    ) -> Result<(Vec<Line>, u64), ApiError> {
        let version = self.version.unwrap_or_default();
        let sends_objects = self.initial.unwrap_or(version == 0);
        if self.initial == Some(true) && version > now {
            return Err(ApiError::too_large_version(version, now));
        }
        if !sends_objects {
            return Ok((Vec::new(), if version == 0 { now } else { version }));
        }
        let objects = collection
            .objects
            .values()
            .filter(|object| selector.matches(object));
        let mut lines: Vec<Line> = objects
            .map(|object| Line::Object(Change::Added, object.clone()))
            .collect();
        if self.initial == Some(true) && self.bookmarks {
            lines.push(Line::Bookmark {
                version: now,
                ends_initial: true,
            });
        }
        Ok((lines, now))
    }
}
