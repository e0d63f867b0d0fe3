use std::collections::BTreeSet;
use std::time::Duration;

use hickory_proto::rr::{Name, RecordType};
use lab_parts::dns::{Behaviour, DnsServer, KUBERNETES, Response};
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

fn truncated(over_tcp: Response) -> Response {
    Response::Truncated(Box::new(over_tcp))
}

async fn exchange_with(
    behaviour: impl Into<Behaviour>,
    limit: Duration,
) -> (Result<(), FailureClass>, DnsServer) {
    let server = DnsServer::start(behaviour).await.unwrap();
    let result = query_at(server.address(), Transport::Udp, limit).await;
    (result, server)
}

#[tokio::test]
async fn a_response_is_an_address_or_a_class() {
    let garbage_first = Response::Each(vec![
        Response::Garbage,
        Response::WrongId,
        Response::Loopback,
    ]);
    let cases = [
        (Response::Loopback, Ok(())),
        (Response::Alias, Ok(())),
        (garbage_first, Ok(())),
        (Response::NoData, Err(FailureClass::NoData)),
        (Response::Foreign, Err(FailureClass::Mismatch)),
        (
            Response::Code(ResponseCode::NXDomain),
            Err(FailureClass::NxDomain),
        ),
        (
            Response::Code(ResponseCode::ServFail),
            Err(FailureClass::ServFail),
        ),
        (
            Response::BareCode(ResponseCode::ServFail),
            Err(FailureClass::ServFail),
        ),
        (
            Response::Code(ResponseCode::Refused),
            Err(FailureClass::Refused),
        ),
        (
            Response::Code(ResponseCode::NotImp),
            Err(FailureClass::Refused),
        ),
        (
            Response::BareCode(ResponseCode::FormErr),
            Err(FailureClass::Refused),
        ),
        (truncated(Response::Loopback), Ok(())),
        (truncated(Response::NoData), Err(FailureClass::NoData)),
        (
            truncated(Response::Code(ResponseCode::ServFail)),
            Err(FailureClass::ServFail),
        ),
        (truncated(Response::Close), Err(FailureClass::Truncated)),
        (truncated(Response::WrongId), Err(FailureClass::Truncated)),
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
        (Response::Drop, FailureClass::Timeout),
        (
            Response::Delayed(AMPLE, Box::new(Response::Loopback)),
            FailureClass::Timeout,
        ),
        (Response::WrongId, FailureClass::Mismatch),
        (Response::WrongQuestion, FailureClass::Mismatch),
        (Response::Garbage, FailureClass::Mismatch),
        (
            Response::BareCode(ResponseCode::NXDomain),
            FailureClass::Mismatch,
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
    let Err(ProbeError::Failed(failure)) = result else {
        panic!("not a failure: {result:?}");
    };
    assert_eq!(failure.class, FailureClass::NxDomain);
}

#[tokio::test]
async fn a_lost_datagram_is_sent_again_once() {
    let drops_first = Behaviour::new(|received| {
        if received.repeated {
            Response::Loopback
        } else {
            Response::Drop
        }
    });
    let (result, server) = exchange_with(drops_first, AMPLE / 5).await;
    assert_eq!(result, Ok(()));
    assert_eq!(server.count(Transport::Udp), 2);
    let (result, server) = exchange_with(Response::Drop, SHORT).await;
    assert_eq!(result, Err(FailureClass::Timeout));
    assert!(server.count(Transport::Udp) <= 2);
}

#[tokio::test]
async fn a_port_on_which_nobody_listens_is_unreachable_long_before_the_deadline() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let started = Instant::now();
        let result = query_at(CLOSED, transport, AMPLE).await;
        assert_eq!(result, Err(FailureClass::Unreachable));
        assert!(started.elapsed() < AMPLE);
    }
}

#[tokio::test]
async fn an_exchange_over_tcp_sends_no_datagram() {
    let server = DnsServer::start(Response::Loopback).await.unwrap();
    assert_eq!(
        query_at(server.address(), Transport::Tcp, AMPLE).await,
        Ok(())
    );
    assert_eq!(server.count(Transport::Udp), 0);
    assert_eq!(server.count(Transport::Tcp), 1);
}

#[tokio::test]
async fn a_connection_that_is_closed_without_a_response_is_unreachable() {
    let server = DnsServer::start(Response::Close).await.unwrap();
    let result = query_at(server.address(), Transport::Tcp, AMPLE).await;
    assert_eq!(result, Err(FailureClass::Unreachable));
}

#[tokio::test]
async fn every_query_has_an_id_of_its_own() {
    let server = DnsServer::start(Response::Loopback).await.unwrap();
    for _ in 0..8 {
        assert_eq!(
            query_at(server.address(), Transport::Udp, AMPLE).await,
            Ok(())
        );
    }
    let ids: BTreeSet<_> = server.received().iter().map(|query| query.id).collect();
    assert!(ids.len() > 1);
}
