//! The right to write, as far as a process knows it.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::harness::value::text;

/// The duration of a lease.
const LEASE: Duration = Duration::from_secs(15);
/// The longest interval between two renewals of a leader's lease.
pub(super) const RENEWAL: Duration = Duration::from_secs(5);

/// The knowledge that a process has of its lease.
#[derive(Debug, Default)]
pub(super) struct Lease {
    /// The name under which the process holds it.
    identity: String,
    /// The beginning of the last write that acquired or renewed it; `None` once it is given back, or
    /// read as another's.
    renewed: Option<Instant>,
    /// Set while the write in flight gives it back.
    is_released: bool,
}

impl Lease {
    pub(super) fn renewed(&self) -> Option<Instant> {
        self.renewed
    }

    /// Notes a request to the lease.
    pub(super) fn requested(&mut self, body: &Value) {
        let holder = &body["spec"]["holderIdentity"];
        if let Some(holder) = holder.as_str() {
            holder.clone_into(&mut self.identity);
        }
        self.is_released = body["spec"]
            .as_object()
            .is_some_and(|spec| spec.contains_key("holderIdentity") && holder.is_null());
        // Another replica may lead as soon as the release is stored.
        if self.is_released {
            self.renewed = None;
        }
    }

    /// Notes the response to a write that began at `began`.
    pub(super) fn written(&mut self, succeeded: bool, began: Instant) {
        if succeeded && !self.is_released {
            // From its beginning, because the holder counts from before its request.
            self.renewed = Some(began);
        }
    }

    /// Notes the response to a read.
    pub(super) fn read(&mut self, status: Option<u16>, lease: &Value) {
        let is_ours =
            status == Some(200) && text(lease, "/spec/holderIdentity") == self.identity.as_str();
        if !is_ours && matches!(status, Some(200 | 404)) {
            self.renewed = None;
        }
    }

    /// Returns the reason if the process must not write.
    pub(super) fn violation(&self, now: Instant) -> Option<&'static str> {
        match self.renewed {
            None => Some("it does not hold its lease"),
            Some(renewed) if now >= renewed + LEASE => Some("its lease has expired"),
            Some(_) => None,
        }
    }
}
