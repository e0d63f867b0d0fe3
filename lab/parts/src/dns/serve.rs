//! The server's loops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use health::diagnosis::Transport;
use hickory_proto::op::{Message, MessageType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::behaviour::Response;
use super::record::Shared;
use super::response::Sent;

/// The longest query over UDP: the size that DNS Flag Day 2020 recommends for EDNS.
const LONGEST_DATAGRAM: usize = 1232;
/// The longest life of a TCP connection, so that clients that never close theirs do not add up.
const CONNECTION_LIMIT: Duration = Duration::from_mins(1);
/// The most responses under way over one transport; more are dropped, as a busy server does.
const MOST_AT_ONCE: usize = 1024;

/// The loop of one transport.
pub(super) struct Server {
    shared: Arc<Shared>,
    /// Responses under way; they end with the server.
    under_way: JoinSet<()>,
}

impl Server {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            under_way: JoinSet::new(),
        }
    }

    pub(super) async fn over_udp(mut self, socket: Arc<UdpSocket>) {
        let mut buffer = [0; LONGEST_DATAGRAM];
        loop {
            let (length, from) = match socket.recv_from(&mut buffer).await {
                Ok(received) => received,
                Err(error) => {
                    tracing::error!(%error, "A DNS server failed");
                    return;
                }
            };
            let (_, sent) = self.shared.respond(&buffer[..length], Transport::Udp);
            for message in sent {
                if message.after.is_zero() {
                    send(&socket, &message.bytes, from).await;
                } else if self.has_room() {
                    let socket = Arc::clone(&socket);
                    self.under_way.spawn(async move {
                        sleep(message.after).await;
                        send(&socket, &message.bytes, from).await;
                    });
                }
            }
        }
    }

    pub(super) async fn over_tcp(mut self, listener: TcpListener) {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                // The client is gone, or this process has too many files open for a moment.
                Err(error) => {
                    tracing::debug!(%error, "A DNS server did not accept a connection");
                    sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            if self.has_room() {
                let shared = Arc::clone(&self.shared);
                self.under_way.spawn(async move {
                    // However the client ends its connection, it expects nothing more.
                    drop(timeout(CONNECTION_LIMIT, shared.converse(stream)).await);
                });
            }
        }
    }

    fn has_room(&mut self) -> bool {
        while self.under_way.try_join_next().is_some() {}
        self.under_way.len() < MOST_AT_ONCE
    }
}

async fn send(socket: &UdpSocket, bytes: &[u8], to: SocketAddr) {
    // A client that is gone needs no response.
    drop(socket.send_to(bytes, to).await);
}

impl Shared {
    /// Responds to the queries of one connection, in which each message follows its length in two
    /// bytes (RFC 1035, section 4.2.2).
    async fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let length = stream.read_u16().await?;
            let mut request = vec![0; usize::from(length)];
            stream.read_exact(&mut request).await?;
            let (response, sent) = self.respond(&request, Transport::Tcp);
            for message in sent {
                sleep(message.after).await;
                let length = u16::try_from(message.bytes.len()).map_err(io::Error::other)?;
                stream.write_u16(length).await?;
                stream.write_all(&message.bytes).await?;
            }
            if response.closes() {
                return Ok(());
            }
        }
    }

    /// Chooses and encodes the response to a request; anything but a query is dropped.
    fn respond(&self, request: &[u8], transport: Transport) -> (Response, Vec<Sent>) {
        let nothing = (Response::Drop, Vec::new());
        let Ok(request) = Message::from_vec(request) else {
            return nothing;
        };
        if request.metadata.message_type != MessageType::Query {
            return nothing;
        }
        let Some(query) = request.queries.first() else {
            return nothing;
        };
        let response = self.receive(transport, request.metadata.id, query.clone());
        let sent = response.encode(&request, transport);
        (response, sent)
    }
}
