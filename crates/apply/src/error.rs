//! Errors of the work on a cluster.

use karmada_runtime::error::Chain;
use karmada_runtime::write::{WriteError, WriteErrorKind};
use kube::core::Status;
use objects::GroupVersionKind;

/// Errors of one manifest. Each names the object, and the request if one has failed.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The manifest does not say which object it is of.
    #[error("{object} {problem}")]
    Manifest {
        /// The object.
        object: String,
        /// The part that is missing, or too much.
        problem: &'static str,
    },
    /// The cluster has no such kind.
    #[error("{object}: the member does not serve {kind}")]
    NotServed {
        /// The object.
        object: String,
        /// Its kind.
        kind: GroupVersionKind,
    },
    /// The object must not be touched.
    #[error("{object}: {reason}")]
    Refused {
        /// The object.
        object: String,
        /// The reason, and the way out.
        reason: String,
    },
    /// A script failed that takes part in replacing the object.
    #[error("{object}: {reason}")]
    Customization {
        /// The object.
        object: String,
        /// The script's error.
        reason: String,
    },
    /// The object differs from its manifest, and is written only if it does not.
    #[error("{object} differs from its manifest")]
    Differs {
        /// The object.
        object: String,
    },
    /// The cluster rejected the request, or was not reached.
    #[error("{request}: {}", Chain(.error))]
    Request {
        /// The request: its verb, and the kind and key of the object.
        request: String,
        /// The error. Not a source: the text has it already.
        error: kube::Error,
    },
    /// The cluster did not respond in time.
    #[error("{request}: the member did not respond in time")]
    TimedOut {
        /// The request: its verb, and the kind and key of the object.
        request: String,
    },
    /// This process may not write now.
    #[error("not leading")]
    NotLeading,
}

impl MemberError {
    /// Creates the error of a write.
    pub(crate) fn of_write(request: String, error: WriteError) -> Self {
        match error {
            WriteError::NotLeading => Self::NotLeading,
            WriteError::TimedOut(_) => Self::TimedOut { request },
            WriteError::Api(error) => Self::Request { request, error },
        }
    }

    /// Returns `true` if the cluster cannot be worked on at all at the moment.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Request { error, .. } => !is_answer(error),
            _ => false,
        }
    }

    /// Returns the error without the request that failed with it.
    pub fn cause(&self) -> String {
        match self {
            Self::Request { error, .. } => Chain(error).to_string(),
            Self::TimedOut { .. } => "the member did not respond in time".to_owned(),
            error => error.to_string(),
        }
    }

    /// Returns `true` if the response is not that of a Kubernetes API.
    pub fn is_unreadable(&self) -> bool {
        let error = self.error();
        matches!(error, Some(kube::Error::SerdeError(_)))
    }

    /// Returns `true` if the cluster does not accept our credentials.
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    /// Returns `true` if no other request to the cluster would fare better.
    pub fn is_of_member(&self) -> bool {
        self.is_unreachable() || self.is_unauthorized()
    }

    /// Returns `true` if the object is another one than was read.
    pub(crate) fn is_conflict(&self) -> bool {
        self.kind() == Some(WriteErrorKind::Conflict)
    }

    /// Returns `true` if other managers have set a field otherwise.
    pub(crate) fn is_about_managers(&self) -> bool {
        let causes = self.status().and_then(|status| status.details.as_ref());
        let mut causes = causes.into_iter().flat_map(|details| &details.causes);
        causes.any(|cause| cause.reason == "FieldManagerConflict")
    }

    /// Returns the request that the cluster has refused, and its answer, if it would answer so again until something
    /// changes.
    pub(crate) fn into_rejection(self) -> Result<(String, Box<Status>), Self> {
        let is_final = self.is_about_managers() || self.kind() == Some(WriteErrorKind::Invalid);
        match self {
            Self::Request {
                request,
                error: kube::Error::Api(status),
            } if is_final => Ok((request, status)),
            error => Err(error),
        }
    }

    /// Returns `true` if the cluster refuses the object as it would be.
    pub(crate) fn is_about_values(&self) -> bool {
        self.code() == Some(422)
    }

    /// Returns `true` if there is no such object, namespace or kind.
    pub(crate) fn is_missing(&self) -> bool {
        self.kind() == Some(WriteErrorKind::Missing)
    }

    /// Returns `true` if the manifest has a key twice in a list that merges by it, which server-side apply
    /// refuses.
    pub(crate) fn is_about_duplicates(&self) -> bool {
        let status = self.status();
        status.is_some_and(|status| status.message.contains("duplicate entries for key"))
    }

    /// Returns `true` if the manifest has a field that the cluster does not know, which server-side apply refuses.
    pub(crate) fn is_about_unknown_fields(&self) -> bool {
        let status = self.status();
        status.is_some_and(|status| status.message.contains("field not declared in schema"))
    }

    /// Returns the places, among the ports of a Service, of the node ports that the cluster refuses: another has them, or
    /// they are not of its range.
    pub(crate) fn refused_node_ports(&self) -> Vec<usize> {
        let details = self.status().and_then(|status| status.details.as_ref());
        let causes = details.into_iter().flat_map(|details| &details.causes);
        let places = causes.filter_map(|cause| {
            let place = cause.field.strip_prefix("spec.ports[")?;
            place.strip_suffix("].nodePort")?.parse().ok()
        });
        places.filter(|_| self.is_about_values()).collect()
    }

    /// Returns the class of the cluster's answer, if there was one.
    fn kind(&self) -> Option<WriteErrorKind> {
        self.status().map(WriteErrorKind::of)
    }

    fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    fn status(&self) -> Option<&Status> {
        match self.error()? {
            kube::Error::Api(status) => Some(status),
            _ => None,
        }
    }

    fn error(&self) -> Option<&kube::Error> {
        match self {
            Self::Request { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Returns `true` if there was a response, if only one that makes no sense.
pub(crate) fn is_answer(error: &kube::Error) -> bool {
    matches!(
        error,
        kube::Error::Api(_) | kube::Error::SerdeError(_) | kube::Error::Discovery(_)
    )
}
