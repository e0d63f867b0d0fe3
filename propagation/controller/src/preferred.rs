//! Asks the API which version of a kind it prefers.

use std::collections::BTreeMap;
use std::time::Duration;

use karmada_runtime::error::Chain;
use kube::{Client, discovery};
use objects::GroupVersionKind;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The time after which the API is asked again.
pub(crate) const ASKED_AGAIN: Duration = Duration::from_mins(10);

/// The kinds that were asked for, with the times: a kind may have thousands of bindings.
pub(crate) struct PreferredVersions {
    client: Client,
    asked: Mutex<BTreeMap<GroupVersionKind, Instant>>,
}

impl PreferredVersions {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            asked: Mutex::default(),
        }
    }

    /// Returns a kind in the version that the API prefers; `None` if it was asked a short while ago, or does not tell.
    pub(crate) async fn of(&self, kind: &GroupVersionKind) -> Option<GroupVersionKind> {
        {
            let (mut asked, now) = (self.asked.lock(), Instant::now());
            if asked
                .get(kind)
                .is_some_and(|last| now < *last + ASKED_AGAIN)
            {
                return None;
            }
            asked.insert(kind.clone(), now);
        }
        match discovery::group(&self.client, &kind.group).await {
            Ok(group) => {
                let (preferred, _) = group.recommended_kind(&kind.kind)?;
                Some(GroupVersionKind::new(
                    &preferred.api_version,
                    &preferred.kind,
                ))
            }
            Err(error) => {
                let error = Chain(&error).to_string();
                tracing::warn!(%kind, error, "Cannot ask which version is preferred, will retry");
                None
            }
        }
    }
}
