//! The write of a binding.

use karmada_api::names;
use objects::Key;
use objects::patch::JsonPatch;
use objects::wanted::Wanted;
use objects::write::{Guard, ObjectRef, Write};
use serde_json::{Value, json};

use crate::binding_ref::BindingRef;

/// The write of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingPlan {
    /// It is up to date.
    Unchanged,
    /// It does not exist: this is its body.
    Create(Value),
    /// It is patched, unless it has changed since it was read.
    Patch(JsonPatch),
    /// The binding of a former template, or one that is being deleted, must go first.
    Waits,
}

impl BindingPlan {
    /// Plans a patch, if that does something.
    pub(crate) fn patch(patch: JsonPatch) -> Self {
        if patch.is_empty() {
            return Self::Unchanged;
        }
        Self::Patch(patch)
    }

    /// Returns the write to the binding, which is this object; `None` if there is none.
    pub fn write(self, object: ObjectRef) -> Option<Write> {
        let wanted = self.wanted()?;
        let write = match self {
            Self::Unchanged | Self::Waits => return None,
            Self::Create(body) => Write::create_as("binding", object, body),
            Self::Patch(patch) => Write::json("binding", object, patch).guarded(Guard::Version),
        };
        Some(write.bringing(wanted))
    }

    /// Returns `true` if the spec of the binding is written, and not only its metadata.
    pub fn changes_spec(&self) -> bool {
        match self {
            Self::Create(_) => true,
            Self::Patch(patch) => {
                let mut paths = patch.paths();
                paths.any(|path| path.as_str().starts_with("/spec"))
            }
            Self::Unchanged | Self::Waits => false,
        }
    }

    /// Returns `true` if nothing but the record of activation is written, which Karmada's bindings lack.
    pub fn only_records(&self) -> bool {
        match self {
            Self::Patch(patch) => patch.paths().all(|path| {
                let last = path.last();
                last.is_some_and(|last| last.decoded() == names::ACTIVATED)
            }),
            Self::Create(_) | Self::Unchanged | Self::Waits => false,
        }
    }

    /// Returns the effect of the write; `None` if there is none.
    fn wanted(&self) -> Option<Wanted> {
        // The reference names the version of the template. An ID is another one where nothing tells the former.
        const INCIDENTAL: [&str; 3] = ["resource", names::BINDING_ID, names::CLUSTER_BINDING_ID];
        match self {
            Self::Unchanged | Self::Waits => None,
            Self::Create(body) => {
                let mut spec = body["spec"].clone();
                if let Some(spec) = spec.as_object_mut() {
                    spec.remove(INCIDENTAL[0]);
                }
                let owners = &body["metadata"]["ownerReferences"];
                Some(Wanted::created(json!([owners, spec])))
            }
            Self::Patch(patch) => Some(Wanted::patched(patch, &INCIDENTAL)),
        }
    }

    /// Returns the replicas that the template has and its binding had not.
    pub fn replicas(&self) -> Option<i64> {
        self.written("replicas")?.as_i64()
    }

    /// Returns the names of the parts that the template has, if its binding had others.
    pub fn components(&self) -> Option<Vec<&str>> {
        let components = self.written("components")?.as_array()?;
        let names = components.iter();
        let names = names.filter_map(|component| component.get("name")?.as_str());
        Some(names.collect())
    }

    /// Returns what is written to this member of the spec.
    fn written(&self, member: &str) -> Option<&Value> {
        match self {
            Self::Unchanged | Self::Waits => None,
            Self::Create(body) => body.get("spec")?.get(member),
            Self::Patch(patch) => patch.value(["spec", member]),
        }
    }
}

/// The place of a template's binding. A key without a namespace is that of a `ClusterResourceBinding`.
#[derive(Clone, Debug)]
pub enum Place<'a> {
    /// It exists.
    Existing(BindingRef<'a>),
    /// It is to be made here.
    New(Key),
}

/// Returns the key of a template's new binding: Karmada's, unless that is not valid or another template's binding
/// has it. Returns `None` if the other key that it may have is not free, either.
pub fn new_key(
    group: &str,
    kind: &str,
    template: &Key,
    is_free: impl Fn(&Key) -> bool,
) -> Option<Key> {
    let names = names::bindings(group, kind, &template.name);
    let mut keys = names.map(|name| Key::new(&template.namespace, name));
    keys.find(is_free)
}
