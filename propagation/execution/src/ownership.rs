//! The objects in a member that belong to its Works.

use std::collections::BTreeSet;
use std::sync::Arc;

use apply::{LastWrite, ManifestRef, ManifestSet, Ownership};
use interpreters::Interpreters;
use karmada_api::Work;
use karmada_api::names::MANAGED;
use karmada_runtime::dynamic::Selected;
use kube::runtime::watcher::Config;
use objects::managed_fields::Managers;
use objects::metadata::Written;
use objects::ownership::{Instruction, Removal, Retainer};
use objects::{GroupVersionKind, Key, Metadata};
use propagation_rules::customization::Operation;
use propagation_rules::execution::{self, Block};
use propagation_rules::interpret;
use serde_json::Value;

/// The Works of one member, as the owner of their objects.
#[derive(Debug)]
pub(crate) struct KarmadaWork {
    /// The namespace of the member's Works.
    pub(crate) namespace: String,
    /// Who has a say in how objects are replaced.
    pub(crate) interpreters: Arc<Interpreters>,
}

/// Returns the manifests of a Work.
pub(crate) fn manifest_set(work: &Work) -> ManifestSet<'_, Work> {
    ManifestSet {
        source: work,
        key: Key::of(work),
        generation: work.metadata.generation,
        manifests: work.spec.workload.manifests.iter().collect(),
        withheld: BTreeSet::new(),
        terms: String::new(),
        suspended: work.is_suspended(),
        last_write: match execution::applied(work) {
            Some(applied) if applied.observed_generation.is_none() => LastWrite::Undated,
            Some(_) => LastWrite::OfManifest,
            None => LastWrite::Unknown,
        },
        notes: execution::notes(work),
    }
}

/// Returns the same without the manifests that the `blocks` of their clusters withhold.
pub(crate) fn manifest_set_under<'a>(
    work: &'a Work,
    blocks: &[Option<Block>],
) -> ManifestSet<'a, Work> {
    let places = blocks.iter().enumerate();
    let withheld = places.filter(|(_, block)| **block == Some(Block::Withheld));
    ManifestSet {
        withheld: withheld.map(|(place, _)| place).collect(),
        ..manifest_set(work)
    }
}

/// Selects the objects of Works.
pub(crate) fn selected() -> Selected {
    Config::default().labels(&format!("{MANAGED}=true")).into()
}

impl Ownership for KarmadaWork {
    type Source = Work;

    const MANAGERS: Managers = execution::MANAGERS;

    const WRITTEN: fn(&Value) -> Option<Written> = execution::written;

    // Two providers may share a Work: then the slice of one leaves it, and that of the other comes.
    const PRUNED: fn(&GroupVersionKind) -> bool = execution::is_slice;

    fn set_of(&self, object: &impl Metadata) -> Option<Key> {
        // The annotations may name the Work of another member, if somebody copied the object.
        execution::work_of(object).filter(|work| work.namespace == self.namespace)
    }

    fn instruction(&self, one: &ManifestRef<'_, Work>, object: Option<&Value>) -> Instruction {
        let interpreter = self
            .interpreters
            .interpreter(one.manifest, Operation::Retain);
        let retainer = match interpreter {
            Some(interpreter) => Retainer::Interpreter(interpreter.fingerprint()),
            None => Retainer::Rule(interpret::retain),
        };
        execution::instruction(
            one.set.source,
            (one.ordinal, one.manifest),
            object,
            retainer,
        )
    }

    async fn retain(&self, body: Value, object: &Value) -> Result<Value, String> {
        match self.interpreters.retain(&body, object).await {
            None => Ok(body),
            // A time that the script puts in stays as it was first.
            Some(Ok(retained)) => Ok(retained.with_times_of(object)),
            Some(Err(failure)) => Err(failure.to_string()),
        }
    }

    fn removal(&self, work: &Work, object: &Value) -> Removal {
        execution::removal(work, object)
    }
}

#[cfg(test)]
mod tests;
