//! The objects in a member that belong to its Works.

use std::collections::BTreeSet;
use std::sync::Arc;

use apply::{LastWrite, Ownership, Unit, WriteStyle};
use interpreters::Interpreters;
use karmada_api::Work;
use karmada_api::names::MANAGED;
use karmada_runtime::dynamic::Selected;
use kube::runtime::watcher::Config;
use objects::managed_fields::Managers;
use objects::metadata::Written;
use objects::ownership::{Adoption, Removal};
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
    /// True if `EndpointSlice`s go when their Work has them no longer: two providers may share one.
    pub(crate) prunes_slices: bool,
}

/// Returns the manifests of a Work as one unit.
pub(crate) fn unit(work: &Work) -> Unit<'_, Work> {
    Unit {
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
pub(crate) fn unit_under<'a>(work: &'a Work, blocks: &[Option<Block>]) -> Unit<'a, Work> {
    let places = blocks.iter().enumerate();
    let withheld = places.filter(|(_, block)| **block == Some(Block::Withheld));
    Unit {
        withheld: withheld.map(|(place, _)| place).collect(),
        ..unit(work)
    }
}

impl Ownership for KarmadaWork {
    type Source = Work;

    fn managers(&self) -> Managers {
        execution::MANAGERS
    }

    fn watched(&self) -> Selected {
        Config::default().labels(&format!("{MANAGED}=true")).into()
    }

    fn unit_of(&self, object: &impl Metadata) -> Option<Key> {
        // The annotations may name the Work of another member, if somebody copied the object.
        execution::work_of(object).filter(|work| work.namespace == self.namespace)
    }

    fn write_style(&self, _: &Unit<'_, Work>) -> WriteStyle {
        WriteStyle::Replace
    }

    fn written(&self, object: &Value) -> Option<Written> {
        execution::written(object)
    }

    fn retains_replicas(&self, manifest: &Value) -> bool {
        execution::retains_replicas(manifest)
    }

    fn allocated_node_ports(&self, unit: &Unit<'_, Work>, _: &Value) -> BTreeSet<u16> {
        execution::allocated_node_ports(unit.source)
    }

    fn retain(&self, body: &mut Value, object: &Value) {
        if self.customization(body).is_none() {
            interpret::retain(body, object);
        }
    }

    fn customization(&self, manifest: &Value) -> Option<u64> {
        let interpreter = self.interpreters.interpreter(manifest, Operation::Retain)?;
        Some(interpreter.fingerprint())
    }

    async fn customize(&self, body: Value, object: &Value) -> Result<Value, String> {
        match self.interpreters.retain(&body, object).await {
            None => Ok(body),
            // A time that the script puts in stays as it was first.
            Some(Ok(retained)) => Ok(retained.with_times_of(object)),
            Some(Err(failure)) => Err(failure.to_string()),
        }
    }

    fn adoption(&self, unit: &Unit<'_, Work>, manifest: &Value, object: &Value) -> Adoption {
        execution::adoption(unit.source, manifest, object)
    }

    fn prunes(&self, kind: &GroupVersionKind) -> bool {
        self.prunes_slices && execution::is_slice(kind)
    }

    fn removal(&self, unit: &Unit<'_, Work>, object: &Value) -> Removal {
        execution::removal(unit.source, object)
    }
}

#[cfg(test)]
mod tests;
