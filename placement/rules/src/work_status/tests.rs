use fleet_api::placement::Difference as Told;
use objects::Metadata;
use objects::comparison::Compared;
use objects::difference::Difference;
use serde_json::{Value, from_value, json};

use super::*;
use crate::fixtures::{fixture, items};
use crate::manifests::Failure;
use crate::strategy::Strategy;

const NOW: &str = "2026-11-25T17:00:00Z";

fn applied(object: &Value) -> ManifestResult<'_> {
    ManifestResult::Applied {
        object,
        note: None,
        compared: None,
    }
}

/// Returns the reports on the manifests of a Work, of which `recorded` has the status.
fn reports<'a>(
    recorded: &'a Work,
    result: impl Fn(&'a Value) -> ManifestResult<'a>,
) -> Vec<ManifestReport<'a>> {
    let manifests = recorded.spec.workload.manifests.iter();
    let status = recorded.status.as_ref().unwrap();
    let reports = manifests
        .zip(&status.manifest_conditions)
        .map(|(manifest, recorded)| ManifestReport {
            manifest,
            resource: &recorded.identifier.resource,
            result: result(manifest),
        });
    reports.collect()
}

/// An agent that takes over finds nothing to say anew of objects that are as they were.
#[test]
fn recorded_statuses_are_ours() {
    let mut objects = items("crp-1-member-objects");
    for (name, available) in [("crp-1-work", 2), ("crp-1-work-not-available", 0)] {
        let mut all = objects.iter_mut();
        let deployment = all.find(|one| objects::kind(one) == "Deployment");
        deployment.unwrap()["status"]["availableReplicas"] = json!(available);
        let work: Work = from_value(fixture(name)).unwrap();
        // Of those that have no status only their manifests were recorded.
        let reports = reports(&work, |manifest| {
            let mut namesakes = objects.iter().filter(|one| one.name() == manifest.name());
            let object = namesakes.find(|one| objects::kind(one) == objects::kind(manifest));
            applied(object.unwrap_or(manifest))
        });
        assert_eq!(
            work_status(&work, &reports, NOW.parse().unwrap()),
            None,
            "{name}"
        );
    }
}

/// Before the first write in the member, everything that is about to be written is named.
#[test]
fn recorded_write_ahead_is_ours() {
    let recorded: Work = from_value(fixture("work-write-ahead")).unwrap();
    let reports = reports(&recorded, |_| ManifestResult::Pending);
    assert_eq!(work_status(&recorded, &reports, NOW.parse().unwrap()), None);
    let mut first = recorded.clone();
    first.status = None;
    let at = "2026-11-25T16:44:45Z".parse().unwrap();
    assert_eq!(work_status(&first, &reports, at), recorded.status);
}

#[test]
fn failures_have_their_reasons() {
    let work: Work = from_value(json!({ "metadata": { "generation": 3 } })).unwrap();
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    for (failure, reason) in [
        (Failure::Undecodable, "DecodingErred"),
        (Failure::GenerateName, "FoundGenerateName"),
        (Failure::Duplicate, "Duplicated"),
        (Failure::TakeOver, "FailedToTakeOver"),
        (Failure::NotTakenOver, "NotTakenOver"),
        (Failure::Apply, "ManifestApplyFailed"),
    ] {
        let applied = ManifestReport {
            manifest: &manifest,
            resource: "configmaps",
            result: applied(&manifest),
        };
        let failed = ManifestReport {
            result: ManifestResult::failed(failure, "why", None),
            ..applied
        };
        let status = work_status(&work, &[applied, failed], NOW.parse().unwrap()).unwrap();
        let said = &status.manifest_conditions[1].conditions[0];
        assert_eq!((&*said.reason, &*said.message), (reason, "why"));
        let whole: Vec<_> = status.conditions.iter().map(|one| &*one.message).collect();
        let expected = ["Failed to apply all manifests (1 of 2 manifests are applied)"];
        assert_eq!(whole, expected);
    }
}

/// The condition of a manifest is about the member's object as it was seen; without a report it is one reason, whatever failed.
#[test]
fn failure_is_about_the_object() {
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let object = json!({ "metadata": { "generation": 7 } });
    let differs = compared(&[], Some(7));
    for (strategy, result, expected) in [
        (
            "ClientSideApply",
            ManifestResult::failed(Failure::Apply, "why", Some(&object)),
            ("ManifestApplyFailed", Some(7)),
        ),
        (
            "ClientSideApply",
            ManifestResult::failed(Failure::Undecodable, "why", None),
            ("DecodingErred", None),
        ),
        (
            "ServerSideApply",
            ManifestResult::Differs(&differs),
            ("FailedToTakeOver", Some(7)),
        ),
        (
            "ReportDiff",
            ManifestResult::failed(Failure::Undecodable, "why", None),
            ("FailedToReportDiff", None),
        ),
    ] {
        let work = json!({ "metadata": { "generation": 1 },
            "spec": { "applyStrategy": { "type": strategy } } });
        let work: Work = from_value(work).unwrap();
        let report = ManifestReport {
            manifest: &manifest,
            resource: "configmaps",
            result,
        };
        let status = work_status(&work, &[report], NOW.parse().unwrap()).unwrap();
        let said = &status.manifest_conditions[0].conditions[0];
        assert_eq!((&*said.reason, said.observed_generation), expected);
    }
}

/// Returns the comparison with these details.
fn compared(told: &[Told], generation: Option<i64>) -> Compared {
    let value = |text: &str| (!text.is_empty()).then(|| Value::from(text));
    let differences = told.iter().map(|one| Difference {
        path: one.path.clone(),
        found: value(&one.value_in_member),
        wanted: value(&one.value_in_hub),
    });
    Compared {
        generation,
        is_owned: false,
        differences: differences.collect(),
    }
}

/// An agent that takes over finds nothing to say anew of objects that differ as they did.
#[test]
fn recorded_differences_are_ours() {
    let mut works = items("crp-diff-works");
    works.push(fixture("crp-diff-work-drifted"));
    for work in works {
        let recorded: Work = from_value(work).unwrap();
        let status = recorded.status.clone().unwrap();
        let drifted = status.manifest_conditions.iter().map(|one| {
            let drift = one.drift_details.as_ref();
            drift.map(|drift| Compared {
                is_owned: true,
                ..compared(&drift.observed_drifts, Some(0))
            })
        });
        let reported = status.manifest_conditions.iter().map(|one| {
            let diff = one.diff_details.as_ref();
            let generation = diff.map_or(Some(0), |one| one.observed_in_member_cluster_generation);
            let told = diff.map_or(&[][..], |one| &one.observed_diffs);
            compared(told, generation)
        });
        let (drifted, reported): (Vec<_>, Vec<_>) = (drifted.collect(), reported.collect());
        let is_reported = Strategy::of(recorded.spec.apply_strategy.as_ref()).only_reports();
        let manifests = recorded.spec.workload.manifests.iter();
        let reports = manifests
            .zip(0..)
            .map(|(manifest, place): (&Value, usize)| {
                let result = match &drifted[place] {
                    _ if is_reported => ManifestResult::Reported(&reported[place]),
                    Some(compared) => ManifestResult::Differs(compared),
                    None => applied(manifest),
                };
                ManifestReport {
                    manifest,
                    resource: &status.manifest_conditions[place].identifier.resource,
                    result,
                }
            });
        let reports: Vec<_> = reports.collect();
        let said = work_status(&recorded, &reports, NOW.parse().unwrap());
        assert_eq!(said, None, "{}", recorded.metadata.namespace());
        // Said for the first time, it is the same but for the times.
        let mut first = recorded.clone();
        first.status = None;
        let said = work_status(&first, &reports, NOW.parse().unwrap()).unwrap();
        let undated = [&said, &status].map(|status| {
            let mut text = serde_json::to_string(status).unwrap();
            while let Some(at) = text.find("2026-11-25T16") {
                text.replace_range(at..at + NOW.len(), NOW);
            }
            text
        });
        assert_eq!(undated[0], undated[1]);
    }
}

/// An application is told no more once objects are only looked at, but for that which keeps a Job from running again; and the other
/// way round.
#[test]
fn reports_replace_applications() {
    let manifest = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" } });
    let done = json!({ "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "a", "generation": 1,
            "annotations": { "kubernetes-fleet.io/spec-hash": "h" } },
        "spec": { "ttlSecondsAfterFinished": 1 },
        "status": { "conditions": [{ "type": "Complete", "status": "True" }] } });
    let mut work: Work = from_value(json!({ "metadata": { "generation": 1 } })).unwrap();
    let none = compared(&[], None);
    let mut types = Vec::new();
    for (strategy, result) in [
        ("ClientSideApply", applied(&done)),
        ("ReportDiff", ManifestResult::Reported(&none)),
        (
            "ReportDiff",
            ManifestResult::failed(Failure::Report, "why", None),
        ),
        ("ClientSideApply", applied(&done)),
    ] {
        work.spec.apply_strategy = from_value(json!({ "type": strategy })).unwrap();
        let report = ManifestReport {
            manifest: &manifest,
            resource: "jobs",
            result,
        };
        work.status = work_status(&work, &[report], NOW.parse().unwrap()).or(work.status);
        let status = work.status.as_ref().unwrap();
        let of_manifest = &status.manifest_conditions[0].conditions;
        let all = status.conditions.iter().chain(of_manifest);
        let said = all.map(|one| format!("{} {}", one.type_, one.reason));
        types.push(said.collect::<Vec<_>>());
    }
    let written = vec![
        "Applied AllManifestsApplied",
        "Available WorkNotTrackable",
        "Applied Applied",
        "Available NotTrackable",
        "Finished JobFinished",
    ];
    let expected = [
        written.clone(),
        vec![
            "DiffReported AllManifestsDiffReported",
            "DiffReported NoDiffFound",
            "Finished JobFinished",
        ],
        vec![
            "DiffReported SomeManifestsHaveNotReportedDiff",
            "DiffReported FailedToReportDiff",
        ],
        written,
    ];
    assert_eq!(types, expected);
}

/// A member that refuses to compare an object for a while does not make its differences young again.
#[test]
fn failure_keeps_first_time() {
    let mut work: Work = from_value(json!({ "metadata": { "generation": 1 },
        "spec": { "applyStrategy": { "type": "ReportDiff" } } }))
    .unwrap();
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let found = compared(&recorded_drift(), Some(0));
    let mut first = Vec::new();
    for (result, now) in [
        (ManifestResult::Reported(&found), NOW),
        (
            ManifestResult::failed(Failure::Report, "why", None),
            "2026-11-25T18:00:00Z",
        ),
        (ManifestResult::Reported(&found), "2026-11-25T19:00:00Z"),
    ] {
        let report = ManifestReport {
            manifest: &manifest,
            resource: "configmaps",
            result,
        };
        work.status = work_status(&work, &[report], now.parse().unwrap()).or(work.status);
        let status = work.status.as_ref().unwrap();
        let details = status.manifest_conditions[0].diff_details.as_ref().unwrap();
        let time = details.first_diffed_observed_time.as_ref().unwrap();
        first.push(time.0.to_string());
    }
    assert_eq!(first, [NOW; 3]);
}

/// A member that does not answer has nothing to say of an object: the list of its conditions is told even so, for KubeFleet's
/// definition refuses a status without it.
#[test]
fn empty_conditions_are_told() {
    let work: Work = from_value(json!({ "metadata": { "generation": 1 },
        "spec": { "applyStrategy": { "type": "ReportDiff" } } }))
    .unwrap();
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } });
    let report = ManifestReport {
        manifest: &manifest,
        resource: "configmaps",
        result: ManifestResult::Unknown,
    };
    let status = work_status(&work, &[report], NOW.parse().unwrap()).unwrap();
    let told = json!(status);
    assert_eq!(told["manifestConditions"][0]["conditions"], json!([]));
}

fn recorded_drift() -> Vec<Told> {
    let work: Work = from_value(fixture("crp-diff-work-drifted")).unwrap();
    let status = work.status.unwrap();
    let manifests = status.manifest_conditions.into_iter();
    let mut drifts = manifests.filter_map(|one| one.drift_details);
    drifts.next().unwrap().observed_drifts
}

/// Differences of a megabyte each do not fit: the largest are left out, and the status says so until they are gone.
#[test]
fn large_details_are_left_out() {
    let mut work: Work = from_value(json!({ "metadata": { "generation": 1 },
        "spec": { "applyStrategy": { "type": "ReportDiff" } } }))
    .unwrap();
    let manifests = [0, 1, 2].map(|place| {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": place.to_string() } })
    });
    let told = [600_000, 900_000, 10].map(|bytes| Told {
        path: "/data/a".to_owned(),
        value_in_hub: "x".repeat(bytes),
        value_in_member: String::new(),
    });
    let compared = told.map(|told| compared(&[told], Some(0)));
    let reports: Vec<_> = manifests
        .iter()
        .zip(&compared)
        .map(|(manifest, compared)| ManifestReport {
            manifest,
            resource: "configmaps",
            result: ManifestResult::Reported(compared),
        })
        .collect();
    let status = work_status(&work, &reports, NOW.parse().unwrap()).unwrap();
    let manifests = status.manifest_conditions.iter();
    let details = manifests.map(|one| one.diff_details.as_ref().unwrap());
    let kept: Vec<_> = details.map(|one| one.observed_diffs.len()).collect();
    assert_eq!(kept, [1, 0, 1]);
    let trimmed = find(&status.conditions, STATUS_TRIMMED).unwrap();
    assert!(
        trimmed
            .message
            .starts_with("The differences of 1 of the 3 objects"),
        "{trimmed:?}"
    );
    assert!(serde_json::to_vec(&status).unwrap().len() < 1_300 * 1024);
    work.status = Some(status);
    // Differences that are left out are not news at each look.
    let later = "2026-11-25T18:00:00Z".parse().unwrap();
    assert_eq!(work_status(&work, &reports, later), None);
    // Nor is it forgotten at a pass that compares nothing anew.
    let quiet = reports.iter().map(|one| ManifestReport {
        manifest: one.manifest,
        resource: one.resource,
        result: ManifestResult::Unknown,
    });
    let quiet: Vec<_> = quiet.collect();
    assert_eq!(work_status(&work, &quiet, later), None);
    let status = work_status(&work, &reports[2..], NOW.parse().unwrap()).unwrap();
    assert_eq!(find(&status.conditions, STATUS_TRIMMED), None);
}
