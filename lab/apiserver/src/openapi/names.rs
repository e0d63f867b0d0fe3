//! The names of schemas and documents.

use serde_json::{Value, json};

use crate::discovery::group_version;
use crate::kinds::Kind;

pub(super) const SCHEMAS: &str = "#/components/schemas/";

pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Returns the path of a version, without a leading slash.
pub(super) fn root(group: &str, version: &str) -> String {
    let prefix = if group.is_empty() { "api" } else { "apis" };
    format!("{prefix}/{}", group_version(group, version))
}

/// Returns the schema name of a kind: its group with the domain reversed, version and kind.
pub(super) fn component(kind: &Kind) -> String {
    let group = match kind.group.as_str() {
        "" => "core",
        group => group,
    };
    let domain: Vec<_> = group.rsplit('.').collect();
    format!("{}.{}.{}", domain.join("."), kind.version, kind.kind)
}

pub(super) fn identity(kind: &Kind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}
