//! The start of a watch.

use std::time::Duration;

use super::line::Line;
use crate::error::ApiError;
use crate::request::ListOptions;
use crate::selector::Selector;
use crate::store::{Change, Collection};

/// The duration of a watch without `timeoutSeconds`, and the limit of one with it. kube-apiserver
/// picks a random duration between 30 and 60 minutes.
const DEFAULT_DURATION: Duration = Duration::from_mins(45);

/// Returns the duration of a watch.
pub(super) fn duration(options: &ListOptions) -> Duration {
    options.seconds.map_or(DEFAULT_DURATION, |seconds| {
        Duration::from_secs(seconds).min(DEFAULT_DURATION)
    })
}

/// Returns the initial lines of a watch, and the version they lead up to.
///
/// # Errors
/// Returns an error for a version that the server has not reached.
pub(super) fn first(
    options: &ListOptions,
    collection: &Collection,
    selector: &Selector,
    now: u64,
) -> Result<(Vec<Line>, u64), ApiError> {
    let version = options.version.unwrap_or_default();
    if options.initial == Some(true) && version > now {
        return Err(ApiError::too_large_version(version, now));
    }
    if !options.initial.unwrap_or(version == 0) {
        return Ok((Vec::new(), if version == 0 { now } else { version }));
    }
    let objects = collection
        .objects
        .values()
        .filter(|object| selector.matches(object));
    let mut lines: Vec<Line> = objects
        .map(|object| Line::Object(Change::Added, object.clone()))
        .collect();
    if options.initial == Some(true) && options.bookmarks {
        lines.push(Line::Bookmark {
            version: now,
            ends_initial: true,
        });
    }
    Ok((lines, now))
}
