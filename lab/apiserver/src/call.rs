//! A request for objects, parsed once for all verbs.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use crate::ApiServer;
use crate::body;
use crate::clock;
use crate::error::{ApiError, Cause};
use crate::faults::RequestInfo;
use crate::kinds::Kind;
use crate::metadata;
use crate::metrics::Labels;
use crate::patch::manager_of;
use crate::request::{Accepted, Form, ObjectPath, Query, Verb};
use crate::response::{self, Body};
use crate::table::{self, Include};
use crate::write::{FieldValidation, WriteOptions};

/// A request for objects, with its body.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) server: ApiServer,
    pub(crate) kind: Arc<Kind>,
    pub(crate) path: ObjectPath,
    pub(crate) query: Query,
    pub(crate) form: Form,
    pub(crate) include: Include,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    /// The request as faults match it.
    pub(crate) info: RequestInfo,
}

impl Call {
    /// Resolves the kind of a request.
    ///
    /// # Errors
    /// Returns the error of kube-apiserver for a path, scope, subresource or form that is not
    /// served.
    pub(crate) fn new(
        server: &ApiServer,
        path: ObjectPath,
        query: Query,
        headers: &HeaderMap,
        body: Bytes,
        info: RequestInfo,
    ) -> Result<Self, ApiError> {
        let kind = (server.state().registry).get(&path.group, &path.version, &path.plural)?;
        let is_everywhere = kind.namespaced && path.namespace.is_none();
        let is_list = matches!(info.verb, Verb::List | Verb::DeleteCollection);
        let needs_namespace = !matches!(info.verb, Verb::List | Verb::Watch);
        if (path.namespace.is_some() && !kind.namespaced)
            || (is_everywhere && path.name.is_some())
            || (is_everywhere && needs_namespace && kind.custom)
        {
            // kube-apiserver and its extension server word this differently.
            return Err(if kind.custom {
                ApiError::page_not_found()
            } else {
                ApiError::no_such_path()
            });
        }
        if !has_subresource(&kind, path.subresource.as_deref()) {
            return Err(ApiError::no_such_path());
        }
        if is_everywhere && needs_namespace {
            return Err(ApiError::method_not_allowed());
        }
        Ok(Self {
            server: server.clone(),
            kind,
            form: Accepted::parse(text(headers, ACCEPT)).form(is_list)?,
            include: Include::parse(query.text("includeObject").unwrap_or_default())?,
            path,
            query,
            content_type: text(headers, CONTENT_TYPE).to_owned(),
            body,
            info,
        })
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.path.namespace.as_deref()
    }

    /// Returns the name in the path, empty for a collection.
    pub(crate) fn name(&self) -> &str {
        self.path.name.as_deref().unwrap_or_default()
    }

    /// Returns the key of the object within its collection.
    pub(crate) fn key(&self) -> String {
        self.kind
            .key(self.namespace().unwrap_or_default(), self.name())
    }

    /// Returns the labels by which the request is counted.
    pub(crate) fn labels(&self, code: StatusCode) -> Labels {
        Labels {
            code: code.as_u16(),
            dry_run: match self.query.text("dryRun") {
                Some("All") => "All",
                _ => "",
            },
            group: self.kind.group.clone(),
            resource: self.kind.plural.clone(),
            scope: if self.path.name.is_some() || self.info.verb == Verb::Create {
                "resource"
            } else if self.path.namespace.is_some() {
                "namespace"
            } else {
                "cluster"
            },
            subresource: match self.path.subresource {
                Some(_) => "status",
                None => "",
            },
            verb: match self.info.verb {
                Verb::Get => "GET",
                Verb::List => "LIST",
                Verb::Watch => "WATCH",
                Verb::Create => "POST",
                Verb::Update => "PUT",
                Verb::Patch if body::media_type(&self.content_type) == body::APPLY => "APPLY",
                Verb::Patch => "PATCH",
                Verb::Delete | Verb::DeleteCollection => "DELETE",
            },
            version: self.kind.version.clone(),
        }
    }

    /// Reads the options of a write; `options` is their type in the API, such as `CreateOptions`.
    ///
    /// # Errors
    /// Returns one cause for each invalid option.
    pub(crate) fn write_options(&self, options: &str) -> Result<WriteOptions, ApiError> {
        let mut causes = Vec::new();
        let manager = self.query.text("fieldManager");
        causes.extend(manager.and_then(wrong_manager));
        let dry_run = self.query.dry_run().unwrap_or_else(|cause| {
            causes.push(cause);
            false
        });
        let validation = match self.query.text("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let known = &["", "Ignore", "Strict", "Warn"];
                causes.push(Cause::unsupported("fieldValidation", other, known));
                FieldValidation::Warn
            }
        };
        if !causes.is_empty() {
            return Err(ApiError::invalid_options(options, &causes));
        }
        Ok(WriteOptions {
            dry_run,
            manager: manager_of(manager, Some(&self.info.client)),
            validation,
            is_status: self.path.subresource.as_deref() == Some("status"),
            is_apply: false,
            now: clock::seconds(self.server.now()),
        })
    }

    /// Parses the object in the body, and returns it with warnings about duplicate fields.
    pub(crate) fn object(&self) -> Result<(Value, Vec<String>), ApiError> {
        if self.kind.custom && body::media_type(&self.content_type) == body::PROTOBUF {
            return Err(ApiError::unsupported_media_type(&[
                "application/json",
                "application/yaml",
            ]));
        }
        let (object, repeated) = body::parse(&self.content_type, &self.body)?;
        let warnings = repeated
            .iter()
            .map(|field| format!("duplicate field {field:?}"));
        Ok((object, warnings.collect()))
    }

    /// Returns a response with an object in the form that the client accepts.
    pub(crate) fn show(
        &self,
        code: StatusCode,
        object: &Value,
        warnings: &[String],
    ) -> Response<Body> {
        let text = match self.form {
            Form::Objects => object.to_string(),
            Form::Metadata | Form::MetadataList => table::partial(object).to_string(),
            Form::Table => {
                let objects = std::iter::once(object);
                let metadata = &object["metadata"];
                table::table(
                    &self.kind,
                    objects,
                    metadata,
                    self.include,
                    self.server.now(),
                )
                .to_string()
            }
        };
        response::json(code, text, warnings)
    }

    /// Checks that the name in the body is the one in the path.
    pub(crate) fn check_name(&self, object: &Value) -> Result<(), ApiError> {
        let name = metadata::text(object, "name");
        if name.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: name must be provided",
                self.name()
            )));
        }
        if name != self.name() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.name()
            )));
        }
        Ok(())
    }
}

/// Returns a header, empty if it is absent or no text.
fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    let value = headers.get(name);
    let text = value.and_then(|value| value.to_str().ok());
    text.unwrap_or_default()
}

fn has_subresource(kind: &Kind, subresource: Option<&str>) -> bool {
    match subresource {
        None => true,
        Some("status") => kind.has_status,
        Some(_) => false,
    }
}

/// Returns the cause of an invalid field manager (`ValidateFieldManager` of apimachinery).
fn wrong_manager(name: &str) -> Option<Cause> {
    const LONGEST: usize = 128;
    if name.len() > LONGEST {
        return Some(Cause::too_long("fieldManager", LONGEST));
    }
    let (at, letter) = (name.char_indices()).find(|(_, letter)| letter.is_control())?;
    let why = format!(
        "invalid character U+{:04X} (at position {at})",
        u32::from(letter)
    );
    Some(Cause::invalid("fieldManager", name, &why))
}
