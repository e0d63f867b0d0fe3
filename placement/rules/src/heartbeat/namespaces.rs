//! The namespaces of the cluster, where its agent is asked to tell of them: placements of a namespace go to no cluster
//! without it then.

use std::collections::BTreeMap;

use fleet_api::AppliedWork;
use fleet_api::conditions::NAMESPACES_COLLECTED;
use fleet_api::member::MemberClusterStatus;
use jiff::Timestamp;
use objects::Metadata;
use objects::condition::{Condition, FALSE, TRUE};

use crate::condition::{condition, put};

/// The most namespaces that are told of: the hub keeps them twice for each cluster.
const MOST: usize = 1000;

/// The namespaces of a cluster, each with the Work that brought it, which is empty if none did.
pub type Namespaces = BTreeMap<String, String>;

/// Returns the name of the Work that brought a namespace; empty if none did.
pub fn brought_by(namespace: &impl Metadata) -> String {
    let owners = namespace.owners().into_iter();
    let mut works = owners.filter(|owner| owner.kind == AppliedWork::KIND);
    works
        .next()
        .map_or_else(String::new, |owner| owner.name.to_owned())
}

/// Returns `true` if the hub was told of other namespaces.
pub(super) fn are_news(known: Option<&Namespaces>, before: &MemberClusterStatus) -> bool {
    let written = before.namespaces.as_ref().map(BTreeMap::keys);
    match (known, written) {
        (Some(known), Some(written)) => !known.keys().take(MOST).eq(written),
        (known, written) => known.is_some() != written.is_some(),
    }
}

/// Tells of the namespaces, or no longer where they are not known.
pub(super) fn write(
    known: Option<&Namespaces>,
    status: &mut MemberClusterStatus,
    dated: (Option<i64>, Timestamp),
) {
    let first = known.map(|known| {
        let first = known.iter().take(MOST);
        first.map(|(name, work)| (name.clone(), work.clone()))
    });
    status.namespaces = first.map(Iterator::collect);
    match known {
        Some(known) => put(&mut status.conditions, [collected(known)], dated),
        None => status
            .conditions
            .retain(|one| one.type_ != NAMESPACES_COLLECTED),
    }
}

/// Returns whether all namespaces are told of, in KubeFleet's words.
fn collected(known: &Namespaces) -> Condition {
    if known.len() > MOST {
        let message = "Namespaces are collected in a degraded mode since the number of namespaces reaches the track limit";
        condition((NAMESPACES_COLLECTED, FALSE), "Degraded", message)
    } else {
        let message = "All namespaces have been collected successfully";
        condition((NAMESPACES_COLLECTED, TRUE), "Succeeded", message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn namespaces(number: usize) -> Namespaces {
        let names = (0..number).map(|nth| (format!("n{nth:04}"), String::new()));
        names.collect()
    }

    fn written(known: Option<&Namespaces>) -> MemberClusterStatus {
        let mut status = MemberClusterStatus::default();
        let now = "2026-11-25T16:44:09Z".parse().unwrap();
        write(known, &mut status, (Some(1), now));
        status
    }

    /// Namespaces that were told are no news, more are; who is no longer asked takes them back.
    #[test]
    fn changes_are_news() {
        let (few, more) = (namespaces(2), namespaces(3));
        let status = written(Some(&few));
        assert!(!are_news(Some(&few), &status));
        assert!(are_news(Some(&more), &status));
        assert!(are_news(None, &status));
        let mut status = status;
        write(
            None,
            &mut status,
            (Some(1), "2026-11-25T16:44:09Z".parse().unwrap()),
        );
        assert_eq!(status, MemberClusterStatus::default());
        assert!(!are_news(None, &status));
    }

    /// A cluster with more namespaces than there is room for tells of the first, and says so.
    #[test]
    fn too_many_are_cut() {
        let many = namespaces(MOST + 1);
        let status = written(Some(&many));
        assert_eq!(status.namespaces.as_ref().unwrap().len(), MOST);
        assert_eq!(status.conditions[0].reason, "Degraded");
        assert!(!are_news(Some(&many), &status));
    }

    #[test]
    fn works_bring_namespaces() {
        let owned = json!({ "metadata": { "name": "shop", "ownerReferences": [
            { "apiVersion": AppliedWork::API_VERSION, "kind": "AppliedWork", "name": "shop-work", "uid": "u" }] } });
        assert_eq!(brought_by(&owned), "shop-work");
        let own: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta =
            from_value(json!({ "name": "shop" })).unwrap();
        assert_eq!(brought_by(&own), "");
    }
}
