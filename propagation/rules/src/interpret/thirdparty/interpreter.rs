//! The knowledge about a kind.

use serde_json::{Map, Value};

use super::aggregation::Aggregation;
use super::needs::Needs;
use crate::interpret::components::Component;
use crate::interpret::replicas::Replicas;

/// The knowledge about a kind, operation by operation. A `None` is as for kinds of which nothing is known.
pub(in crate::interpret) struct Interpreter {
    /// The replicas of a template.
    pub(in crate::interpret) replicas: Option<fn(&Value) -> Replicas>,
    /// The parts of a template whose Pods differ.
    pub(in crate::interpret) components: Option<fn(&Value) -> Vec<Component>>,
    /// Sets the replicas of a manifest.
    pub(in crate::interpret) revise: Option<fn(&mut Value, i32)>,
    /// Returns `true` for an object in a member that is well.
    pub(in crate::interpret) is_healthy: Option<fn(&Value) -> bool>,
    /// Returns the part of an object's status in a member that is reported.
    pub(in crate::interpret) reflect: Option<fn(&Value) -> Value>,
    /// Returns the status of a template as it should be, whole; `None` if it is to be left as it is.
    pub(in crate::interpret) aggregate: Option<fn(&Aggregation<'_>) -> Option<Status>>,
    /// Keeps in the first object, which is to replace the second in a member, the fields that were set there.
    pub(in crate::interpret) retain: Option<fn(&mut Value, &Value)>,
    /// Returns the objects that a template needs beside it.
    pub(in crate::interpret) needs: Option<fn(&Value) -> Needs<'_>>,
}

impl Interpreter {
    /// Knows nothing.
    pub(super) const NONE: Self = Self {
        replicas: None,
        components: None,
        revise: None,
        is_healthy: None,
        reflect: None,
        aggregate: None,
        retain: None,
        needs: None,
    };
}

/// The fields of a status.
pub(in crate::interpret) type Status = Map<String, Value>;

/// A kind: its group and version, its name, and its interpreter.
pub(super) type Known = (&'static str, &'static str, Interpreter);
