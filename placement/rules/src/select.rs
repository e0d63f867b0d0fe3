//! The objects that a placement selects on its hub.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fleet_api::Placement;
use fleet_api::placement::{ResourceIdentifier, ResourceSelector};
use objects::Scope;
use objects::allocated::Allocated;
use objects::selector::selects;
use objects::{GroupVersionKind, Key, Metadata};
use serde_json::{Value, json};

use super::accessible::{accessible_in, is_of_namespaces, selected_namespace};
use super::content::{self, Hub, content, is_placeable, portable};
use super::hash::{encode, of_objects};

/// The largest object that is placed, in bytes of its JSON: etcd takes none that is much larger.
const MOST_BYTES: usize = 1024 * 1024;

/// The objects on a hub.
pub trait Inventory {
    /// Returns whether objects of a kind have namespaces, or `None` if the hub does not serve the kind.
    fn scope(&self, kind: &GroupVersionKind) -> Option<Scope>;
    /// Returns an object.
    fn get(&self, kind: &GroupVersionKind, key: &Key) -> Option<Value>;
    /// Returns the objects of a kind, in one namespace or cluster-scoped.
    fn list(&self, kind: &GroupVersionKind, namespace: &str) -> Vec<Value>;
    /// Returns the objects of all kinds in a namespace, each in one version.
    fn list_namespace(&self, namespace: &str) -> Vec<Value>;
    /// Returns the groups and kinds whose objects are not known, as the hub's API does not answer about them.
    fn unanswered(&self) -> BTreeSet<String>;
}

/// The objects that a placement selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The objects as a snapshot has them, in its order.
    pub objects: Vec<Value>,
    /// Objects that are too large to be placed.
    pub too_large: Vec<ResourceIdentifier>,
    /// The selectors that select nothing, as a person reads them.
    pub idle: Vec<String>,
    /// The groups and kinds of which nothing can be selected, as the hub's API does not answer about them.
    pub unanswered: BTreeSet<String>,
    /// The hash by which KubeFleet knows the selection: of more than is placed, for it has the fields that its hub has added.
    pub hash: String,
}

/// The reason why nothing is selected: the objects in clusters stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidSelector {
    /// The hub does not serve the kind.
    UnknownKind(GroupVersionKind),
    /// The kind has namespaces, and no selector says of which one.
    NoNamespace(GroupVersionKind),
    /// The kind has no namespaces, and the placement has one.
    ClusterScoped(GroupVersionKind),
    /// Other selectors select in a namespace, and it is not the only one, or has no name.
    NotOneNamespace,
    /// The namespace does not exist whose objects are selected.
    AbsentNamespace(String),
    /// The namespace is the hub's own.
    ReservedNamespace(String),
    /// The placement selects another namespace than the one in which its status can be read.
    AnotherNamespace {
        /// The objects that it selects.
        selected: String,
        /// Where its status can be read.
        before: String,
    },
    /// Two selectors select the object.
    Twice {
        /// Its kind.
        kind: String,
        /// Its namespace and name.
        key: Key,
    },
}

impl fmt::Display for InvalidSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The resource selectors are invalid: ")?;
        match self {
            Self::UnknownKind(kind) => write!(f, "the hub does not serve {kind}"),
            Self::NoNamespace(kind) => write!(
                f,
                "{kind} is namespaced: select its namespace, with selectionScope NamespaceWithResourceSelectors to \
                 choose among the objects in it"
            ),
            Self::ClusterScoped(kind) => write!(
                f,
                "{kind} is cluster-scoped, and a {} selects objects of its namespace only",
                Placement::kind_of(Scope::Namespaced)
            ),
            Self::NotOneNamespace => write!(
                f,
                "beside a selector with selectionScope {WITH_SELECTORS}, which has to name its namespace, no other may be \
                 of namespaces"
            ),
            Self::AbsentNamespace(name) => {
                write!(
                    f,
                    "namespace {name:?}, whose objects are selected, is not found"
                )
            }
            Self::ReservedNamespace(name) => {
                write!(f, "namespace {name:?} is reserved and cannot be placed")
            }
            Self::AnotherNamespace { selected, before } => write!(
                f,
                "namespace {selected:?} is selected in place of {before:?}, where the status of the placement can be read: with \
                 statusReportingScope NamespaceAccessible it stays one namespace, and another needs another placement"
            ),
            Self::Twice { kind, key } => write!(f, "{kind} {key} is selected twice"),
        }
    }
}

/// Returns the kind and the key of an object as a person reads them.
pub(super) fn show(object: &ResourceIdentifier) -> String {
    let key = Key::new(&*object.namespace, &*object.name);
    format!("{} {key}", object.kind)
}

/// Returns the objects that a placement selects. An object that does not exist is none, and no error: it may come.
///
/// # Errors
/// Fails if its selectors contradict each other or the hub; nothing is selected then.
pub fn select(
    placement: &Placement,
    hub: &Hub,
    inventory: &impl Inventory,
) -> Result<Selection, InvalidSelector> {
    keeps_namespace(placement)?;
    let selectors = &placement.spec.resource_selectors;
    let place = match placement.metadata.namespace() {
        "" => Place::Hub {
            chosen: chosen_namespace(selectors, inventory)?,
        },
        // As a Namespace this one could not be placed, but it is where users' objects are by default.
        own if own != "default" && is_reserved(own, hub) => {
            return Err(InvalidSelector::ReservedNamespace(own.to_owned()));
        }
        own => Place::Namespace(own),
    };
    let (mut selected, mut idle) = (BTreeMap::new(), Vec::new());
    for selector in selectors {
        let mut objects = matches(selector, place, hub, inventory)?;
        objects.retain(|one| is_placeable(one, hub) && !mirrors_a_service(one, inventory));
        if objects.is_empty() {
            idle.push(describe(selector));
        }
        for object in objects {
            // Versions of a kind show the same object.
            let (group, kind) = objects::group_kind(&object);
            let (group, kind, key) = (group.to_owned(), kind.to_owned(), object.key());
            let id = (group, kind.clone(), key.clone());
            let allocated = Allocated::of(&object);
            if selected.insert(id, (content(object), allocated)).is_some() {
                return Err(InvalidSelector::Twice { kind, key });
            }
        }
    }
    let mut selection = Selection {
        idle,
        ..Selection::default()
    };
    if selectors.iter().any(is_of_namespaces) {
        selection.unanswered = inventory.unanswered();
    }
    let mut whole = Vec::new();
    for (object, allocated) in selected.into_values() {
        let fits = encode(&object).is_ok_and(|json| json.len() <= MOST_BYTES);
        if fits {
            selection
                .objects
                .push(portable(&object, allocated.as_ref()));
            whole.push(object);
        } else {
            selection.too_large.push(identifier(&object));
        }
    }
    content::sort(&mut selection.objects);
    content::sort(&mut whole);
    // Whatever was read can be written.
    selection.hash = of_objects(whole).unwrap_or_default();
    Ok(selection)
}

/// Checks that a placement whose status can be read in its namespace selects that one still.
fn keeps_namespace(placement: &Placement) -> Result<(), InvalidSelector> {
    let Some(selected) = accessible_in(placement) else {
        return Ok(());
    };
    match placement.status.as_ref().and_then(selected_namespace) {
        Some(before) if before != selected => Err(InvalidSelector::AnotherNamespace {
            selected: selected.to_owned(),
            before: before.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Returns the words for the objects of a selector.
fn describe(selector: &ResourceSelector) -> String {
    let ResourceSelector { kind, name, .. } = selector;
    match (&**name, &selector.label_selector) {
        ("", None) => format!("any {kind}"),
        ("", Some(_)) => format!("{kind} by labels"),
        (name, _) => format!("{kind} {name:?}"),
    }
}

/// Where a placement selects.
#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    /// On the whole hub.
    Hub {
        /// The namespace in which selectors of namespaced kinds select.
        chosen: Option<&'a str>,
    },
    /// In a namespace.
    Namespace(&'a str),
}

/// The scope of a selector of a namespace that comes with those that other selectors select in it.
const WITH_SELECTORS: &str = "NamespaceWithResourceSelectors";

/// Returns the namespace in which selectors of namespaced kinds select.
fn chosen_namespace<'s>(
    selectors: &'s [ResourceSelector],
    inventory: &impl Inventory,
) -> Result<Option<&'s str>, InvalidSelector> {
    let of_namespaces = selectors.iter().filter(|one| is_of_namespaces(one));
    let mut choosing = of_namespaces
        .clone()
        .filter(|one| one.selection_scope == WITH_SELECTORS);
    let Some(selector) = choosing.next() else {
        return Ok(None);
    };
    if selector.name.is_empty() || of_namespaces.count() > 1 {
        return Err(InvalidSelector::NotOneNamespace);
    }
    let name = &selector.name;
    match inventory.get(&kind(selector), &Key::cluster_scoped(&**name)) {
        Some(_) => Ok(Some(name)),
        None => Err(InvalidSelector::AbsentNamespace(name.clone())),
    }
}

fn matches(
    selector: &ResourceSelector,
    place: Place<'_>,
    hub: &Hub,
    inventory: &impl Inventory,
) -> Result<Vec<Value>, InvalidSelector> {
    let kind = kind(selector);
    let Some(scope) = inventory.scope(&kind) else {
        return Err(InvalidSelector::UnknownKind(kind));
    };
    if !hub
        .kinds
        .contain(&json!({ "apiVersion": kind.api_version(), "kind": kind.kind }))
    {
        // Without its Namespace no object is placed.
        return Ok(Vec::new());
    }
    let namespace = match (scope, place) {
        (Scope::Cluster, Place::Hub { .. }) => "",
        (Scope::Cluster, Place::Namespace(_)) => return Err(InvalidSelector::ClusterScoped(kind)),
        (Scope::Namespaced, Place::Namespace(own)) => own,
        (Scope::Namespaced, Place::Hub { chosen }) => match chosen {
            Some(namespace) => namespace,
            None => return Err(InvalidSelector::NoNamespace(kind)),
        },
    };
    let mut objects = if selector.name.is_empty() {
        let mut objects = inventory.list(&kind, namespace);
        if let Some(labels) = &selector.label_selector {
            objects.retain(|object| selects(labels, object));
        }
        objects
    } else {
        let object = inventory.get(&kind, &Key::new(namespace, &*selector.name));
        object.into_iter().collect()
    };
    if is_of_namespaces(selector) {
        // The objects in a namespace that is being deleted are about to be.
        objects.retain(|namespace| !namespace.is_deleting());
        let names = objects.iter().map(|namespace| namespace.name().to_owned());
        for name in names.collect::<Vec<_>>() {
            if is_reserved(&name, hub) {
                return Err(InvalidSelector::ReservedNamespace(name));
            }
            if matches!(&*selector.selection_scope, "" | "NamespaceWithResources") {
                objects.extend(inventory.list_namespace(&name));
            }
        }
    }
    Ok(objects)
}

fn kind(selector: &ResourceSelector) -> GroupVersionKind {
    GroupVersionKind {
        group: selector.group.clone(),
        version: selector.version.clone(),
        kind: selector.kind.clone(),
    }
}

fn is_reserved(namespace: &str, hub: &Hub) -> bool {
    namespace == "default"
        || namespace.starts_with("kube-")
        || namespace.starts_with("fleet-")
        || hub.skipped_namespaces.iter().any(|name| name == namespace)
}

/// Returns `true` for Endpoints that the hub keeps for a Service, as each member does. Of one without a selector, people
/// write them.
fn mirrors_a_service(object: &Value, inventory: &impl Inventory) -> bool {
    if objects::group_kind(object) != ("", "Endpoints") {
        return false;
    }
    let service = inventory.get(&GroupVersionKind::new("v1", "Service"), &object.key());
    let selector = service
        .as_ref()
        .and_then(|one| one.pointer("/spec/selector"));
    let selector = selector.and_then(Value::as_object);
    selector.is_some_and(|labels| !labels.is_empty())
}

/// Returns the identity of an object as statuses have it.
pub fn identifier(object: &Value) -> ResourceIdentifier {
    let GroupVersionKind {
        group,
        version,
        kind,
    } = GroupVersionKind::of(object);
    ResourceIdentifier {
        group,
        version,
        kind,
        name: object.name().to_owned(),
        namespace: object.namespace().to_owned(),
        envelope: None,
    }
}

#[cfg(test)]
mod tests;
