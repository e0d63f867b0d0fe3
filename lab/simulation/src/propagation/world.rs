//! Every object that a fleet and its members hold at one moment.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::Value;

use super::apis::{Apis, get, list};
use super::objects::{self, CLUSTERS, NAMESPACE, POLICIES, Template};
use super::step;

/// The objects. Those of a cluster are there only while it is joined, except its Works.
#[derive(Debug, Default)]
pub(crate) struct World {
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

impl World {
    pub(crate) async fn read(apis: &Apis) -> Result<Self> {
        let (mut world, fleet) = (Self::default(), &apis.fleet);
        for template in Template::ALL {
            if let Some(object) = get(fleet, &template.path()).await? {
                world.templates.insert(template, object);
            }
            if let Some(object) = get(fleet, &template.binding()).await? {
                world.bindings.insert(template, object);
            }
        }
        for collection in (0..POLICIES)
            .map(|nth| objects::policy(nth).0)
            .collect::<BTreeSet<_>>()
        {
            world.policies.extend(list(fleet, &collection).await?);
        }
        for of_cluster in [false, true] {
            let found = list(fleet, &objects::overrides(of_cluster)).await?;
            world.overrides.extend(found);
        }
        for cluster in list(fleet, CLUSTERS).await? {
            world.clusters.insert(name(&cluster).to_owned(), cluster);
        }
        for cluster in (0..step::CLUSTERS).map(objects::cluster) {
            for work in list(fleet, &objects::works(&cluster)).await? {
                if let Some(template) = template_of(&work["spec"]["workload"]["manifests"][0]) {
                    world.works.insert((cluster.clone(), template), work);
                }
            }
            let endpoint = text(world.clusters.get(&cluster), "/spec/apiEndpoint");
            let Some(member) = apis.member(endpoint) else {
                continue;
            };
            for template in Template::ALL {
                if let Some(copy) = get(&member, &template.path()).await? {
                    world.copies.insert((cluster.clone(), template), copy);
                }
            }
            let space = format!("/api/v1/namespaces/{NAMESPACE}");
            if get(&member, &space).await?.is_some() {
                world.spaces.insert(cluster);
            }
        }
        Ok(world)
    }
}

fn template_of(manifest: &Value) -> Option<Template> {
    let is = |template: &Template| {
        manifest["kind"] == template.kind() && name(manifest) == template.name()
    };
    Template::ALL.into_iter().find(is)
}

/// Returns the string at a JSON pointer, or an empty one.
pub(crate) fn text<'a>(object: impl Into<Option<&'a Value>>, pointer: &str) -> &'a str {
    let found = object.into().and_then(|object| object.pointer(pointer));
    found.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the elements of the list at a JSON pointer.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let found = object.pointer(pointer).and_then(Value::as_array);
    found.into_iter().flatten()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// Returns the status of a condition.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let mut conditions = items(object, "/status/conditions");
    text(conditions.find(|one| one["type"] == kind), "/status")
}
