//! The fleet of one run: the APIs, the programs, and the steps that change them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;
use apiserver::{ApiServer, Fault, Injection};
use http::Method;
use serde_json::{Value, json};

use super::apis::{Apis, get, list, write};
use super::connection::Traffic;
use super::objects::{self, CLUSTERS, NAMESPACE, SECRETS, Template};
use super::programs::{Programs, Role};
use super::specs;
use super::step::{self, Affinity, ApiFault, By, Pause, PolicyShape, Step};
use super::world::{name, text};

/// The past of a fleet, as far as its settled state may depend on it.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Every content that each template ever had.
    contents: BTreeMap<Template, Vec<Value>>,
    /// The copies that somebody else changed or deleted at any time.
    pub(crate) disturbed: BTreeSet<(String, Template)>,
    /// Set once a cluster joined, left or was relabelled.
    pub(crate) clusters_changed: bool,
    /// Set once the execution-controller may have died, or been refused, between a write to a member and
    /// the report of it. If a pause follows, nothing reports that write before the pause ends.
    pub(crate) reports_lost: bool,
}

impl History {
    /// Returns `true` if a template once had this content.
    pub(crate) fn had(&self, template: Template, content: &Value) -> bool {
        let contents = self.contents.get(&template);
        contents.is_some_and(|contents| contents.contains(content))
    }
}

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
        let shape = |selects: &[Template]| PolicyShape {
            selects: selects
                .iter()
                .map(|template| (*template, By::Kind))
                .collect(),
            priority: 0,
            preempts: false,
            affinity: Affinity::All,
            weights: None,
            pause: Pause::No,
        };
        for (policy, shape) in [
            (0, shape(&[Template::ConfigMapA, Template::Deployment])),
            (3, shape(&[Template::ClusterRole])),
        ] {
            fleet.apply(&Step::PutPolicy { policy, shape }).await?;
        }
        Ok(fleet)
    }

    async fn write(&self, method: Method, path: &str, body: &Value) -> Result<bool> {
        write(&self.apis.fleet, method, path, body).await
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
        self.history.reports_lost |= loses_reports(step);
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
            Step::Leave { cluster } => {
                self.history.clusters_changed = true;
                self.delete(&format!("{CLUSTERS}/{}", objects::cluster(*cluster)))
                    .await?;
            }
            Step::Drift {
                cluster,
                template,
                deletes,
            } => {
                self.drift(*cluster, *template, *deletes).await?;
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
            Step::Fault {
                member,
                program,
                about,
                fault,
                seconds,
            } => {
                let mut injection =
                    injection(*fault).lasting(Duration::from_secs((*seconds).into()));
                // A part of the programs' user agents: the steps' own requests must succeed.
                injection = match (member, program) {
                    (None, Some(program)) => injection.client(program.name()),
                    (None, None) => injection.client("er/"),
                    (Some(_), _) => injection.client("execution-controller"),
                };
                if let Some(about) = about {
                    injection = injection.kind(*about);
                }
                let server = match member {
                    None => Some(self.apis.fleet.clone()),
                    Some(member) => self.member(*member).await?,
                };
                if let Some(server) = server {
                    server.faults().inject(injection);
                }
            }
            Step::Mend => self.mend(),
            Step::Wait { millis } => {
                tokio::time::sleep(Duration::from_millis((*millis).into())).await;
            }
        }
        Ok(())
    }

    /// Ends every fault.
    pub(crate) fn mend(&self) {
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
        let found = get(&self.apis.fleet, &path).await?;
        Ok(self.apis.member(text(found.as_ref(), "/spec/apiEndpoint")))
    }

    async fn join(&mut self, cluster: u8, region: u8) -> Result<()> {
        self.history.clusters_changed = true;
        let name = objects::cluster(cluster);
        let path = format!("{CLUSTERS}/{name}");
        let labels = json!({ "region": format!("r{region}") });
        if get(&self.apis.fleet, &path).await?.is_some() {
            let change = json!({ "metadata": { "labels": labels } });
            self.write(Method::PATCH, &path, &change).await?;
            return Ok(());
        }
        let endpoint = format!("http://{name}-{}", self.members);
        self.members += 1;
        let member = ApiServer::new();
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
            "spec": { "syncMode": "Push", "apiEndpoint": endpoint, "secretRef": reference },
        });
        self.write(Method::POST, CLUSTERS, &object).await?;
        let enabled = Template::ALL.map(|template| {
            json!({
                "groupVersion": template.api_version(), "resources": [{ "kind": template.kind() }],
            })
        });
        let status = json!({ "status": { "apiEnablements": enabled } });
        self.write(Method::PATCH, &format!("{path}/status"), &status)
            .await?;
        Ok(())
    }

    fn disturb(&mut self, cluster: u8, template: Template) {
        let key = (objects::cluster(cluster), template);
        self.history.disturbed.insert(key);
    }

    async fn drift(&mut self, cluster: u8, template: Template, deletes: bool) -> Result<()> {
        let Some(member) = self.member(cluster).await? else {
            return Ok(());
        };
        self.disturb(cluster, template);
        let (method, body) = if deletes {
            (Method::DELETE, Value::Null)
        } else {
            (Method::PATCH, template.drift())
        };
        write(&member, method, &template.path(), &body).await?;
        Ok(())
    }

    async fn delete_work(&mut self, cluster: u8, template: Template) -> Result<()> {
        self.disturb(cluster, template);
        let works = objects::works(&objects::cluster(cluster));
        for work in list(&self.apis.fleet, &works).await? {
            let manifest = &work["spec"]["workload"]["manifests"][0];
            if manifest["kind"] == template.kind() && name(manifest) == template.name() {
                self.delete(&format!("{works}/{}", name(&work))).await?;
            }
        }
        Ok(())
    }
}

fn injection(fault: ApiFault) -> Injection {
    let millis = |millis: u16| Duration::from_millis(millis.into());
    match fault {
        ApiFault::Conflicts { every } => Fault::Conflict.every(every.into()),
        ApiFault::TooManyRequests => {
            let retry_after = Duration::from_secs(2);
            Fault::TooManyRequests { retry_after }.into()
        }
        ApiFault::Unauthorized => Fault::Unauthorized.into(),
        ApiFault::Forbidden => Fault::Forbidden.into(),
        ApiFault::InternalErrors { every } => Fault::InternalError.every(every.into()),
        ApiFault::Unavailable => Fault::Unavailable.into(),
        ApiFault::Slow { millis: by } => Fault::Slow(millis(by)).into(),
        ApiFault::LoseResponses { every } => Fault::LoseResponse.every(every.into()),
        ApiFault::Outage => Fault::Disconnect.into(),
        ApiFault::Silence => Fault::Silence.into(),
        ApiFault::CutWatches => Fault::CutWatch { inside_line: true }.into(),
        ApiFault::ExpireWatches => Fault::ExpireWatch.into(),
        ApiFault::FailWatches => Fault::FailWatch.into(),
        ApiFault::DelayEvents {
            millis: by,
            coalesce,
        } => {
            let by = millis(by);
            Fault::DelayEvents { by, coalesce }.into()
        }
        ApiFault::StaleLists { versions } => Fault::StaleList {
            versions: versions.into(),
        }
        .into(),
    }
}

/// Returns `true` if a step may keep the execution-controller from a report.
fn loses_reports(step: &Step) -> bool {
    match step {
        Step::Crash { program, .. } | Step::Kill { program } => *program == Role::Execution,
        Step::Fault {
            member: None,
            program: None | Some(Role::Execution),
            fault,
            ..
        } => !matches!(
            fault,
            ApiFault::CutWatches
                | ApiFault::ExpireWatches
                | ApiFault::FailWatches
                | ApiFault::DelayEvents { .. }
        ),
        _ => false,
    }
}
