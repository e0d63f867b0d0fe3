//! The kinds of other projects that Karmada interprets by scripts of its own (Karmada,
//! `pkg/resourceinterpreter/default/thirdparty`), in one version each: a file for a project.
//!
//! A file lists its kinds, each with its interpreter. `aggregation` has the reports of members and puts them together
//! in the ways that the projects share, `reading` reads single objects, `needs` has the objects that they refer to.
//! Absent numbers count as 0, absent texts as empty.

mod aggregation;
mod argo;
mod flink;
mod flux;
mod interpreter;
mod kruise;
mod kubeflow;
mod kyverno;
mod needs;
mod ray;
mod reading;
mod retention;
mod spark;
#[cfg(test)]
mod tests;
mod volcano;

use objects::{api_version, group, kind};
use serde_json::Value;

pub(super) use aggregation::Aggregation;
use interpreter::{Interpreter, Known};
pub(crate) use needs::Needs;

/// Returns the knowledge about the kind of an object, in its version.
pub(super) fn of(object: &Value) -> Option<&'static Interpreter> {
    let version = api_version(object);
    let known: &[Known] = match group(version) {
        "argoproj.io" => argo::KINDS,
        "flink.apache.org" => flink::KINDS,
        "helm.toolkit.fluxcd.io" | "kustomize.toolkit.fluxcd.io" | "source.toolkit.fluxcd.io" => {
            flux::KINDS
        }
        "apps.kruise.io" => kruise::KINDS,
        "kubeflow.org" => kubeflow::KINDS,
        "kyverno.io" => kyverno::KINDS,
        "ray.io" => ray::KINDS,
        "sparkoperator.k8s.io" => spark::KINDS,
        "batch.volcano.sh" => volcano::KINDS,
        _ => return None,
    };
    let kind = kind(object);
    let mut known = known.iter();
    let found = known.find(|(of_version, name, _)| *of_version == version && *name == kind);
    found.map(|(_, _, interpreter)| interpreter)
}
