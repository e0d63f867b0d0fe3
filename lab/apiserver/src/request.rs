//! The parts of a request: verb, path, query and accepted media types.

mod list;

use std::num::{IntErrorKind, ParseIntError};

use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::error::{ApiError, Cause};

pub(crate) use self::list::ListOptions;

/// The action of a request on objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// `GET` of one object.
    Get,
    /// `GET` of a collection.
    List,
    /// `GET` of a collection with `watch`.
    Watch,
    /// `POST`.
    Create,
    /// `PUT`.
    Update,
    /// `PATCH`.
    Patch,
    /// `DELETE` of one object.
    Delete,
    /// `DELETE` of a collection.
    DeleteCollection,
}

impl Verb {
    /// Returns `true` if the verb changes objects.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Objects of a kind.
    Objects(ObjectPath),
    /// The segments of any other path.
    Other(Vec<String>),
}

/// The path of a collection or of one of its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    /// Returns an error if the path is not UTF-8 after percent-decoding.
    pub(crate) fn parse(path: &str) -> Result<Self, ApiError> {
        let segments: Vec<String> = (path.split('/').filter(|segment| !segment.is_empty()))
            .map(|segment| percent_decode_str(segment).decode_utf8().map(Into::into))
            .collect::<Result<_, _>>()
            .map_err(|_| ApiError::bad_request("the path is not UTF-8"))?;
        let rest: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match rest[..] {
            ["api", version, ref rest @ ..] => ("", version, rest),
            ["apis", group, version, ref rest @ ..] => (group, version, rest),
            _ => return Ok(Self::Other(segments)),
        };
        let (namespace, rest) = match rest {
            // A subresource of the Namespace itself, not a collection within it.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match *rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(name), None),
            [plural, name, subresource] => (plural, Some(name), Some(subresource)),
            _ => return Ok(Self::Other(segments)),
        };
        Ok(Self::Objects(ObjectPath {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.map(str::to_owned),
            plural: plural.to_owned(),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
        }))
    }
}

impl ObjectPath {
    /// Returns the verb of a method at this path, or `None` if it is not allowed.
    pub(crate) fn verb(&self, method: &Method, query: &Query) -> Option<Verb> {
        let is_object = self.name.is_some();
        Some(match *method {
            Method::GET if is_object => Verb::Get,
            Method::GET if query.flag("watch") => Verb::Watch,
            Method::GET => Verb::List,
            Method::POST if !is_object => Verb::Create,
            Method::PUT if is_object => Verb::Update,
            Method::PATCH if is_object => Verb::Patch,
            Method::DELETE if is_object && self.subresource.is_none() => Verb::Delete,
            Method::DELETE if !is_object => Verb::DeleteCollection,
            _ => return None,
        })
    }
}

/// The query of a request. If a parameter is repeated, the first one counts, as in Go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    parameters: Vec<(String, String)>,
}

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        Self {
            parameters: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        }
    }

    /// Returns a parameter, or `None` if it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    fn given(&self, name: &str) -> Option<&str> {
        (self.parameters.iter()).find_map(|(key, value)| (key == name).then_some(value.as_str()))
    }

    /// Returns `true` if a flag is set. Kubernetes takes every value but `0` and `false` for true
    /// (`Convert_Slice_string_To_bool`).
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.choice(name) == Some(true)
    }

    /// Returns a flag, or `None` if it is absent.
    pub(crate) fn choice(&self, name: &str) -> Option<bool> {
        self.given(name)
            .map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Returns a number, or `None` if the parameter is absent.
    ///
    /// # Errors
    /// Returns Go's parse error if it is not a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(value) = self.text(name) else {
            return Ok(None);
        };
        value.parse().map(Some).map_err(|error: ParseIntError| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            ApiError::bad_request(format!("strconv.ParseInt: parsing {value:?}: {why}"))
        })
    }

    /// Returns the `resourceVersion`, or `None` if it is absent.
    ///
    /// # Errors
    /// Returns Go's parse error if it is not a number.
    pub(crate) fn version(&self) -> Result<Option<u64>, String> {
        let Some(text) = self.text("resourceVersion") else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: \
                 invalid syntax"
            )
        })
    }

    /// Returns `true` if nothing is to be stored.
    ///
    /// # Errors
    /// Returns the cause if `dryRun` is not `All`.
    pub(crate) fn dry_run(&self) -> Result<bool, Cause> {
        let given = (self.parameters.iter()).filter(|(key, _)| key == "dryRun");
        is_dry_run(
            &given
                .map(|(_, value)| value.as_str().into())
                .collect::<Vec<_>>(),
        )
    }
}

/// Returns `true` if the values of `dryRun` request that nothing is stored.
///
/// # Errors
/// Returns the cause if a value is not `All`.
pub(crate) fn is_dry_run(values: &[Value]) -> Result<bool, Cause> {
    if values.iter().any(|value| value != "All") {
        return Err(Cause::unsupported("dryRun", values.to_vec(), &["All"]));
    }
    Ok(!values.is_empty())
}

/// The form of the objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Objects,
    /// A `Table`.
    Table,
    /// `PartialObjectMetadata`.
    Metadata,
    /// `PartialObjectMetadataList`.
    MetadataList,
}

/// The `Accept` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Media types with their parameters, in the order of the header.
    types: Vec<String>,
}

const JSON: &[&str] = &["application/json"];

impl Accepted {
    pub(crate) fn parse(accept: &str) -> Self {
        let types = accept.split(',').map(|type_| type_.replace(' ', ""));
        Self {
            types: types.filter(|type_| !type_.is_empty()).collect(),
        }
    }

    /// Returns `true` if the header contains a media type with these parameters.
    pub(crate) fn names(&self, media_type: &str) -> bool {
        self.types.iter().any(|type_| type_ == media_type)
    }

    /// Returns the first form that the server has, for one object or for a list.
    ///
    /// # Errors
    /// Returns `NotAcceptable` if there is none, or if it is the form of a list for one object or
    /// vice versa.
    pub(crate) fn form(&self, is_list: bool) -> Result<Form, ApiError> {
        if self.types.is_empty() {
            return Ok(Form::Objects);
        }
        let form = self.types.iter().find_map(|type_| form(type_));
        match form.ok_or_else(|| ApiError::not_acceptable(JSON))? {
            Form::Metadata if is_list => Err(ApiError::unsuitable_form(
                "you requested PartialObjectMetadata, but the requested object is a list",
            )),
            Form::MetadataList if !is_list => Err(ApiError::unsuitable_form(
                "you requested PartialObjectMetadataList, but the requested object is not a list",
            )),
            form => Ok(form),
        }
    }
}

fn form(media_type: &str) -> Option<Form> {
    let mut parts = media_type.split(';');
    let name = parts.next()?;
    if !["application/json", "application/*", "*/*"].contains(&name) {
        return None;
    }
    let parameters: Vec<&str> = parts.collect();
    let value =
        |name: &str| (parameters.iter()).find_map(|one| one.strip_prefix(name)?.strip_prefix('='));
    match value("as") {
        None => Some(Form::Objects),
        Some(_) if value("g") != Some("meta.k8s.io") || value("v") != Some("v1") => None,
        Some("Table") => Some(Form::Table),
        Some("PartialObjectMetadata") => Some(Form::Metadata),
        Some("PartialObjectMetadataList") => Some(Form::MetadataList),
        Some(_) => None,
    }
}
