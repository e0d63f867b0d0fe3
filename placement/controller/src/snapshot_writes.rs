//! Performs the writes of snapshots in their order.

use std::fmt::Debug;

use karmada_runtime::error::BoxError;
use kube::{Api, Resource};
use objects::{Key, Metadata};
use placement_rules::snapshot::SnapshotWrite;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::awaited::Awaited;
use crate::index::Writes;
use crate::requests::{HubApi, exists, unless_gone};
use crate::watch::{Echo, SharedIndex};

/// Whether snapshots were written as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    /// Another one is there, which the watch is about to show.
    Overtaken,
}

/// The snapshots of one owner.
pub(crate) struct OwnedSnapshots<'a, K> {
    pub(crate) index: &'a SharedIndex,
    pub(crate) hub: &'a HubApi,
    /// What they are in the metrics.
    pub(crate) target: &'static str,
    /// Those in the namespace of the owner.
    pub(crate) snapshots: Api<K>,
    pub(crate) owner: &'a Key,
    /// The writes among which they are awaited.
    pub(crate) awaited: fn(&mut Writes) -> &mut Awaited,
}

impl<K> OwnedSnapshots<'_, K>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    /// Performs writes: what follows one that was overtaken was decided on less than there is.
    pub(crate) async fn write(&self, writes: Vec<SnapshotWrite<K>>) -> Result<Progress, BoxError> {
        let Self {
            index,
            hub,
            target,
            snapshots,
            ..
        } = self;
        for write in writes {
            match write {
                SnapshotWrite::Create(snapshot) => {
                    let create = hub.create(target, snapshots, &*snapshot);
                    let echo = self.echo(snapshot.meta().name());
                    match index.awaiting(echo, create).await {
                        Err(error) if exists(&error) => return Ok(Progress::Overtaken),
                        created => created?,
                    };
                }
                SnapshotWrite::Patch { name, body } => {
                    let patch = hub.patch(target, snapshots, &name, &body);
                    unless_gone(index.awaiting(self.echo(&name), patch).await)?;
                }
                SnapshotWrite::Delete { name } => {
                    let delete = hub.delete(target, snapshots, &name, None);
                    index.awaiting(self.echo(&name), delete).await?;
                }
            }
        }
        Ok(Progress::Done)
    }

    fn echo(&self, name: &str) -> Echo<'_> {
        Echo {
            of: self.awaited,
            object: Key::new(&*self.owner.namespace, name),
            owner: self.owner,
            replaced: None,
        }
    }
}
