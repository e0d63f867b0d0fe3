//! The owner of an object in a member, and the rights of a Work to it.

use karmada_api::condition::TRUE;
use karmada_api::names::{
    CONFLICT_RESOLUTION, MANAGED, MANAGED_ANNOTATIONS, MANAGED_LABELS, RETAIN_REPLICAS, WORK_NAME,
    WORK_NAMESPACE,
};
use karmada_api::work::APPLIED;
use karmada_api::{Condition, Work};
use objects::comparison::Comparison;
use objects::managed_fields::{Managers, TakeOver};
use objects::metadata::Written;
use objects::ownership::{Adoption, Instruction, Removal, Retain, Retainer, WriteStyle};
use objects::{Key, Metadata};
use serde_json::Value;

use super::marks::without_marks;
use crate::works::{allocated_node_ports, is_delivered};

/// The managers of our writes to members, and of those of Karmada's programs before us.
pub const MANAGERS: Managers = Managers {
    ours: "karmada-rs",
    predecessors: &["karmada-controller-manager", "karmada-agent"],
};

/// Returns the Work that the annotations of an object name.
pub fn work_of(object: &impl Metadata) -> Option<Key> {
    let namespace = object.annotation(WORK_NAMESPACE)?;
    let name = object.annotation(WORK_NAME)?;
    Some(Key::new(namespace, name))
}

/// Returns the labels and annotations that the last write of an object had: ours and Karmada's list their keys in it.
pub fn written(object: &Value) -> Option<Written> {
    let [labels, annotations] = [MANAGED_LABELS, MANAGED_ANNOTATIONS].map(|list| {
        let keys = object.annotation(list)?.split(',');
        Some(keys.map(ToOwned::to_owned).collect())
    });
    Some(Written {
        labels: labels?,
        annotations: annotations?,
    })
}

/// Decides how to write a manifest of a Work, which has this place in it, by the object that is found where it goes. A
/// replacement keeps the fields that the `retainer` names.
pub fn instruction(
    work: &Work,
    (ordinal, manifest): (usize, &Value),
    object: Option<&Value>,
    retainer: Retainer,
) -> Instruction {
    Instruction {
        style: WriteStyle::Replace,
        adopt: object.map_or(Adoption::Owned, |object| adoption(work, manifest, object)),
        compare: Comparison::Never,
        retain: Retain {
            replicas: manifest.label(RETAIN_REPLICAS) == Some("true"),
            node_ports: allocated_node_ports(&work.metadata),
            by: retainer,
        },
        wave: ordinal,
    }
}

/// Decides whether `work` may write an object that exists where `manifest` is to be applied.
pub(super) fn adoption(work: &Work, manifest: &Value, object: &Value) -> Adoption {
    let overwrites = conflict_resolution(work, manifest) == "overwrite";
    match owner(work, object) {
        Owner::ThisWork => Adoption::Owned,
        Owner::AnotherWork(_) if overwrites => Adoption::Adopt {
            fields: TakeOver::FromPredecessors,
        },
        Owner::Foreign if overwrites => Adoption::Adopt {
            fields: TakeOver::FromAll,
        },
        Owner::AnotherWork(other) => Adoption::Refuse {
            reason: format!(
                "the object in the member belongs to the Work {other}: delete one of the two, or annotate the \
                 template with {CONFLICT_RESOLUTION}=overwrite"
            ),
        },
        Owner::Foreign => Adoption::Refuse {
            reason: format!(
                "the object exists in the member and is not managed by Karmada: delete it there, or annotate \
                 the template with {CONFLICT_RESOLUTION}=overwrite"
            ),
        },
    }
}

/// Decides whether to delete the object of a Work that is being deleted, or of a manifest that has left it or is withheld.
pub fn removal(work: &Work, object: &Value) -> Removal {
    // It may have been made anew by another Work or by a person meanwhile.
    if !is_managed(object) || work_of(object) != Some(Key::of(work)) {
        return Removal::Nothing;
    }
    let is_preserved = work.spec.preserve_resources_on_deletion == Some(true);
    if is_preserved && work.metadata.deletion_timestamp.is_some() {
        let patch = without_marks(object);
        return Removal::Release { patch };
    }
    if object.is_deleting() || object.uid().is_empty() {
        return Removal::Nothing;
    }
    Removal::Delete {
        uid: object.uid().to_owned(),
    }
}

/// Returns the condition that says that the Work's manifests were applied as they are now. One of Karmada's has no
/// generation: it may be about earlier ones.
pub fn applied(work: &Work) -> Option<&Condition> {
    let applied = work.condition(APPLIED)?;
    // While it is suspended, nothing is applied that would show it.
    let may_be_karmadas = !work.is_suspended() && applied.observed_generation.is_none();
    let is_applied = applied.status == TRUE && (may_be_karmadas || is_delivered(work));
    is_applied.then_some(applied)
}

/// Returns the notes on the manifests in the status of a Work that was applied.
pub fn notes(work: &Work) -> &str {
    let applied = work
        .condition(APPLIED)
        .filter(|applied| applied.status == TRUE);
    applied.map_or("", |applied| &applied.message)
}

/// Whose an object in a member is.
enum Owner {
    ThisWork,
    AnotherWork(Key),
    /// Nobody that we know.
    Foreign,
}

fn owner(work: &Work, object: &Value) -> Owner {
    // Even if someone took the label off, which is drift like any other.
    if work_of(object) == Some(Key::of(work)) {
        return Owner::ThisWork;
    }
    if !is_managed(object) {
        return Owner::Foreign;
    }
    let namespace = object.annotation(WORK_NAMESPACE).unwrap_or_default();
    let name = object.annotation(WORK_NAME).unwrap_or_default();
    if namespace.is_empty() && name.is_empty() {
        // Karmada's label without its annotations: nobody else can be meant.
        return Owner::ThisWork;
    }
    Owner::AnotherWork(Key::new(namespace, name))
}

fn is_managed(object: &Value) -> bool {
    object.label(MANAGED) == Some("true")
}

fn conflict_resolution<'a>(work: &'a Work, manifest: &'a Value) -> &'a str {
    let of_manifest = manifest.annotation(CONFLICT_RESOLUTION);
    let of_work = work.metadata.annotation(CONFLICT_RESOLUTION);
    of_manifest.or(of_work).unwrap_or_default()
}
