use std::net::UdpSocket;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use super::*;

const REQUEST: &[u8] = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
/// A limit for anything that happens at once, on a busy machine.
const AMPLE: Duration = Duration::from_mins(1);

async fn start() -> (SocketAddr, CancellationToken) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let drained = CancellationToken::new();
    let routes = routes(Readiness::default(), Registry::default());
    tokio::spawn(serve(listener, routes, drained.clone()));
    (address, drained)
}

/// Sends a request and reads the response.
async fn get(stream: &mut TcpStream) -> String {
    stream.write_all(REQUEST).await.unwrap();
    let mut response = [0; 1024];
    let length = timeout(AMPLE, stream.read(&mut response)).await.unwrap();
    String::from_utf8_lossy(&response[..length.unwrap()]).into_owned()
}

/// Waits until the server closes the connection, or resets it because of unread bytes.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    drop(timeout(AMPLE, stream.read_to_end(&mut rest)).await.unwrap());
}

/// Beyond the most connections the oldest gives way.
/// Sixty-four clients that send nothing must not shut out the leader.
#[tokio::test]
async fn oldest_connection_gives_way() {
    let (address, _drained) = start().await;
    let mut first = TcpStream::connect(address).await.unwrap();
    assert!(get(&mut first).await.starts_with("HTTP/1.1 200"));
    let mut others = Vec::new();
    for _ in 1..MOST_CONNECTIONS {
        let mut other = TcpStream::connect(address).await.unwrap();
        assert!(get(&mut other).await.starts_with("HTTP/1.1 200"));
        others.push(other);
    }
    // As many as are allowed, so the first one still works.
    assert!(get(&mut first).await.starts_with("HTTP/1.1 200"));
    let mut beyond = TcpStream::connect(address).await.unwrap();
    assert!(get(&mut beyond).await.starts_with("HTTP/1.1 200"));
    closed(&mut first).await;
    for other in &mut others {
        assert!(get(other).await.starts_with("HTTP/1.1 200"));
    }
}

/// A connection without a whole request is closed.
#[tokio::test(start_paused = true)]
async fn incomplete_request_is_closed() {
    let (address, _drained) = start().await;
    let started = Instant::now();
    let mut idle = TcpStream::connect(address).await.unwrap();
    closed(&mut idle).await;
    assert!(started.elapsed() >= REQUEST_LIMIT);

    // One byte from time to time is no request either.
    let started = Instant::now();
    let mut slow = TcpStream::connect(address).await.unwrap();
    for byte in REQUEST {
        if slow.write_all(&[*byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_secs(5)).await;
    }
    closed(&mut slow).await;
    assert!(started.elapsed() < 3 * REQUEST_LIMIT);
}

/// A connection between two requests stays for a while.
#[tokio::test(start_paused = true)]
async fn idle_connection_stays_open() {
    let (address, _drained) = start().await;
    let mut leader = TcpStream::connect(address).await.unwrap();
    for _ in 0..5 {
        assert!(get(&mut leader).await.starts_with("HTTP/1.1 200"));
        sleep(Duration::from_secs(20)).await;
    }
    let idle = Instant::now();
    closed(&mut leader).await;
    assert!(idle.elapsed() <= REQUEST_LIMIT);
}

/// Open connections end when the program has drained.
#[tokio::test]
async fn drained_program_closes_connections() {
    let (address, drained) = start().await;
    let mut open = TcpStream::connect(address).await.unwrap();
    assert!(get(&mut open).await.starts_with("HTTP/1.1 200"));
    drained.cancel();
    closed(&mut open).await;
}

/// Every address of IPv6 includes those of IPv4.
#[tokio::test]
async fn any_ipv6_includes_ipv4() {
    let listener = listen((Ipv6Addr::UNSPECIFIED, 0).into()).unwrap();
    let port = listener.local_addr().unwrap().port();
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .unwrap();
    // A host without IPv6 has no such address.
    let has_ipv6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let over_ipv6 = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await;
    assert_eq!(over_ipv6.is_ok(), has_ipv6);
}

/// Without IPv6 every address is one of IPv4.
#[test]
fn without_ipv6_listens_on_ipv4() {
    /// The error of `socket` on a host with `ipv6.disable=1` (Linux).
    const EAFNOSUPPORT: i32 = 97;
    let without = |error: fn() -> io::Error| {
        move |address: SocketAddr| match address {
            SocketAddr::V4(_) => Ok(address),
            SocketAddr::V6(_) => Err(error()),
        }
    };
    let unsupported = without(|| io::Error::from_raw_os_error(EAFNOSUPPORT));
    let any: SocketAddr = "[::]:8080".parse().unwrap();
    let bound = listen_by(unsupported, any).unwrap();
    assert_eq!(bound, "0.0.0.0:8080".parse().unwrap());
    // The user means one address.
    let one: SocketAddr = "[fd00::7]:8080".parse().unwrap();
    listen_by(unsupported, one).unwrap_err();
    let taken = without(|| io::ErrorKind::AddrInUse.into());
    let error = listen_by(taken, any).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}
