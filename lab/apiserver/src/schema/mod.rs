//! What objects of a kind look like, and what is done by it: validation, defaults, pruning.
//!
//! Rules in CEL (`x-kubernetes-validations`) are not run: objects that only they refuse are accepted.

mod defaults;
mod definitions;
mod duplicates;
mod facts;
mod formats;
mod node;
mod prune;
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

/// The structural schema of a kind (`openAPIV3Schema` of a CRD, or the same for a built-in kind),
/// read and compiled.
#[derive(Debug)]
pub(crate) struct Schema {
    document: Value,
    root: Node,
    validator: Validator,
    builtin: bool,
    /// Whether `status` is a resource of its own.
    has_status: bool,
}

impl Schema {
    /// Reads a schema of a custom resource; the error names what about it cannot be used.
    pub(crate) fn new(document: Value) -> Result<Self, String> {
        Self::compile(document, false)
    }

    /// The schema of a built-in kind, from its Rust type.
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

    /// Says whether `status` is a resource of its own. Unless told, it is if there is one.
    pub(crate) fn with_status(self, has_status: bool) -> Self {
        Self { has_status, ..self }
    }

    /// Whether a write of the object or of a subresource may change this field of the root.
    pub(crate) fn is_written(&self, field: &str, subresource: Option<&str>) -> bool {
        match subresource {
            None => field != "status" || !self.has_status,
            Some("status") if self.builtin => field != "spec",
            Some(subresource) => field == subresource,
        }
    }

    /// The schema as it was given, for `OpenAPI`.
    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// What is known of the object as a whole.
    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// Fills in the defaults of absent fields, and removes nulls that the schema does not allow.
    pub(crate) fn default(&self, object: &mut Value) {
        defaults::fill(&self.root, object, self.builtin);
    }

    /// Removes fields the schema does not know, and returns their paths, sorted.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// What is wrong with an object; nothing if it is valid.
    pub(crate) fn validate(&self, object: &Value) -> Vec<Cause> {
        let mut causes = validate::causes(&self.validator, object);
        if !self.builtin {
            duplicates::find(&self.root, object, "", &mut causes);
        }
        causes
    }

    /// What is of another type or form than the schema says: a number where there must be text.
    pub(crate) fn mistyped(&self, object: &Value) -> Vec<Cause> {
        validate::mistyped(&self.validator, object)
    }

    /// What cannot be read into the Go types that a Kubernetes API has: for a custom resource these
    /// are its `metadata`. Such a body is a bad request (400), and a patch that leads to it invalid.
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

    /// What a new object holds before anybody said anything: the structs of a built-in kind.
    pub(crate) fn empty(&self) -> Value {
        if self.builtin {
            defaults::structs(&self.root)
        } else {
            json!({})
        }
    }
}

/// The translated schema of `metadata`.
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
