//! Flux: sources, and the objects that are made of them.

use serde_json::{Map, Value};

use super::aggregation::Aggregation;
use super::interpreter::{Interpreter, Known};
use super::needs::Needs;
use super::reading::{has_condition, is_empty, list, observed_part, text};
use super::retention::keep_suspension;

pub(super) const KINDS: &[Known] = &[
    (
        "source.toolkit.fluxcd.io/v1",
        "GitRepository",
        Interpreter {
            reflect: Some(|object| GIT_REPOSITORY.reflect(object)),
            aggregate: Some(|all| Some(GIT_REPOSITORY.aggregate(all))),
            needs: Some(|source| secrets(source, &["/secretRef", "/verify/secretRef"])),
            ..SOURCE
        },
    ),
    (
        "source.toolkit.fluxcd.io/v1beta2",
        "OCIRepository",
        Interpreter {
            reflect: Some(|object| OCI_REPOSITORY.reflect(object)),
            aggregate: Some(|all| Some(OCI_REPOSITORY.aggregate(all))),
            needs: Some(|source| {
                let names = ["/secretRef", "/verify/secretRef", "/certSecretRef"];
                with_account(source, secrets(source, &names))
            }),
            ..SOURCE
        },
    ),
    (
        "source.toolkit.fluxcd.io/v1beta2",
        "HelmRepository",
        Interpreter {
            reflect: Some(|object| HELM_REPOSITORY.reflect(object)),
            aggregate: Some(|all| Some(HELM_REPOSITORY.aggregate(all))),
            needs: Some(|source| secrets(source, &["/secretRef"])),
            ..SOURCE
        },
    ),
    (
        "source.toolkit.fluxcd.io/v1beta2",
        "Bucket",
        Interpreter {
            reflect: Some(|object| BUCKET.reflect(object)),
            aggregate: Some(|all| Some(BUCKET.aggregate(all))),
            needs: Some(|source| secrets(source, &["/secretRef"])),
            ..SOURCE
        },
    ),
    (
        "source.toolkit.fluxcd.io/v1beta2",
        "HelmChart",
        Interpreter {
            is_healthy: Some(|object| {
                has_condition(object, "Ready", &["Succeeded", "ChartPullSucceeded"])
            }),
            reflect: Some(|object| HELM_CHART.reflect(object)),
            aggregate: Some(|all| Some(HELM_CHART.aggregate(all))),
            needs: Some(|source| secrets(source, &["/verify/secretRef"])),
            ..SOURCE
        },
    ),
    (
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        Interpreter {
            is_healthy: Some(is_reconciled),
            reflect: Some(|object| KUSTOMIZATION.reflect(object)),
            aggregate: Some(|all| Some(KUSTOMIZATION.aggregate(all))),
            needs: Some(|object| {
                let names = ["/decryption/secretRef", "/kubeConfig/secretRef"];
                with_account(object, secrets(object, &names))
            }),
            ..SOURCE
        },
    ),
    (
        "helm.toolkit.fluxcd.io/v2beta1",
        "HelmRelease",
        Interpreter {
            is_healthy: Some(is_reconciled),
            reflect: Some(|object| HELM_RELEASE.reflect(object)),
            aggregate: Some(|all| Some(HELM_RELEASE.aggregate(all))),
            needs: Some(release_needs),
            ..SOURCE
        },
    ),
];

/// The part that is common to all.
const SOURCE: Interpreter = Interpreter {
    is_healthy: Some(|object| has_condition(object, "Ready", &["Succeeded"])),
    retain: Some(keep_suspension),
    ..Interpreter::NONE
};

/// The fields of a status, beside conditions and generations.
struct Status {
    /// Those of which the last counts.
    texts: &'static [&'static str],
    /// Those, too, if there is one.
    values: &'static [&'static str],
    /// Those that add up.
    counts: &'static [&'static str],
    /// Those that are reported for each cluster alone.
    reported: &'static [&'static str],
    /// True if those of which the last counts stay while no copy tells of them.
    keeps: bool,
}

const GIT_REPOSITORY: Status = Status {
    texts: &[],
    values: &["artifact"],
    counts: &[],
    reported: &[
        "observedIgnore",
        "observedInclude",
        "observedRecurseSubmodules",
    ],
    keeps: false,
};
const OCI_REPOSITORY: Status = Status {
    texts: &["url"],
    reported: &["observedIgnore", "observedLayerSelector"],
    ..GIT_REPOSITORY
};
const HELM_REPOSITORY: Status = Status {
    reported: &[],
    ..OCI_REPOSITORY
};
const BUCKET: Status = Status {
    reported: &["observedIgnore"],
    ..OCI_REPOSITORY
};
const HELM_CHART: Status = Status {
    texts: &["url", "observedChartName", "observedSourceArtifactRevision"],
    ..HELM_REPOSITORY
};
const KUSTOMIZATION: Status = Status {
    texts: &["lastAppliedRevision", "lastAttemptedRevision"],
    values: &[],
    counts: &[],
    reported: &[],
    keeps: true,
};
const HELM_RELEASE: Status = Status {
    texts: &[
        "lastAppliedRevision",
        "lastAttemptedRevision",
        "lastAttemptedValuesChecksum",
        "helmChart",
    ],
    values: &["lastReleaseRevision"],
    counts: &["failures", "upgradeFailures", "installFailures"],
    reported: &[],
    keeps: true,
};

impl Status {
    fn reflect(&self, object: &Value) -> Value {
        let conditions: &[&str] = &["conditions"];
        let names = [
            conditions,
            self.texts,
            self.values,
            self.counts,
            self.reported,
        ];
        observed_part(object, &names.concat())
    }

    fn aggregate(&self, all: &Aggregation<'_>) -> Map<String, Value> {
        let mut status = all.sums(self.counts);
        let texts = self.texts.iter().map(|name| (name, all.last_text(name)));
        let values = self.values.iter().map(|name| (name, all.last(name)));
        for (name, value) in texts.chain(values) {
            let is_kept = self.keeps && all.copies() > 0 && is_empty(&value);
            if !is_kept {
                status.insert((*name).to_owned(), value);
            }
        }
        status.insert("conditions".to_owned(), all.conditions().into());
        status.insert("observedGeneration".to_owned(), all.observed_generation());
        all.keeping(status)
    }
}

fn is_reconciled(object: &Value) -> bool {
    has_condition(object, "Ready", &["ReconciliationSucceeded"])
}

/// Returns the Secrets to which an object refers at these places of its spec.
fn secrets<'a>(object: &'a Value, references: &[&str]) -> Needs<'a> {
    let named = references.iter().map(|reference| {
        let name = text(object, &format!("/spec{reference}/name"));
        ("Secret", name)
    });
    Needs {
        pods: Vec::new(),
        objects: named.collect(),
    }
}

/// Adds the account in whose name the object's work is done.
fn with_account<'a>(object: &'a Value, mut needs: Needs<'a>) -> Needs<'a> {
    let account = text(object, "/spec/serviceAccountName");
    needs.objects.push(("ServiceAccount", account));
    needs
}

fn release_needs(release: &Value) -> Needs<'_> {
    let names = ["/chart/spec/verify/secretRef", "/kubeConfig/secretRef"];
    let mut needs = with_account(release, secrets(release, &names));
    for values in list(release, "/spec/valuesFrom") {
        let name = text(values, "/name");
        for kind in ["Secret", "ConfigMap"] {
            if text(values, "/kind") == kind {
                needs.objects.push((kind, name));
            }
        }
    }
    needs
}
