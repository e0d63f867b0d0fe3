//! The write that brings an object in the member to its manifest.

use karmada_api::Work;
use karmada_api::names::{
    CONFLICT_RESOLUTION, MANAGED, MANAGED_ANNOTATIONS, MANAGED_LABELS, RETAIN_REPLICAS, WORK_NAME,
    WORK_NAMESPACE,
};
use objects::patch::JsonPatch;
use serde_json::{Map, Value};

use super::drift::contains;
use super::managed_fields::{TakeOver, has_left, owned, take_over};
use super::retain::retain;

/// The manager of the fields that we apply.
pub const APPLY_MANAGER: &str = "karmada-rs";

/// The write of one manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyPlan {
    /// The object is as the manifest has it.
    Unchanged,
    /// There is no object: a server-side apply that does not force its fields, for another may create one
    /// meanwhile.
    Create {
        /// The object.
        body: Value,
    },
    /// The object differs: a server-side apply that forces its fields.
    Apply {
        /// The object, with the uid of the one that was read.
        body: Value,
        /// The patch to be sent before, by which the fields of other managers become ours.
        take_over: Option<JsonPatch>,
    },
    /// The object must not be touched; the message is for the Work's status.
    Refuse {
        /// The reason, and the way out.
        message: String,
    },
}

/// Plans the write of the `manifest` of `work`. `object` is the member's, read live: a server-side apply
/// without a look would take over an object that is not ours. From a cache, without its managed fields,
/// only [`ApplyPlan::Unchanged`] may be concluded.
pub fn plan(work: &Work, manifest: &Value, object: Option<&Value>) -> ApplyPlan {
    let body = retain(manifest, object);
    let Some(object) = object else {
        return ApplyPlan::Create { body };
    };
    if metadata(object, "deletionTimestamp").is_some() {
        let message =
            "the object is being deleted in the member; it is created again once it is gone";
        return ApplyPlan::Refuse {
            message: message.to_owned(),
        };
    }
    let overwrites = conflict_resolution(work, manifest) == "overwrite";
    let take_from = match ownership(work, object) {
        Ownership::Ours => TakeOver::FromKarmada,
        Ownership::OfAnotherWork(_) if overwrites => TakeOver::FromKarmada,
        Ownership::Foreign if overwrites => TakeOver::FromAll,
        Ownership::OfAnotherWork(other) => {
            return ApplyPlan::Refuse {
                message: format!(
                    "the object in the member belongs to the Work {other}: delete one of the two, or \
                     annotate the template with {CONFLICT_RESOLUTION}=overwrite"
                ),
            };
        }
        Ownership::Foreign => {
            return ApplyPlan::Refuse {
                message: format!(
                    "the object exists in the member and is not managed by Karmada: delete it there, or \
                     annotate the template with {CONFLICT_RESOLUTION}=overwrite"
                ),
            };
        }
    };
    if contains(object, &body, owned(object)) && !has_left(object, &body) {
        return ApplyPlan::Unchanged;
    }
    ApplyPlan::Apply {
        body: of_this_object(body, object),
        take_over: take_over(object, take_from),
    }
}

/// Plans the write of the new `manifest` of `work` on an object from a cache that
/// [is ours alone](super::is_ours_alone): what it has of the former one was applied by us, so that nothing
/// is to be taken over. Returns `None` if only a live look at the object can tell.
pub fn reapply(work: &Work, manifest: &Value, object: &Value) -> Option<ApplyPlan> {
    let is_ours = matches!(ownership(work, object), Ownership::Ours);
    // Which replicas are retained is in the managed fields.
    let is_scaled = label(manifest, RETAIN_REPLICAS) == Some("true");
    if !is_ours || is_scaled || metadata(object, "deletionTimestamp").is_some() {
        return None;
    }
    let body = retain(manifest, Some(object));
    metadata(object, "uid")?;
    Some(ApplyPlan::Apply {
        body: of_this_object(body, object),
        take_over: None,
    })
}

/// Returns `body` with the uid of `object`, so that it is applied to no other.
fn of_this_object(mut body: Value, object: &Value) -> Value {
    if let (Some(uid), Some(body)) = (metadata(object, "uid"), metadata_mut(&mut body)) {
        body.insert("uid".to_owned(), uid.clone());
    }
    body
}

/// Whose an object in a member is.
enum Ownership {
    /// That of the Work.
    Ours,
    /// That of another Work.
    OfAnotherWork(String),
    /// Nobody's that we know.
    Foreign,
}

fn ownership(work: &Work, object: &Value) -> Ownership {
    // Even if someone took the label off, which is drift like any other.
    if names_work(object, work) {
        return Ownership::Ours;
    }
    if label(object, MANAGED) != Some("true") {
        return Ownership::Foreign;
    }
    let of = |name| annotation(object, name).unwrap_or_default();
    match (of(WORK_NAMESPACE), of(WORK_NAME)) {
        // Karmada's label without its annotations: nobody else can be meant.
        ("", "") => Ownership::Ours,
        (namespace, name) => Ownership::OfAnotherWork(format!("{namespace}/{name}")),
    }
}

/// Returns `true` if the annotations of the object name the Work.
pub fn names_work(object: &Value, work: &Work) -> bool {
    annotation(object, WORK_NAMESPACE) == work.metadata.namespace.as_deref()
        && annotation(object, WORK_NAME) == work.metadata.name.as_deref()
}

fn conflict_resolution<'a>(work: &'a Work, manifest: &'a Value) -> &'a str {
    let of_work = work.metadata.annotations.as_ref();
    let of_work = of_work.and_then(|map| map.get(CONFLICT_RESOLUTION));
    let of_work = of_work.map(String::as_str);
    annotation(manifest, CONFLICT_RESOLUTION)
        .or(of_work)
        .unwrap_or_default()
}

pub(super) fn metadata<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(name)
}

fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}

pub(super) fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    metadata(object, "labels")?.get(name)?.as_str()
}

pub(super) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    metadata(object, "annotations")?.get(name)?.as_str()
}

/// Returns the whole object that replaces `object` by an update, for a `body` that no server-side apply
/// accepts: one with a key twice in a list that merges by it. What others wrote into the metadata stays.
pub fn replacement(body: &Value, object: &Value) -> Value {
    let mut body = body.clone();
    let Some(new) = metadata_mut(&mut body) else {
        return body;
    };
    for name in ["uid", "resourceVersion", "finalizers", "ownerReferences"] {
        if let Some(part) = metadata(object, name) {
            new.insert(name.to_owned(), part.clone());
        }
    }
    for (part, managed) in [
        ("labels", MANAGED_LABELS),
        ("annotations", MANAGED_ANNOTATIONS),
    ] {
        let ours = annotation(object, managed).unwrap_or_default();
        let theirs = metadata(object, part).and_then(Value::as_object);
        let theirs = theirs.into_iter().flatten();
        let theirs = theirs.filter(|(key, _)| !ours.split(',').any(|ours| ours == *key));
        let mut merged: Map<_, _> = theirs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if let Some(wanted) = new.get(part).and_then(Value::as_object) {
            merged.extend(wanted.clone());
        }
        new.insert(part.to_owned(), Value::Object(merged));
    }
    body
}
