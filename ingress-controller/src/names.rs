//! The addresses of the hosts by which load balancers of members are known. A gateway gets addresses only: most of them take
//! no names, and the others look them up each in its own way.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use karmada_runtime::client::Addresses;
use karmada_runtime::program::Program;
use objects::Key;
use tokio::time::timeout;
use traffic::ingress::Cached;

use crate::index::Index;
use crate::watch::SharedIndex;

/// The pause between two look-ups of a host. Clouds move their load balancers with a time to live of a minute.
const PERIOD: Duration = Duration::from_secs(30);
/// The number of hosts looked up at once.
const CONCURRENCY: usize = 16;

/// Spawns the look-ups.
pub(crate) fn look_up(program: &mut Program, index: &Arc<SharedIndex>) {
    let (addresses, index) = (program.addresses.clone(), Arc::clone(index));
    program.run_until_stopped("host_names", async move {
        let new = index.new_hosts();
        loop {
            look_up_all(&addresses, &index).await;
            drop(timeout(PERIOD, new.notified()).await);
        }
    });
}

/// Looks every host up.
async fn look_up_all(addresses: &Addresses, index: &SharedIndex) {
    let hosts: Vec<String> = index.read(|index| index.hosts.keys().cloned().collect());
    let hosts = futures::stream::iter(hosts);
    hosts
        .for_each_concurrent(CONCURRENCY, |host| async move {
            // The dot keeps the search list of a pod out.
            match addresses.look_up_anew(&format!("{host}.")).await {
                Ok(found) => index.observe_host(&host, found),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    index.observe_host(&host, Vec::new());
                }
                Err(error) => {
                    tracing::debug!(host, %error, "A load balancer's host cannot be looked up");
                }
            }
        })
        .await;
}

impl Index {
    /// Replaces the hosts that are reported for the ingress `key`. Returns `true` if one of them was not known.
    pub(crate) fn set_hosts(&mut self, key: &Key, hosts: BTreeSet<String>) -> bool {
        let known = self.hosts.len();
        for host in &hosts {
            let known = self.hosts.entry(host.clone());
            known.or_insert(Cached::Unread);
        }
        let has_new = self.hosts.len() > known;
        self.by_host.replace(key, hosts);
        has_new
    }

    /// Takes in the addresses of a host, and wakes the ingresses behind which it is, if they changed. One that does not resolve
    /// any more keeps its last ones, and one behind no ingress is forgotten.
    pub(crate) fn observe_host(&mut self, host: &str, mut found: Vec<IpAddr>) -> Vec<Key> {
        let woken: Vec<Key> = self.by_host.sources(host).cloned().collect();
        if woken.is_empty() {
            self.hosts.remove(host);
            return Vec::new();
        }
        found.sort();
        let now = if found.is_empty() {
            Cached::Absent
        } else {
            Cached::Present(found)
        };
        let known = self.hosts.entry(host.to_owned());
        let known = known.or_insert(Cached::Unread);
        let keeps_last = now == Cached::Absent && matches!(known, Cached::Present(_));
        if keeps_last || *known == now {
            return Vec::new();
        }
        *known = now;
        woken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io;

    use futures::FutureExt;
    use parking_lot::Mutex;
    use traffic::ingress::Facts;

    use super::*;
    use crate::fixtures::key;
    use crate::index::Backends;
    use crate::watch::Queues;

    const HOST: &str = "lb.example.com";

    fn ips(last: &[u8]) -> Vec<IpAddr> {
        let last = last.iter();
        last.map(|last| IpAddr::from([192, 0, 2, *last])).collect()
    }

    /// A host wakes the ingresses behind which it is when its addresses change, and is forgotten with the last of them.
    #[test]
    fn host_wakes_its_ingresses() {
        let mut index = Index::new(Some(Backends::default()));
        let hosts: BTreeSet<String> = [HOST.to_owned()].into();
        assert!(index.set_hosts(&key("i"), hosts.clone()));
        assert!(!index.set_hosts(&key("j"), hosts));
        assert_eq!(index.observe_host(HOST, ips(&[2, 1])), [key("i"), key("j")]);
        assert_eq!(index.observe_host(HOST, ips(&[1, 2])), [], "another order");
        index.set_hosts(&key("j"), BTreeSet::new());
        assert_eq!(index.observe_host(HOST, ips(&[3])), [key("i")]);
        index.set_hosts(&key("i"), BTreeSet::new());
        assert_eq!(index.observe_host(HOST, ips(&[4])), []);
        assert_eq!(index.hosts.get(HOST), None);
    }

    /// An ingress that is gone has no host behind it.
    #[test]
    fn gone_ingress_has_no_host() {
        let mut index = Index::new(Some(Backends::default()));
        index.set_hosts(&key("i"), [HOST.to_owned()].into());
        index.index_ingress(&key("i"));
        assert_eq!(index.observe_host(HOST, ips(&[1])), []);
    }

    /// A host that does not resolve keeps its last addresses. Without any it has none once DNS says so, and no failure says that.
    #[tokio::test]
    async fn failure_keeps_addresses() {
        let zone: Arc<Mutex<BTreeMap<String, Vec<IpAddr>>>> = Arc::default();
        let records = Arc::clone(&zone);
        let addresses = Addresses::by(move |name| {
            let found = records.lock().get(&name).cloned();
            async move { found.ok_or_else(|| io::Error::other("no answer")) }.boxed()
        });
        let index = SharedIndex::new(Queues::new(1), Some(Backends::default()));
        index.lock().set_hosts(&key("i"), [HOST.to_owned()].into());
        for (records, expected) in [
            (None, Cached::Unread),
            (Some(Vec::new()), Cached::Absent),
            (None, Cached::Absent),
            (Some(ips(&[1])), Cached::Present(ips(&[1]))),
            (Some(Vec::new()), Cached::Present(ips(&[1]))),
            (None, Cached::Present(ips(&[1]))),
            (Some(ips(&[2])), Cached::Present(ips(&[2]))),
        ] {
            let records = records.map(|ips| (format!("{HOST}."), ips));
            *zone.lock() = records.into_iter().collect();
            look_up_all(&addresses, &index).await;
            assert_eq!(index.lock().addresses(HOST), Some(expected));
        }
    }
}
