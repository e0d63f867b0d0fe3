//! A Lease, by which its holder shows that it lives.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// The fields that the holder of a Lease writes, as in client-go. Any client may write the rest of the object: a new resource
/// version alone shows no life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// The holder; `None` if the Lease was released.
    pub holder: Option<String>,
    /// The time of the renewal by the holder's clock, which is only ever compared with another one of the same Lease.
    pub renewed: Option<MicroTime>,
    /// The time for which it is valid.
    pub duration: Option<Duration>,
    /// The number of times that it passed to another holder.
    pub transitions: i32,
}

impl From<&LeaseSpec> for Renewal {
    fn from(spec: &LeaseSpec) -> Self {
        let seconds = spec.lease_duration_seconds;
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            // client-go releases a Lease with an empty holder in place of none.
            holder: spec
                .holder_identity
                .clone()
                .filter(|holder| !holder.is_empty()),
            renewed: spec.renew_time.clone(),
            duration: seconds.map(Duration::from_secs),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}
