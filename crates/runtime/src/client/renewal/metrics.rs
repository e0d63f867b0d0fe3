//! Metrics of the credentials of a program.

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Unit;

use crate::client::expiry::Validity;
use crate::metrics::Registry;

/// The ends of the credentials of a program, by API and kind.
#[derive(Clone, Debug)]
pub(crate) struct CredentialMetrics {
    ends: Family<CredentialLabels, Gauge>,
    expiring: Family<CredentialLabels, Gauge>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CredentialLabels {
    api: &'static str,
    credential: &'static str,
}

impl CredentialMetrics {
    /// Registers `credentials_expiry_timestamp_seconds{api,credential}` and `expiring_credentials{api,credential}`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            ends: registry.register_with_unit(
                "credentials_expiry_timestamp",
                "Time at which a token or client certificate of ours ends",
                Unit::Seconds,
                Family::default(),
            ),
            expiring: registry.register(
                "expiring_credentials",
                "1 for a token or client certificate of ours that ends within a day, or in the last tenth of a shorter life; 0 for one that ends later",
                Family::default(),
            ),
        }
    }

    /// Sets the end of a credential, seen at `now`; one without an end has no series.
    pub(super) fn set(
        &self,
        api: &'static str,
        credential: &'static str,
        validity: Option<Validity>,
        now: Timestamp,
    ) {
        let labels = CredentialLabels { api, credential };
        if let Some(validity) = validity {
            let until = validity.until.as_second();
            self.ends.get_or_create(&labels).set(until);
            let expiring = i64::from(validity.ends_soon(now));
            self.expiring.get_or_create(&labels).set(expiring);
        } else {
            self.ends.remove(&labels);
            self.expiring.remove(&labels);
        }
    }
}
