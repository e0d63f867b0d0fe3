use std::collections::BTreeSet;
use std::time::Duration;

use health::dns::DnsClass;
use hickory_proto::rr::{Name, RecordType};
use lab_parts::dns::{self, Behaviour, DnsServer, KUBERNETES};
use lab_parts::port::CLOSED;

use super::*;

/// A deadline that an exchange over loopback meets on a busy machine.
const AMPLE: Duration = Duration::from_secs(30);
/// The deadline of queries that get no response.
const SHORT: Duration = Duration::from_millis(300);

fn query() -> Query {
    let name = Name::from_ascii(KUBERNETES).unwrap();
    Query::query(name, RecordType::A)
}

async fn query_at(
    server: SocketAddr,
    transport: Transport,
    limit: Duration,
) -> Result<(), DnsClass> {
    let deadline = Instant::now() + limit;
    match exchange(server, transport, query(), deadline)
        .await
        .unwrap()
    {
        Response::Addresses { owner, addresses } => {
            let expected = [KUBERNETES, "elsewhere.example."];
            assert!(expected.contains(&owner.to_string().as_str()), "{owner}");
            assert_eq!(addresses, [IpAddr::from(Ipv4Addr::LOCALHOST)]);
            Ok(())
        }
        Response::Other(answer) => Err(answer.class().unwrap()),
    }
}

fn truncated(over_tcp: dns::Response) -> dns::Response {
    dns::Response::Truncated(Box::new(over_tcp))
}

async fn exchange_with(
    behaviour: impl Into<Behaviour>,
    limit: Duration,
) -> (Result<(), DnsClass>, DnsServer) {
    let server = DnsServer::start(behaviour).await.unwrap();
    let result = query_at(server.address(), Transport::Udp, limit).await;
    (result, server)
}

fn alias(response: dns::Response) -> dns::Response {
    dns::Response::Alias("elsewhere.example.", Box::new(response))
}

#[tokio::test]
async fn a_response_is_an_address_or_a_class() {
    let garbage_first = dns::Response::Each(vec![
        dns::Response::Garbage,
        dns::Response::WrongId,
        dns::Response::Loopback,
    ]);
    let cases = [
        (dns::Response::Loopback, Ok(())),
        (alias(dns::Response::Loopback), Ok(())),
        (alias(dns::Response::NoData), Err(DnsClass::NoData)),
        (garbage_first, Ok(())),
        (dns::Response::NoData, Err(DnsClass::NoData)),
        (dns::Response::Foreign, Err(DnsClass::Mismatch)),
        (
            dns::Response::Code(ResponseCode::NXDomain),
            Err(DnsClass::NxDomain),
        ),
        (
            dns::Response::Code(ResponseCode::ServFail),
            Err(DnsClass::ServFail),
        ),
        (
            dns::Response::BareCode(ResponseCode::ServFail),
            Err(DnsClass::ServFail),
        ),
        (
            dns::Response::Code(ResponseCode::Refused),
            Err(DnsClass::Refused),
        ),
        (
            dns::Response::Code(ResponseCode::NotImp),
            Err(DnsClass::Refused),
        ),
        (
            dns::Response::BareCode(ResponseCode::FormErr),
            Err(DnsClass::Refused),
        ),
        (truncated(dns::Response::Loopback), Ok(())),
        (truncated(dns::Response::NoData), Err(DnsClass::NoData)),
        (
            truncated(dns::Response::Code(ResponseCode::ServFail)),
            Err(DnsClass::ServFail),
        ),
        (truncated(dns::Response::Close), Err(DnsClass::Truncated)),
        (truncated(dns::Response::WrongId), Err(DnsClass::Truncated)),
        (
            dns::Response::Cut(Box::new(dns::Response::Loopback)),
            Ok(()),
        ),
        (
            dns::Response::Cut(Box::new(dns::Response::Close)),
            Err(DnsClass::Truncated),
        ),
    ];
    for (response, expected) in cases {
        let case = format!("{response:?}");
        let (result, server) = exchange_with(response, AMPLE).await;
        assert_eq!(result, expected, "{case}");
        assert_eq!(server.count(Transport::Udp), 1, "{case}");
    }
}

#[tokio::test]
async fn without_a_matching_response_the_time_runs_out() {
    let cases = [
        (dns::Response::Drop, DnsClass::Timeout),
        (
            dns::Response::Delayed(AMPLE, Box::new(dns::Response::Loopback)),
            DnsClass::Timeout,
        ),
        (dns::Response::WrongId, DnsClass::Mismatch),
        (dns::Response::WrongQuestion, DnsClass::Mismatch),
        (dns::Response::Garbage, DnsClass::Mismatch),
        (
            dns::Response::BareCode(ResponseCode::NXDomain),
            DnsClass::Mismatch,
        ),
    ];
    for (response, expected) in cases {
        let case = format!("{response:?}");
        let started = Instant::now();
        let (result, _server) = exchange_with(response, SHORT).await;
        assert_eq!(result, Err(expected), "{case}");
        assert!(started.elapsed() >= SHORT, "{case}");
    }
}

#[tokio::test]
async fn a_response_that_came_during_a_stall_of_this_process_counts() {
    // Outside the runtime, which the test blocks.
    let server = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = server.local_addr().unwrap();
    let (queried, stall) = tokio::sync::oneshot::channel();
    let (respond, stalled) = std::sync::mpsc::channel();
    let (responded, response) = std::sync::mpsc::channel();
    let serving = std::thread::spawn(move || {
        let mut buffer = [0; LARGEST_DATAGRAM];
        let (length, client) = server.recv_from(&mut buffer).unwrap();
        queried.send(()).unwrap();
        stalled.recv().unwrap();
        // The query as a response with the code NXDOMAIN (RFC 1035, section 4.1.1).
        buffer[2] |= 0x80;
        buffer[3] |= 3;
        server.send_to(&buffer[..length], client).unwrap();
        responded.send(()).unwrap();
    });
    let deadline = Instant::now() + AMPLE / 10;
    let stalling = async {
        stall.await.unwrap();
        respond.send(()).unwrap();
        response.recv().unwrap();
        std::thread::sleep(deadline.saturating_duration_since(Instant::now()) + SHORT);
    };
    let exchange = exchange(address, Transport::Udp, query(), deadline);
    let (result, ()) = tokio::join!(exchange, stalling);
    serving.join().unwrap();
    assert_eq!(result.unwrap(), Response::Other(Answer::NxDomain));
}

#[tokio::test]
async fn a_lost_datagram_is_sent_again_once() {
    let drops_first = Behaviour::new(|received| {
        if received.repeated {
            dns::Response::Loopback
        } else {
            dns::Response::Drop
        }
    });
    let (result, server) = exchange_with(drops_first, AMPLE / 5).await;
    assert_eq!(result, Ok(()));
    assert_eq!(server.count(Transport::Udp), 2);
    let (result, server) = exchange_with(dns::Response::Drop, SHORT).await;
    assert_eq!(result, Err(DnsClass::Timeout));
    assert!(server.count(Transport::Udp) <= 2);
}

#[tokio::test]
async fn a_port_on_which_nobody_listens_is_unreachable_long_before_the_deadline() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let started = Instant::now();
        let result = query_at(CLOSED, transport, AMPLE).await;
        assert_eq!(result, Err(DnsClass::Unreachable));
        assert!(started.elapsed() < AMPLE);
    }
}

#[tokio::test]
async fn an_exchange_over_tcp_sends_no_datagram() {
    let server = DnsServer::start(dns::Response::Loopback).await.unwrap();
    assert_eq!(
        query_at(server.address(), Transport::Tcp, AMPLE).await,
        Ok(())
    );
    assert_eq!(server.count(Transport::Udp), 0);
    assert_eq!(server.count(Transport::Tcp), 1);
}

#[tokio::test]
async fn a_connection_that_is_closed_without_a_response_is_unreachable() {
    let server = DnsServer::start(dns::Response::Close).await.unwrap();
    let result = query_at(server.address(), Transport::Tcp, AMPLE).await;
    assert_eq!(result, Err(DnsClass::Unreachable));
}

#[tokio::test]
async fn every_query_has_an_id_of_its_own() {
    let server = DnsServer::start(dns::Response::Loopback).await.unwrap();
    for _ in 0..8 {
        assert_eq!(
            query_at(server.address(), Transport::Udp, AMPLE).await,
            Ok(())
        );
    }
    let ids: BTreeSet<_> = server.received().iter().map(|query| query.id).collect();
    assert!(ids.len() > 1);
}
