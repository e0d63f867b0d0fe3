//! The knowledge of whether the API server keeps the status of remedies.
//!
//! Karmada's own definition of the kind has no status; `manifests/crds` adds it.

use std::time::Duration;

use karmada_api::Remedy;
use kube::core::Resource;
use kube::{Client, CustomResourceExt};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The time until another look whether a status is kept.
const PAUSE: Duration = Duration::from_mins(1);

/// The knowledge of whether the API server keeps the status of remedies.
pub(crate) struct Support {
    client: Client,
    known: Mutex<Known>,
    /// Held by the one reconcile that looks.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    is_kept: bool,
    /// The moment of the next look, if it is not kept.
    next_look: Option<Instant>,
    /// The reason that was logged last.
    logged: Option<String>,
}

impl Support {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the moment of the next look if no status is kept, and `None` if one is.
    pub(crate) async fn missing_until(&self) -> kube::Result<Option<Instant>> {
        let _turn = self.looking.lock().await;
        {
            let known = self.known.lock();
            if known.is_kept {
                return Ok(None);
            }
            if let Some(next) = known.next_look.filter(|next| Instant::now() < *next) {
                return Ok(Some(next));
            }
        }
        let version = Remedy::api_version(&());
        let resources = self.client.list_api_group_resources(&version).await?;
        let status = format!("{}/status", Remedy::api_resource().plural);
        if resources.resources.iter().any(|found| found.name == status) {
            self.known.lock().is_kept = true;
            return Ok(None);
        }
        Ok(Some(self.lacks("its definition has no status")))
    }

    /// Takes in the reason why no status is kept, and returns the moment of the next look.
    pub(crate) fn lacks(&self, reason: &str) -> Instant {
        let mut known = self.known.lock();
        if known.logged.as_deref() != Some(reason) {
            tracing::warn!(reason, "Remedies get no status, but everything else works");
            known.logged = Some(reason.to_owned());
        }
        let next = Instant::now() + PAUSE;
        known.is_kept = false;
        known.next_look = Some(next);
        next
    }

    /// Forgets that a status is kept, so that the next write looks first.
    pub(crate) fn forget(&self) {
        let mut known = self.known.lock();
        known.is_kept = false;
        known.next_look = None;
    }
}
