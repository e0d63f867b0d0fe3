//! Errors of the work on a member.

use karmada_runtime::error::Chain;
use karmada_runtime::write::WriteError;
use kube::core::Status;
use objects::GroupVersionKind;

/// Errors of one manifest in a member.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The manifest lacks what identifies its object.
    #[error("the manifest has no {0}")]
    Manifest(&'static str),
    /// The member has no such kind.
    #[error("the member does not serve {0}")]
    NotServed(GroupVersionKind),
    /// The object must not be touched.
    #[error("{0}")]
    Refused(String),
    /// The member rejected the request, or was not reached.
    #[error("{}", Chain(.0))]
    // Not its source: the text has it already.
    Request(kube::Error),
    /// The member did not respond in time.
    #[error("the member did not respond in time")]
    TimedOut,
    /// This process may not write now.
    #[error("not leading")]
    NotLeading,
}

impl MemberError {
    /// Returns `true` if the member cannot be worked on at all at the moment.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::TimedOut => true,
            Self::Request(error) => !matches!(
                error,
                // A response, if only one that makes no sense.
                kube::Error::Api(_) | kube::Error::SerdeError(_) | kube::Error::Discovery(_)
            ),
            _ => false,
        }
    }

    /// Returns `true` if the response is not that of a Kubernetes API.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Request(kube::Error::SerdeError(_)))
    }

    /// Returns `true` if the member does not accept our credentials.
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    /// Returns `true` if no other request to the member would fare better.
    pub fn is_of_member(&self) -> bool {
        self.is_unreachable() || self.is_unauthorized()
    }

    /// Returns `true` if the object is another one than was read.
    pub(crate) fn is_conflict(&self) -> bool {
        // The API server takes the uid of another object in a patch for a change of a field.
        let is_another = |status: &Status| {
            let mut causes = status.details.iter().flat_map(|details| &details.causes);
            causes.any(|cause| cause.field == "metadata.uid")
        };
        self.code() == Some(409)
            || matches!(self, Self::Request(kube::Error::Api(status)) if is_another(status))
    }

    /// Returns `true` if there is no such object, namespace or kind.
    pub(crate) fn is_missing(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns `true` if the manifest has a key twice in a list that merges by it, which server-side apply
    /// refuses.
    pub(crate) fn is_about_duplicates(&self) -> bool {
        match self {
            Self::Request(kube::Error::Api(status)) => {
                status.message.contains("duplicate entries for key")
            }
            _ => false,
        }
    }

    fn code(&self) -> Option<u16> {
        match self {
            Self::Request(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }
}

impl From<WriteError> for MemberError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::NotLeading => Self::NotLeading,
            WriteError::TimedOut(_) => Self::TimedOut,
            WriteError::Api(error) => Self::Request(error),
        }
    }
}
