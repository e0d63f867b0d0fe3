//! Everything in an API, to compare before and after.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams},
    discovery::{Discovery, verbs},
};
use serde_json::Value;

/// The groups of objects that an API server changes by itself.
const OF_THE_SERVER: [&str; 3] = [
    "apiregistration.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// The kinds of which objects that were there before are patched while we are installed. The server
/// counts the writes, and remembers who wrote, in their metadata.
const PATCHED: [&str; 5] = [
    "Cluster",
    "CustomResourceDefinition",
    "Deployment",
    "MultiClusterIngress",
    "Remedy",
];

/// The objects of an API by kind, namespace and name.
pub(crate) struct Snapshot(BTreeMap<String, Value>);

impl Snapshot {
    pub(crate) async fn take(client: &Client) -> Result<Self> {
        let mut objects = BTreeMap::new();
        let discovery = Discovery::new(client.clone())
            .exclude(&OF_THE_SERVER)
            .run()
            .await?;
        for group in discovery.groups() {
            for (resource, capabilities) in group.recommended_resources() {
                let kind = &resource.kind;
                let unlisted = !capabilities.supports_operation(verbs::LIST);
                if unlisted || ["ComponentStatus", "Event"].contains(&kind.as_str()) {
                    continue;
                }
                let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
                for mut object in api.list(&ListParams::default()).await? {
                    let namespace = object.namespace().unwrap_or_default();
                    // kube-apiserver renews its own lease.
                    if kind == "Lease" && namespace == "kube-system" {
                        continue;
                    }
                    if PATCHED.contains(&kind.as_str()) {
                        object.metadata.resource_version = None;
                        object.metadata.generation = None;
                        object.metadata.managed_fields = None;
                    }
                    // It counts the pods, and the writes.
                    if kind == "Deployment"
                        && let Some(fields) = object.data.as_object_mut()
                    {
                        fields.remove("status");
                    }
                    let key = format!("{kind} {namespace}/{}", object.name_any());
                    objects.insert(key, serde_json::to_value(object)?);
                }
            }
        }
        Ok(Self(objects))
    }

    /// Returns the objects' kinds, namespaces and names.
    pub(super) fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// Returns the kinds, namespaces and names of the objects that only `other` has.
    pub(crate) fn only_in<'a>(&self, other: &'a Self) -> Vec<&'a str> {
        let keys = other.0.keys().filter(|key| !self.0.contains_key(*key));
        keys.map(String::as_str).collect()
    }

    /// Checks that `after` has the same objects to the last byte.
    pub(crate) fn is_kept_by(&self, after: &Self) -> Result<()> {
        let mut differences = Vec::new();
        for (key, before) in &self.0 {
            match after.0.get(key) {
                None => differences.push(format!("{key} is gone")),
                Some(now) if now != before => {
                    differences.push(format!("{key} was {before} and is {now}"));
                }
                Some(_) => {}
            }
        }
        let new = self.only_in(after);
        differences.extend(new.iter().map(|key| format!("{key} is left")));
        if differences.is_empty() {
            return Ok(());
        }
        bail!("{}", differences.join("\n"))
    }
}
