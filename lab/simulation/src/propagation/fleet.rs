//! The fleet of one run: the APIs, the programs, and the steps that change them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail};
use embedded_apiserver::{ApiServer, Fault};
use http::Method;
use serde_json::{Value, json};

use super::apis::Apis;
use super::history::History;
use super::objects::{self, CLUSTERS, NAMESPACE, SECRETS, Template};
use super::programs::Programs;
use super::specs;
use super::step::{self, Part, PolicyShape, Spread, Step};
use crate::clock;
use crate::harness::access::Access;
use crate::harness::traffic::Traffic;
use crate::harness::value::{name, text};

/// The pods for which a cluster has room when it joins.
const ROOM: u8 = 4;

/// The APIs, the programs, and what has happened to them.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) apis: Apis,
    pub(crate) programs: Programs,
    pub(crate) history: History,
    /// The number of members that ever were.
    members: u32,
}

impl Fleet {
    /// Creates three members, two templates and a policy of each kind. No program runs yet.
    pub(crate) async fn new(traffic: Traffic) -> Result<Self> {
        let mut fleet = Self {
            apis: Apis::new()?,
            programs: Programs::new(traffic),
            history: History::default(),
            members: 0,
        };
        let execution =
            (0..step::CLUSTERS).map(|nth| format!("karmada-es-{}", objects::cluster(nth)));
        let others = ["karmada-system", SECRETS, NAMESPACE].map(str::to_owned);
        for namespace in execution.chain(others) {
            let body = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
            });
            fleet
                .write(Method::POST, "/api/v1/namespaces", &body)
                .await?;
        }
        for cluster in 0..step::CLUSTERS {
            let region = cluster % 2;
            fleet.apply(&Step::Join { cluster, region }).await?;
        }
        fleet.history.clusters_changed = false;
        for template in [Template::ConfigMapA, Template::Deployment] {
            let (version, wipes) = (1, false);
            let put = Step::PutTemplate {
                template,
                version,
                wipes,
            };
            fleet.apply(&put).await?;
        }
        for (policy, templates) in [
            (0, &[Template::ConfigMapA, Template::Deployment][..]),
            (3, &[Template::ClusterRole]),
        ] {
            let shape = PolicyShape::of_kinds(templates);
            fleet.apply(&Step::PutPolicy { policy, shape }).await?;
        }
        Ok(fleet)
    }

    async fn write(&self, method: Method, path: &str, body: &Value) -> Result<bool> {
        Ok(self.apis.fleet.write(method, path, body).await?.is_some())
    }

    /// Creates an object, or changes the one of its name.
    async fn put(&self, collection: &str, object: &Value, change: &Value) -> Result<()> {
        let path = format!("{collection}/{}", name(object));
        if !self.write(Method::POST, collection, object).await? {
            self.write(Method::PATCH, &path, change).await?;
        }
        Ok(())
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.write(Method::DELETE, path, &Value::Null).await?;
        Ok(())
    }

    /// Applies a step. One that concerns what is not there does nothing.
    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    pub(crate) async fn apply(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::PutTemplate {
                template,
                version,
                wipes,
            } => {
                self.put_template(*template, *version, *wipes).await?;
            }
            Step::DeleteTemplate { template } => self.delete(&template.path()).await?,
            Step::PutPolicy { policy, shape } => {
                self.history.is_bounded |= shape.spread != Spread::No;
                let (collection, name) = objects::policy(*policy);
                let spec = specs::policy(shape);
                self.put_spec(objects::policy_kind(*policy), &collection, &name, &spec)
                    .await?;
            }
            Step::Pause { policy, pause } => {
                let (collection, name) = objects::policy(*policy);
                let path = format!("{collection}/{name}");
                let suspension = specs::suspension(*pause);
                let change = if suspension.is_null() {
                    json!({ "spec": { "suspension": null } })
                } else {
                    json!([{ "op": "add", "path": "/spec/suspension", "value": suspension }])
                };
                self.write(Method::PATCH, &path, &change).await?;
            }
            Step::DeletePolicy { policy } => {
                let (collection, name) = objects::policy(*policy);
                self.delete(&format!("{collection}/{name}")).await?;
            }
            Step::Reschedule { template } => {
                let change =
                    json!({ "spec": { "rescheduleTriggeredAt": clock::now().to_string() } });
                self.write(Method::PATCH, &template.binding(), &change)
                    .await?;
            }
            Step::PutOverride {
                of_cluster,
                template,
                clusters,
                value,
            } => {
                let spec = specs::overrides(*of_cluster, *template, *clusters, *value);
                let kind = objects::override_kind(*of_cluster);
                self.put_spec(kind, &objects::overrides(*of_cluster), "o", &spec)
                    .await?;
            }
            Step::DeleteOverride { of_cluster } => {
                self.delete(&format!("{}/o", objects::overrides(*of_cluster)))
                    .await?;
            }
            Step::Join { cluster, region } => self.join(*cluster, *region).await?,
            Step::Taint { cluster, effect } => {
                self.history.clusters_changed = true;
                let taints = effect.map(|effect| {
                    let (effect, time) = (format!("{effect:?}"), clock::now());
                    json!([{ "key": "lab", "effect": effect, "timeAdded": time }])
                });
                let path = format!("{CLUSTERS}/{}", objects::cluster(*cluster));
                let change = json!({ "spec": { "taints": taints } });
                self.write(Method::PATCH, &path, &change).await?;
            }
            Step::Room { cluster, pods } => {
                self.history.clusters_changed = true;
                let path = format!("{CLUSTERS}/{}/status", objects::cluster(*cluster));
                let change = json!({ "status": { "resourceSummary": room(*pods) } });
                self.write(Method::PATCH, &path, &change).await?;
            }
            Step::Leave { cluster } => {
                self.history.clusters_changed = true;
                self.delete(&format!("{CLUSTERS}/{}", objects::cluster(*cluster)))
                    .await?;
            }
            Step::ChangeCopy {
                cluster,
                template,
                deletes,
            } => {
                self.change_copy(*cluster, *template, *deletes).await?;
            }
            Step::DeleteWork { cluster, template } => {
                self.delete_work(*cluster, *template).await?;
            }
            Step::DeleteBinding { template } => {
                for cluster in 0..step::CLUSTERS {
                    self.disturb(cluster, *template);
                }
                self.delete(&template.binding()).await?;
            }
            Step::Crash {
                program,
                write,
                stored,
            } => {
                self.programs.crash(*program, *write, *stored);
            }
            Step::Kill { program } => self.programs.kill(*program).await,
            Step::Start { program } => self.programs.start(&self.apis, *program).await?,
            Step::FailBack { is_on } => {
                self.history.fails_back = *is_on;
                self.programs.fail_back(&self.apis, *is_on).await?;
            }
            Step::Fault {
                member,
                program,
                about,
                fault,
                seconds,
            } => {
                let Ok(injection) = fault.injection() else {
                    bail!("no connection of this world delays writes");
                };
                let mut injection = injection.lasting(Duration::from_secs((*seconds).into()));
                // A part of the programs' user agents: the steps' own requests must succeed.
                injection = match (member, program) {
                    (None, Some(program)) => injection.client(program.name()),
                    (None, None) => injection.client("er/"),
                    (Some(_), _) => injection.client("execution-controller"),
                };
                if let Some(about) = about {
                    injection = injection.kind(about.plural);
                    if let Some(part) = about.part {
                        injection = injection.subresource(match part {
                            Part::Spec => "",
                            Part::Status => "status",
                        });
                    }
                }
                let server = match member {
                    None => Some(self.apis.fleet.clone()),
                    Some(member) => self.member(*member).await?,
                };
                if let Some(server) = server {
                    server.faults().inject(injection);
                }
            }
            Step::Upgrade => {
                self.apis.is_upgraded.store(true, Ordering::Relaxed);
                let moment = Duration::from_secs(1);
                for ends in [Fault::CutWatch { inside_line: false }, Fault::ExpireWatch] {
                    self.apis
                        .fleet
                        .faults()
                        .inject(ends.lasting(moment).client("er/"));
                }
            }
            Step::Repair => self.end_faults(),
            Step::Settle => {
                self.end_faults();
                self.programs.revive(&self.apis).await?;
            }
            Step::Wait { millis } => {
                tokio::time::sleep(Duration::from_millis((*millis).into())).await;
            }
        }
        Ok(())
    }

    /// Ends every fault.
    pub(crate) fn end_faults(&self) {
        for server in self.apis.all() {
            server.faults().clear();
        }
    }

    /// Returns the number of times that each fault was applied.
    pub(crate) fn faults(&self) -> BTreeMap<&'static str, u64> {
        let mut hits = BTreeMap::new();
        for server in self.apis.all() {
            for (fault, count) in server.faults().hits() {
                *hits.entry(fault).or_default() += count;
            }
        }
        hits
    }

    async fn put_template(&mut self, template: Template, version: u8, wipes: bool) -> Result<()> {
        let object = template.object(version);
        let contents = self.history.contents.entry(template).or_default();
        contents.push(template.content(&object).clone());
        let (collection, path) = (template.collection(), template.path());
        if !self.write(Method::POST, &collection, &object).await? {
            let method = if wipes { Method::PUT } else { Method::PATCH };
            self.write(method, &path, &object).await?;
        }
        Ok(())
    }

    async fn put_spec(&self, kind: &str, collection: &str, name: &str, spec: &Value) -> Result<()> {
        let object = json!({ "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": { "name": name }, "spec": spec });
        // A merge patch would keep fields that the new spec lacks.
        let change = json!([{ "op": "replace", "path": "/spec", "value": spec }]);
        self.put(collection, &object, &change).await
    }

    /// Returns the member of a cluster that is joined.
    async fn member(&self, cluster: u8) -> Result<Option<ApiServer>> {
        let path = format!("{CLUSTERS}/{}", objects::cluster(cluster));
        let found = self.apis.fleet.get(&path).await?;
        Ok(self.apis.member(text(found.as_ref(), "/spec/apiEndpoint")))
    }

    async fn join(&mut self, cluster: u8, region: u8) -> Result<()> {
        self.history.clusters_changed = true;
        let name = objects::cluster(cluster);
        let path = format!("{CLUSTERS}/{name}");
        let region = format!("r{region}");
        let labels = json!({ "region": region });
        if self.apis.fleet.get(&path).await?.is_some() {
            let change = json!({ "metadata": { "labels": labels }, "spec": { "region": region } });
            self.write(Method::PATCH, &path, &change).await?;
            return Ok(());
        }
        let endpoint = format!("http://{name}-{}", self.members);
        self.members += 1;
        let member = ApiServer::starting_at(clock::now());
        self.apis.members.lock().insert(endpoint.clone(), member);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name }, "stringData": { "token": "t" },
        });
        let secrets = format!("/api/v1/namespaces/{SECRETS}/secrets");
        self.write(Method::POST, &secrets, &secret).await?;
        let reference = json!({ "namespace": SECRETS, "name": name });
        let object = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name, "labels": labels },
            "spec": {
                "syncMode": "Push", "apiEndpoint": endpoint, "secretRef": reference,
                "region": region,
            },
        });
        self.write(Method::POST, CLUSTERS, &object).await?;
        let enabled = Template::ALL.map(|template| {
            json!({
                "groupVersion": template.api_version(), "resources": [{ "kind": template.kind() }],
            })
        });
        let status = json!({ "status": {
            "apiEnablements": enabled, "resourceSummary": room(ROOM),
        } });
        self.write(Method::PATCH, &format!("{path}/status"), &status)
            .await?;
        Ok(())
    }

    fn disturb(&mut self, cluster: u8, template: Template) {
        let key = (objects::cluster(cluster), template);
        self.history.disturbed.insert(key);
    }

    async fn change_copy(&mut self, cluster: u8, template: Template, deletes: bool) -> Result<()> {
        let Some(member) = self.member(cluster).await? else {
            return Ok(());
        };
        self.disturb(cluster, template);
        let (method, body) = if deletes {
            (Method::DELETE, Value::Null)
        } else {
            (Method::PATCH, template.drift())
        };
        member.write(method, &template.path(), &body).await?;
        Ok(())
    }

    async fn delete_work(&mut self, cluster: u8, template: Template) -> Result<()> {
        self.disturb(cluster, template);
        let works = objects::works(&objects::cluster(cluster));
        for work in self.apis.fleet.list(&works).await? {
            let manifest = &work["spec"]["workload"]["manifests"][0];
            if manifest["kind"] == template.kind() && name(manifest) == template.name() {
                self.delete(&format!("{works}/{}", name(&work))).await?;
            }
        }
        Ok(())
    }
}

/// Returns the summary of a cluster with room for so many pods.
fn room(pods: u8) -> Value {
    json!({ "allocatable": { "pods": pods.to_string() } })
}
