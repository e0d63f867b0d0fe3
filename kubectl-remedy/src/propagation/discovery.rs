//! The kinds that the API serves, under every name that they have there.

use kube::api::DynamicObject;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};
use kube::discovery::ApiResource;
use kube::{Api, Client};
use objects::GroupVersionKind;
use propagation_rules::rights::GroupResource;

use super::named::Named;
use crate::error::Error;

/// A kind that the API serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// The group; empty for the core group.
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) is_namespaced: bool,
    /// The versions in which it is served, the preferred one first.
    pub(crate) versions: Vec<String>,
    /// Every name that may stand for it, in lower case.
    pub(crate) names: Vec<String>,
}

/// Reads the kinds that the API serves, those of the core group first.
pub(crate) async fn served(client: &Client) -> Result<Vec<Served>, Error> {
    let lists = futures::try_join!(
        client.list_core_api_versions_aggregated(),
        client.list_api_groups_aggregated(),
    );
    let (core, groups) = lists.map_err(|error| Error::request("list the kinds", error))?;
    Ok(of_groups(core.items.into_iter().chain(groups.items)))
}

fn of_groups(groups: impl IntoIterator<Item = APIGroupDiscovery>) -> Vec<Served> {
    let mut found: Vec<Served> = Vec::new();
    for group in groups {
        let name = group.metadata.and_then(|metadata| metadata.name);
        let name = name.unwrap_or_default();
        let first = found.len();
        for version in group.versions {
            let of = version.version.unwrap_or_default();
            for resource in version.resources {
                let Some(served) = Served::of(&name, &of, resource) else {
                    continue;
                };
                let mut known = found.iter_mut().skip(first);
                match known.find(|known| known.plural == served.plural) {
                    Some(known) => known.versions.push(of.clone()),
                    None => found.push(served),
                }
            }
        }
    }
    found
}

impl Served {
    fn of(group: &str, version: &str, resource: APIResourceDiscovery) -> Option<Self> {
        let plural = resource.resource?;
        let kind = resource.response_kind?.kind?;
        if !resource.verbs.iter().any(|verb| verb == "get") {
            return None;
        }
        let names = [Some(plural.clone()), resource.singular_resource];
        let names = names.into_iter().flatten().chain(resource.short_names);
        let names = names.map(|name| name.to_lowercase());
        Some(Self {
            group: group.to_owned(),
            plural,
            is_namespaced: resource.scope.as_deref() == Some("Namespaced"),
            versions: vec![version.to_owned()],
            names: names.chain([kind.to_lowercase()]).collect(),
            kind,
        })
    }

    /// Returns the kind that is named, the first of several.
    pub(crate) fn named<'a>(all: &'a [Self], named: &Named<'_>) -> Option<&'a Self> {
        let type_ = named.type_.to_lowercase();
        all.iter().find(|served| {
            let is_of_group = named.group.is_none_or(|group| group == served.group);
            is_of_group && served.names.contains(&type_)
        })
    }

    /// Returns the kind as it is served, or as it was where it is not any more.
    pub(super) fn or_former(all: &[Self], kind: &GroupVersionKind, is_namespaced: bool) -> Self {
        let mut all = all.iter();
        let found = all.find(|served| served.group == kind.group && served.kind == kind.kind);
        found.cloned().unwrap_or_else(|| Self {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            plural: kind.kind.to_lowercase(),
            is_namespaced,
            versions: vec![kind.version.clone()],
            names: Vec::new(),
        })
    }

    /// Returns the kind in one of its versions.
    pub(super) fn in_version(&self, version: &str) -> GroupVersionKind {
        GroupVersionKind {
            group: self.group.clone(),
            version: version.to_owned(),
            kind: self.kind.clone(),
        }
    }

    /// Returns the objects of a namespace in one of its versions, or those of a kind without namespaces if that is empty.
    pub(crate) fn objects(
        &self,
        client: &Client,
        version: &str,
        namespace: &str,
    ) -> Api<DynamicObject> {
        let resource = self.resource(version);
        if namespace.is_empty() {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    }

    /// Returns the resource by which it is requested in one of its versions.
    fn resource(&self, version: &str) -> ApiResource {
        let kind = self.in_version(version);
        ApiResource {
            api_version: kind.api_version(),
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            plural: self.plural.clone(),
        }
    }

    /// Returns the version that the API prefers.
    pub(crate) fn preferred(&self) -> &str {
        self.versions.first().map_or("", String::as_str)
    }

    /// Returns the kind as rights name it, if it can be propagated.
    pub(super) fn group_resource(&self) -> Option<GroupResource> {
        let plural = &self.plural;
        let name = match &*self.group {
            "" => plural.clone(),
            group => format!("{group}/{plural}"),
        };
        name.parse().ok()
    }

    /// Returns the name by which kubectl knows it beyond doubt: `PLURAL.GROUP`.
    pub(crate) fn full_name(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn resource(plural: &str, singular: &str, kind: &str, short: &[&str]) -> Value {
        json!({ "resource": plural, "singularResource": singular, "scope": "Namespaced",
            "responseKind": { "group": "", "version": "", "kind": kind }, "verbs": ["get"],
            "shortNames": short })
    }

    fn served() -> Vec<Served> {
        let deployments = resource("deployments", "deployment", "Deployment", &["deploy"]);
        let mut reviews = resource("reviews", "review", "Review", &[]);
        reviews["verbs"] = json!(["create"]);
        let groups = json!([
            { "metadata": {}, "versions": [{ "version": "v1", "resources": [
                resource("services", "service", "Service", &["svc"]), reviews, {}] }] },
            { "metadata": { "name": "apps" }, "versions": [
                { "version": "v1", "resources": [deployments] },
                { "version": "v1beta1", "resources": [deployments] }] },
            { "metadata": { "name": "serving.example.com" }, "versions": [
                { "version": "v1", "resources": [resource("services", "service", "Service", &["ksvc"])] }] },
        ]);
        let groups: Vec<APIGroupDiscovery> = from_value(groups).unwrap();
        of_groups(groups)
    }

    /// Each name of a kind leads to it, the core group first, and a group leads to its own.
    #[test]
    fn every_name_leads_there() {
        let all = served();
        for (argument, expected) in [
            ("deploy/web", Some("deployments.apps")),
            ("deployment/web", Some("deployments.apps")),
            ("Deployments.apps/web", Some("deployments.apps")),
            ("svc/web", Some("services")),
            (
                "service.serving.example.com/web",
                Some("services.serving.example.com"),
            ),
            ("ksvc/web", Some("services.serving.example.com")),
            ("deploy.extensions/web", None),
            ("review/web", None),
        ] {
            let named = Named::parse(argument).unwrap().unwrap();
            let found = Served::named(&all, &named).map(Served::full_name);
            assert_eq!(found.as_deref(), expected, "{argument}");
        }
    }

    /// The versions of a kind are one kind, and one that is not served any more has its name.
    #[test]
    fn versions_are_one_kind() {
        let all = served();
        assert_eq!(all.len(), 3);
        assert_eq!(all[1].versions, ["v1", "v1beta1"]);
        assert_eq!(all[1].preferred(), "v1");
        assert_eq!(all[1].resource("v1beta1").api_version, "apps/v1beta1");
        let gone = GroupVersionKind::new("example.com/v1", "Shirt");
        let gone = Served::or_former(&all, &gone, true);
        assert_eq!(gone.full_name(), "shirt.example.com");
    }
}
