use std::collections::BTreeSet;
use std::time::Duration;

use hickory_proto::rr::{Name, RecordType};

use super::super::dns_server::{DnsServer, Reply, closed_port};
use super::*;

/// A deadline that an exchange over loopback meets on a busy machine.
const AMPLE: Duration = Duration::from_secs(30);
/// The deadline of queries that get no response.
const SHORT: Duration = Duration::from_millis(300);

fn query() -> Query {
    let name = Name::from_ascii("kubernetes.default.svc.cluster.local.").unwrap();
    Query::query(name, RecordType::A)
}

async fn query_at(
    server: SocketAddr,
    transport: Transport,
    limit: Duration,
) -> Result<(), FailureClass> {
    let deadline = Instant::now() + limit;
    match exchange(server, transport, query(), deadline).await {
        Ok(addresses) => {
            assert_eq!(addresses, [IpAddr::from(Ipv4Addr::LOCALHOST)]);
            Ok(())
        }
        Err(ProbeError::Failed(failure)) => {
            assert_eq!(failure.server, server);
            Err(failure.class)
        }
        Err(ProbeError::Internal(error)) => panic!("could not send: {error}"),
    }
}

async fn exchange_with(reply: Reply, limit: Duration) -> (Result<(), FailureClass>, DnsServer) {
    let server = DnsServer::replying(reply).await;
    let result = query_at(server.address, Transport::Udp, limit).await;
    (result, server)
}

#[tokio::test]
async fn a_response_is_an_address_or_a_class() {
    let cases = [
        (Reply::Address, Ok(())),
        (Reply::Alias, Ok(())),
        (Reply::GarbageFirst, Ok(())),
        (Reply::NoData, Err(FailureClass::NoData)),
        (Reply::Foreign, Err(FailureClass::Mismatch)),
        (
            Reply::Code(ResponseCode::NXDomain),
            Err(FailureClass::NxDomain),
        ),
        (
            Reply::Code(ResponseCode::ServFail),
            Err(FailureClass::ServFail),
        ),
        (
            Reply::BareCode(ResponseCode::ServFail),
            Err(FailureClass::ServFail),
        ),
        (
            Reply::Code(ResponseCode::Refused),
            Err(FailureClass::Refused),
        ),
        (
            Reply::Code(ResponseCode::NotImp),
            Err(FailureClass::Refused),
        ),
        (
            Reply::BareCode(ResponseCode::FormErr),
            Err(FailureClass::Refused),
        ),
        (Reply::Truncated(Box::new(Reply::Address)), Ok(())),
        (
            Reply::Truncated(Box::new(Reply::NoData)),
            Err(FailureClass::NoData),
        ),
        (
            Reply::Truncated(Box::new(Reply::Code(ResponseCode::ServFail))),
            Err(FailureClass::ServFail),
        ),
        (
            Reply::Truncated(Box::new(Reply::Drop)),
            Err(FailureClass::Truncated),
        ),
        (
            Reply::Truncated(Box::new(Reply::WrongId)),
            Err(FailureClass::Truncated),
        ),
    ];
    for (reply, expected) in cases {
        let case = format!("{reply:?}");
        let (result, server) = exchange_with(reply, AMPLE).await;
        assert_eq!(result, expected, "{case}");
        assert_eq!(server.count(Transport::Udp), 1, "{case}");
    }
}

#[tokio::test]
async fn without_a_matching_response_the_time_runs_out() {
    let cases = [
        (Reply::Drop, FailureClass::Timeout),
        (Reply::Late(AMPLE), FailureClass::Timeout),
        (Reply::WrongId, FailureClass::Mismatch),
        (Reply::WrongQuestion, FailureClass::Mismatch),
        (Reply::Garbage, FailureClass::Mismatch),
        (
            Reply::BareCode(ResponseCode::NXDomain),
            FailureClass::Mismatch,
        ),
    ];
    for (reply, expected) in cases {
        let case = format!("{reply:?}");
        let started = Instant::now();
        let (result, _server) = exchange_with(reply, SHORT).await;
        assert_eq!(result, Err(expected), "{case}");
        assert!(started.elapsed() >= SHORT, "{case}");
    }
}

#[tokio::test]
async fn a_lost_datagram_is_sent_again_once() {
    let (result, server) = exchange_with(Reply::DropFirst, AMPLE / 5).await;
    assert_eq!(result, Ok(()));
    assert_eq!(server.count(Transport::Udp), 2);
    let (result, server) = exchange_with(Reply::Drop, SHORT).await;
    assert_eq!(result, Err(FailureClass::Timeout));
    assert!(server.count(Transport::Udp) <= 2);
}

#[tokio::test]
async fn a_port_on_which_nobody_listens_is_unreachable_long_before_the_deadline() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let started = Instant::now();
        let result = query_at(closed_port(), transport, AMPLE).await;
        assert_eq!(result, Err(FailureClass::Unreachable));
        assert!(started.elapsed() < AMPLE);
    }
}

#[tokio::test]
async fn an_exchange_over_tcp_sends_no_datagram() {
    let server = DnsServer::replying(Reply::Address).await;
    assert_eq!(
        query_at(server.address, Transport::Tcp, AMPLE).await,
        Ok(())
    );
    assert_eq!(server.count(Transport::Udp), 0);
    assert_eq!(server.count(Transport::Tcp), 1);
}

#[tokio::test]
async fn a_connection_that_is_closed_without_a_response_is_unreachable() {
    let server = DnsServer::replying(Reply::Drop).await;
    let result = query_at(server.address, Transport::Tcp, AMPLE).await;
    assert_eq!(result, Err(FailureClass::Unreachable));
}

#[tokio::test]
async fn every_query_has_an_id_of_its_own() {
    let server = DnsServer::replying(Reply::Address).await;
    for _ in 0..8 {
        assert_eq!(
            query_at(server.address, Transport::Udp, AMPLE).await,
            Ok(())
        );
    }
    let ids: BTreeSet<_> = server.asked().iter().map(|asked| asked.id).collect();
    assert!(ids.len() > 1);
}
