//! The namespace and name of an object.

use std::fmt;

use kube::Resource;

/// The namespace and name of an object, which identify it among those of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace; empty for a cluster-scoped kind.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// Creates the key of the object `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Creates the key of the cluster-scoped object `name`.
    pub fn cluster_scoped(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    /// Returns the key of `object`.
    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self::new(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        )
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}
