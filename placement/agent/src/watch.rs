//! The changes that wake a Work or the membership.

use std::sync::Arc;

use apply::Applier;
use fleet_api::names::WORK_FINALIZER;
use fleet_api::{AppliedWork, InternalMemberCluster};
use karmada_runtime::program::Program;
use karmada_runtime::wakes::Watch;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use objects::{Key, Metadata};

use crate::endpoints;
use crate::index::{Agent, Index, StoredWork};
use crate::ownership::{Owners, PlacedObjects};

/// Watches everything that decides about Works and the membership.
pub(crate) fn watch(
    program: &mut Program,
    hub: &Client,
    member: &Client,
    agent: &Agent,
    applier: &Arc<Applier<PlacedObjects>>,
    owners: &Owners,
) {
    let (namespace, all) = (&*agent.namespace, Config::default());
    let own = Api::namespaced(hub.clone(), namespace);
    works(agent, applier).start_elsewhere(program, "works", own, all.clone());
    let own = Api::namespaced(hub.clone(), namespace);
    channels(agent).start_elsewhere(program, "internalmemberclusters", own, all);
    applied(agent, applier, owners).start(program, member, "appliedworks");
}

/// Itself, unless only its status is another, which is ours; and the membership, if the agent may leave with one Work less.
fn works(agent: &Agent, applier: &Arc<Applier<PlacedObjects>>) -> Watch<Index, StoredWork, Key> {
    let objects = Arc::clone(applier);
    let rows = Watch::new(&agent.index, |index| &mut index.works)
        .follows(move |index, change| {
            if index.follow(change) {
                objects.want(index.kinds.kinds());
            }
        })
        .wakes(&agent.queues.works, |_, change| {
            change.differs(is_edit).then(|| change.key.clone())
        })
        .wakes(&agent.queues.membership, |index, change| {
            let work = change.new.as_ref();
            let is_held = work.is_some_and(|work| work.meta().has_finalizer(WORK_FINALIZER));
            let channel = index.channel().filter(|_| !is_held);
            channel.map(|channel| Key::of(&*channel))
        });
    if agent.collects_endpoints {
        endpoints::add_rows(agent, rows)
    } else {
        rows
    }
}

/// Returns `true` if something besides the status has changed.
fn is_edit(old: &StoredWork, new: &StoredWork) -> bool {
    let (old, new) = (old.meta(), new.meta());
    old.generation != new.generation
        || new.generation.is_none()
        || old.uid != new.uid
        || old.deletion_timestamp != new.deletion_timestamp
        || old.finalizers != new.finalizers
}

/// Every Work, if the cluster joins or leaves, and the membership.
fn channels(agent: &Agent) -> Watch<Index, InternalMemberCluster> {
    Watch::new(&agent.index, |index| &mut index.channels)
        .wakes(&agent.queues.works, |index, change| {
            let is_other = change.differs(|old, new| old.spec.state != new.spec.state);
            let works = index.works.keys().filter(|_| is_other);
            works.cloned().collect::<Vec<_>>()
        })
        .wakes(&agent.queues.membership, |_, change| {
            let is_other = change.differs(|old, new| old.spec != new.spec);
            is_other.then(|| change.key.clone())
        })
}

/// Its Work, and if it is gone, those that may take its objects.
fn applied(
    agent: &Agent,
    applier: &Arc<Applier<PlacedObjects>>,
    owners: &Owners,
) -> Watch<Index, AppliedWork> {
    let (owners, objects) = (owners.clone(), Arc::clone(applier));
    let namespace = agent.namespace.clone();
    Watch::new(&agent.index, |index| &mut index.applied)
        .follows(move |_, change| {
            if let Some(old) = &change.old {
                owners.remove(&old.metadata);
            }
            if let Some(new) = &change.new {
                owners.insert(&new.metadata);
            }
        })
        .wakes(&agent.queues.works, move |_, change| {
            let is_other = change.differs(|old, new| {
                let (old, new) = (&old.metadata, &new.metadata);
                old.uid != new.uid
                    || old.deletion_timestamp.is_some() != new.deletion_timestamp.is_some()
            });
            is_other.then(|| Key::new(&namespace, &change.key.name))
        })
        .wakes(&agent.queues.works, move |_, change| {
            let gone = change.new.is_none().then(|| objects.reopen());
            gone.unwrap_or_default()
        })
}
