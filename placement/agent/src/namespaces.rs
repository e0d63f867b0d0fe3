//! The namespaces of the member, kept known by a watch, if the hub is to hear of them.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use karmada_runtime::program::Program;
use karmada_runtime::store::Store;
use karmada_runtime::watch::Decoded;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use objects::Key;
use parking_lot::Mutex;
use placement_rules::heartbeat::{Namespaces, brought_by};

use crate::index::Agent;

/// The least time between two heartbeats on account of namespaces.
const PACE: Duration = Duration::from_secs(1);

/// The namespaces of the member.
#[derive(Default)]
pub(crate) struct MemberNamespaces(Mutex<Store<PartialObjectMeta<Namespace>>>);

impl MemberNamespaces {
    /// Keeps the namespaces known, and wakes the membership when they change.
    pub(crate) fn watch(program: &mut Program, member: &Client, agent: Arc<Agent>) -> Arc<Self> {
        let namespaces = Arc::new(Self::default());
        let known = Arc::clone(&namespaces);
        let all: Api<Decoded<PartialObjectMeta<Namespace>>> = Api::all(member.clone());
        program.watch("namespaces", all, Config::default(), move |event| {
            let is_news = known.observe(event);
            let channel = agent.index.lock().channel();
            if let Some(channel) = channel.filter(|_| is_news) {
                let membership = &agent.queues.membership;
                membership.add_paced(Key::of(&*channel), PACE);
            }
        });
        namespaces
    }

    /// Applies an event of the watch. Returns `true` if something else is known then.
    fn observe(&self, event: Event<Decoded<PartialObjectMeta<Namespace>>>) -> bool {
        let ends_list = matches!(event, Event::InitDone);
        let mut namespaces = self.0.lock();
        let changes = namespaces.observe(event).objects;
        namespaces.is_listed() && (ends_list || !changes.is_empty())
    }

    /// Returns the namespaces, once all of them are known.
    pub(crate) fn known(&self) -> Option<Namespaces> {
        let namespaces = self.0.lock();
        let all = namespaces.iter();
        let named = all.map(|(key, one)| (key.name.clone(), brought_by(&one.metadata)));
        namespaces.is_listed().then(|| named.collect())
    }
}
