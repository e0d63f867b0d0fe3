//! The question to a webhook.

use std::sync::Arc;

use karmada_api::ResourceInterpreterWebhookConfiguration;
use objects::{GroupVersionKind, Metadata};
use serde_json::{Value, json};

use crate::customization::operation::Operation;

/// The kind of requests and responses.
pub(super) const KIND: &str = "ResourceInterpreterContext";
/// Their group and version.
pub(super) const API_VERSION: &str = ResourceInterpreterWebhookConfiguration::API_VERSION;

/// A question about an object.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The operation that is asked about.
    pub operation: Operation,
    /// The object.
    pub object: &'a Value,
    /// The object that is to be replaced, if the question is which fields it keeps.
    pub observed: Option<&'a Value>,
    /// The replicas that the object is to have, if it is revised.
    pub replicas: i32,
    /// The reports of the copies of the object, as a binding has them, if its status is put together.
    pub items: Arc<[Value]>,
}

impl<'a> Request<'a> {
    /// Asks about an object alone.
    pub fn new(operation: Operation, object: &'a Value) -> Self {
        Self {
            operation,
            object,
            observed: None,
            replicas: 0,
            items: Arc::default(),
        }
    }

    /// Returns the body of the request (`ResourceInterpreterContext`). Its answer must have the same `uid`.
    pub fn body(&self, uid: &str) -> Value {
        let GroupVersionKind {
            group,
            version,
            kind,
        } = GroupVersionKind::of(self.object);
        let mut request = json!({
            "uid": uid,
            "kind": { "group": group, "version": version, "kind": kind },
            "name": self.object.name(),
            "operation": self.operation.name(),
            "object": self.object,
            "replicas": self.replicas,
        });
        let namespace = self.object.namespace();
        if !namespace.is_empty() {
            request["namespace"] = json!(namespace);
        }
        if let Some(observed) = self.observed {
            request["observedObject"] = observed.clone();
        }
        if !self.items.is_empty() {
            request["aggregatedStatus"] = json!(&*self.items);
        }
        json!({ "kind": KIND, "apiVersion": API_VERSION, "request": request })
    }
}
