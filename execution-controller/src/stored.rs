//! The form in which Works are kept: as text, for their manifests are most of this program's memory.

use std::borrow::Cow;
use std::collections::BTreeSet;

use karmada_api::{GroupVersionKind, Work};
use karmada_runtime::untyped::Untyped;
use kube::Resource;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

/// A Work as text, with what is asked of it often.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredWork {
    text: Untyped,
    /// The kinds of its manifests.
    pub(crate) kinds: BTreeSet<GroupVersionKind>,
    /// True if nothing is created or changed in the member.
    pub(crate) suspended: bool,
}

impl StoredWork {
    /// Returns the Work.
    pub(crate) fn work(&self) -> Work {
        // It was decoded once.
        serde_json::from_value(self.text.value()).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for StoredWork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let work = Work::deserialize(&value).map_err(de::Error::custom)?;
        let text = |manifest: &Value, name| {
            let text = manifest.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let manifests = work.spec.workload.manifests.iter();
        let kinds = manifests.map(|manifest| {
            GroupVersionKind::new(&text(manifest, "apiVersion"), &text(manifest, "kind"))
        });
        let kinds = kinds.filter(|kind| !kind.kind.is_empty() && !kind.version.is_empty());
        Ok(Self {
            kinds: kinds.collect(),
            suspended: work.is_suspended(),
            text: Untyped::from(value),
        })
    }
}

impl Resource for StoredWork {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Work::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Work::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Work::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Work::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.text.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.text.meta_mut()
    }
}
