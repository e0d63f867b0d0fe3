//! The leases of the controllers and of the agents: who holds one, and since when.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use karmada_runtime::lease::DURATION;
use serde::Serialize;

use crate::age::span;

/// The time beyond its end for which a lease counts as held: the holder's clock may differ from ours.
const CLOCK_DIFFERENCE: i64 = 60;

/// The holder of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Holder {
    name: String,
    renew_time: MicroTime,
    /// Set if it still renews the lease, as far as two clocks can tell.
    live: bool,
    /// The time since the last renewal, in seconds.
    #[serde(skip)]
    renewed: i64,
}

impl Holder {
    /// Returns the holder of `lease`, or `None` if it was given back.
    pub(crate) fn of(lease: &Lease, now: Timestamp) -> Option<Self> {
        let spec = lease.spec.as_ref()?;
        let name = spec.holder_identity.clone()?;
        let renew_time = spec.renew_time.clone()?;
        let renewed = now.as_second() - renew_time.0.as_second();
        let whole = i64::try_from(DURATION.as_secs()).unwrap_or(i64::MAX);
        let duration = spec.lease_duration_seconds.map_or(whole, i64::from);
        (!name.is_empty()).then(|| Self {
            name,
            renew_time,
            live: renewed <= duration.saturating_add(CLOCK_DIFFERENCE),
            renewed,
        })
    }

    /// Returns `true` if the holder still renews it, as far as two clocks can tell.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, renewed, .. } = self;
        write!(f, "held by {name}, renewed {} ago", span(*renewed))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    /// A lease is live until a minute after its end.
    #[test]
    fn lease_outlives_end_briefly() {
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

    /// A lease that was given back has no holder.
    #[test]
    fn released_lease_has_no_holder() {
        let spec = json!({ "holderIdentity": "", "renewTime": "2026-11-20T08:00:00.000000Z" });
        for spec in [spec, json!({ "holderIdentity": "n1" }), json!(null)] {
            let lease: Lease = from_value(json!({ "metadata": {}, "spec": spec })).unwrap();
            assert_eq!(Holder::of(&lease, Timestamp::UNIX_EPOCH), None);
        }
    }
}
