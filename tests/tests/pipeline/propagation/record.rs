//! A record of a member's versions, in which nothing is lost that lasts only for a moment.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::runtime::watcher::{Config, Event, watcher};
use pipeline_tests::control_plane::ControlPlane;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{WEB, deployments, image};

/// The version of a deployment: its image and its replicas.
pub(super) type Ran = (String, i32);

/// The limit until a record has all earlier versions.
const RECORDED_WITHIN: Duration = Duration::from_mins(1);

/// A record of the versions of the deployment's copy in a member, one after the other; `None` stands for no copy.
/// Dropping it ends it.
pub(super) struct Record {
    versions: watch::Receiver<Vec<Option<Ran>>>,
    watching: JoinHandle<()>,
}

impl Drop for Record {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Record {
    /// Begins a record of a member.
    #[expect(clippy::print_stderr, reason = "libtest captures it")]
    pub(super) fn of(member: &ControlPlane) -> Self {
        let (seen, versions) = watch::channel(Vec::new());
        let named = Config::default().fields(&format!("metadata.name={WEB}"));
        let mut events = watcher(deployments(member), named).boxed();
        let watching = tokio::spawn(async move {
            let mut is_listed = false;
            while let Some(event) = events.next().await {
                let now = match event {
                    Ok(Event::Apply(copy)) => Some(ran(&copy)),
                    Ok(Event::InitApply(copy)) => {
                        is_listed = true;
                        Some(ran(&copy))
                    }
                    Ok(Event::Delete(_)) => None,
                    // A watch that had to list again does not show a deletion in between.
                    Ok(Event::InitDone) if !is_listed && !seen.borrow().is_empty() => None,
                    Ok(Event::Init) => {
                        is_listed = false;
                        continue;
                    }
                    Ok(Event::InitDone) => continue,
                    Err(error) => {
                        eprintln!("the record of {WEB} in a member was interrupted: {error}");
                        continue;
                    }
                };
                seen.send_if_modified(|seen: &mut Vec<Option<Ran>>| {
                    let is_news = seen.last() != Some(&now);
                    seen.extend(is_news.then_some(now));
                    is_news
                });
            }
        });
        Self { versions, watching }
    }

    /// Waits until there have been as many versions as these, and fails unless they are these. Replicas are those more
    /// than at first.
    pub(super) async fn ensure_ran(&self, expected: &[(&str, i32)]) -> Result<()> {
        let versions = self.first(expected.len()).await?;
        let first = versions.iter().flatten().next();
        let first = first.map_or(0, |(_, replicas)| *replicas);
        let expected: Vec<_> = expected
            .iter()
            .map(|(image, more)| Some(((*image).to_owned(), first + more)))
            .collect();
        ensure!(
            versions == expected,
            "it ran {versions:?}, not {expected:?}"
        );
        Ok(())
    }

    /// Waits until this much has happened, and returns it.
    async fn first(&self, count: usize) -> Result<Vec<Option<Ran>>> {
        let mut versions = self.versions.clone();
        let all = versions.wait_for(|versions| versions.len() >= count);
        let versions = match timeout(RECORDED_WITHIN, all).await {
            Ok(all) => all?.clone(),
            Err(_) => self.versions.borrow().clone(),
        };
        Ok(versions)
    }
}

pub(super) fn ran(copy: &Deployment) -> Ran {
    let replicas = copy.spec.as_ref().and_then(|spec| spec.replicas);
    (
        image(copy).unwrap_or_default(),
        replicas.unwrap_or_default(),
    )
}
