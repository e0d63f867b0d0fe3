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
) -> Result<(), DnsClass> {
    let deadline = Instant::now() + limit;
    match exchange(server, transport, query(), deadline).await {
        Ok(addresses) => {
            assert_eq!(addresses, [IpAddr::from(Ipv4Addr::LOCALHOST)]);
            Ok(())
        }
        Err(ProbeError::Failed(failure)) => {
            assert_eq!(failure.server, Some(server));
            let class = DnsClass::ALL
                .into_iter()
                .find(|class| failure.class == *class);
            Err(class.unwrap())
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
) -> (Result<(), DnsClass>, DnsServer) {
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
        (Response::NoData, Err(DnsClass::NoData)),
        (Response::Foreign, Err(DnsClass::Mismatch)),
        (
            Response::Code(ResponseCode::NXDomain),
            Err(DnsClass::NxDomain),
        ),
        (
            Response::Code(ResponseCode::ServFail),
            Err(DnsClass::ServFail),
        ),
        (
            Response::BareCode(ResponseCode::ServFail),
            Err(DnsClass::ServFail),
        ),
        (
            Response::Code(ResponseCode::Refused),
            Err(DnsClass::Refused),
        ),
        (Response::Code(ResponseCode::NotImp), Err(DnsClass::Refused)),
        (
            Response::BareCode(ResponseCode::FormErr),
            Err(DnsClass::Refused),
        ),
        (truncated(Response::Loopback), Ok(())),
        (truncated(Response::NoData), Err(DnsClass::NoData)),
        (
            truncated(Response::Code(ResponseCode::ServFail)),
            Err(DnsClass::ServFail),
        ),
        (truncated(Response::Close), Err(DnsClass::Truncated)),
        (truncated(Response::WrongId), Err(DnsClass::Truncated)),
        (Response::Cut(Box::new(Response::Loopback)), Ok(())),
        (
            Response::Cut(Box::new(Response::Close)),
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
        (Response::Drop, DnsClass::Timeout),
        (
            Response::Delayed(AMPLE, Box::new(Response::Loopback)),
            DnsClass::Timeout,
        ),
        (Response::WrongId, DnsClass::Mismatch),
        (Response::WrongQuestion, DnsClass::Mismatch),
        (Response::Garbage, DnsClass::Mismatch),
        (
            Response::BareCode(ResponseCode::NXDomain),
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
    let Err(ProbeError::Failed(failure)) = result else {
        panic!("not a failure: {result:?}");
    };
    assert_eq!(failure.class, DnsClass::NxDomain);
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
    assert_eq!(result, Err(DnsClass::Unreachable));
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
