//! The changes that wake a Work or the membership.

use std::sync::Arc;

use apply::Applier;
use fleet_api::{AppliedWork, InternalMemberCluster};
use karmada_runtime::cache::Transition;
use karmada_runtime::program::Program;
use karmada_runtime::watch::Decoded;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource};
use objects::Key;

use crate::index::{SharedIndex, StoredWork, has_finalizer};
use crate::ownership::{Owners, PlacedObjects};

/// Watches everything that decides about Works and the membership.
pub(crate) fn watch(
    program: &mut Program,
    hub: &Client,
    member: &Client,
    index: &Arc<SharedIndex>,
    applier: &Arc<Applier<PlacedObjects>>,
    owners: &Owners,
) {
    let namespace = &*index.namespace;
    let (works, objects) = (Arc::clone(index), Arc::clone(applier));
    let own = Api::namespaced(hub.clone(), namespace);
    program.watch_elsewhere("works", own, Config::default(), move |event| {
        observe_works(&works, &objects, event);
    });
    let channel = Arc::clone(index);
    let own = Api::namespaced(hub.clone(), namespace);
    program.watch_elsewhere(
        "internalmemberclusters",
        own,
        Config::default(),
        move |event| {
            observe_channel(&channel, event);
        },
    );
    let (known, owners) = (Arc::clone(index), owners.clone());
    let objects = Arc::clone(applier);
    let all = Api::all(member.clone());
    program.watch("appliedworks", all, Config::default(), move |event| {
        if observe_applied(&known, &owners, event) {
            known.queues.works.add_all(objects.reopen());
        }
    });
    let index = Arc::clone(index);
    program.report_undecoded(move || index.undecoded());
}

fn observe_works(
    index: &SharedIndex,
    applier: &Applier<PlacedObjects>,
    event: Event<Decoded<StoredWork>>,
) {
    let (changes, kinds) = index.observe_works(event);
    if let Some(kinds) = kinds {
        applier.want(kinds);
    }
    let mut has_less = false;
    for change in changes {
        let finalizers = change
            .new
            .as_ref()
            .map(|work| work.meta().finalizers.as_deref());
        has_less |= !finalizers.is_some_and(has_finalizer);
        if concerns_us(&change) {
            index.queues.works.add(change.key);
        }
    }
    if has_less && let Some(channel) = index.channel() {
        index.queues.membership.add(Key::of(&*channel));
    }
}

/// Returns `true` if something besides the status has changed, which is ours.
fn concerns_us(change: &Transition<StoredWork>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return true;
    };
    let (old, new) = (old.meta(), new.meta());
    old.generation != new.generation
        || new.generation.is_none()
        || old.uid != new.uid
        || old.deletion_timestamp != new.deletion_timestamp
        || old.finalizers != new.finalizers
}

fn observe_channel(index: &SharedIndex, event: Event<Decoded<InternalMemberCluster>>) {
    for Transition { key, old, new } in index.observe_channel(event) {
        let state = |channel: &Option<Arc<InternalMemberCluster>>| {
            channel.as_ref().map(|channel| channel.spec.state.clone())
        };
        if state(&old) != state(&new) {
            index.queues.works.add_all(index.works());
        }
        let spec = |channel: &Option<Arc<InternalMemberCluster>>| {
            channel.as_ref().map(|channel| channel.spec.clone())
        };
        if spec(&old) != spec(&new) {
            index.queues.membership.add(key);
        }
    }
}

/// Returns `true` if one is gone: what it had may be taken.
fn observe_applied(
    index: &SharedIndex,
    owners: &Owners,
    event: Event<Decoded<AppliedWork>>,
) -> bool {
    let mut is_gone = false;
    for Transition { key, old, new } in index.observe_applied(event) {
        if let Some(old) = &old {
            owners.remove(&old.metadata);
        }
        if let Some(new) = &new {
            owners.insert(&new.metadata);
        }
        is_gone |= new.is_none();
        let uid =
            |one: &Option<Arc<AppliedWork>>| one.as_ref().and_then(|one| one.metadata.uid.clone());
        let is_deleting = |one: &Option<Arc<AppliedWork>>| {
            one.as_ref()
                .is_some_and(|one| one.metadata.deletion_timestamp.is_some())
        };
        if uid(&old) != uid(&new) || is_deleting(&old) != is_deleting(&new) {
            index
                .queues
                .works
                .add(Key::new(&index.namespace, &key.name));
        }
    }
    is_gone
}
