use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::record::RECORDED;
use super::*;

/// Long enough for a response over loopback on a busy machine.
const AMPLE: Duration = Duration::from_secs(30);

fn request(name: &str, kind: RecordType) -> Message {
    let mut request = Message::query();
    request.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    request
}

async fn client(server: &DnsServer) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    socket.connect(server.address()).await.unwrap();
    socket
}

/// Sends a query over UDP and returns the response; an error if the port is unreachable.
async fn over_udp(server: &DnsServer, request: &Message) -> io::Result<Message> {
    let socket = client(server).await;
    socket.send(&request.to_vec().unwrap()).await?;
    let mut buffer = [0; 512];
    let length = timeout(AMPLE, socket.recv(&mut buffer)).await.unwrap()?;
    Ok(Message::from_vec(&buffer[..length]).unwrap())
}

async fn over_tcp(server: &DnsServer, request: &Message) -> io::Result<Message> {
    let bytes = request.to_vec().unwrap();
    let mut stream = TcpStream::connect(server.address()).await?;
    stream.write_u16(bytes.len().try_into().unwrap()).await?;
    stream.write_all(&bytes).await?;
    let mut response = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut response).await?;
    Ok(Message::from_vec(&response).unwrap())
}

fn addresses(message: &Message) -> Vec<IpAddr> {
    let records = message.answers.iter();
    records.filter_map(|record| record.data.ip_addr()).collect()
}

#[tokio::test]
async fn a_zone_has_its_names_over_both_transports_and_no_other() {
    let zone = Behaviour::zone([KUBERNETES], Response::Ipv4(KUBERNETES_IP));
    let server = DnsServer::start(zone).await.unwrap();
    let known = request("Kubernetes.default.svc.cluster.local.", RecordType::A);
    for response in [
        over_udp(&server, &known).await.unwrap(),
        over_tcp(&server, &known).await.unwrap(),
    ] {
        assert_eq!(response.metadata.id, known.metadata.id);
        assert_eq!(response.queries, known.queries);
        assert_eq!(addresses(&response), [IpAddr::from(KUBERNETES_IP)]);
    }
    let other_type = request(KUBERNETES, RecordType::AAAA);
    let response = over_udp(&server, &other_type).await.unwrap();
    assert_eq!(response.metadata.response_code, ResponseCode::NoError);
    assert!(addresses(&response).is_empty());
    let unknown = request("other.default.svc.cluster.local.", RecordType::A);
    let response = over_udp(&server, &unknown).await.unwrap();
    assert_eq!(response.metadata.response_code, ResponseCode::NXDomain);
}

#[tokio::test]
async fn a_behaviour_is_changed_while_the_server_runs() {
    let server = DnsServer::start(Response::Loopback).await.unwrap();
    let request = request(KUBERNETES, RecordType::A);
    for code in [ResponseCode::ServFail, ResponseCode::Refused] {
        server.set(Response::Code(code));
        let response = over_udp(&server, &request).await.unwrap();
        assert_eq!(response.metadata.response_code, code);
    }
    server.set(Response::Loopback);
    let response = over_udp(&server, &request).await.unwrap();
    assert_eq!(addresses(&response), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
}

#[tokio::test]
async fn queries_are_recorded_with_their_transport_and_the_oldest_are_forgotten() {
    let server = DnsServer::start(Response::NoData).await.unwrap();
    let request = request(KUBERNETES, RecordType::A);
    over_tcp(&server, &request).await.unwrap();
    over_udp(&server, &request).await.unwrap();
    let [first, second] = &server.received()[..] else {
        panic!("{:?}", server.received());
    };
    assert_eq!(
        (first.transport, first.repeated, first.id),
        (Transport::Tcp, false, request.metadata.id)
    );
    assert_eq!((second.transport, second.repeated), (Transport::Udp, true));
    for _ in 0..RECORDED {
        over_udp(&server, &request).await.unwrap();
    }
    assert_eq!(server.received().len(), RECORDED);
    assert_eq!(server.count(Transport::Udp), RECORDED);
    assert_eq!(server.count(Transport::Tcp), 0);
}

#[tokio::test]
async fn a_stopped_server_is_unreachable_and_returns_to_its_port() {
    let server = DnsServer::start(Response::Loopback).await.unwrap();
    let request = request(KUBERNETES, RecordType::A);
    let mut open = TcpStream::connect(server.address()).await.unwrap();
    for _ in 0..2 {
        server.stop().await.unwrap();
        server.stop().await.unwrap();
        for error in [
            over_udp(&server, &request).await.unwrap_err(),
            over_tcp(&server, &request).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
        server.restart().await.unwrap();
        server.restart().await.unwrap();
        over_udp(&server, &request).await.unwrap();
        over_tcp(&server, &request).await.unwrap();
    }
    // It was closed, in whatever way.
    drop(
        timeout(AMPLE, open.read_to_end(&mut Vec::new()))
            .await
            .unwrap(),
    );
}

#[tokio::test]
async fn a_server_at_an_address_frees_it_once_it_is_stopped_and_dropped() {
    let address = ReservedPort::reserve().unwrap().address();
    for _ in 0..3 {
        let server = DnsServer::start_at(address, Response::Loopback).await;
        let server = server.unwrap();
        assert_eq!(server.address(), address);
        server.stop().await.unwrap();
        drop(server);
        drop(std::net::UdpSocket::bind(address).unwrap());
        drop(std::net::TcpListener::bind(address).unwrap());
    }
}

#[tokio::test]
async fn a_truncated_response_is_whole_over_tcp() {
    let truncated = Response::Truncated(Box::new(Response::Loopback));
    let server = DnsServer::start(truncated).await.unwrap();
    let request = request(KUBERNETES, RecordType::AAAA);
    let response = over_udp(&server, &request).await.unwrap();
    assert!(response.metadata.truncation && response.answers.is_empty());
    let response = over_tcp(&server, &request).await.unwrap();
    assert!(!response.metadata.truncation);
    assert_eq!(
        addresses(&response),
        [IpAddr::from(std::net::Ipv6Addr::LOCALHOST)]
    );
}

#[tokio::test]
async fn a_delayed_response_holds_up_no_other() {
    let delay = Duration::from_millis(200);
    let server = DnsServer::start(Behaviour::new(move |received| {
        if received.repeated {
            Response::Loopback
        } else {
            Response::Delayed(delay, Box::new(Response::NoData))
        }
    }));
    let server = server.await.unwrap();
    let bytes = request(KUBERNETES, RecordType::A).to_vec().unwrap();
    let socket = client(&server).await;
    let sent = Instant::now();
    let mut records = Vec::new();
    for _ in 0..2 {
        socket.send(&bytes).await.unwrap();
    }
    for _ in 0..2 {
        let mut buffer = [0; 512];
        let length = timeout(AMPLE, socket.recv(&mut buffer)).await;
        let length = length.unwrap().unwrap();
        records.push(Message::from_vec(&buffer[..length]).unwrap().answers.len());
    }
    assert_eq!(records, [1, 0]);
    assert!(sent.elapsed() >= delay);
}

#[tokio::test]
async fn each_of_several_responses_is_sent() {
    let each = Response::Each(vec![Response::Garbage, Response::WrongId, Response::NoData]);
    let server = DnsServer::start(each).await.unwrap();
    let request = request(KUBERNETES, RecordType::A);
    let socket = client(&server).await;
    socket.send(&request.to_vec().unwrap()).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut buffer = [0; 512];
        let length = timeout(AMPLE, socket.recv(&mut buffer)).await;
        let message = Message::from_vec(&buffer[..length.unwrap().unwrap()]);
        ids.push(message.ok().map(|message| message.metadata.id));
    }
    let id = request.metadata.id;
    assert_eq!(ids, [None, Some(id ^ 1), Some(id)]);
}

#[tokio::test]
async fn what_is_no_query_gets_no_response_and_is_not_recorded() {
    let server = DnsServer::start(Response::Loopback).await.unwrap();
    let socket = client(&server).await;
    let response = Message::response(7, hickory_proto::op::OpCode::Query);
    let response = response.to_vec().unwrap();
    for garbage in [&b""[..], b"x", &[0; 12], &[255; 600], &response] {
        socket.send(garbage).await.unwrap();
    }
    // A datagram overtakes no other over loopback.
    let request = request(KUBERNETES, RecordType::A);
    socket.send(&request.to_vec().unwrap()).await.unwrap();
    let mut buffer = [0; 512];
    let length = timeout(AMPLE, socket.recv(&mut buffer)).await;
    let message = Message::from_vec(&buffer[..length.unwrap().unwrap()]).unwrap();
    assert_eq!(message.metadata.id, request.metadata.id);
    assert_eq!(server.received().len(), 1);
}
