//! The handlers of the verbs.

mod delete;
mod patch;
mod read;
mod write;

use http::Response;

use crate::call::Call;
use crate::error::ApiError;
use crate::request::Verb;
use crate::response::Body;
use crate::watch;

/// Handles a call. With `stale`, a list is out of date by that many versions.
pub(crate) fn run(call: &Call, stale: Option<u64>) -> Result<Response<Body>, ApiError> {
    match call.info.verb {
        Verb::Get => read::get(call),
        Verb::List => read::list(call, stale),
        Verb::Watch => watch::start(call),
        Verb::Create => write::create(call),
        Verb::Update => write::update(call),
        Verb::Patch => patch::patch(call),
        Verb::Delete => delete::delete(call),
        Verb::DeleteCollection => delete::delete_collection(call),
    }
}
