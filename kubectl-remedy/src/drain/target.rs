//! The cluster that is drained, and its taints.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use karmada_api::remedy::DRAIN;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use objects::Metadata;
use objects::taint::{NO_EXECUTE, NO_SCHEDULE};
use objects::write::{Guard, ObjectRef, Write};
use serde_json::{Value, json};
use traffic::ClusterKind;

use crate::args::DryRun;
use crate::error::Error;
use crate::send::{Edited, edit};
use crate::terminal;

/// The effect of a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It keeps new workloads away.
    KeepAway,
    /// It drives out those that are there.
    DriveOut,
}

/// The cluster that is drained.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) kind: ClusterKind,
    pub(super) is_deleting: bool,
    clusters: Api<DynamicObject>,
}

/// Returns the error that there is no such cluster.
pub(super) fn absent(name: &str) -> Error {
    Error::Unusable(format!("there is no cluster {name}"))
}

impl Target {
    /// Finds the cluster `name`, if it exists.
    pub(super) async fn find(name: &str, client: &Client) -> Result<Option<Self>, Error> {
        let (mut refused, mut is_absent) = (None, false);
        for kind in [ClusterKind::Cluster, ClusterKind::MemberCluster] {
            let clusters: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
            let found = clusters.get_opt(name).await;
            // A name with a slash leads to a part of another object.
            match found.map(|found| found.filter(|found| found.metadata.name() == name)) {
                Ok(Some(found)) => {
                    return Ok(Some(Self {
                        name: name.to_owned(),
                        kind,
                        is_deleting: found.metadata.is_deleting(),
                        clusters,
                    }));
                }
                Ok(None) => is_absent = true,
                // The kind is not served.
                Err(kube::Error::Api(status)) if status.code == 404 => is_absent = true,
                // Whether the kind is served is not told to who has no right to it.
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    refused.get_or_insert(kube::Error::Api(status));
                }
                Err(source) => return Err(unread(name, source)),
            }
        }
        match refused {
            Some(source) if !is_absent => Err(unread(name, source)),
            _ => Ok(None),
        }
    }

    /// Adds the taint of this effect. Returns `true` if it was not there.
    pub(super) async fn taint(&self, effect: Effect, dry_run: DryRun) -> Result<bool, Error> {
        let now = Timestamp::now();
        let is_new = self
            .write(|taints| tainted(taints, effect, now), dry_run)
            .await?;
        self.tell(is_new, "tainted", dry_run);
        Ok(is_new)
    }

    /// Takes the taints of drains away. Returns `true` if there were any.
    pub(super) async fn untaint(&self, dry_run: DryRun) -> Result<bool, Error> {
        let was_there = self.write(untainted, dry_run).await?;
        self.tell(was_there, "untainted", dry_run);
        Ok(was_there)
    }

    fn tell(&self, is_written: bool, done: &str, dry_run: DryRun) {
        if is_written {
            let ApiResource { kind, group, .. } = self.kind.resource();
            let (kind, name) = (kind.to_lowercase(), &self.name);
            let suffix = dry_run.suffix();
            terminal::print(&format!("{kind}.{group}/{name} {done}{suffix}\n"));
        }
    }

    /// Writes the taints that `change` returns, in the place of those that the cluster has. Returns `false` if it returns
    /// none.
    async fn write(
        &self,
        change: impl Fn(&[Value]) -> Option<Vec<Value>>,
        dry_run: DryRun,
    ) -> Result<bool, Error> {
        let name = &self.name;
        let edited = edit(&self.clusters, name, dry_run, |cluster| {
            let taints = change(taints(cluster))?;
            Some(self.with_taints(cluster, taints))
        });
        match edited.await {
            Ok(Edited::Written(_)) => Ok(true),
            Ok(Edited::Unchanged(_)) => Ok(false),
            Ok(Edited::Absent(_)) => Err(absent(name)),
            Err(source) => {
                let attempt = format!("write the taints of cluster {name}");
                Err(Error::request(attempt, source))
            }
        }
    }

    fn with_taints(&self, cluster: &DynamicObject, taints: Vec<Value>) -> Write {
        // As it was: an empty list is none.
        let taints = Some(taints).filter(|taints| !taints.is_empty());
        let object = ObjectRef::of(cluster, &self.kind.resource());
        let body = json!({ "spec": { "taints": taints } });
        Write::merge("taints", object, body).guarded(Guard::Version)
    }
}

fn unread(name: &str, source: kube::Error) -> Error {
    Error::request(format!("get cluster {name}"), source)
}

/// Returns the taints with that of a drain, or `None` if it is there.
fn tainted(taints: &[Value], effect: Effect, now: Timestamp) -> Option<Vec<Value>> {
    let (effect, added) = match effect {
        Effect::KeepAway => (NO_SCHEDULE, None),
        // A toleration for a time counts from then on.
        Effect::DriveOut => (NO_EXECUTE, Some(Time(now))),
    };
    if taints
        .iter()
        .any(|taint| is_ours(taint) && taint["effect"] == effect)
    {
        return None;
    }
    let mut taint = json!({ "key": DRAIN, "effect": effect });
    if let Some(added) = added {
        taint["timeAdded"] = json!(added);
    }
    Some(taints.iter().cloned().chain([taint]).collect())
}

/// Returns the taints without those of drains, or `None` if there are none of these.
fn untainted(taints: &[Value]) -> Option<Vec<Value>> {
    let others = taints.iter().filter(|taint| !is_ours(taint)).cloned();
    let others: Vec<Value> = others.collect();
    (others.len() < taints.len()).then_some(others)
}

/// Returns the taints, raw, so that no field of another writer's is lost.
fn taints(cluster: &DynamicObject) -> &[Value] {
    let taints = cluster.data["spec"]["taints"].as_array();
    taints.map_or(&[], Vec::as_slice)
}

fn is_ours(taint: &Value) -> bool {
    taint["key"] == DRAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-22T08:00:00Z";

    /// The taints of others stay as they are, with fields that nobody here knows, and each effect is there once.
    #[test]
    fn taints_of_others_stay() {
        let now: Timestamp = NOW.parse().unwrap();
        let other = json!({ "key": "gpu", "effect": "NoExecute", "newer": [1] });
        for before in [vec![], vec![other]] {
            let once = tainted(&before, Effect::KeepAway, now).unwrap();
            assert_eq!(tainted(&once, Effect::KeepAway, now), None);
            let twice = tainted(&once, Effect::DriveOut, now).unwrap();
            let last = json!({ "key": DRAIN, "effect": "NoExecute", "timeAdded": NOW });
            assert_eq!(twice.last(), Some(&last));
            assert_eq!(twice[..twice.len() - 2], before);
            assert_eq!(untainted(&twice).unwrap(), before);
            assert_eq!(untainted(&before), None);
        }
    }
}
