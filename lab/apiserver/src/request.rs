//! What a request asks for: the verb, the kind and object, and the query.

mod list;

use std::num::{IntErrorKind, ParseIntError};

use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::error::{ApiError, Cause};

pub(crate) use self::list::ListOptions;

/// What is done to objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// The objects of a collection.
    List,
    /// The changes of a collection.
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
    /// Whether it changes what is stored.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Objects of a kind.
    Objects(ObjectPath),
    /// Anything else: its segments.
    Other(Vec<String>),
}

/// A collection, or an object of it.
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
    /// Reads a path.
    ///
    /// # Errors
    /// When it is not UTF-8 once its percent-encoding is undone.
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
            // What belongs to the Namespace itself, and not to something in it.
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
    /// What a method does here.
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

/// The query of a request. Of a parameter that is given twice the first counts.
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

    /// A parameter; none if it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    fn given(&self, name: &str) -> Option<&str> {
        (self.parameters.iter()).find_map(|(key, value)| (key == name).then_some(value.as_str()))
    }

    /// Whether a parameter is set, by what Kubernetes takes for true: all but `0` and `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.choice(name) == Some(true)
    }

    /// A flag that may be absent.
    pub(crate) fn choice(&self, name: &str) -> Option<bool> {
        self.given(name)
            .map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A number.
    ///
    /// # Errors
    /// When the parameter is none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let parse = |value: &str| {
            value.parse().map_err(|error: ParseIntError| {
                let why = match error.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                ApiError::bad_request(format!("strconv.ParseInt: parsing {value:?}: {why}"))
            })
        };
        self.text(name).map(parse).transpose()
    }

    /// The `resourceVersion`; none if it is absent.
    ///
    /// # Errors
    /// Says that it is no number.
    pub(crate) fn version(&self) -> Result<Option<u64>, String> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                format!(
                    "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: \
                     invalid syntax"
                )
            })
        };
        self.text("resourceVersion").map(parse).transpose()
    }

    /// Whether nothing is to be stored.
    ///
    /// # Errors
    /// When `dryRun` is not `All`.
    pub(crate) fn dry_run(&self) -> Result<bool, Cause> {
        let given = (self.parameters.iter()).filter(|(key, _)| key == "dryRun");
        is_dry_run(
            &given
                .map(|(_, value)| value.as_str().into())
                .collect::<Vec<_>>(),
        )
    }
}

/// Whether nothing is to be stored, by all values of `dryRun`.
///
/// # Errors
/// When one is not `All`.
pub(crate) fn is_dry_run(values: &[Value]) -> Result<bool, Cause> {
    if values.iter().any(|value| value != "All") {
        return Err(Cause::unsupported("dryRun", values.to_vec(), &["All"]));
    }
    Ok(!values.is_empty())
}

/// The form an answer should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects themselves.
    Objects,
    /// A `Table`.
    Table,
    /// `PartialObjectMetadata`.
    Metadata,
    /// `PartialObjectMetadataList`.
    MetadataList,
}

/// What a client understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Each media type with its parameters, the preferred one first.
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

    /// Whether a media type with its parameters is named.
    pub(crate) fn names(&self, media_type: &str) -> bool {
        self.types.iter().any(|type_| type_ == media_type)
    }

    /// The form of objects that comes first of those there are, for one object or many.
    ///
    /// # Errors
    /// When none is JSON, or it is that of many for one object or the other way round.
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
