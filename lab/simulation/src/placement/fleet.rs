//! The fleet of one run, and the changes of it.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use super::apis::Apis;
use super::clusters::{self, CLUSTERS, cluster};
use super::history::History;
use super::objects::{
    self, BINDINGS, MEMBERS, NAMESPACES, OF_NAMESPACE, PLACEMENT, SNAPSHOTS, app,
};
use super::snapshot::Snapshot;
use super::step::{Apply, Change, PlacementShape, Policy, Scope};
use crate::harness::access::Access;
use crate::harness::value::{is_deleting, name, text};

/// A hub and its members in a run, and what is known about their past.
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

    async fn write(&self, method: Method, path: &str, body: &Value) -> Result<bool> {
        Ok(self.apis.hub.write(method, path, body).await?.is_some())
    }

    async fn patch(&self, path: &str, patch: &Value) -> Result<()> {
        self.write(Method::PATCH, path, patch).await?;
        Ok(())
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.write(Method::DELETE, path, &Value::Null).await?;
        Ok(())
    }

    /// Applies a change. One that concerns what is not there does nothing.
    pub(crate) async fn change(&self, change: &Change) -> Result<()> {
        match *change {
            Change::PutMap { app, map, value } => self.put_map(app, map, value).await,
            Change::DeleteMap { app, map } => self.delete(&objects::map_path(app, map)).await,
            Change::DeleteNamespace { app } => {
                let path = format!("{NAMESPACES}/{}", objects::app(app));
                self.delete(&path).await
            }
            Change::PutPlacement { app, shape } => self.put_placement(app, shape).await,
            Change::DeletePlacement { app } => {
                let placements = objects::placements(app);
                let path = format!("{placements}/{}", objects::app(app));
                self.delete(&path).await
            }
            Change::Join { cluster, region } => self.join(cluster, region).await,
            Change::Taint {
                cluster,
                is_tainted,
            } => {
                let path = format!("{MEMBERS}/{}", clusters::cluster(cluster));
                let patch = json!({ "spec": { "taints": objects::taints(is_tainted) } });
                self.patch(&path, &patch).await
            }
            Change::Leave { cluster } => {
                let path = format!("{MEMBERS}/{}", clusters::cluster(cluster));
                self.delete(&path).await
            }
            Change::MemberNamespace { cluster, is_there } => {
                self.set_namespace(cluster, is_there).await
            }
            Change::Drift {
                cluster,
                app,
                map,
                deletes,
            } => {
                let path = objects::map_path(app, map);
                self.drift(cluster, &path, deletes).await
            }
            Change::DeleteBinding { cluster, app } => self.delete_binding(cluster, app).await,
            Change::DeleteWork { cluster, app } => {
                let works = objects::works(&clusters::cluster(cluster));
                let path = format!("{works}/{}-work", objects::app(app));
                self.delete(&path).await
            }
            Change::DeleteSnapshots { app } => {
                for snapshot in self.apis.hub.list(SNAPSHOTS).await? {
                    if text(&snapshot, PLACEMENT) == objects::app(app) {
                        let path = format!("{SNAPSHOTS}/{}", name(&snapshot));
                        self.delete(&path).await?;
                    }
                }
                Ok(())
            }
        }
    }

    async fn put_map(&self, app: u8, map: u8, value: u8) -> Result<()> {
        let name = objects::app(app);
        self.write(Method::POST, NAMESPACES, &objects::namespace(&name))
            .await?;
        let object = objects::map(map, value);
        let collection = objects::maps(&name);
        if !self.write(Method::POST, &collection, &object).await? {
            return self.patch(&objects::map_path(app, map), &object).await;
        }
        Ok(())
    }

    /// Creates a placement, or changes it unless the API's admission would refuse that.
    async fn put_placement(&self, app: u8, shape: PlacementShape) -> Result<()> {
        let (placements, placement) = (objects::placements(app), objects::placement(app, shape));
        if self.write(Method::POST, &placements, &placement).await? {
            return Ok(());
        }
        let path = format!("{placements}/{}", objects::app(app));
        let Some(existing) = self.apis.hub.get(&path).await? else {
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
        self.patch(&path, &change).await
    }

    async fn join(&self, nth: u8, region: u8) -> Result<()> {
        let member = objects::member(nth, region);
        if !self.write(Method::POST, MEMBERS, &member).await? {
            let path = format!("{MEMBERS}/{}", cluster(nth));
            let labels = json!({ "metadata": { "labels": member["metadata"]["labels"] } });
            return self.patch(&path, &labels).await;
        }
        Ok(())
    }

    async fn set_namespace(&self, cluster: u8, is_there: bool) -> Result<()> {
        let (member, namespace) = (self.apis.member(cluster), app(OF_NAMESPACE));
        if is_there {
            let namespace = objects::namespace(&namespace);
            member.write(Method::POST, NAMESPACES, &namespace).await?;
        } else {
            let path = format!("{NAMESPACES}/{namespace}");
            member.write(Method::DELETE, &path, &Value::Null).await?;
        }
        Ok(())
    }

    async fn drift(&self, cluster: u8, path: &str, deletes: bool) -> Result<()> {
        let change = json!({ "data": { "value": "drifted", "other": "theirs" } });
        let (method, body) = if deletes {
            (Method::DELETE, Value::Null)
        } else {
            (Method::PATCH, change)
        };
        let member = self.apis.member(cluster);
        member.write(method, path, &body).await?;
        Ok(())
    }

    async fn delete_binding(&self, cluster: u8, app: u8) -> Result<()> {
        let (cluster, app) = (clusters::cluster(cluster), self::app(app));
        for binding in self.apis.hub.list(BINDINGS).await? {
            let target = text(&binding, "/spec/targetCluster");
            if text(&binding, PLACEMENT) == app && target == cluster {
                self.delete(&format!("{BINDINGS}/{}", name(&binding)))
                    .await?;
            }
        }
        Ok(())
    }
}
