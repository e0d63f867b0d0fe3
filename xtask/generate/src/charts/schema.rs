//! The schema of a chart's values, as far as a reader of them needs it.

use std::{fmt, fs, path::Path};

use anyhow::{Context, Result};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

/// A value, or all values of a chart.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Schema {
    #[serde(default)]
    pub(super) description: String,
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "$defs", default)]
    pub(super) definitions: Properties,
    #[serde(default)]
    pub(super) properties: Properties,
    #[serde(default)]
    pub(super) required: Vec<String>,
    /// `null` is a default, too.
    #[serde(default, deserialize_with = "there")]
    pub(super) default: Option<Value>,
}

/// The properties of a value in the order of their file, which `serde_json`'s own map loses.
#[derive(Clone, Debug, Default)]
pub(super) struct Properties(pub(super) Vec<(String, Schema)>);

impl Schema {
    /// Reads the schema of a chart.
    pub(super) fn read(root: &Path, chart: &str) -> Result<Self> {
        let path = root.join(format!("manifests/helm/{chart}/values.schema.json"));
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("parsing {}", path.display()))
    }

    /// Returns the name of the definition that this value refers to.
    pub(super) fn definition(&self) -> Option<&str> {
        self.reference.as_deref()?.strip_prefix("#/$defs/")
    }

    /// Returns this value with the properties of its definition in `chart`.
    pub(super) fn resolved(&self, chart: &Self) -> Self {
        let definitions = chart.definitions.0.iter();
        let mut found = definitions.filter(|(name, _)| Some(&**name) == self.definition());
        Self {
            properties: found
                .next()
                .map_or_else(|| self.properties.clone(), |(_, at)| at.properties.clone()),
            ..self.clone()
        }
    }

    /// Returns `true` if a reader sees its properties one by one, and not a default for all of them.
    pub(super) fn is_open(&self) -> bool {
        let none = self.default.as_ref().and_then(Value::as_object);
        !self.properties.0.is_empty() && none.is_none_or(|default| !default.is_empty())
    }
}

fn there<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Properties;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("properties")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Properties, M::Error> {
        let mut properties = Vec::new();
        while let Some(property) = map.next_entry()? {
            properties.push(property);
        }
        Ok(Properties(properties))
    }
}
