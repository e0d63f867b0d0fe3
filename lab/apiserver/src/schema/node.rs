//! A structural schema as a tree of the properties that processing of objects needs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use super::definitions;

/// The limit for the nesting of a schema. No object nests deeper, since its parser has the same
/// limit.
const MAX_DEPTH: usize = 128;

/// The schema of one place in an object.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the schema, independent of the others"
)]
pub(crate) struct Node {
    pub(crate) properties: BTreeMap<String, Self>,
    /// The schema of fields that are not in `properties`.
    pub(crate) additional: Option<Box<Self>>,
    pub(crate) items: Option<Box<Self>>,
    pub(crate) default: Option<Value>,
    pub(crate) nullable: bool,
    /// Set if the enclosing object requires it.
    pub(crate) required: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub(crate) preserves_unknown: bool,
    /// `x-kubernetes-embedded-resource`: an object with `apiVersion`, `kind` and `metadata`.
    pub(crate) embedded: bool,
    /// `x-kubernetes-map-type: atomic`: an object that is replaced as a whole.
    pub(crate) atomic: bool,
    pub(crate) list: List,
    /// The treatment of a list by a strategic merge.
    pub(crate) merge: Merge,
}

/// `x-kubernetes-list-type`: the identity of list elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum List {
    /// The list is replaced as a whole.
    #[default]
    Atomic,
    /// Elements are identified by their values.
    Set,
    /// Elements are objects, identified by these fields.
    Map(Vec<String>),
}

/// `x-kubernetes-patch-strategy`: the treatment of a list by a strategic merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Merge {
    #[default]
    Replace,
    /// Scalars are united.
    Unite,
    /// Objects are merged by this field.
    ByKey(String),
}

impl Node {
    /// Reads a structural schema.
    ///
    /// # Errors
    /// Returns a message with the path of the part that cannot be used.
    pub(crate) fn new(document: &Value) -> Result<Self, String> {
        Self::read(document, "openAPIV3Schema", MAX_DEPTH)
    }

    fn read(document: &Value, path: &str, depth: usize) -> Result<Self, String> {
        let Some(schema) = document.as_object() else {
            return Err(format!("{path}: a schema must be an object"));
        };
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("{path}: schemas nest too deeply"));
        };
        if schema.contains_key("$ref") {
            return Err(format!(
                "{path}.$ref: references are not allowed in a schema"
            ));
        }
        let preserves_unknown = flag(schema, "x-kubernetes-preserve-unknown-fields");
        if schema.get("type").is_none_or(|name| name == "")
            && !preserves_unknown
            && !flag(schema, "x-kubernetes-int-or-string")
        {
            return Err(format!("{path}.type: must not be empty"));
        }

        let mut properties = BTreeMap::new();
        for (name, property) in object(schema, "properties", path)? {
            let mut node = Self::read(property, &format!("{path}.properties[{name}]"), depth)?;
            let required = schema.get("required").and_then(Value::as_array);
            node.required = required.is_some_and(|names| names.iter().any(|other| other == name));
            properties.insert(name.clone(), node);
        }
        let additional = match schema.get("additionalProperties") {
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(Self::anything()),
            Some(value) => Some(Self::read(
                value,
                &format!("{path}.additionalProperties"),
                depth,
            )?),
        };
        let items = match schema.get("items") {
            None | Some(Value::Null) => None,
            Some(items) => Some(Self::read(items, &format!("{path}.items"), depth)?),
        };
        Ok(Self {
            properties,
            additional: additional.map(Box::new),
            items: items.map(Box::new),
            default: schema
                .get("default")
                .filter(|value| !value.is_null())
                .cloned(),
            nullable: flag(schema, "nullable"),
            required: false,
            preserves_unknown,
            embedded: flag(schema, "x-kubernetes-embedded-resource"),
            atomic: schema
                .get("x-kubernetes-map-type")
                .is_some_and(|kind| kind == "atomic"),
            list: List::read(schema, path)?,
            merge: Merge::read(schema),
        })
    }

    /// Returns a node without a schema, at which everything is preserved.
    pub(crate) fn anything() -> Self {
        Self {
            preserves_unknown: true,
            nullable: true,
            ..Self::default()
        }
    }

    /// Returns the node of `metadata`, which is the same for every kind, whatever its own schema
    /// contains.
    pub(crate) fn metadata() -> &'static Self {
        static METADATA: LazyLock<Node> = LazyLock::new(|| {
            let mut node = Node::new(&definitions::structural::<ObjectMeta>())
                .unwrap_or_else(|_| Node::anything());
            // An empty list resets the managers, so it must stay distinct from an absent one.
            if let Some(managers) = node.properties.get_mut("managedFields") {
                managers.required = true;
            }
            node
        });
        &METADATA
    }

    /// Returns the schema of a field, or `None` if there is none.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match self.properties.get(name) {
            _ if self.embedded && name == "metadata" => Some(Self::metadata()),
            Some(node) => Some(node),
            None => self.additional.as_deref(),
        }
    }
}

impl List {
    fn read(schema: &Map<String, Value>, path: &str) -> Result<Self, String> {
        match text(schema, "x-kubernetes-list-type") {
            None | Some("atomic") => Ok(Self::Atomic),
            Some("set") => Ok(Self::Set),
            Some("map") => {
                let keys = schema
                    .get("x-kubernetes-list-map-keys")
                    .and_then(Value::as_array);
                let keys: Vec<String> = keys
                    .into_iter()
                    .flatten()
                    .filter_map(|key| key.as_str().map(str::to_owned))
                    .collect();
                if keys.is_empty() {
                    return Err(format!(
                        "{path}.x-kubernetes-list-map-keys: must not be empty for a list of type map"
                    ));
                }
                Ok(Self::Map(keys))
            }
            Some(other) => Err(format!(
                "{path}.x-kubernetes-list-type: {other:?} is none of \"atomic\", \"set\", \"map\""
            )),
        }
    }
}

impl Merge {
    fn read(schema: &Map<String, Value>) -> Self {
        match (
            text(schema, "x-kubernetes-patch-strategy"),
            text(schema, "x-kubernetes-patch-merge-key"),
        ) {
            (Some(strategy), key) if strategy.split(',').any(|part| part == "merge") => {
                key.map_or(Self::Unite, |key| Self::ByKey(key.to_owned()))
            }
            _ => Self::Replace,
        }
    }
}

pub(super) fn flag(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

pub(super) fn text<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    schema.get(name).and_then(Value::as_str)
}

fn object<'a>(
    schema: &'a Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, String> {
    match schema.get(name) {
        None | Some(Value::Null) => Ok(None.into_iter().flatten()),
        Some(Value::Object(fields)) => Ok(Some(fields).into_iter().flatten()),
        Some(_) => Err(format!("{path}.{name}: must be an object")),
    }
}
