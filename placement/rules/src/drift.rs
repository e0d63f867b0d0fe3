//! The differences between a manifest and its object in a member, as the hub is told of them.

use fleet_api::Work;
use fleet_api::names::PARENT_NAMESPACE;
use fleet_api::placement::Difference as Reported;
use fleet_api::work::{DiffDetails, DriftDetails};
use jiff::Timestamp;
use objects::comparison::Compared;
use objects::condition::whole_seconds;
use objects::{Metadata, group_kind};
use serde_json::Value;

/// The text that stands for the value of a difference where there is no room for it, and where it is a secret.
const LEFT_OUT: &str = "(too large, see the Work)";
const REDACTED: &str = "(redacted for security reasons)";

/// Returns the details of a drift from a manifest of a Work that is not news, or that is seen now; `None` without a drift.
pub(super) fn drift_details(
    of: (&Work, &Value),
    compared: &Compared,
    before: Option<&DriftDetails>,
    now: Timestamp,
) -> Option<DriftDetails> {
    let before = before.cloned().map(|before| DiffDetails {
        observation_time: before.observation_time,
        first_diffed_observed_time: before.first_drifted_observed_time,
        observed_in_member_cluster_generation: before.observed_in_member_cluster_generation,
        observed_diffs: before.observed_drifts,
    });
    let details = diff_details(of, compared, before.as_ref(), now)?;
    Some(DriftDetails {
        observation_time: details.observation_time,
        first_drifted_observed_time: details.first_diffed_observed_time,
        observed_in_member_cluster_generation: details.observed_in_member_cluster_generation,
        observed_drifts: details.observed_diffs,
    })
}

/// Returns the details of a difference from a manifest of a Work that is not news, or that is seen now; `None` without one.
pub(super) fn diff_details(
    of: (&Work, &Value),
    compared: &Compared,
    before: Option<&DiffDetails>,
    now: Timestamp,
) -> Option<DiffDetails> {
    let observed_diffs = reported(of, compared)?;
    let before = before.cloned().unwrap_or_default();
    // Of differences that were left out nobody knows whether they are news.
    let is_known = (before.observed_diffs == observed_diffs || before.observed_diffs.is_empty())
        && before.observed_in_member_cluster_generation == compared.generation;
    let time = Some(whole_seconds(now));
    Some(DiffDetails {
        observation_time: before
            .observation_time
            .filter(|_| is_known)
            .or_else(|| time.clone()),
        first_diffed_observed_time: before.first_diffed_observed_time.or(time),
        observed_in_member_cluster_generation: compared.generation,
        observed_diffs,
    })
}

/// Returns the differences as the hub is told of them, `None` without any. The values of a Secret are not told, nor those of an
/// object of somebody else to the users of one namespace, who need not be those who may read it.
fn reported((work, manifest): (&Work, &Value), compared: &Compared) -> Option<Vec<Reported>> {
    let is_secret = group_kind(manifest) == ("", "Secret");
    let is_foreign = !compared.is_owned && work.metadata.label(PARENT_NAMESPACE).is_some();
    let text = |value: &Option<Value>, is_hidden: bool| match value {
        None => String::new(),
        Some(_) if is_hidden => REDACTED.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let reported = compared.differences.iter().map(|one| Reported {
        path: one.path.clone(),
        value_in_hub: text(&one.wanted, is_secret && one.path != "/"),
        value_in_member: text(&one.found, is_secret || is_foreign),
    });
    (!compared.differences.is_empty()).then(|| reported.collect())
}

/// Hides the values of hub and member, where those who read a difference need not be those who may read the object.
pub(super) fn hide_values(difference: &mut Reported) {
    let Reported {
        value_in_hub,
        value_in_member,
        ..
    } = difference;
    for value in [value_in_hub, value_in_member] {
        if !value.is_empty() {
            REDACTED.clone_into(value);
        }
    }
}

/// Returns a difference without its values, as far as they are long.
pub(super) fn without_values(difference: &Reported) -> Reported {
    Reported {
        path: difference.path.clone(),
        value_in_hub: short(&difference.value_in_hub),
        value_in_member: short(&difference.value_in_member),
    }
}

fn short(value: &str) -> String {
    let is_kept = value.len() <= LEFT_OUT.len() || value == REDACTED;
    if is_kept { value } else { LEFT_OUT }.to_owned()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use objects::comparison::{self, ComparisonOption, Versions};
    use objects::difference::Difference;
    use serde_json::{Map, from_value, json};

    use super::super::fixtures::{fixture, items};
    use super::*;
    use crate::hash::is_reserved;

    const FIRST: &str = "2026-11-25T16:47:13Z";

    fn compared(
        manifest: &Value,
        versions: Option<Versions<'_>>,
        option: ComparisonOption,
    ) -> Vec<Difference> {
        comparison::compared(manifest, versions, option, is_reserved)
    }

    fn map(data: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": data })
    }

    #[expect(clippy::unnecessary_wraps, reason = "as it is compared")]
    fn versions<'a>(found: &'a Value, applied: &'a Value) -> Option<Versions<'a>> {
        let alone = None;
        Some(Versions {
            found,
            applied,
            alone,
        })
    }

    /// The reports of a running KubeFleet on a map with other values, on a namespace that has everything, and on absent
    /// objects.
    #[test]
    fn recorded_differences_are_ours() {
        let work = &items("crp-diff-works")[0];
        let [namespace, map] = [0, 1].map(|place| &work["spec"]["workload"]["manifests"][place]);
        let mut object = map.clone();
        object["data"] = json!({ "extra": "1", "k": "other" });
        object["metadata"]["managedFields"] = json!([{ "manager": "unknown", "operation": "Update",
            "fieldsV1": { "f:data": { ".": {}, "f:extra": {}, "f:k": {} } } }]);
        let mut applied = object.clone();
        applied["data"] = json!({ "extra": "1", "k": "v", "l": "w" });
        let now = FIRST.parse().unwrap();
        let found = compared(map, versions(&object, &applied), ComparisonOption::Full);
        let found = Compared::of(Some(&object), found);
        let cluster_scoped = Work::default();
        let same = compared(
            namespace,
            versions(namespace, namespace),
            ComparisonOption::Full,
        );
        assert_eq!(same, []);
        let absent = Compared::of(None, compared(map, None, ComparisonOption::Full));
        for (found, work) in [&found, &absent].into_iter().zip(items("crp-diff-works")) {
            let recorded = &work["status"]["manifestConditions"][1]["diffDetails"];
            let recorded: Option<DiffDetails> = from_value(recorded.clone()).unwrap();
            let details = diff_details((&cluster_scoped, map), found, None, now);
            assert_eq!(details, recorded);
        }
    }

    #[test]
    fn recorded_drift_is_ours() {
        let fixture = fixture("crp-diff-work-drifted");
        let work = from_value(fixture.clone()).unwrap();
        let manifest = &fixture["spec"]["workload"]["manifests"][1];
        let mut object = manifest.clone();
        object["data"] = json!({ "k": "drift", "l": "w", "extra": "1" });
        let mut applied = object.clone();
        applied["data"]["k"] = json!("v");
        let found = compared(
            manifest,
            versions(&object, &applied),
            ComparisonOption::Partial,
        );
        let found = Compared::of(Some(&object), found);
        let recorded = &fixture["status"]["manifestConditions"][1]["driftDetails"];
        let recorded: DriftDetails = from_value(recorded.clone()).unwrap();
        let at = "2026-11-25T16:47:37Z".parse().unwrap();
        let first = drift_details((&work, manifest), &found, None, at).unwrap();
        assert_eq!(first, recorded);
        // An old difference is not dated anew; a new one is seen first when it was found.
        let later = "2026-11-25T17:00:00Z".parse().unwrap();
        let again = drift_details((&work, manifest), &found, Some(&first), later);
        assert_eq!(again.as_ref(), Some(&first));
        object["data"]["k"] = json!("more");
        let found = compared(
            manifest,
            versions(&object, &applied),
            ComparisonOption::Partial,
        );
        let found = Compared::of(Some(&object), found);
        let more = drift_details((&work, manifest), &found, Some(&first), later).unwrap();
        let times = (more.observation_time, more.first_drifted_observed_time);
        assert_eq!(times, (Some(Time(later)), Some(Time(at))));
        let none = Compared::of(Some(&object), Vec::new());
        assert_eq!(
            drift_details((&work, manifest), &none, Some(&first), later),
            None
        );
    }

    /// The fields that members and controllers keep in an object are no difference.
    #[test]
    fn system_marks_are_not_compared() {
        let manifest = map(&json!({}));
        let mut object = map(&json!({}));
        object["status"] = json!({ "a": "b" });
        object["metadata"] = json!({ "name": "c", "uid": "u", "finalizers": ["a"],
            "ownerReferences": [{ "uid": "o" }], "labels": { "kubernetes.io/metadata.name": "c" },
            "annotations": { "kubernetes-fleet.io/spec-hash": "h", "x.k8s.io/y": "z" } });
        let same = compared(
            &manifest,
            versions(&object, &manifest),
            ComparisonOption::Full,
        );
        assert_eq!(same, []);
        object["metadata"]["labels"] = json!({ "app": "web" });
        let paths = compared(
            &manifest,
            versions(&object, &object),
            ComparisonOption::Full,
        );
        let paths: Vec<_> = paths.into_iter().map(|one| one.path).collect();
        assert_eq!(paths, ["/metadata/labels/app"]);
    }

    /// An object of kubectl has the defaults of its cluster among the fields of kubectl, in an element that merges by a key,
    /// too. They are nobody's work; another value in their place is, and so is a whole element.
    #[test]
    fn defaults_are_not_compared() {
        let main = json!({ "name": "main", "image": "a", "pull": "Always" });
        let side = json!({ "name": "side", "image": "b", "pull": "Always" });
        let mut object = json!({ "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "d" },
            "spec": { "progressDeadlineSeconds": 600, "containers": [side, main] } });
        object["metadata"]["managedFields"] = json!([{ "manager": "kubectl", "operation": "Update",
            "fieldsV1": { "f:spec": { "f:progressDeadlineSeconds": {}, "f:containers": {
                "k:{\"name\":\"main\"}": { ".": {}, "f:name": {}, "f:image": {}, "f:pull": {} },
                "k:{\"name\":\"side\"}": { ".": {}, "f:name": {}, "f:image": {}, "f:pull": {} },
            } } } }]);
        let manifest = json!({ "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "d" }, "spec": { "containers": [{ "name": "main", "image": "a" }] } });
        let paths = |object: &Value, alone: Option<&Value>| {
            let (found, applied) = (object, object);
            let versions = Some(Versions {
                found,
                applied,
                alone,
            });
            let all = compared(&manifest, versions, ComparisonOption::Full);
            all.into_iter().map(|one| one.path).collect::<Vec<_>>()
        };
        let of_side = ["image", "name", "pull"].map(|field| format!("/spec/containers/0/{field}"));
        assert!(paths(&object, None).contains(&"/spec/progressDeadlineSeconds".to_owned()));
        // Its managed fields tell the elements apart.
        let mut alone = object.clone();
        alone["spec"]["containers"] = json!([main]);
        assert_eq!(paths(&object, Some(&alone)), of_side);
        object["spec"]["progressDeadlineSeconds"] = json!(30);
        let all = paths(&object, Some(&alone));
        assert_eq!(all[..3], of_side);
        assert_eq!(all[3..], ["/spec/progressDeadlineSeconds"]);
    }

    #[test]
    fn secrets_are_not_told() {
        let [theirs, ours] = ["dGhlaXJz", "b3Vycw=="].map(|value| {
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" },
                "data": { "password": value } })
        });
        let found = compared(&ours, versions(&theirs, &ours), ComparisonOption::Partial);
        let found = Compared::of(Some(&theirs), found);
        let reported = reported((&Work::default(), &ours), &found).unwrap();
        assert_eq!(reported[0].path, "/data/password");
        for reported in [&reported[0], &without_values(&reported[0])] {
            let values = (&*reported.value_in_hub, &*reported.value_in_member);
            assert_eq!(values, (REDACTED, REDACTED));
        }
    }

    /// Case F113: whoever may place in one namespace is not told the values of objects that are not of
    /// his placement.
    #[test]
    fn foreign_values_are_not_told() {
        let (theirs, ours) = (
            map(&json!({ "token": "4711" })),
            map(&json!({ "token": "x" })),
        );
        let found = compared(&ours, versions(&theirs, &ours), ComparisonOption::Partial);
        let found = Compared::of(Some(&theirs), found);
        let mut work = Work::default();
        for (namespace, is_owned, value) in [
            (Some("shop"), false, REDACTED),
            (Some("shop"), true, "4711"),
            (None, false, "4711"),
        ] {
            let labels = namespace.map(|name| [(PARENT_NAMESPACE.to_owned(), name.to_owned())]);
            work.metadata.labels = labels.map(Into::into);
            let found = Compared {
                is_owned,
                ..found.clone()
            };
            let reported = reported((&work, &ours), &found).unwrap().remove(0);
            assert_eq!(
                (&*reported.path, &*reported.value_in_hub),
                ("/data/token", "x")
            );
            assert_eq!(reported.value_in_member, value);
        }
    }

    #[test]
    fn hundred_differences_are_told() {
        let many: Map<_, _> = (0..150).map(|key| (key.to_string(), json!("x"))).collect();
        let (object, applied) = (map(&json!({})), map(&Value::Object(many)));
        let found = compared(
            &applied,
            versions(&object, &applied),
            ComparisonOption::Partial,
        );
        assert_eq!(found.len(), 100);
    }
}
