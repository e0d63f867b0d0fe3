//! The fleet of one run: the APIs, the programs, and the steps that change them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use embedded_apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};

use super::apis::Apis;
use super::clusters::{self, CLUSTERS, cluster};
use super::objects::{
    self, BINDINGS, MEMBERS, NAMESPACES, OF_NAMESPACE, PLACEMENT, SNAPSHOTS, app,
};
use super::programs::Programs;
use super::step::{Apply, PlacementShape, Policy, Scope, Server, Step};
use crate::harness::access::Access;
use crate::harness::traffic::Traffic;
use crate::harness::value::{is_deleting, name, text};

/// The APIs, the programs, and what has happened to them.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) apis: Apis,
    pub(crate) programs: Programs,
}

impl Fleet {
    /// Creates three clusters and three applications, each with a map, one of them with a placement. No program runs yet.
    pub(crate) async fn new(traffic: Traffic) -> Result<Self> {
        let mut fleet = Self {
            apis: Apis::new()?,
            programs: Programs::new(traffic),
        };
        for cluster in 0..CLUSTERS {
            let region = cluster % 2;
            fleet.apply(&Step::Join { cluster, region }).await?;
        }
        for app in 0..=OF_NAMESPACE {
            let (map, value) = (0, 0);
            fleet.apply(&Step::PutMap { app, map, value }).await?;
        }
        let shape = PlacementShape {
            policy: Policy::All,
            region: None,
            tolerates: false,
            scope: Scope::Whole,
            apply: Apply::ClientSide,
        };
        fleet.apply(&Step::PutPlacement { app: 0, shape }).await?;
        Ok(fleet)
    }

    async fn write(&self, method: Method, path: &str, body: &Value) -> Result<bool> {
        Ok(self.apis.hub.write(method, path, body).await?.is_some())
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.write(Method::DELETE, path, &Value::Null).await?;
        Ok(())
    }

    /// Applies a step. One that concerns what is not there does nothing.
    pub(crate) async fn apply(&mut self, step: &Step) -> Result<()> {
        match *step {
            Step::PutMap { app, map, value } => self.put_map(app, map, value).await?,
            Step::DeleteMap { app, map } => self.delete(&objects::map_path(app, map)).await?,
            Step::DeleteNamespace { app } => {
                self.delete(&format!("{NAMESPACES}/{}", objects::app(app)))
                    .await?;
            }
            Step::PutPlacement { app, shape } => self.put_placement(app, shape).await?,
            Step::DeletePlacement { app } => {
                let placements = objects::placements(app);
                self.delete(&format!("{placements}/{}", objects::app(app)))
                    .await?;
            }
            Step::Join { cluster, region } => self.join(cluster, region).await?,
            Step::Taint {
                cluster,
                is_tainted,
            } => {
                let path = format!("{MEMBERS}/{}", clusters::cluster(cluster));
                let change = json!({ "spec": { "taints": objects::taints(is_tainted) } });
                self.write(Method::PATCH, &path, &change).await?;
            }
            Step::Leave { cluster } => {
                self.delete(&format!("{MEMBERS}/{}", clusters::cluster(cluster)))
                    .await?;
            }
            Step::MemberNamespace { cluster, is_there } => {
                self.set_namespace(cluster, is_there).await?;
            }
            Step::Drift {
                cluster,
                app,
                map,
                deletes,
            } => {
                self.drift(cluster, &objects::map_path(app, map), deletes)
                    .await?;
            }
            Step::DeleteBinding { cluster, app } => self.delete_binding(cluster, app).await?,
            Step::DeleteWork { cluster, app } => {
                let works = objects::works(&clusters::cluster(cluster));
                self.delete(&format!("{works}/{}-work", objects::app(app)))
                    .await?;
            }
            Step::DeleteSnapshots { app } => {
                for snapshot in self.apis.hub.list(SNAPSHOTS).await? {
                    if text(&snapshot, PLACEMENT) == objects::app(app) {
                        self.delete(&format!("{SNAPSHOTS}/{}", name(&snapshot)))
                            .await?;
                    }
                }
            }
            Step::Crash {
                program,
                write,
                stored,
            } => self.programs.crash(program, write, stored),
            Step::Kill { program } => self.programs.kill(program).await,
            Step::Start { program } => self.programs.start(&self.apis, program).await?,
            Step::Fault { .. } => self.fail(step)?,
            Step::Repair => self.end_faults(),
            Step::Settle => {
                self.end_faults();
                self.programs.revive(&self.apis).await?;
            }
            Step::Wait { millis } => {
                tokio::time::sleep(Duration::from_millis(millis.into())).await;
            }
        }
        Ok(())
    }

    async fn put_map(&self, app: u8, map: u8, value: u8) -> Result<()> {
        let name = objects::app(app);
        self.write(Method::POST, NAMESPACES, &objects::namespace(&name))
            .await?;
        let object = objects::map(map, value);
        let collection = objects::maps(&name);
        if !self.write(Method::POST, &collection, &object).await? {
            self.write(Method::PATCH, &objects::map_path(app, map), &object)
                .await?;
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
        self.write(Method::PATCH, &path, &change).await?;
        Ok(())
    }

    async fn join(&self, nth: u8, region: u8) -> Result<()> {
        let member = objects::member(nth, region);
        if !self.write(Method::POST, MEMBERS, &member).await? {
            let path = format!("{MEMBERS}/{}", cluster(nth));
            let labels = json!({ "metadata": { "labels": member["metadata"]["labels"] } });
            self.write(Method::PATCH, &path, &labels).await?;
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

    fn fail(&self, step: &Step) -> Result<()> {
        let &Step::Fault {
            server,
            program,
            kind,
            fault,
            seconds,
        } = step
        else {
            return Ok(());
        };
        let Ok(injection) = fault.injection() else {
            bail!("no connection of this world delays writes");
        };
        // A part of the programs' user agents: the steps' own requests must succeed.
        let client = program.map_or_else(|| "placement-".to_owned(), super::role::Role::process);
        let mut injection = injection
            .lasting(Duration::from_secs(seconds.into()))
            .client(client);
        if let Some(kind) = kind {
            injection = injection.kind(kind);
        }
        let server = match server {
            Server::Hub => &self.apis.hub,
            Server::Member(cluster) => self.apis.member(cluster),
        };
        server.faults().inject(injection);
        Ok(())
    }

    /// Ends every fault.
    pub(crate) fn end_faults(&self) {
        self.apis.all().for_each(|server| server.faults().clear());
    }

    /// Returns the number of times that each fault was applied.
    pub(crate) fn faults(&self) -> BTreeMap<&'static str, u64> {
        let mut hits = BTreeMap::new();
        for (fault, count) in self.apis.all().flat_map(hits_of) {
            *hits.entry(fault).or_default() += count;
        }
        hits
    }
}

fn hits_of(server: &ApiServer) -> BTreeMap<&'static str, u64> {
    server.faults().hits()
}
