//! The fleet of one run, and the changes of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use embedded_apiserver::{ApiServer, Fault};
use http::Method;
use serde_json::{Value, json};

use super::apis::Apis;
use super::held::Held;
use super::history::History;
use super::moves::Moves;
use super::objects::{self, CLUSTERS, NAMESPACE, SECRETS, Template};
use super::specs;
use super::step::{Change, PolicyShape, Spread};
use crate::clock;
use crate::harness::access::Access;
use crate::harness::clusters;
use crate::harness::value::{name, text};

/// The pods for which a cluster has room when it joins.
const ROOM: u8 = 4;

/// A fleet of three members in a run, and its past as far as it is known.
#[derive(Debug)]
pub struct Members {
    pub(crate) apis: Apis,
    pub(crate) history: History,
    pub(crate) held: Held,
    pub(crate) moves: Moves,
    /// The number of members that ever joined.
    joined: u32,
}

impl Members {
    /// Creates three members, two templates and a policy of each kind.
    pub(crate) async fn begin() -> Result<Self> {
        let mut fleet = Self {
            apis: Apis::new()?,
            history: History::default(),
            held: Held::default(),
            moves: Moves::default(),
            joined: 0,
        };
        let execution = clusters::all().map(|name| format!("karmada-es-{name}"));
        let others = ["karmada-system", SECRETS, NAMESPACE].map(str::to_owned);
        for namespace in execution.chain(others) {
            fleet.apis.fleet.create_namespace(&namespace).await?;
        }
        for cluster in 0..clusters::CLUSTERS {
            let region = cluster % 2;
            fleet.change(&Change::Join { cluster, region }).await?;
        }
        fleet.history.clusters_changed = false;
        for template in [Template::ConfigMapA, Template::Deployment] {
            let (version, wipes) = (1, false);
            let put = Change::PutTemplate {
                template,
                version,
                wipes,
            };
            fleet.change(&put).await?;
        }
        for (policy, templates) in [
            (0, &[Template::ConfigMapA, Template::Deployment][..]),
            (3, &[Template::ClusterRole]),
        ] {
            let shape = PolicyShape::of_kinds(templates);
            fleet.change(&Change::PutPolicy { policy, shape }).await?;
        }
        Ok(fleet)
    }

    /// Applies a change. One that concerns absent objects does nothing.
    pub(crate) async fn change(&mut self, change: &Change) -> Result<()> {
        self.history.clusters_changed |= matches!(
            change,
            Change::Join { .. } | Change::Taint { .. } | Change::Room { .. } | Change::Leave { .. }
        );
        let fleet = self.apis.fleet.clone();
        match *change {
            Change::PutTemplate {
                template,
                version,
                wipes,
            } => self.put_template(template, version, wipes).await,
            Change::DeleteTemplate { template } => fleet.delete(&template.path()).await,
            Change::PutPolicy { policy, ref shape } => {
                self.history.is_bounded |= shape.spread != Spread::No;
                let (collection, name) = objects::policy(policy);
                let kind = objects::policy_kind(policy);
                let spec = specs::policy(shape);
                self.put_spec(kind, &collection, &name, &spec).await
            }
            Change::Pause { policy, pause } => {
                let (collection, name) = objects::policy(policy);
                let suspension = specs::suspension(pause);
                let patch = if suspension.is_null() {
                    json!({ "spec": { "suspension": null } })
                } else {
                    json!([{ "op": "add", "path": "/spec/suspension", "value": suspension }])
                };
                fleet.patch(&format!("{collection}/{name}"), &patch).await
            }
            Change::DeletePolicy { policy } => {
                let (collection, name) = objects::policy(policy);
                fleet.delete(&format!("{collection}/{name}")).await
            }
            Change::Reschedule { template } => {
                let now = clock::now().to_string();
                let patch = json!({ "spec": { "rescheduleTriggeredAt": now } });
                fleet.patch(&template.binding(), &patch).await
            }
            Change::PutOverride {
                of_cluster,
                template,
                clusters,
                value,
            } => {
                let spec = specs::overrides(of_cluster, template, clusters, value);
                let kind = objects::override_kind(of_cluster);
                let collection = objects::overrides(of_cluster);
                self.put_spec(kind, &collection, "o", &spec).await
            }
            Change::DeleteOverride { of_cluster } => {
                let collection = objects::overrides(of_cluster);
                fleet.delete(&format!("{collection}/o")).await
            }
            Change::Join { cluster, region } => self.join(cluster, region).await,
            Change::Taint { cluster, effect } => {
                let taints = effect.map(|effect| {
                    let (effect, time) = (format!("{effect:?}"), clock::now());
                    json!([{ "key": "lab", "effect": effect, "timeAdded": time }])
                });
                let patch = json!({ "spec": { "taints": taints } });
                fleet.patch(&objects::cluster_path(cluster), &patch).await
            }
            Change::Room { cluster, pods } => {
                let path = format!("{}/status", objects::cluster_path(cluster));
                let body = json!({ "status": { "resourceSummary": room(pods) } });
                fleet.patch(&path, &body).await
            }
            Change::Leave { cluster } => fleet.delete(&objects::cluster_path(cluster)).await,
            Change::ChangeCopy {
                cluster,
                template,
                deletes,
            } => self.change_copy(cluster, template, deletes).await,
            Change::DeleteWork { cluster, template } => self.delete_work(cluster, template).await,
            Change::DeleteBinding { template } => {
                for cluster in 0..clusters::CLUSTERS {
                    self.disturb(cluster, template);
                }
                fleet.delete(&template.binding()).await
            }
            Change::FailBack { is_on } => {
                self.history.fails_back = is_on;
                Ok(())
            }
            Change::Upgrade => {
                self.upgrade();
                Ok(())
            }
        }
    }

    /// Lets the watches of the fleet's API begin anew, with a further default.
    fn upgrade(&self) {
        self.apis.is_upgraded.store(true, Ordering::Relaxed);
        let (faults, moment) = (self.apis.fleet.faults(), Duration::from_secs(1));
        for ends in [Fault::CutWatch { inside_line: false }, Fault::ExpireWatch] {
            faults.inject(ends.lasting(moment).client("/"));
        }
    }

    async fn put_template(&mut self, template: Template, version: u8, wipes: bool) -> Result<()> {
        let object = template.object(version);
        let contents = self.history.contents.entry(template).or_default();
        contents.push(template.content(&object).clone());
        let fleet = &self.apis.fleet;
        if !fleet.create(&template.collection(), &object).await? {
            let method = if wipes { Method::PUT } else { Method::PATCH };
            fleet.write(method, &template.path(), &object).await?;
        }
        Ok(())
    }

    async fn put_spec(&self, kind: &str, collection: &str, name: &str, spec: &Value) -> Result<()> {
        let object = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind,
            "metadata": { "name": name }, "spec": spec,
        });
        // A merge patch would keep fields that the new spec lacks.
        let change = json!([{ "op": "replace", "path": "/spec", "value": spec }]);
        self.apis.fleet.put(collection, &object, &change).await
    }

    /// Returns the member of a cluster that is joined.
    pub(crate) async fn member(&self, cluster: u8) -> Result<Option<ApiServer>> {
        let path = objects::cluster_path(cluster);
        let found = self.apis.fleet.get(&path).await?;
        Ok(self.apis.member(text(found.as_ref(), "/spec/apiEndpoint")))
    }

    async fn join(&mut self, cluster: u8, region: u8) -> Result<()> {
        let (name, path) = (clusters::name(cluster), objects::cluster_path(cluster));
        let region = format!("r{region}");
        let labels = json!({ "region": region });
        let fleet = self.apis.fleet.clone();
        if fleet.get(&path).await?.is_some() {
            let change = json!({ "metadata": { "labels": labels }, "spec": { "region": region } });
            return fleet.patch(&path, &change).await;
        }
        let endpoint = format!("http://{name}-{}", self.joined);
        self.joined += 1;
        let member = ApiServer::starting_at(clock::now());
        let members = &self.apis.members;
        members.lock().insert(endpoint.clone(), (cluster, member));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name }, "stringData": { "token": "t" },
        });
        let secrets = format!("/api/v1/namespaces/{SECRETS}/secrets");
        fleet.create(&secrets, &secret).await?;
        let reference = json!({ "namespace": SECRETS, "name": name });
        let object = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name, "labels": labels },
            "spec": {
                "syncMode": "Push", "apiEndpoint": endpoint, "secretRef": reference,
                "region": region,
            },
        });
        fleet.create(CLUSTERS, &object).await?;
        let enabled = Template::ALL.map(|template| {
            json!({
                "groupVersion": template.api_version(), "resources": [{ "kind": template.kind() }],
            })
        });
        let status = json!({ "status": {
            "apiEnablements": enabled, "resourceSummary": room(ROOM),
        } });
        fleet.patch(&format!("{path}/status"), &status).await
    }

    fn disturb(&mut self, cluster: u8, template: Template) {
        let key = (clusters::name(cluster), template);
        self.history.disturbed.insert(key);
    }

    async fn change_copy(&mut self, cluster: u8, template: Template, deletes: bool) -> Result<()> {
        let Some(member) = self.member(cluster).await? else {
            return Ok(());
        };
        self.disturb(cluster, template);
        if deletes {
            return member.delete(&template.path()).await;
        }
        member.patch(&template.path(), &template.drift()).await
    }

    async fn delete_work(&mut self, cluster: u8, template: Template) -> Result<()> {
        self.disturb(cluster, template);
        let works = objects::works(&clusters::name(cluster));
        for work in self.apis.fleet.list(&works).await? {
            if template.is_of(&work["spec"]["workload"]["manifests"][0]) {
                let path = format!("{works}/{}", name(&work));
                self.apis.fleet.delete(&path).await?;
            }
        }
        Ok(())
    }
}

/// Returns the summary of a cluster with room for so many pods.
fn room(pods: u8) -> Value {
    json!({ "allocatable": { "pods": pods.to_string() } })
}
