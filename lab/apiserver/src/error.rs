//! Errors of the API, and the `Status` objects that carry them.

mod cause;

use std::fmt;

use http::StatusCode;
use serde_json::{Value, json};

pub(crate) use self::cause::Cause;

const PAGE_NOT_FOUND: &str = "404 page not found\n";

/// A resource or kind with its group, in the form of messages: `leases.coordination.k8s.io`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Qualified<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) name: &'a str,
}

impl Qualified<'_> {
    /// The subject of errors about a patch that makes no object.
    pub(crate) const NOTHING: Qualified<'static> = Qualified {
        group: "",
        name: "",
    };
}

impl fmt::Display for Qualified<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, name } = self;
        match *group {
            "" => formatter.write_str(name),
            group => write!(formatter, "{name}.{group}"),
        }
    }
}

/// An error of the API, which clients get as a `Status` object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Value,
    /// The token to continue a list whose version is no longer in the history.
    continue_: Option<Box<str>>,
    /// Warnings about the request, which are sent whether or not it fails.
    warnings: Box<[String]>,
}

impl ApiError {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            continue_: None,
            warnings: Box::default(),
        }
    }

    pub(crate) fn with_details(self, details: Value) -> Self {
        Self { details, ..self }
    }

    pub(crate) fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self {
            warnings: warnings.into(),
            ..self
        }
    }

    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Sets the details to an object of a resource or kind, and keeps their causes.
    fn about(self, what: Qualified<'_>, name: &str) -> Self {
        let mut details = json!({});
        for (field, value) in [("kind", what.name), ("group", what.group), ("name", name)] {
            if !value.is_empty() {
                details[field] = json!(value);
            }
        }
        if let Some(causes) = self.details.get("causes") {
            details["causes"] = causes.clone();
        }
        self.with_details(details)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Creates the error for an object without `apiVersion` or `kind`.
    pub(crate) fn type_missing(field: &str) -> Self {
        let field = if field == "kind" { "Kind" } else { field };
        Self::bad_request(format!(
            "Object '{field}' is missing in the body of the request"
        ))
    }

    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        let message = message.to_string();
        let details = json!({"causes": [{"message": message}]});
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
        .with_details(details)
    }

    /// Creates the error for a path of a group that is not built in and at which nothing is served.
    /// Its response is plain text, because kube-apiserver's extension server sends it.
    pub(crate) fn page_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "", PAGE_NOT_FOUND)
    }

    /// Creates the error for any other path at which nothing is served.
    pub(crate) fn no_such_path() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_details(json!({}))
    }

    pub(crate) fn not_found(resource: Qualified<'_>, name: &str) -> Self {
        let message = format!("{resource} {name:?} not found");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(resource, name)
    }

    pub(crate) fn already_exists(resource: Qualified<'_>, name: &str) -> Self {
        let message = format!("{resource} {name:?} already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(resource, name)
    }

    /// Creates [`Self::already_exists`] for a name whose object is still terminating.
    pub(crate) fn still_exists(resource: Qualified<'_>, name: &str) -> Self {
        let error = Self::already_exists(resource, name);
        let message = format!("object is being deleted: {error}");
        Self { message, ..error }
    }

    /// Creates [`Self::already_exists`] for a generated name.
    pub(crate) fn no_unique_name(resource: Qualified<'_>, name: &str) -> Self {
        let mut error = Self::already_exists(resource, name);
        error.details["retryAfterSeconds"] = 1.into();
        let message =
            format!("{error}, the server was not able to generate a unique name for the object");
        Self { message, ..error }
    }

    pub(crate) fn conflict(resource: Qualified<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(resource, name)
    }

    /// Creates the error for a write that is not based on the latest version of its object.
    pub(crate) fn modified(resource: Qualified<'_>, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try \
             again",
        )
    }

    pub(crate) fn forbidden(resource: Qualified<'_>, name: &str, why: &str) -> Self {
        let message = format!("{resource} {name:?} is forbidden: {why}");
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(resource, name)
    }

    pub(crate) fn namespace_terminating(
        resource: Qualified<'_>,
        name: &str,
        namespace: &str,
    ) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let cause = json!({
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        });
        Self::forbidden(resource, name, &why)
            .with_details(json!({"causes": [cause]}))
            .about(resource, name)
    }

    /// Creates the error for an object with invalid fields. The API mostly names its kind,
    /// sometimes its resource.
    pub(crate) fn invalid(what: Qualified<'_>, name: &str, causes: &[Cause]) -> Self {
        let mut wrong: Vec<String> = Vec::new();
        for cause in causes {
            let line = format!("{}: {}", cause.field, cause.message);
            if !wrong.contains(&line) {
                wrong.push(line);
            }
        }
        let wrong = match &wrong[..] {
            [] => String::new(),
            [one] => format!(": {one}"),
            several => format!(": [{}]", several.join(", ")),
        };
        let causes: Vec<Value> = (causes.iter())
            .map(|cause| {
                json!({"reason": cause.reason, "message": cause.message, "field": cause.field})
            })
            .collect();
        let message = format!("{what} {name:?} is invalid{wrong}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
            .with_details(json!({"causes": causes}))
            .about(what, name)
    }

    /// Creates the error for invalid options of a request.
    pub(crate) fn invalid_options(options: &str, causes: &[Cause]) -> Self {
        let options = Qualified {
            group: "meta.k8s.io",
            name: options,
        };
        Self::invalid(options, "", causes)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details(json!({}))
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    pub(crate) fn not_acceptable(accepted: &[&str]) -> Self {
        Self::new(
            StatusCode::NOT_ACCEPTABLE,
            "NotAcceptable",
            format!(
                "only the following media types are accepted: {}",
                accepted.join(", ")
            ),
        )
    }

    /// Creates the error for a form that the requested objects do not have.
    pub(crate) fn unsuitable_form(why: &str) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", why)
    }

    pub(crate) fn too_large(why: &str) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: {why}"),
        )
    }

    /// Creates the error for an object that the store rejects: it has a message but no reason.
    pub(crate) fn of_store(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// Creates [`Self::expired`] for a page, with the token that continues at the latest version.
    pub(crate) fn expired_page(token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
             You can start a new list without the continue parameter, or use the continue token in \
             this response to retrieve the remainder of the results. Continuing with the provided \
             token results in an inconsistent list - objects that were created, modified, or deleted \
             between the time the first chunk was returned and now may show up in the list.";
        Self {
            continue_: Some(token.into()),
            ..Self::expired(message)
        }
    }

    /// Creates the error for a version that the server has not reached.
    pub(crate) fn too_large_version(requested: u64, current: u64) -> Self {
        let message =
            format!("Timeout: Too large resource version: {requested}, current: {current}");
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).with_details(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }))
    }

    pub(crate) fn too_many_requests(retry_after: u64) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequests",
            "Too many requests, please try again later.",
        )
        .with_details(json!({"retryAfterSeconds": retry_after}))
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn unavailable() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        )
    }

    /// Returns the body of a response that is plain text instead of a `Status`.
    pub(crate) fn plain(&self) -> Option<&'static str> {
        (self.message == PAGE_NOT_FOUND).then_some(PAGE_NOT_FOUND)
    }

    /// Returns the HTTP status code.
    pub fn code(&self) -> StatusCode {
        self.code
    }

    /// Returns the seconds for the `Retry-After` header.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds")?.as_u64()
    }

    /// Returns the `Status` object of the response.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        if let Some(token) = &self.continue_ {
            status["metadata"]["continue"] = (**token).into();
        }
        status
    }
}
