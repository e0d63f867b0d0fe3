//! The faults of the steps, as the embedded server injects them.

use std::time::Duration;

use embedded_apiserver::{Fault, Injection};

use super::step::ApiFault;

/// Returns the injection of a fault.
pub(crate) fn injection(fault: ApiFault) -> Injection {
    let millis = |millis: u16| Duration::from_millis(millis.into());
    match fault {
        ApiFault::Conflicts { every } => Fault::Conflict.every(every.into()),
        ApiFault::TooManyRequests => {
            let retry_after = Duration::from_secs(2);
            Fault::TooManyRequests { retry_after }.into()
        }
        ApiFault::Unauthorized => Fault::Unauthorized.into(),
        ApiFault::Forbidden => Fault::Forbidden.into(),
        ApiFault::InternalErrors { every } => Fault::InternalError.every(every.into()),
        ApiFault::Unavailable => Fault::Unavailable.into(),
        ApiFault::Slow { millis: by } => Fault::Slow(millis(by)).into(),
        ApiFault::LoseResponses { every } => Fault::LoseResponse.every(every.into()),
        ApiFault::Outage => Fault::Disconnect.into(),
        ApiFault::Silence => Fault::Silence.into(),
        ApiFault::CutWatches => Fault::CutWatch { inside_line: true }.into(),
        ApiFault::ExpireWatches => Fault::ExpireWatch.into(),
        ApiFault::FailWatches => Fault::FailWatch.into(),
        ApiFault::DelayEvents {
            millis: by,
            coalesce,
        } => {
            let by = millis(by);
            Fault::DelayEvents { by, coalesce }.into()
        }
        ApiFault::StaleLists { versions } => Fault::StaleList {
            versions: versions.into(),
        }
        .into(),
    }
}
