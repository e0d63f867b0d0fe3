//! Schemas of kinds, and their use: validation, defaulting and pruning.
//!
//! Of the CEL rules (`x-kubernetes-validations`) only those about emptiness are evaluated: objects that
//! break only others are accepted.

mod defaults;
mod definitions;
mod duplicates;
mod facts;
mod formats;
mod node;
mod prune;
pub(crate) mod rules;
mod translate;
mod validate;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::LazyLock;

use jsonschema::Validator;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde_json::{Value, json};

use self::translate::Translation;
use crate::error::Cause;

pub(crate) use self::node::{List, Merge, Node};

/// A compiled structural schema (`openAPIV3Schema` of a CRD, or its equivalent for a built-in
/// kind).
#[derive(Debug)]
pub(crate) struct Schema {
    document: Value,
    root: Node,
    validator: Validator,
    builtin: bool,
    /// Set if `status` is a subresource.
    has_status: bool,
}

impl Schema {
    /// Compiles the schema of a custom resource.
    ///
    /// # Errors
    /// Returns a message with the part that cannot be used.
    pub(crate) fn new(document: Value) -> Result<Self, String> {
        Self::compile(document, false)
    }

    /// Compiles the schema of a built-in kind from its Rust type.
    pub(crate) fn builtin<K: JsonSchema>() -> Result<Self, String> {
        Self::compile(definitions::structural::<K>(), true)
    }

    fn compile(document: Value, builtin: bool) -> Result<Self, String> {
        let root = Node {
            embedded: true,
            ..Node::new(&document)?
        };
        let translation = Translation {
            metadata: metadata(),
        };
        let validator = validate::compile(&translation.object(&document))?;
        let has_status = root.properties.contains_key("status");
        Ok(Self {
            document,
            root,
            validator,
            builtin,
            has_status,
        })
    }

    /// Overrides whether `status` is a subresource. By default it is if the schema has it.
    pub(crate) fn with_status(self, has_status: bool) -> Self {
        Self { has_status, ..self }
    }

    /// Returns `true` if a write of the object or a subresource may change this top-level field.
    pub(crate) fn is_written(&self, field: &str, subresource: Option<&str>) -> bool {
        match subresource {
            None => field != "status" || !self.has_status,
            Some("status") if self.builtin => field != "spec",
            Some(subresource) => field == subresource,
        }
    }

    /// Returns the original schema, for OpenAPI.
    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Returns the root node of the schema.
    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// Fills in defaults of absent fields, and removes nulls that the schema does not allow.
    pub(crate) fn default(&self, object: &mut Value) {
        defaults::fill(&self.root, object, self.builtin);
    }

    /// Removes fields that the schema lacks, and returns their sorted paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// Validates an object, and returns the causes if it is invalid.
    pub(crate) fn validate(&self, object: &Value) -> Vec<Cause> {
        let mut causes = validate::causes(&self.validator, object);
        if !self.builtin {
            duplicates::find(&self.root, object, "", &mut causes);
            rules::find(&self.document, object, "", &mut causes);
        }
        causes
    }

    /// Returns the values of a type or format other than the schema's, such as a number in place of
    /// a string.
    pub(crate) fn mistyped(&self, object: &Value) -> Vec<Cause> {
        validate::mistyped(&self.validator, object)
    }

    /// Returns the fields that Go could not decode: all of a built-in kind, but only `metadata` of
    /// a custom resource. Such a body is a bad request (400); a patch with such a result is invalid
    /// (422).
    pub(crate) fn unreadable(&self, object: &Value) -> Vec<Cause> {
        let mut causes = self.mistyped(object);
        causes.retain(|cause| {
            self.builtin || cause.field.split(['.', '[']).next() == Some("metadata")
        });
        causes
    }

    pub(crate) fn is_builtin(&self) -> bool {
        self.builtin
    }

    /// Returns the fields of an object to which nothing was ever applied: the structs of a built-in
    /// kind.
    pub(crate) fn empty(&self) -> Value {
        if self.builtin {
            defaults::structs(&self.root)
        } else {
            json!({})
        }
    }
}

/// Returns the translated schema of `metadata`.
fn metadata() -> &'static Value {
    static METADATA: LazyLock<Value> = LazyLock::new(|| {
        let anything = json!({"type": "object"});
        Translation {
            metadata: &anything,
        }
        .schema(&definitions::structural::<ObjectMeta>())
    });
    &METADATA
}
