//! The leases of the controllers and of the agents: who holds one, and since when.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use karmada_runtime::lease::DURATION;

use crate::age::span;

/// The time beyond its end for which a lease counts as held: the holder's clock may differ from ours.
const CLOCK_DIFFERENCE: i64 = 60;

/// The holder of a lease, and the age of its last renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder<'a> {
    name: &'a str,
    /// In seconds.
    renewed: i64,
    duration: i64,
}

impl<'a> Holder<'a> {
    /// Returns the holder of `lease`, or `None` if it was given back.
    pub(crate) fn of(lease: &'a Lease, now: Timestamp) -> Option<Self> {
        let spec = lease.spec.as_ref()?;
        let name = spec.holder_identity.as_deref()?;
        let MicroTime(renewed) = spec.renew_time.as_ref()?;
        let whole = i64::try_from(DURATION.as_secs()).unwrap_or(i64::MAX);
        (!name.is_empty()).then(|| Self {
            name,
            renewed: now.as_second() - renewed.as_second(),
            duration: spec.lease_duration_seconds.map_or(whole, i64::from),
        })
    }

    /// Returns `true` if the holder still renews it, as far as two clocks can tell.
    pub(crate) fn is_live(&self) -> bool {
        self.renewed <= self.duration.saturating_add(CLOCK_DIFFERENCE)
    }
}

impl fmt::Display for Holder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, renewed, .. } = self;
        write!(f, "held by {name}, renewed {} ago", span(*renewed))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_lease_is_live_until_a_minute_after_its_end() {
        let spec = json!({ "holderIdentity": "n1_x", "leaseDurationSeconds": 15,
            "renewTime": "2026-11-20T08:00:00.500000Z" });
        let lease: Lease = from_value(json!({ "metadata": {}, "spec": spec })).unwrap();
        for (now, is_live) in [
            ("2026-11-20T07:50:00Z", true),
            ("2026-11-20T08:01:15Z", true),
            ("2026-11-20T08:01:16Z", false),
        ] {
            let holder = Holder::of(&lease, now.parse().unwrap()).unwrap();
            assert_eq!(holder.is_live(), is_live, "{now}");
        }
        let later = "2026-11-20T08:05:00Z".parse().unwrap();
        let shown = Holder::of(&lease, later).unwrap().to_string();
        assert_eq!(shown, "held by n1_x, renewed 5m ago");
    }

    #[test]
    fn a_lease_that_was_given_back_has_no_holder() {
        let spec = json!({ "holderIdentity": "", "renewTime": "2026-11-20T08:00:00.000000Z" });
        for spec in [spec, json!({ "holderIdentity": "n1" }), json!(null)] {
            let lease: Lease = from_value(json!({ "metadata": {}, "spec": spec })).unwrap();
            assert_eq!(Holder::of(&lease, Timestamp::UNIX_EPOCH), None);
        }
    }
}
