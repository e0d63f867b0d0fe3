use karmada_api::gateway_api::{GROUP, Gateway, GatewayClass, HttpRoute, ParentReference};
use objects::{Key, Metadata};

use super::entries::{group_and_kind, is_same_parent, own_entries};
use crate::cached::Cached;
use crate::ingress::class::{ControllerName, Ownership};

/// The Gateways and their classes, by name.
pub trait ParentFacts {
    /// Returns the Gateway `key`.
    fn gateway(&self, key: &Key) -> Cached<&Gateway>;
    /// Returns the class `name` of Gateways.
    fn gateway_class(&self, name: &str) -> Cached<&GatewayClass>;
}

/// A parent of a route that is a Gateway of ours, or was one.
#[derive(Clone, Debug, PartialEq)]
pub struct Parent<'a> {
    /// The Gateway's key.
    pub key: Key,
    /// The reference to it, or to one of its listeners.
    pub reference: &'a ParentReference,
    /// The Gateway; `None` if it is gone.
    pub gateway: Option<&'a Gateway>,
}

/// The relation of a route to a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment<'a> {
    /// The owner of the route, as far as Gateways of ours tell. Those of others do not count: a route may have both.
    pub owner: Ownership,
    /// The parents that are ours.
    pub parents: Vec<Parent<'a>>,
}

/// Returns the parents of `route` with a class of our `controller`.
///
/// A Gateway or a class that is gone was ours if the status has our entry for it: a class that vanishes must not tear live
/// traffic down, and a Gateway that never was here is that of somebody else, as in a route that is propagated to members.
pub fn attachment<'a>(
    route: &'a HttpRoute,
    facts: &'a impl ParentFacts,
    controller: &ControllerName,
) -> Attachment<'a> {
    let namespace = route.metadata.namespace();
    let (mut owners, mut parents) = (Vec::new(), Vec::new());
    for reference in &route.spec.parent_refs {
        let Some(key) = gateway_key(reference, namespace) else {
            continue;
        };
        let gateway = facts.gateway(&key);
        let had_entry = own_entries(route, controller)
            .any(|entry| is_same_parent(&entry.parent_ref, reference));
        let owner = owner_of(gateway, facts, controller);
        if owner == Ownership::Foreign || owner == Ownership::Unclaimed && !had_entry {
            continue;
        }
        owners.push(owner);
        if owner != Ownership::Unclear {
            parents.push(Parent {
                key,
                reference,
                gateway: match gateway {
                    Cached::Present(gateway) => Some(gateway),
                    Cached::Absent | Cached::Unread => None,
                },
            });
        }
    }
    // One that cannot be read may have hosts that are served.
    let order = [Ownership::Unclear, Ownership::Ours, Ownership::Unclaimed];
    let owner = order.into_iter().find(|owner| owners.contains(owner));
    Attachment {
        owner: owner.unwrap_or(Ownership::Foreign),
        parents,
    }
}

/// Returns the owner of a Gateway, by its class.
pub(super) fn owner_of(
    gateway: Cached<&Gateway>,
    facts: &impl ParentFacts,
    controller: &ControllerName,
) -> Ownership {
    let class = match gateway {
        Cached::Present(gateway) => facts.gateway_class(&gateway.spec.gateway_class_name),
        Cached::Absent => Cached::Absent,
        Cached::Unread => Cached::Unread,
    };
    match class {
        Cached::Present(class) if class.spec.controller_name == controller.as_str() => {
            Ownership::Ours
        }
        Cached::Present(_) => Ownership::Foreign,
        Cached::Absent => Ownership::Unclaimed,
        Cached::Unread => Ownership::Unclear,
    }
}

/// Returns the Gateway that a route of `namespace` refers to; `None` if it refers to something else.
fn gateway_key(reference: &ParentReference, namespace: &str) -> Option<Key> {
    let (group, kind) = group_and_kind(reference);
    let namespace = reference.namespace.as_deref().unwrap_or(namespace);
    (group == GROUP && kind == "Gateway").then(|| Key::new(namespace, &reference.name))
}

/// Returns the Gateways that `route` refers to, whosever they are.
pub fn gateways(route: &HttpRoute) -> impl Iterator<Item = Key> + '_ {
    let namespace = route.metadata.namespace();
    let parents = route.spec.parent_refs.iter();
    parents.filter_map(move |reference| gateway_key(reference, namespace))
}
