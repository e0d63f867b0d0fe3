//! The refusals of a write that tell that the object is another version now.

use kube::core::Status;

/// The message of the API server for a JSON patch that does not fit the object. The messages for refusals by it, a policy or a
/// webhook are others.
pub(super) const UNFIT: &str = "the server rejected our request due to an error in our request";

/// Returns `true` if the API server refused a write because the object is another version now, or another object: a 409,
/// the 422 to a JSON patch with a path that is no longer there, which names nothing that it refuses, or the 422 to a
/// patch with the uid of an object that is gone, which it takes for a change of a field.
pub fn is_conflict(status: &Status) -> bool {
    match status.code {
        409 => true,
        422 => status.message == UNFIT || is_about_uid(status),
        _ => false,
    }
}

fn is_about_uid(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.field == "metadata.uid")
}
