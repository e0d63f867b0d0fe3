//! The objects of the hub that may be placed.

use std::collections::BTreeSet;

use fleet_api::Placement;
use fleet_api::placement::ResourceSelector;
use karmada_runtime::dynamic::{DynamicWatches, WatchState};
use objects::Scope;
use objects::reverse_index::ReverseIndex;
use objects::selector::selects;
use objects::{GroupVersionKind, Key, Metadata};
use parking_lot::Mutex;
use placement_rules::select::Inventory;
use serde_json::Value;

use crate::index::Placed;

/// The objects of the hub that may be placed.
pub(crate) struct HubObjects {
    pub(crate) watches: DynamicWatches,
    wanted: Mutex<Wanted>,
}

/// The known objects that may be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// Everything.
    Complete,
    /// Not everything yet.
    Growing,
    /// Nothing of this kind, which the hub does not let us list.
    Forbidden(GroupVersionKind),
    /// Nothing of this group or kind, about which the API does not answer, and of which the placement has something.
    Unanswered(String),
}

/// The kinds that a namespace may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamespacedKinds {
    /// Those that are known.
    pub(crate) kinds: BTreeSet<GroupVersionKind>,
    /// The groups that do not answer, whose kinds are those of before.
    pub(crate) unanswered: BTreeSet<String>,
}

/// The kinds that are watched.
#[derive(Debug, Default)]
struct Wanted {
    /// Those that the selectors of each placement name.
    named: ReverseIndex<Key, GroupVersionKind>,
    /// The placements that select a namespace with all that is in it.
    sweeping: BTreeSet<Key>,
    /// Every kind that a namespace may hold; `None` before that is known.
    namespaced: Option<NamespacedKinds>,
}

impl Wanted {
    fn kinds(&self) -> BTreeSet<GroupVersionKind> {
        let swept = self.namespaced.iter().flat_map(|one| &one.kinds);
        let swept = swept.filter(|_| !self.sweeping.is_empty());
        self.named.all_targets().chain(swept).cloned().collect()
    }
}

impl HubObjects {
    pub(crate) fn new(watches: DynamicWatches) -> Self {
        Self {
            watches,
            wanted: Mutex::default(),
        }
    }

    /// Watches from now on the selection of the placement `key`; nothing on its account if it is `None`.
    pub(crate) fn want(&self, key: &Key, placement: Option<&Placement>) {
        let mut wanted = self.wanted.lock();
        let named = placement.into_iter().flat_map(kinds_of).collect();
        wanted.named.replace(key, named);
        if placement.is_some_and(is_sweeping) {
            wanted.sweeping.insert(key.clone());
        } else {
            wanted.sweeping.remove(key);
        }
        self.watches.want(wanted.kinds());
    }

    /// Replaces the kinds that a namespace may hold. Returns `true` if they are others than before.
    pub(crate) fn replace_namespaced(&self, mut namespaced: NamespacedKinds) -> bool {
        let mut wanted = self.wanted.lock();
        let before = wanted.namespaced.iter().flat_map(|one| &one.kinds);
        let unanswered = &namespaced.unanswered;
        let known = before.filter(|kind| unanswered.contains(&kind.group));
        namespaced.kinds.extend(known.cloned());
        let is_news = wanted.namespaced.as_ref() != Some(&namespaced);
        wanted.namespaced = Some(namespaced);
        self.watches.want(wanted.kinds());
        is_news
    }

    /// Returns whether everything is known that a placement may select.
    pub(crate) fn knows(&self, placed: &Placed) -> Knowledge {
        let placement = &*placed.placement;
        let mut kinds: BTreeSet<_> = kinds_of(placement).collect();
        let namespaced = self.namespaced();
        let unanswered = self.unanswered_groups();
        if is_sweeping(placement) {
            let Some(mut namespaced) = namespaced else {
                return Knowledge::Growing;
            };
            if !unanswered.is_empty() || namespaced.iter().any(|kind| self.is_failing(kind)) {
                let selected = placed.selected_kinds();
                // Its objects of a group that is not known would look as if they were deleted.
                let mut groups = selected.iter().map(|(group, _)| group);
                let unknown = groups.find(|group| {
                    unanswered.contains(*group)
                        && namespaced.iter().all(|kind| kind.group != **group)
                });
                if let Some(group) = unknown {
                    return Knowledge::Unanswered(show_group(group));
                }
                // A kind that cannot be listed holds up nobody who has nothing of it.
                namespaced.retain(|kind| {
                    let selected_kind = (kind.group.clone(), kind.kind.clone());
                    !self.is_failing(kind) || selected.contains(&selected_kind)
                });
            }
            kinds.extend(namespaced);
        }
        let mut knowledge = Knowledge::Complete;
        for kind in kinds {
            match self.watches.state(&kind) {
                WatchState::Complete | WatchState::NotServed => {}
                WatchState::Forbidden => return Knowledge::Forbidden(kind),
                WatchState::Failing => return Knowledge::Unanswered(kind.to_string()),
                WatchState::Off | WatchState::Listing if unanswered.contains(&kind.group) => {
                    return Knowledge::Unanswered(show_group(&kind.group));
                }
                WatchState::Off | WatchState::Listing => knowledge = Knowledge::Growing,
            }
        }
        knowledge
    }

    fn is_failing(&self, kind: &GroupVersionKind) -> bool {
        self.watches.state(kind) == WatchState::Failing
    }

    fn unanswered_groups(&self) -> BTreeSet<String> {
        let wanted = self.wanted.lock();
        let namespaced = wanted.namespaced.as_ref();
        namespaced.map_or_else(BTreeSet::new, |one| one.unanswered.clone())
    }

    /// Returns `true` if a placement may select the object `key` of a kind.
    pub(crate) fn may_select(
        &self,
        placement: &Placement,
        kind: &GroupVersionKind,
        key: &Key,
    ) -> bool {
        let own = placement.metadata.namespace();
        let may_reach = own.is_empty() || own == key.namespace;
        let mut selectors = placement.spec.resource_selectors.iter();
        may_reach && selectors.any(|selector| self.may_be_of(selector, kind, key))
    }

    fn may_be_of(&self, selector: &ResourceSelector, kind: &GroupVersionKind, key: &Key) -> bool {
        if kinds_of_selector(selector).contains(kind) && is_named(selector, &key.name) {
            return true;
        }
        sweeps(selector)
            && !key.namespace.is_empty()
            && is_named(selector, &key.namespace)
            && selector.label_selector.as_ref().is_none_or(|labels| {
                let namespace = Key::cluster_scoped(&*key.namespace);
                let namespace = self.watches.get(&gvk(selector), &namespace);
                namespace
                    .is_some_and(|namespace| selects(labels, kube::Resource::meta(&*namespace)))
            })
    }

    fn namespaced(&self) -> Option<BTreeSet<GroupVersionKind>> {
        let wanted = self.wanted.lock();
        wanted.namespaced.as_ref().map(|one| one.kinds.clone())
    }
}

/// Returns `true` if a selector is about objects of this name.
fn is_named(selector: &ResourceSelector, name: &str) -> bool {
    selector.name.is_empty() || selector.name == name
}

impl Inventory for HubObjects {
    fn scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        let served = self.watches.served(kind)?;
        Some(if served.namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        })
    }

    fn get(&self, kind: &GroupVersionKind, key: &Key) -> Option<Value> {
        self.watches.get(kind, key).map(|object| object.value())
    }

    fn list(&self, kind: &GroupVersionKind, namespace: &str) -> Vec<Value> {
        let objects = self.watches.objects(kind).into_iter();
        let within = objects.filter(|(key, _)| key.namespace == namespace);
        within.map(|(_, object)| object.value()).collect()
    }

    fn unanswered(&self) -> BTreeSet<String> {
        let groups = self.unanswered_groups();
        let kinds = self.namespaced().unwrap_or_default();
        let failing = kinds.iter().filter(|kind| self.is_failing(kind));
        let groups = groups.iter().map(|group| show_group(group));
        groups
            .chain(failing.map(GroupVersionKind::to_string))
            .collect()
    }

    fn list_namespace(&self, namespace: &str) -> Vec<Value> {
        let kinds = self.namespaced().unwrap_or_default();
        kinds
            .iter()
            .flat_map(|kind| self.list(kind, namespace))
            .collect()
    }
}

fn gvk(selector: &ResourceSelector) -> GroupVersionKind {
    GroupVersionKind {
        group: selector.group.clone(),
        version: selector.version.clone(),
        kind: selector.kind.clone(),
    }
}

/// Returns a group of the API as a person reads it.
fn show_group(group: &str) -> String {
    format!("the API group {group}")
}

/// Returns the kinds on which the selection of a placement depends, apart from those in a namespace that it selects.
fn kinds_of(placement: &Placement) -> impl Iterator<Item = GroupVersionKind> {
    let selectors = placement.spec.resource_selectors.iter();
    selectors.flat_map(kinds_of_selector)
}

fn kinds_of_selector(selector: &ResourceSelector) -> Vec<GroupVersionKind> {
    let mut kinds = vec![gvk(selector)];
    if selector.group.is_empty() && selector.kind == "Endpoints" {
        // Those of a Service are not placed.
        kinds.push(GroupVersionKind::new("v1", "Service"));
    }
    kinds
}

/// Returns `true` if the selection of a placement depends on the objects of a kind.
pub(crate) fn depends_on(placement: &Placement, kind: &GroupVersionKind) -> bool {
    is_sweeping(placement) || kinds_of(placement).any(|one| one == *kind)
}

/// Returns `true` if a placement selects namespaces with all that is in them, which none in a namespace does.
fn is_sweeping(placement: &Placement) -> bool {
    let mut selectors = placement.spec.resource_selectors.iter();
    placement.scope() == Scope::Cluster && selectors.any(sweeps)
}

fn sweeps(selector: &ResourceSelector) -> bool {
    selector.group.is_empty()
        && selector.kind == "Namespace"
        && matches!(&*selector.selection_scope, "" | "NamespaceWithResources")
}
