//! The comparison of a manifest with its object, field by field.

use serde_json::{Map, Value, json};

use crate::Metadata;
use crate::difference::{Difference, additions, differences};
use crate::managed_fields::all_fields;
use crate::metadata::but_for;

/// The most differences of one object that are told.
const MOST: usize = 100;

/// When an object is compared with its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Never: it is written where it lacks something.
    Never,
    /// Before it is written: if they differ, it is not.
    First(ComparisonOption),
    /// Once it has all of its manifest: its other fields are told.
    Afterwards,
    /// In place of a write.
    Only(ComparisonOption),
}

impl Comparison {
    /// Returns `true` if an object that has everything of its manifest is to be looked at, too.
    pub fn looks_beyond(self) -> bool {
        match self {
            Self::Never | Self::First(ComparisonOption::Partial) => false,
            Self::First(ComparisonOption::Full) | Self::Afterwards | Self::Only(_) => true,
        }
    }
}

/// The fields that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOption {
    /// Those of the manifest.
    Partial,
    /// Those of the object, too.
    Full,
}

/// The versions of an object that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'a> {
    /// The object as it is.
    pub found: &'a Value,
    /// As an application of its manifest would leave it.
    pub applied: &'a Value,
    /// As its cluster would keep it if it had nothing but the manifest; absent while that is not known.
    pub alone: Option<&'a Value>,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The generation of the object, 0 for a kind that has none; absent if there is no object.
    pub generation: Option<i64>,
    /// True if the object is the owner's.
    pub is_owned: bool,
    /// The differences.
    pub differences: Vec<Difference>,
}

impl Compared {
    /// Creates the result about an object that is not the owner's, or its absence.
    pub fn of(object: Option<&Value>, differences: Vec<Difference>) -> Self {
        Self {
            generation: object.map(|object| object.generation().unwrap_or_default()),
            is_owned: false,
            differences,
        }
    }
}

/// Returns the differences between a manifest and its object, in the order of the paths; absent are the versions if there is
/// no object.
///
/// Finalizers, owners and the status are not compared, nor are labels and annotations that are `ignored` by their keys.
/// Fields that nobody manages are no difference: the member has filled them in, and who may read a difference need not be
/// one who may read them. Nor are those that the object would have [alone](Versions::alone), too.
pub fn compared(
    manifest: &Value,
    versions: Option<Versions<'_>>,
    option: ComparisonOption,
    ignored: fn(&str) -> bool,
) -> Vec<Difference> {
    let Some(versions) = versions else {
        return vec![Difference {
            path: "/".to_owned(),
            found: None,
            wanted: Some("(the whole object)".into()),
        }];
    };
    let found = content(versions.found, ignored);
    let differing = |version| differences(&found, &content(version, ignored), &all_fields(version));
    let mut all = differing(versions.applied);
    if option == ComparisonOption::Full {
        let fields = all_fields(versions.found);
        let mut added = additions(&found, &content(manifest, ignored), &fields);
        if let Some(alone) = versions.alone {
            let lacking = differing(alone);
            added.retain(|one| lacking.iter().any(|lacks| overlap(&one.path, &lacks.path)));
        }
        all.extend(added);
    }
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all.dedup_by(|one, other| one.path == other.path);
    all.truncate(MOST);
    all
}

/// Returns `true` if one path is the other's, or within it.
fn overlap(one: &str, other: &str) -> bool {
    let mut both = [(one, other), (other, one)].into_iter();
    both.any(|(inner, outer)| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Returns the part of an object that is compared.
fn content(object: &Value, ignored: fn(&str) -> bool) -> Value {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields
        .filter(|(name, _)| !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()));
    let mut content: Map<_, _> = fields
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let [labels, annotations] =
        ["labels", "annotations"].map(|part| but_for(object, part, ignored));
    let metadata = json!({ "labels": labels, "annotations": annotations });
    content.insert("metadata".to_owned(), metadata);
    Value::Object(content)
}
