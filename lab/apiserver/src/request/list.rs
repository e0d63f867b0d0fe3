//! `ListOptions`: the options of a list, a watch and the deletion of a collection.

use super::Query;
use crate::error::{ApiError, Cause};

/// The options besides the selectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// `resourceVersion`, or `None` if it is not set.
    pub(crate) version: Option<u64>,
    /// Set if the list is read at exactly this version, not at any newer one.
    pub(crate) is_exact: bool,
    /// `sendInitialEvents`: whether a watch starts with the existing objects, or `None` if it is
    /// not set.
    pub(crate) initial: Option<bool>,
    pub(crate) bookmarks: bool,
    /// `timeoutSeconds`.
    pub(crate) seconds: Option<u64>,
    pub(crate) limit: Option<usize>,
    /// The token of the previous page.
    pub(crate) continue_: Option<String>,
}

impl ListOptions {
    /// Reads the options of a list or a watch.
    ///
    /// # Errors
    /// Returns an error if they are malformed or exclude each other.
    pub(crate) fn read(query: &Query, is_watch: bool) -> Result<Self, ApiError> {
        let limit = query.number("limit")?.unwrap_or_default();
        let seconds = query.number("timeoutSeconds")?.unwrap_or_default();
        let causes = if is_watch {
            check_watch(query)
        } else {
            check_list(query)
        };
        if !causes.is_empty() {
            return Err(ApiError::invalid_options("ListOptions", &causes));
        }
        let version = query.version().map_err(|why| {
            if is_watch {
                ApiError::of_store(&why)
            } else {
                ApiError::bad_request(format!("invalid resource version: {why}"))
            }
        })?;
        let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
        let continue_ = query.text("continue").map(str::to_owned);
        let is_page = limit.is_some() && continue_.is_none() && version.is_some_and(|at| at > 0);
        Ok(Self {
            version,
            is_exact: match query.text("resourceVersionMatch") {
                // Before `resourceVersionMatch` existed, a limit with a version already meant
                // exactly that version.
                None => is_page,
                Some(match_) => match_ == "Exact",
            },
            initial: query.choice("sendInitialEvents"),
            bookmarks: query.flag("allowWatchBookmarks"),
            seconds: u64::try_from(seconds).ok().filter(|seconds| *seconds > 0),
            limit,
            continue_,
        })
    }
}

fn forbidden(why: &str) -> Cause {
    Cause::forbidden("resourceVersionMatch", why)
}

fn check_list(query: &Query) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(match_) = query.text("resourceVersionMatch") {
        let version = query.text("resourceVersion");
        if version.is_none() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            causes.push(forbidden(why));
        }
        if query.text("continue").is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            causes.push(forbidden(why));
        }
        if !["Exact", "NotOlderThan"].contains(&match_) {
            let supported = &["Exact", "NotOlderThan", ""];
            causes.push(Cause::unsupported(
                "resourceVersionMatch",
                match_,
                supported,
            ));
        }
        if (match_, version) == ("Exact", Some("0")) {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(forbidden(why));
        }
    }
    if query.choice("sendInitialEvents").is_some() {
        let why = "sendInitialEvents is forbidden for list";
        causes.push(Cause::forbidden("sendInitialEvents", why));
    }
    causes
}

fn check_watch(query: &Query) -> Vec<Cause> {
    let mut causes = Vec::new();
    let match_ = query.text("resourceVersionMatch");
    let is_other = match_ != Some("NotOlderThan");
    if query.choice("sendInitialEvents").is_some() {
        if is_other {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(forbidden(why));
        }
    } else if match_.is_some() {
        let why =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(forbidden(why));
    }
    if let Some(match_) = match_.filter(|_| is_other) {
        let supported = &["NotOlderThan"];
        causes.push(Cause::unsupported(
            "resourceVersionMatch",
            match_,
            supported,
        ));
    }
    if query.text("continue").is_some() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        causes.push(forbidden(why));
    }
    causes
}
