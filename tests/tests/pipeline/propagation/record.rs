//! A record of what a member runs, in which nothing is lost that lasts only for a moment.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::runtime::watcher::{Config, Event, watcher};
use pipeline_tests::control_plane::ControlPlane;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{deployments, image};

/// The versions that a member ran, one after the other: the image and the replicas of its copy, or none.
pub(super) type Copies = Vec<Option<(String, i32)>>;

/// The limit until a record has what happened before.
const RECORDED_WITHIN: Duration = Duration::from_mins(1);

/// A record of a member's copies. Dropping it ends it.
pub(super) struct Record {
    copies: watch::Receiver<Copies>,
    watching: JoinHandle<()>,
}

impl Drop for Record {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Record {
    pub(super) fn of(member: &ControlPlane) -> Self {
        let (seen, copies) = watch::channel(Copies::new());
        let mut events = watcher(deployments(member), Config::default()).boxed();
        let watching = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let copy = match event {
                    Ok(Event::Apply(copy) | Event::InitApply(copy)) => Some(ran(&copy)),
                    Ok(Event::Delete(_)) => None,
                    Ok(Event::Init | Event::InitDone) | Err(_) => continue,
                };
                seen.send_if_modified(|seen| {
                    let is_news = seen.last() != Some(&copy);
                    seen.extend(is_news.then_some(copy));
                    is_news
                });
            }
        });
        Self { copies, watching }
    }

    /// Waits until the member has run as many versions as this, and fails unless they are these. Replicas
    /// are those more than at first.
    pub(super) async fn ensure(&self, expected: &[(&str, i32)]) -> Result<()> {
        let copies = self.first(expected.len()).await?;
        let first = copies.iter().flatten().next();
        let first = first.map_or(0, |(_, replicas)| *replicas);
        let owned = |(image, more): &(&str, i32)| Some(((*image).to_owned(), first + more));
        let expected: Copies = expected.iter().map(owned).collect();
        ensure!(copies == expected, "it ran {copies:?}, not {expected:?}");
        Ok(())
    }

    /// Waits until the copy has come to the member and gone from it this often in all, and fails unless that is
    /// all that has become of it.
    pub(super) async fn ensure_moves(&self, moves: usize) -> Result<()> {
        let copies = self.first(moves).await?;
        let first = copies.first().cloned().flatten();
        let expected = [first, None].into_iter().cycle().take(moves);
        let expected: Copies = expected.collect();
        ensure!(copies == expected, "it ran {copies:?}, not {expected:?}");
        Ok(())
    }

    /// Waits until this much has happened, and returns what has.
    async fn first(&self, count: usize) -> Result<Copies> {
        let mut copies = self.copies.clone();
        let all = copies.wait_for(|copies| copies.len() >= count);
        let copies = match timeout(RECORDED_WITHIN, all).await {
            Ok(all) => all?.clone(),
            Err(_) => self.copies.borrow().clone(),
        };
        Ok(copies)
    }
}

pub(super) fn ran(copy: &Deployment) -> (String, i32) {
    let replicas = copy.spec.as_ref().and_then(|spec| spec.replicas);
    (
        image(copy).unwrap_or_default(),
        replicas.unwrap_or_default(),
    )
}
