//! The DNS server of a member cluster, and its faults.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use lab_parts::dns::{Behaviour, DnsServer, KUBERNETES, KUBERNETES_IP, Response};

use crate::fault::DnsFault;

/// The queries of every ten that [`DnsFault::Lose`] drops.
const LOST_OF_TEN: usize = 3;

/// Starts a server without fault.
pub(super) async fn start() -> io::Result<DnsServer> {
    DnsServer::start(healthy()).await
}

/// Injects a fault in place of the one before; [`DnsFault::None`] ends it. Slow responses come after
/// `too_late`.
pub(super) async fn inject(
    server: &DnsServer,
    fault: DnsFault,
    too_late: Duration,
) -> io::Result<()> {
    if fault == DnsFault::Stop {
        return server.stop().await;
    }
    server.set(behaviour(fault, too_late));
    server.restart().await
}

fn behaviour(fault: DnsFault, too_late: Duration) -> Behaviour {
    match fault {
        DnsFault::None => healthy(),
        DnsFault::Stop | DnsFault::Drop => Response::Drop.into(),
        DnsFault::Refuse => Response::Code(ResponseCode::Refused).into(),
        DnsFault::Servfail => Response::Code(ResponseCode::ServFail).into(),
        DnsFault::Nxdomain => Response::Code(ResponseCode::NXDomain).into(),
        DnsFault::Slow => {
            let healthy = healthy();
            Behaviour::new(move |query| {
                Response::Delayed(too_late, Box::new(healthy.response_to(query)))
            })
        }
        DnsFault::Lose => {
            let healthy = healthy();
            let count = AtomicUsize::new(0);
            Behaviour::new(move |query| {
                let nth = count.fetch_add(1, Ordering::Relaxed);
                if is_lost(nth) {
                    Response::Drop
                } else {
                    healthy.response_to(query)
                }
            })
        }
    }
}

/// Spreads the lost queries out, so that a retransmitted query is rarely lost again.
fn is_lost(nth: usize) -> bool {
    nth * LOST_OF_TEN % 10 < LOST_OF_TEN
}

/// Responds as the DNS of a healthy cluster: its API has an IPv4 address, and no other name exists.
fn healthy() -> Behaviour {
    Behaviour::zone([KUBERNETES], Response::Ipv4(KUBERNETES_IP))
}

#[cfg(test)]
mod tests {
    use health::dns::DnsClass;

    use super::*;
    use crate::member::lookup::Lookup;
    use crate::update;

    /// Longer than a pod waits.
    const TOO_LATE: Duration = Duration::from_secs(1);

    async fn class(server: &DnsServer) -> Option<DnsClass> {
        let (updates, _) = update::channel();
        let lookup = Lookup {
            cluster: "member1".to_owned(),
            server: server.address(),
            updates,
        };
        let failure = lookup.resolve().await.err()?;
        DnsClass::ALL
            .into_iter()
            .find(|class| failure.class == *class)
    }

    /// Every fault looks to a pod as it should and is mended.
    #[tokio::test]
    async fn every_fault_shows_and_ends() {
        let server = start().await.unwrap();
        let cases = [
            (DnsFault::Stop, DnsClass::Unreachable),
            (DnsFault::Refuse, DnsClass::Refused),
            (DnsFault::Servfail, DnsClass::ServFail),
            (DnsFault::Nxdomain, DnsClass::NxDomain),
            (DnsFault::Drop, DnsClass::Timeout),
            (DnsFault::Slow, DnsClass::Timeout),
        ];
        for (fault, expected) in cases {
            assert_eq!(class(&server).await, None, "before {fault:?}");
            inject(&server, fault, TOO_LATE).await.unwrap();
            assert_eq!(class(&server).await, Some(expected), "{fault:?}");
            inject(&server, DnsFault::None, TOO_LATE).await.unwrap();
        }
    }

    /// Three of ten queries are lost and no two in a row.
    #[test]
    fn three_of_ten_are_lost() {
        let lost: Vec<usize> = (0..100).filter(|nth| is_lost(*nth)).collect();
        assert_eq!(lost.len(), 30);
        assert!(
            lost.windows(2).all(|pair| pair[1] > pair[0] + 1),
            "{lost:?}"
        );
    }
}
