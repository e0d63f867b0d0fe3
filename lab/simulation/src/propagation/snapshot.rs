//! Every object that a fleet and its members hold at one moment.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;

use super::apis::Apis;
use super::objects::{self, CLUSTERS, NAMESPACE, POLICIES, Template};
use crate::harness::access::{Access, NAMESPACES};
use crate::harness::clusters;
use crate::harness::value::text;

/// The objects. Those of a cluster are there only while it is joined, except its Works.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) templates: BTreeMap<Template, Value>,
    /// The propagation policies of the namespace and of the cluster.
    pub(crate) policies: Vec<Value>,
    pub(crate) overrides: Vec<Value>,
    pub(crate) clusters: BTreeMap<String, Value>,
    pub(crate) bindings: BTreeMap<Template, Value>,
    pub(crate) works: BTreeMap<(String, Template), Value>,
    /// The copies of templates in members.
    pub(crate) copies: BTreeMap<(String, Template), Value>,
    /// The clusters whose members have the users' namespace.
    pub(crate) spaces: BTreeSet<String>,
}

impl Snapshot {
    pub(crate) async fn read(apis: &Apis) -> Result<Self> {
        let (mut snapshot, fleet) = (Self::default(), &apis.fleet);
        for template in Template::ALL {
            if let Some(object) = fleet.get(&template.path()).await? {
                snapshot.templates.insert(template, object);
            }
            if let Some(object) = fleet.get(&template.binding()).await? {
                snapshot.bindings.insert(template, object);
            }
        }
        for collection in (0..POLICIES)
            .map(|nth| objects::policy(nth).0)
            .collect::<BTreeSet<_>>()
        {
            snapshot.policies.extend(fleet.list(&collection).await?);
        }
        for of_cluster in [false, true] {
            let found = fleet.list(&objects::overrides(of_cluster)).await?;
            snapshot.overrides.extend(found);
        }
        snapshot.clusters = fleet.by_name(CLUSTERS).await?;
        for cluster in clusters::all() {
            for work in fleet.list(&objects::works(&cluster)).await? {
                if let Some(template) = template_of(&work["spec"]["workload"]["manifests"][0]) {
                    snapshot.works.insert((cluster.clone(), template), work);
                }
            }
            let endpoint = text(snapshot.clusters.get(&cluster), "/spec/apiEndpoint");
            let Some(member) = apis.member(endpoint) else {
                continue;
            };
            for template in Template::ALL {
                if let Some(copy) = member.get(&template.path()).await? {
                    snapshot.copies.insert((cluster.clone(), template), copy);
                }
            }
            let space = format!("{NAMESPACES}/{NAMESPACE}");
            if member.get(&space).await?.is_some() {
                snapshot.spaces.insert(cluster);
            }
        }
        Ok(snapshot)
    }
}

fn template_of(manifest: &Value) -> Option<Template> {
    let mut all = Template::ALL.into_iter();
    all.find(|template| template.is_of(manifest))
}
