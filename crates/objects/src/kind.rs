//! The kind of an object, in one version of its group.

use std::fmt;

use serde_json::Value;

/// A kind in one version of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl GroupVersionKind {
    /// Creates the kind `kind` of `api_version`, which is a group and a version, or a version of the core
    /// group.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    /// Returns the kind of `object`; empty texts if it cannot be read.
    pub fn of(object: &Value) -> Self {
        Self::new(api_version(object), kind(object))
    }

    /// Returns the group and version as in an object's `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.kind, self.api_version())
    }
}

/// Returns the group and version of an object; empty if they cannot be read.
pub fn api_version(object: &Value) -> &str {
    text(object, "apiVersion")
}

/// Returns the kind of an object; empty if it cannot be read.
pub fn kind(object: &Value) -> &str {
    text(object, "kind")
}

/// Returns the group and kind of an object; an empty group is the core group.
pub fn group_kind(object: &Value) -> (&str, &str) {
    (group(api_version(object)), kind(object))
}

/// Returns the group in an `apiVersion`; empty for the core group.
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}
