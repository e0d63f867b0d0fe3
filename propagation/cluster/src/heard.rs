//! When something was last heard of the clusters that report on themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use objects::lease::Renewal;
use tokio::time::Instant;

/// The clusters of which something was heard, or that were seen for the first time. Like leases of leaders they are
/// judged by the changes here: the clocks of members need not agree with ours.
#[derive(Debug, Default)]
pub(crate) struct Heard(BTreeMap<String, Sign>);

#[derive(Debug)]
struct Sign {
    at: Instant,
    /// The cluster's Lease.
    lease: Option<Renewal>,
}

impl Heard {
    /// Takes in a cluster. Another health of it is a sign.
    pub(crate) fn cluster(&mut self, name: &str, is_sign: bool) {
        let sign = self.0.entry(name.to_owned()).or_insert_with(|| Sign {
            at: Instant::now(),
            lease: None,
        });
        if is_sign {
            sign.at = Instant::now();
        }
    }

    /// Takes in the Lease of a cluster. That it was renewed is a sign.
    pub(crate) fn lease(&mut self, name: &str, renewal: Renewal) {
        let (at, lease) = (Instant::now(), Some(renewal));
        match self.0.get_mut(name) {
            Some(sign) if sign.lease == lease => {}
            _ => drop(self.0.insert(name.to_owned(), Sign { at, lease })),
        }
    }

    /// Forgets a cluster.
    pub(crate) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Counts from now for every cluster: nobody may have listened.
    pub(crate) fn begin(&mut self) {
        for sign in self.0.values_mut() {
            sign.at = Instant::now();
        }
    }

    /// Returns the time for which nothing was heard of a cluster.
    pub(crate) fn silent_for(&self, name: &str) -> Duration {
        let sign = self.0.get(name);
        sign.map(|sign| sign.at.elapsed()).unwrap_or_default()
    }
}
