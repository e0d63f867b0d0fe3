//! The rights that an object of RBAC grants. An API lets nobody write one who has less himself; rights that are changed on their way to a member are
//! not asked about there.

use crate::{api_version, group};
use serde_json::Value;

/// The groups of roles and their bindings.
const GROUPS: [&str; 2] = ["rbac.authorization.k8s.io", "authorization.openshift.io"];
/// The rights that these kinds grant, and to whom.
const FIELDS: [&str; 6] = [
    "rules",
    "aggregationRule",
    "roleRef",
    "subjects",
    "userNames",
    "groupNames",
];

/// The fields of an object that grant something to somebody; none of an object of another group.
#[derive(Debug)]
pub struct Grant([Option<Value>; FIELDS.len()]);

impl Grant {
    /// Returns the grant of `object`.
    pub fn of(object: &Value) -> Self {
        let is_of_rbac = GROUPS.contains(&group(api_version(object)));
        Self(FIELDS.map(|field| object.get(field).filter(|_| is_of_rbac).cloned()))
    }

    /// Fails with the field in which `object` grants something else.
    pub fn require_same(&self, object: &Value) -> Result<(), String> {
        let now = Self::of(object);
        let mut fields = FIELDS.iter().zip(self.0.iter().zip(&now.0));
        match fields.find(|(_, (before, now))| before != now) {
            None => Ok(()),
            Some((field, _)) => Err(format!(
                "it would change `{field}`, and so grant rights that its author need not have"
            )),
        }
    }
}
