//! The write of a binding.

use karmada_api::names;
use objects::Key;
use objects::patch::JsonPatch;
use objects::wanted::Wanted;
use objects::write::{Action, Guard, Write};
use serde_json::{Value, json};

use crate::binding_ref::{BindingRef, named};

/// The fields that make no other write. The reference names the version of the template; an ID is another one where
/// nothing tells the former.
const INCIDENTAL: [&str; 3] = ["resource", names::BINDING_ID, names::CLUSTER_BINDING_ID];

/// Returns the write that makes the binding `key` with this body.
pub(crate) fn created(key: Key, body: Value) -> Write {
    let mut spec = body["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove(INCIDENTAL[0]);
    }
    let wanted = Wanted::created(json!([body["metadata"]["ownerReferences"], spec]));
    Write::create_as("binding", named(key), body).bringing(wanted)
}

/// Returns the write that patches a binding, unless it has changed since it was read; `None` if the patch is empty.
pub(crate) fn patched(binding: BindingRef<'_>, patch: JsonPatch) -> Option<Write> {
    if patch.is_empty() {
        return None;
    }
    let wanted = Wanted::patched(&patch, &INCIDENTAL);
    let write = Write::json("binding", binding.object(), patch);
    Some(write.guarded(Guard::Version).bringing(wanted))
}

/// Returns `true` if a write of a binding changes its spec, and not only its metadata.
pub fn changes_spec(write: &Write) -> bool {
    match &write.action {
        Action::Json(patch) => {
            let mut paths = patch.paths();
            paths.any(|path| path.as_str().starts_with("/spec"))
        }
        _ => true,
    }
}

/// Returns `true` if a write of a binding changes only the record of activation, which Karmada's bindings lack.
pub fn only_records(write: &Write) -> bool {
    match &write.action {
        Action::Json(patch) => patch.paths().all(|path| {
            let last = path.last();
            last.is_some_and(|last| last.decoded() == names::ACTIVATED)
        }),
        _ => false,
    }
}

/// Returns the replicas that a write of a binding gives it.
pub fn written_replicas(write: &Write) -> Option<i64> {
    written(write, "replicas")?.as_i64()
}

/// Returns the names of the components that a write of a binding gives it.
pub fn written_components(write: &Write) -> Option<Vec<&str>> {
    let components = written(write, "components")?.as_array()?.iter();
    let names = components.filter_map(|component| component.get("name")?.as_str());
    Some(names.collect())
}

/// Returns the new value of this member of the spec.
fn written<'a>(write: &'a Write, member: &str) -> Option<&'a Value> {
    match &write.action {
        Action::Json(patch) => patch.value(["spec", member]),
        _ => write.body().get("spec")?.get(member),
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
