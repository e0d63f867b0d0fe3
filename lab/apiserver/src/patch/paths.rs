//! Sets of fields, in the format of `metadata.managedFields` (`FieldsV1`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// A path from the root of an object. Its steps have the form of `FieldsV1`: `f:` and the name of a
/// field, `k:` and the keys of a list element as JSON, `v:` and the value of a set element.
pub(super) type Path = Vec<String>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Paths(BTreeSet<Path>);

impl Paths {
    /// Parses `fieldsV1`, or returns `None` if it is malformed.
    pub(super) fn read(fields: &Value) -> Option<Self> {
        let mut paths = Self::default();
        paths.read_below(fields, &Vec::new())?;
        Some(paths)
    }

    fn read_below(&mut self, fields: &Value, at: &Path) -> Option<()> {
        for (step, below) in fields.as_object()? {
            if step == "." {
                self.insert(at.clone());
                continue;
            }
            let path = extended(at, normal(step)?);
            if below.as_object()?.is_empty() {
                self.insert(path);
            } else {
                self.read_below(below, &path)?;
            }
        }
        Some(())
    }

    /// Serializes as `fieldsV1`.
    pub(super) fn write(&self) -> Value {
        let mut root = Map::new();
        for path in &self.0 {
            let has_longer = self.below(path).next().is_some();
            let itself = has_longer.then(|| ".".to_owned());
            nest(&mut root, path.iter().cloned().chain(itself));
        }
        Value::Object(root)
    }

    pub(super) fn insert(&mut self, path: Path) {
        self.0.insert(path);
    }

    pub(super) fn contains(&self, path: &[String]) -> bool {
        self.0.contains(path)
    }

    /// Returns the longer paths that start with a path.
    pub(super) fn below<'a>(&'a self, path: &'a [String]) -> impl Iterator<Item = &'a Path> {
        self.0
            .range::<[String], _>((std::ops::Bound::Excluded(path), std::ops::Bound::Unbounded))
            .take_while(move |other| other.starts_with(path))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter()
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Path) -> bool) {
        self.0.retain(keep);
    }
}

impl FromIterator<Path> for Paths {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        Self(paths.into_iter().collect())
    }
}

/// Nests empty objects along the steps.
fn nest(at: &mut Map<String, Value>, mut steps: impl Iterator<Item = String>) {
    if let Some(step) = steps.next()
        && let Value::Object(below) = at.entry(step).or_insert_with(|| Value::Object(Map::new()))
    {
        nest(below, steps);
    }
}

pub(super) fn extended(path: &[String], step: String) -> Path {
    path.iter().cloned().chain([step]).collect()
}

/// Returns the step to a field.
pub(super) fn field(name: &str) -> String {
    format!("f:{name}")
}

/// Normalizes a step for comparison, or returns `None` if its form is unknown.
fn normal(step: &str) -> Option<String> {
    let (kind, rest) = step.split_once(':')?;
    match kind {
        "f" | "i" => Some(step.to_owned()),
        "k" | "v" => {
            let value: Value = serde_json::from_str(rest).ok()?;
            Some(format!("{kind}:{value}"))
        }
        _ => None,
    }
}

/// Formats a path as messages do: `.spec.ports[port=80,protocol="TCP"].name`.
pub(super) fn shown(path: &[String]) -> String {
    path.iter()
        .map(|step| match step.split_once(':') {
            Some(("f", name)) => format!(".{name}"),
            Some(("v", value)) => format!("[={value}]"),
            Some(("k", keys)) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                format!("[{}]", keys.join(","))
            }
            _ => step.clone(),
        })
        .collect()
}
