//! The comparison of the placement that is in a namespace: it goes where that is, and follows it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::history::History;
use super::model;
use super::objects::{OF_NAMESPACE, app};
use super::settled::{status_differences, wanted};
use super::snapshot::Snapshot;
use crate::harness::value::{is_deleting, name};

/// Returns every difference between the objects in a namespace and the model.
pub(super) fn differences(snapshot: &Snapshot, history: &History) -> Vec<String> {
    let app = app(OF_NAMESPACE);
    let namespaced = &snapshot.namespaced;
    let placement = namespaced.placement.as_ref();
    let staying = placement.filter(|one| !is_deleting(one));
    let bound = namespaced.bound();
    let mut found = Vec::new();
    if let Some(placement) = staying {
        found.extend(picked(snapshot, &placement["spec"]["policy"], &bound));
        found.extend(status_differences(placement, &bound));
    } else {
        let left = placement.into_iter().chain(&namespaced.bindings);
        let left = left.chain(&namespaced.snapshots);
        found.extend(left.map(|one| format!("{} is left", name(one))));
    }
    let works = snapshot.working(&app);
    if works != bound {
        found.push(format!("has Works in {works:?}, and is bound to {bound:?}"));
    }
    let only_reports = staying.is_some_and(|one| model::only_reports(&one["spec"]));
    for cluster in model::fleet(snapshot).into_keys() {
        let is = snapshot.members[&cluster].apps.get(&app);
        if bound.contains(&cluster) {
            let must = snapshot.apps.get(&app);
            if !only_reports && is != must {
                found.push(format!("{cluster} holds {is:?} instead of {must:?}"));
            }
        } else if !history.left.contains(&cluster) && is.is_some_and(|maps| !maps.is_empty()) {
            found.push(format!("{cluster} is not bound, and holds {is:?}"));
        }
    }
    found
        .into_iter()
        .map(|one| format!("{app}: {one}"))
        .collect()
}

/// Compares the clusters that are bound with those that have the namespace.
fn picked(snapshot: &Snapshot, policy: &Value, bound: &BTreeSet<String>) -> Vec<String> {
    let fleet = model::fleet(snapshot).into_keys();
    let namespace = app(OF_NAMESPACE);
    let able = fleet.filter(|cluster| snapshot.members[cluster].apps.contains_key(&namespace));
    let mut able: BTreeSet<_> = able.collect();
    let named: BTreeSet<_> = wanted(policy).collect();
    if !named.is_empty() {
        able.retain(|cluster| named.contains(&**cluster));
    }
    let number = model::number(policy).unwrap_or(able.len());
    if bound.is_subset(&able) && bound.len() == number.min(able.len()) {
        return Vec::new();
    }
    vec![format!(
        "is bound to {bound:?}, and may be to {number} of {able:?}"
    )]
}
