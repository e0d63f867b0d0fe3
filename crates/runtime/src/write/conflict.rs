//! Which refusals of a write tell that the object is another version now.

use kube::core::Status;

/// The message of the API server for a JSON patch that does not fit the object. The messages for what it, a policy or a
/// webhook refuses are others.
pub(super) const UNFIT: &str = "the server rejected our request due to an error in our request";

/// Returns `true` if the API server refused a write because the object is another version now: a 409, or the 422 to a
/// JSON patch with a path that is no longer there, which names nothing that it refuses.
pub fn is_conflict(status: &Status) -> bool {
    status.code == 409 || (status.code == 422 && status.message == UNFIT)
}
