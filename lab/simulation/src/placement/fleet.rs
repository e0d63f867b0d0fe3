//! The fleet of one run, and the changes of it.

use anyhow::Result;
use serde_json::json;

use super::apis::Apis;
use super::history::History;
use super::objects::{self, BINDINGS, MEMBERS, OF_NAMESPACE, PLACEMENT, SNAPSHOTS, app};
use super::snapshot::Snapshot;
use super::step::{Apply, Change, PlacementShape, Policy, Scope};
use crate::harness::access::{Access, NAMESPACES};
use crate::harness::clusters::{self, CLUSTERS};
use crate::harness::value::{is_deleting, name, text};

/// A hub and its members in a run, and their past as far as it is known.
#[derive(Debug)]
pub struct Members {
    pub(crate) apis: Apis,
    pub(crate) history: History,
    pub(crate) snapshot: Snapshot,
}

impl Members {
    /// Creates three clusters and three applications, each with a map, one of them with a placement.
    pub(crate) async fn begin() -> Result<Self> {
        let fleet = Self {
            apis: Apis::new()?,
            history: History::default(),
            snapshot: Snapshot::default(),
        };
        for cluster in 0..CLUSTERS {
            let region = cluster % 2;
            fleet.change(&Change::Join { cluster, region }).await?;
        }
        for app in 0..=OF_NAMESPACE {
            let (map, value) = (0, 0);
            fleet.change(&Change::PutMap { app, map, value }).await?;
        }
        let shape = PlacementShape {
            policy: Policy::All,
            region: None,
            tolerates: false,
            scope: Scope::Whole,
            apply: Apply::ClientSide,
        };
        fleet
            .change(&Change::PutPlacement { app: 0, shape })
            .await?;
        Ok(fleet)
    }

    /// Applies a change. One that concerns absent objects does nothing.
    pub(crate) async fn change(&self, change: &Change) -> Result<()> {
        let hub = &self.apis.hub;
        match *change {
            Change::PutMap { app, map, value } => self.put_map(app, map, value).await,
            Change::DeleteMap { app, map } => hub.delete(&objects::map_path(app, map)).await,
            Change::DeleteNamespace { app } => {
                let path = format!("{NAMESPACES}/{}", objects::app(app));
                hub.delete(&path).await
            }
            Change::PutPlacement { app, shape } => self.put_placement(app, shape).await,
            Change::DeletePlacement { app } => {
                let placements = objects::placements(app);
                let path = format!("{placements}/{}", objects::app(app));
                hub.delete(&path).await
            }
            Change::Join { cluster, region } => self.join(cluster, region).await,
            Change::Taint {
                cluster,
                is_tainted,
            } => {
                let path = format!("{MEMBERS}/{}", clusters::name(cluster));
                let body = json!({ "spec": { "taints": objects::taints(is_tainted) } });
                hub.patch(&path, &body).await
            }
            Change::Leave { cluster } => {
                let path = format!("{MEMBERS}/{}", clusters::name(cluster));
                hub.delete(&path).await
            }
            Change::MemberNamespace { cluster, is_there } => {
                let (member, namespace) = (self.apis.member(cluster), app(OF_NAMESPACE));
                if is_there {
                    return member.create_namespace(&namespace).await;
                }
                member.delete(&format!("{NAMESPACES}/{namespace}")).await
            }
            Change::Drift {
                cluster,
                app,
                map,
                deletes,
            } => {
                let (member, path) = (self.apis.member(cluster), objects::map_path(app, map));
                if deletes {
                    return member.delete(&path).await;
                }
                let drift = json!({ "data": { "value": "drifted", "other": "theirs" } });
                member.patch(&path, &drift).await
            }
            Change::DeleteBinding { cluster, app } => self.delete_binding(cluster, app).await,
            Change::DeleteWork { cluster, app } => {
                let works = objects::works(&clusters::name(cluster));
                let path = format!("{works}/{}-work", objects::app(app));
                hub.delete(&path).await
            }
            Change::DeleteSnapshots { app } => {
                for snapshot in hub.list(SNAPSHOTS).await? {
                    if text(&snapshot, PLACEMENT) == objects::app(app) {
                        let path = format!("{SNAPSHOTS}/{}", name(&snapshot));
                        hub.delete(&path).await?;
                    }
                }
                Ok(())
            }
        }
    }

    async fn put_map(&self, app: u8, map: u8, value: u8) -> Result<()> {
        let (hub, name) = (&self.apis.hub, objects::app(app));
        hub.create_namespace(&name).await?;
        let object = objects::map(map, value);
        hub.put(&objects::maps(&name), &object, &object).await
    }

    /// Creates a placement, or changes it unless the API's admission would refuse that.
    async fn put_placement(&self, app: u8, shape: PlacementShape) -> Result<()> {
        let (placements, placement) = (objects::placements(app), objects::placement(app, shape));
        let hub = &self.apis.hub;
        if hub.create(&placements, &placement).await? {
            return Ok(());
        }
        let path = format!("{placements}/{}", objects::app(app));
        let Some(existing) = hub.get(&path).await? else {
            return Ok(());
        };
        let before = &existing["spec"]["policy"];
        let mut after = placement["spec"]["policy"].clone();
        if is_deleting(&existing) || before["placementType"] != after["placementType"] {
            return Ok(());
        }
        if !before["tolerations"].is_null() {
            after["tolerations"] = before["tolerations"].clone();
        }
        // A merge patch would keep fields that the new policy lacks.
        let change = json!([
            { "op": "replace", "path": "/spec/policy", "value": after },
            {
                "op": "replace", "path": "/spec/resourceSelectors",
                "value": placement["spec"]["resourceSelectors"],
            },
            {
                "op": "replace", "path": "/spec/strategy",
                "value": placement["spec"]["strategy"],
            },
        ]);
        hub.patch(&path, &change).await
    }

    async fn join(&self, nth: u8, region: u8) -> Result<()> {
        let (hub, member) = (&self.apis.hub, objects::member(nth, region));
        let labels = json!({ "metadata": { "labels": member["metadata"]["labels"] } });
        hub.put(MEMBERS, &member, &labels).await
    }

    async fn delete_binding(&self, cluster: u8, app: u8) -> Result<()> {
        let (cluster, app) = (clusters::name(cluster), self::app(app));
        let hub = &self.apis.hub;
        for binding in hub.list(BINDINGS).await? {
            let target = text(&binding, "/spec/targetCluster");
            if text(&binding, PLACEMENT) == app && target == cluster {
                let path = format!("{BINDINGS}/{}", name(&binding));
                hub.delete(&path).await?;
            }
        }
        Ok(())
    }
}
