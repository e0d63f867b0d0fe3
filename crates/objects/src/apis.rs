//! Kinds as flags of Karmada and KubeFleet name them.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use crate::{api_version, kind};
use serde_json::Value;

/// The kinds that a flag such as `--skipped-propagating-apis` names, by group, by version or each. Parsed
/// from the text that the flag has in Karmada and KubeFleet: `GROUP`, `GROUP/VERSION`, `GROUP/KIND,KIND`,
/// `GROUP/VERSION/KIND,KIND` or `v1/KIND,KIND`, with semicolons between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apis(Vec<Api>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Api {
    group: String,
    /// None stands for all.
    version: Option<String>,
    /// None of them stands for all.
    kinds: Vec<String>,
}

impl Apis {
    /// Returns `true` if the flag names no kind.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if the kind of the object is one of these.
    pub fn contain(&self, object: &Value) -> bool {
        let api_version = api_version(object);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.0.iter().any(|api| {
            api.group == group
                && api.version.as_ref().is_none_or(|own| own == version)
                && (api.kinds.is_empty() || api.kinds.iter().any(|own| own == kind(object)))
        })
    }
}

impl FromStr for Apis {
    type Err = NotApis;

    fn from_str(text: &str) -> Result<Self, NotApis> {
        let apis = text.split(';').map(str::trim).filter(|api| !api.is_empty());
        apis.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Api {
    type Err = NotApis;

    fn from_str(text: &str) -> Result<Self, NotApis> {
        let parts: Vec<_> = text.split('/').collect();
        let (group, version, kinds) = match *parts {
            [group] => (group, None, None),
            // The group of core kinds has no name.
            ["v1", kinds] => ("", Some("v1"), Some(kinds)),
            [group, version] if is_version(version) => (group, Some(version), None),
            [group, kinds] => (group, None, Some(kinds)),
            [group, version, kinds] => (group, Some(version), Some(kinds)),
            _ => return Err(NotApis(text.to_owned())),
        };
        let kinds: Vec<_> = kinds.into_iter().flat_map(|of| of.split(',')).collect();
        if parts.iter().chain(&kinds).any(|part| part.is_empty()) {
            return Err(NotApis(text.to_owned()));
        }
        Ok(Self {
            group: group.to_owned(),
            version: version.map(ToOwned::to_owned),
            kinds: kinds.into_iter().map(ToOwned::to_owned).collect(),
        })
    }
}

/// Returns `true` for a version of an API, such as `v1beta1`, which no kind is named as.
fn is_version(text: &str) -> bool {
    let number = text.strip_prefix('v');
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// The error for a part of a flag that names no kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotApis(String);

impl fmt::Display for NotApis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "{text:?} is none of GROUP, GROUP/VERSION, GROUP/KIND,KIND, GROUP/VERSION/KIND,KIND and v1/KIND,KIND"
        )
    }
}

impl Error for NotApis {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn contains(flag: &str, api_version: &str, kind: &str) -> bool {
        let apis: Apis = flag.parse().unwrap();
        apis.contain(&json!({ "apiVersion": api_version, "kind": kind }))
    }

    /// Each form that Karmada takes names the same as there.
    #[test]
    fn forms_name_kinds() {
        assert!(contains("cert-manager.io", "cert-manager.io/v1", "Issuer"));
        assert!(!contains(
            "cert-manager.io",
            "acme.cert-manager.io/v1",
            "Order"
        ));
        assert!(contains("apps/v1", "apps/v1", "Deployment"));
        assert!(!contains("apps/v1beta1", "apps/v1", "Deployment"));
        let some =
            "apps/v1/Deployment,StatefulSet;v1/ConfigMap,Secret; batch;policy/PodDisruptionBudget";
        for (api_version, kind, expected) in [
            ("apps/v1", "StatefulSet", true),
            ("apps/v1", "DaemonSet", false),
            ("v1", "Secret", true),
            ("v1", "Service", false),
            ("batch/v1", "Job", true),
            ("policy/v1beta1", "PodDisruptionBudget", true),
            ("policy/v1", "Other", false),
        ] {
            assert_eq!(contains(some, api_version, kind), expected, "{kind}");
        }
    }

    /// A chart that leaves the value empty names no kind, and not the core group.
    #[test]
    fn nothing_names_none() {
        for flag in ["", ";"] {
            assert!(flag.parse::<Apis>().unwrap().is_empty());
            assert!(!contains(flag, "v1", "ConfigMap"));
        }
    }

    /// A text that names no kinds is refused with the forms that do.
    #[test]
    fn others_are_refused() {
        for wrong in ["a/b/c/d", "apps/", "/v1", "apps/v1/", "v1/", "v1/A,,B"] {
            let told = wrong.parse::<Apis>().unwrap_err().to_string();
            assert!(told.starts_with(&format!("{wrong:?} is none of")), "{told}");
        }
    }
}
