//! The objects that requests are about, as their paths name them.

use serde_json::Value;

use crate::harness::Api;
use crate::harness::value::{name, text};

/// An object, by its API and its path there.
pub(crate) type ObjectPath = (Api, String);

/// The object or the collection that a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub(crate) api: Api,
    /// The path of the collection.
    pub(crate) collection: String,
    /// The name of the object, if it is about one.
    pub(crate) name: Option<String>,
    /// The part of the object that has a path of its own.
    pub(crate) part: Option<String>,
    pub(crate) query: String,
}

impl Target {
    /// Parses the path of a request.
    pub(crate) fn of(api: Api, path: &str) -> Self {
        let (plain, query) = path.split_once('?').unwrap_or((path, ""));
        let segments: Vec<&str> = plain.split('/').collect();
        // Before the plural are the group, the version and the namespace.
        let root = if plain.starts_with("/apis/") { 4 } else { 3 };
        let is_in_namespace = segments.get(root) == Some(&"namespaces")
            && segments
                .get(root + 2)
                .is_some_and(|segment| !["status", "finalize"].contains(segment));
        let plural = if is_in_namespace { root + 2 } else { root };
        let end = (plural + 1).min(segments.len());
        Self {
            api,
            collection: segments[..end].join("/"),
            name: segments.get(end).copied().map(str::to_owned),
            part: segments.get(end + 1).copied().map(str::to_owned),
            query: query.to_owned(),
        }
    }

    /// Returns the path of the object, if it is about one.
    pub(crate) fn object(&self) -> Option<ObjectPath> {
        let name = self.name.as_ref()?;
        Some((self.api, format!("{}/{name}", self.collection)))
    }

    /// Returns the path of an object of the collection, which may be that of every namespace.
    pub(crate) fn path_of(&self, object: &Value) -> ObjectPath {
        let (collection, name) = (&self.collection, name(object));
        let path = match text(object, "/metadata/namespace") {
            "" => format!("{collection}/{name}"),
            _ if collection.contains("/namespaces/") => format!("{collection}/{name}"),
            namespace => {
                let (root, plural) = collection.rsplit_once('/').unwrap_or(("", collection));
                format!("{root}/namespaces/{namespace}/{plural}/{name}")
            }
        };
        (self.api, path)
    }

    /// Returns `true` if an object is one of the collection.
    pub(crate) fn has(&self, (api, path): &ObjectPath) -> bool {
        let collection = path
            .rsplit_once('/')
            .map_or("", |(collection, _)| collection);
        *api == self.api
            && (collection == self.collection || everywhere(collection) == self.collection)
    }

    /// Returns the path of the same kind in every namespace.
    pub(crate) fn everywhere(&self) -> String {
        everywhere(&self.collection)
    }

    pub(super) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    /// Returns `true` if it is about a lease, or all of them.
    pub(super) fn is_lease(&self) -> bool {
        self.collection.ends_with("/leases")
    }

    pub(super) fn is_event(&self) -> bool {
        self.collection.ends_with("/events")
    }

    /// Returns `true` for the list of one object, which tells the version of an API.
    pub(super) fn is_of_version(&self) -> bool {
        self.query
            .split('&')
            .any(|parameter| parameter == "limit=1")
    }
}

fn everywhere(collection: &str) -> String {
    let in_namespace = collection.split_once("/namespaces/");
    let parts = in_namespace.and_then(|(root, rest)| Some((root, rest.split_once('/')?.1)));
    parts.map_or_else(
        || collection.to_owned(),
        |(root, plural)| format!("{root}/{plural}"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_name_objects() {
        let of = |path: &str| {
            let target = Target::of(Api::Hub, path);
            (target.collection, target.name, target.part)
        };
        let some = |text: &str| Some(text.to_owned());
        let works = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m0/works";
        assert_eq!(of(works), (works.to_owned(), None, None));
        assert_eq!(
            of(&format!("{works}/w/status?fieldManager=a")),
            (works.to_owned(), some("w"), some("status"))
        );
        let namespaces = "/api/v1/namespaces".to_owned();
        assert_eq!(
            of("/api/v1/namespaces/shop"),
            (namespaces.clone(), some("shop"), None)
        );
        assert_eq!(
            of("/api/v1/namespaces/shop/finalize"),
            (namespaces, some("shop"), some("finalize"))
        );
    }

    /// A list of every namespace has the objects of each.
    #[test]
    fn lists_have_objects_of_namespaces() {
        let all = Target::of(Api::Hub, "/apis/apps/v1/deployments?limit=500");
        let object = json!({ "metadata": { "name": "web", "namespace": "shop" } });
        let path = "/apis/apps/v1/namespaces/shop/deployments/web";
        assert_eq!(all.path_of(&object), (Api::Hub, path.to_owned()));
        assert!(all.has(&all.path_of(&object)));
        let one = Target::of(Api::Hub, path);
        assert_eq!(
            (one.object(), one.everywhere()),
            (Some(all.path_of(&object)), all.collection)
        );
    }
}
