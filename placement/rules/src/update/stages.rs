//! The stages of a run, with their clusters in the order in which they are updated.

use std::collections::BTreeSet;

use fleet_api::MemberCluster;
use fleet_api::names::{AFTER_STAGE, BEFORE_STAGE};
use fleet_api::update::{
    APPROVAL, ClusterUpdate, StageConfig, StageStatus, StageTask, StageTaskStatus, TIMED_WAIT,
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use objects::Metadata;
use objects::selector::selects;

use super::picked::Picked;

/// Returns the stages of a run as they are before it begins.
///
/// # Errors
/// Fails with a message if a picked cluster is not in exactly one of them, or one asks for something impossible.
pub(super) fn stages(
    run: &str,
    configs: &[StageConfig],
    picked: &Picked<'_>,
    clusters: &[&MemberCluster],
) -> Result<Vec<StageStatus>, String> {
    let mut placed = BTreeSet::new();
    let mut stages: Vec<StageStatus> = Vec::new();
    for config in configs {
        let name = &config.name;
        if stages.iter().any(|stage| stage.stage_name == *name) {
            return Err(format!("the stage `{name}` is there more than once"));
        }
        check_tasks(config)?;
        let members = members(config, picked, clusters)?;
        if let Some(twice) = members.iter().find(|cluster| !placed.insert(**cluster)) {
            return Err(format!("cluster `{twice}` appears in more than one stages"));
        }
        let clusters = members.into_iter().map(|cluster| ClusterUpdate {
            cluster_name: cluster.to_owned(),
            ..ClusterUpdate::default()
        });
        stages.push(StageStatus {
            stage_name: name.clone(),
            clusters: clusters.collect(),
            before_tasks: tasks(&config.before_stage_tasks, run, name, BEFORE_STAGE),
            after_tasks: tasks(&config.after_stage_tasks, run, name, AFTER_STAGE),
            ..StageStatus::default()
        });
    }
    let missing = picked.selected.keys().filter(|one| !placed.contains(**one));
    let missing: Vec<_> = missing.copied().collect();
    if missing.is_empty() {
        return Ok(stages);
    }
    let shown: Vec<_> = missing.iter().take(10).copied().collect();
    Err(format!(
        "some clusters are not placed in any stage, total {}, showing up to 10: {}",
        missing.len(),
        shown.join(", ")
    ))
}

/// Returns the picked clusters of a stage, in order.
fn members<'c>(
    config: &StageConfig,
    picked: &Picked<'_>,
    clusters: &[&'c MemberCluster],
) -> Result<Vec<&'c str>, String> {
    let Some(selector) = &config.label_selector else {
        return Ok(Vec::new());
    };
    let mut members = Vec::new();
    for cluster in clusters {
        let name = cluster.metadata.name();
        if !picked.selected.contains_key(name) || !selects(selector, &cluster.metadata) {
            continue;
        }
        let rank = match &config.sorting_label_key {
            None => 0,
            Some(key) => rank(cluster, key)?,
        };
        members.push((rank, name));
    }
    members.sort_unstable();
    Ok(members.into_iter().map(|(_, name)| name).collect())
}

fn rank(cluster: &MemberCluster, key: &str) -> Result<i64, String> {
    let value = cluster.metadata.label(key).unwrap_or_default();
    value.parse().map_err(|_| {
        let name = cluster.metadata.name();
        format!("the sorting label `{key}:{value}` on cluster `{name}` is not valid: it must be an integer")
    })
}

fn check_tasks(config: &StageConfig) -> Result<(), String> {
    let name = &config.name;
    let before = &config.before_stage_tasks;
    if let Some(task) = before.iter().find(|task| task.type_ != APPROVAL) {
        let kind = &task.type_;
        return Err(format!(
            "found unsupported task type in before stage tasks: {kind}, stage: {name}: only Approval is"
        ));
    }
    check_after_tasks(&config.after_stage_tasks).map_err(|reason| {
        format!("the after stage tasks are invalid, stage: {name}, err: {reason}")
    })
}

fn check_after_tasks(tasks: &[StageTask]) -> Result<(), String> {
    for (place, task) in tasks.iter().enumerate() {
        let kind = &task.type_;
        let mut others = tasks.iter().skip(place + 1);
        if others.any(|other| other.type_ == *kind) {
            return Err(format!(
                "afterStageTasks cannot have two tasks of the same type: {kind}"
            ));
        }
        let wait = task.wait_time.as_deref().map(duration);
        match (&**kind, wait) {
            (APPROVAL, _) => {}
            (TIMED_WAIT, None) => {
                return Err(format!(
                    "task {place} of type TimedWait has wait duration set to nil"
                ));
            }
            (TIMED_WAIT, Some(Some(wait))) if wait > SignedDuration::ZERO => {}
            (TIMED_WAIT, Some(Some(_))) => {
                return Err(format!(
                    "task {place} of type TimedWait has wait duration <= 0"
                ));
            }
            (TIMED_WAIT, Some(None)) => {
                return Err(format!(
                    "task {place} has a waitTime that is not like 1h30m"
                ));
            }
            _ => return Err(format!("task {place} is of an unknown type: {kind}")),
        }
    }
    Ok(())
}

fn tasks(configs: &[StageTask], run: &str, stage: &str, when: &str) -> Vec<StageTaskStatus> {
    let tasks = configs.iter().map(|task| StageTaskStatus {
        type_: task.type_.clone(),
        approval_request_name: match &*task.type_ {
            APPROVAL if when == BEFORE_STAGE => format!("{run}-before-{stage}"),
            APPROVAL => format!("{run}-after-{stage}"),
            _ => String::new(),
        },
        conditions: Vec::new(),
    });
    tasks.collect()
}

/// Returns the most clusters, of so many, that are updated at a time; `None` if the bound is none. Part of a cluster is none,
/// but one always is.
pub(super) fn concurrency(bound: Option<&IntOrString>, clusters: usize) -> Option<usize> {
    let most = match bound {
        None => 1,
        Some(IntOrString::Int(number)) => usize::try_from(*number).ok().filter(|most| *most > 0)?,
        Some(IntOrString::String(text)) => {
            let percent: usize = text.strip_suffix('%')?.parse().ok()?;
            clusters.saturating_mul(percent) / 100
        }
    };
    Some(most.max(1))
}

/// Returns a duration as Go writes it, of hours, minutes and seconds; `None` if it is none.
pub(super) fn duration(text: &str) -> Option<SignedDuration> {
    let mut whole = SignedDuration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|one: char| one.is_ascii_alphabetic())?;
        let (number, unit) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        let seconds = match unit.chars().next()? {
            'h' => 3600.0,
            'm' => 60.0,
            's' => 1.0,
            _ => return None,
        };
        let part = SignedDuration::try_from_secs_f64(number * seconds).ok()?;
        whole = whole.checked_add(part)?;
        rest = unit.get(1..)?;
    }
    (!text.is_empty()).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_in_go() {
        for (text, seconds) in [
            ("5s", Some(5)),
            ("1h30m", Some(5400)),
            ("1.5h0m1s", Some(5401)),
            ("0s", Some(0)),
            ("", None),
            ("5", None),
            ("s", None),
            ("1d", None),
        ] {
            let read = duration(text).map(|one| one.as_secs());
            assert_eq!(read, seconds, "{text}");
        }
    }

    fn text(text: &str) -> IntOrString {
        IntOrString::String(text.to_owned())
    }

    #[test]
    fn concurrency_is_rounded_down() {
        for (bound, clusters, most) in [
            (None, 5, Some(1)),
            (Some(IntOrString::Int(3)), 2, Some(3)),
            (Some(IntOrString::Int(0)), 2, None),
            (Some(text("70%")), 3, Some(2)),
            (Some(text("10%")), 3, Some(1)),
            (Some(text("many")), 3, None),
        ] {
            assert_eq!(concurrency(bound.as_ref(), clusters), most, "{bound:?}");
        }
    }
}
