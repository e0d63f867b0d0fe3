//! The objects of a hub and its members at one moment.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use embedded_apiserver::ApiServer;
use serde_json::Value;

use super::apis::Apis;
use super::objects::{
    self, BINDINGS, MEMBERS, OF_NAMESPACE, OWNERS, PLACEMENT, PLACEMENTS, POLICIES, SNAPSHOTS, app,
    in_namespace,
};
use crate::harness::access::{Access, NAMESPACES};
use crate::harness::clusters::{self, CLUSTERS};
use crate::harness::value::{is_deleting, name, text};

/// The maps of an application by their names.
pub(crate) type Maps = BTreeMap<String, Map>;

/// The parts of a map that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    pub(crate) value: String,
    pub(crate) tier: String,
}

/// The objects.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The applications whose namespace is on the hub.
    pub(crate) apps: BTreeMap<String, Maps>,
    pub(crate) placements: BTreeMap<String, Value>,
    pub(crate) clusters: BTreeMap<String, Value>,
    /// The clusters that have a namespace on the hub.
    pub(crate) spaces: BTreeSet<String>,
    pub(crate) policies: Vec<Value>,
    pub(crate) snapshots: Vec<Value>,
    pub(crate) bindings: Vec<Value>,
    /// The Works by cluster and application.
    pub(crate) works: BTreeMap<(String, String), Value>,
    pub(crate) members: BTreeMap<String, Content>,
    pub(crate) namespaced: Namespaced,
}

/// The objects of the placement that is in a namespace.
#[derive(Debug, Default)]
pub(crate) struct Namespaced {
    pub(crate) placement: Option<Value>,
    pub(crate) bindings: Vec<Value>,
    /// The snapshots of its policy and of its resources.
    pub(crate) snapshots: Vec<Value>,
}

impl Namespaced {
    async fn read(hub: &ApiServer) -> Result<Self> {
        let path = format!(
            "{}/{}",
            objects::placements(OF_NAMESPACE),
            app(OF_NAMESPACE)
        );
        let mut snapshots = hub.list(&in_namespace("resourcesnapshots")).await?;
        snapshots.extend(hub.list(&in_namespace("schedulingpolicysnapshots")).await?);
        Ok(Self {
            placement: hub.get(&path).await?,
            bindings: hub.list(&in_namespace("resourcebindings")).await?,
            snapshots,
        })
    }

    /// Returns the clusters to which the placement is bound.
    pub(crate) fn bound(&self) -> BTreeSet<String> {
        targets(self.bindings.iter())
    }
}

/// The objects of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// The applications whose namespace is there.
    pub(crate) apps: BTreeMap<String, Maps>,
    /// The applications with an `AppliedWork`.
    pub(crate) owners: BTreeSet<String>,
}

impl Snapshot {
    pub(crate) async fn read(apis: &Apis) -> Result<Self> {
        let hub = &apis.hub;
        let mut snapshot = Self {
            apps: apps(hub).await?,
            placements: hub.by_name(PLACEMENTS).await?,
            clusters: hub.by_name(MEMBERS).await?,
            policies: hub.list(POLICIES).await?,
            snapshots: hub.list(SNAPSHOTS).await?,
            bindings: hub.list(BINDINGS).await?,
            namespaced: Namespaced::read(hub).await?,
            ..Self::default()
        };
        for (cluster, member) in (0..CLUSTERS).map(|nth| (clusters::name(nth), apis.member(nth))) {
            let space = format!("{NAMESPACES}/{}", objects::space(&cluster));
            if hub.get(&space).await?.is_some() {
                snapshot.spaces.insert(cluster.clone());
            }
            for work in hub.list(&objects::works(&cluster)).await? {
                let app = text(&work, PLACEMENT).to_owned();
                snapshot.works.insert((cluster.clone(), app), work);
            }
            let owners = member.list(OWNERS).await?;
            let owners = owners.iter().map(|owner| name(owner).replace("-work", ""));
            let content = Content {
                apps: apps(member).await?,
                owners: owners.collect(),
            };
            snapshot.members.insert(cluster, content);
        }
        Ok(snapshot)
    }

    /// Returns a cluster of the fleet, unless it is leaving.
    pub(crate) fn cluster(&self, name: &str) -> Option<&Value> {
        self.clusters.get(name).filter(|one| !is_deleting(one))
    }

    /// Returns a placement, unless it is being deleted.
    pub(crate) fn placement(&self, app: &str) -> Option<&Value> {
        self.placements.get(app).filter(|one| !is_deleting(one))
    }

    /// Returns those of `objects` that belong to a placement.
    pub(crate) fn of<'a>(
        objects: &'a [Value],
        app: &'a str,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        objects
            .iter()
            .filter(move |one| text(*one, PLACEMENT) == app)
    }

    /// Returns the clusters that have a Work of an application.
    pub(crate) fn working(&self, app: &str) -> BTreeSet<String> {
        let works = self.works.keys().filter(|(_, of)| of == app);
        works.map(|(cluster, _)| cluster.clone()).collect()
    }

    /// Returns the clusters to which a placement is bound.
    pub(crate) fn bound(&self, app: &str) -> BTreeSet<String> {
        targets(Self::of(&self.bindings, app))
    }
}

fn targets<'a>(bindings: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
    let targets = bindings.map(|binding| text(binding, "/spec/targetCluster").to_owned());
    targets.collect()
}

async fn apps(server: &ApiServer) -> Result<BTreeMap<String, Maps>> {
    let mut apps = BTreeMap::new();
    for app in (0..=OF_NAMESPACE).map(app) {
        let path = format!("{NAMESPACES}/{app}");
        if server.get(&path).await?.is_none_or(|one| is_deleting(&one)) {
            continue;
        }
        let maps = server.list(&objects::maps(&app)).await?;
        let maps = maps.iter().map(|map| (name(map).to_owned(), content(map)));
        apps.insert(app, maps.collect());
    }
    Ok(apps)
}

fn content(map: &Value) -> Map {
    Map {
        value: text(map, "/data/value").to_owned(),
        tier: text(map, "/metadata/labels/tier").to_owned(),
    }
}
