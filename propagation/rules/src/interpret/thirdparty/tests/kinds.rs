//! Each kind, with recorded input and output for each operation.

use super::*;
use crate::fixtures::json_values;

/// A binding has the replicas that Karmada counts, with their requirements, and none where only Pods of several templates
/// could tell (Case P84).
#[test]
fn replicas_are_counted() {
    for one in recorded() {
        let found = replicas(one.template());
        let expected = &one.content["replicas"];
        let count = expected["count"].as_i64();
        assert_eq!(found.count.map(i64::from), count, "{}", one.name);
        let requirements = found.requirements.unwrap_or_default();
        assert_eq!(requirements, expected["requirements"], "{}", one.name);
    }
}

/// A binding has the Pods of each template that Karmada tells apart, with their requirements; other kinds have none
/// (Case I86).
#[test]
fn components_are_listed() {
    for one in recorded() {
        let found = json!(components(one.template()));
        let expected = one.content.get("components").unwrap_or(&Value::Null);
        assert_eq!(found, *expected, "{}", one.name);
    }
}

/// The manifest of a cluster has its replicas where the kind has them; a kind without stays as it is (Case P84).
#[test]
fn manifests_are_revised() {
    for one in recorded() {
        let mut manifest = one.template().clone();
        let revised = &one.content["revised"];
        let to = revised["replicas"].as_i64().unwrap_or(9);
        revise(&mut manifest, i32::try_from(to).unwrap());
        assert_eq!(
            manifest,
            one.template_with(&revised["sets"]),
            "{}",
            one.name
        );
    }
}

/// A Work reports the fields of an object that others can read, without its cluster's own (Case P84).
#[test]
fn statuses_are_reflected() {
    for one in recorded() {
        for member in one.members() {
            let reflected = reflect(&member["object"]);
            assert_eq!(reflected.as_ref(), Some(reported(member)), "{}", one.name);
        }
    }
}

/// An object is well or not as its project defines it (Case P84).
#[test]
fn health_is_told() {
    for one in recorded() {
        for member in one.members() {
            let healthy = health(&member["object"]) == Health::Healthy;
            assert_eq!(healthy, member["healthy"], "{} {member}", one.name);
        }
    }
}

/// The user reads on the template the reports of all members, and nothing is written twice (Case P84).
#[test]
fn statuses_are_put_together() {
    for one in recorded() {
        let reported: Vec<_> = one.members().iter().map(reported).cloned().collect();
        // Nobody aggregates the status of a Workflow.
        let expected = one.content.get("status").cloned().unwrap_or_default();
        assert_eq!(one.status(&reported), expected, "{}", one.name);
    }
}

/// The objects that a template refers to follow it into its clusters (Case P84).
#[test]
fn references_are_found() {
    for one in recorded() {
        let needs = one.content["needs"].as_array().cloned().unwrap_or_default();
        let expected = needs.iter().map(|need| need.as_str().unwrap().to_owned());
        assert_eq!(referred(one.template()), expected.collect(), "{}", one.name);
    }
}

/// A member keeps the fields that are decided where an object runs, such as its suspension (Case P84).
#[test]
fn members_keep_their_fields() {
    for one in recorded() {
        let mut body = one.template().clone();
        retain(&mut body, &one.members()[0]["object"]);
        let expected = one.template_with(&one.content["retained"]);
        assert_eq!(body, expected, "{}", one.name);
    }
}

/// Karmada knows each kind in one version. Of another nothing is known, and all of the status is reported.
#[test]
fn other_versions_are_unknown() {
    for one in recorded() {
        let mut template = one.template().clone();
        let group = objects::group(template["apiVersion"].as_str().unwrap()).to_owned();
        template["apiVersion"] = format!("{group}/v9").into();
        template["status"] = json!({ "phase": "Failed" });
        assert_eq!(replicas(&template).count, None, "{}", one.name);
        assert_eq!(components(&template), None, "{}", one.name);
        assert_eq!(health(&template), Health::Healthy, "{}", one.name);
        assert_eq!(reflect(&template), Some(json!({ "phase": "Failed" })));
        assert_eq!(template_status(&template, &[], true), None, "{}", one.name);
        assert_eq!(referred(&template), BTreeSet::new(), "{}", one.name);
    }
}

/// Replaces the part of a value that is the `nth` of all.
fn replace(value: &mut Value, nth: &mut usize, part: &Value) {
    if *nth == 0 {
        *value = part.clone();
    }
    *nth = nth.wrapping_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|one| replace(one, nth, part)),
        Value::Object(map) => map.values_mut().for_each(|one| replace(one, nth, part)),
        _ => {}
    }
}

proptest! {
    /// Whatever somebody has written into an object does no harm.
    #[test]
    fn any_shape_is_read(nth in 4_usize..120, part in json_values(), kind in 0_usize..27) {
        let one = &recorded()[kind];
        let mut template = one.template().clone();
        replace(&mut template["spec"], &mut (nth - 4), &part);
        replicas(&template);
        components(&template);
        references(&template);
        revise(&mut template.clone(), 3);
        let mut reported = Vec::new();
        for member in one.members() {
            let mut object = member["object"].clone();
            replace(&mut object["status"], &mut (nth - 4), &part);
            health(&object);
            retain(&mut template.clone(), &object);
            reported.extend(reflect(&object));
        }
        let members = named_members(&template, &reported);
        if let Some(patch) = template_status(&template, &members, true) {
            json_patch::merge(&mut template, &patch);
        }
        prop_assert_eq!(template_status(&template, &members, true), None);
    }
}
