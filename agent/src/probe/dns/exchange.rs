//! One query to one server: a datagram, sent again once, and TCP if the response is truncated.
//!
//! The UDP socket is connected, so that an ICMP error comes back as an error of the socket at once
//! instead of as a timeout.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use health::diagnosis::Transport;
use health::observation::Failure;
use health::resolvers::Answer;
use hickory_proto::op::{Header, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, sleep_until, timeout_at};

/// A UDP response without EDNS has at most 512 bytes (RFC 1035, section 4.2.1), but some servers
/// exceed that.
const LARGEST_DATAGRAM: usize = 4096;
/// The most datagrams that are read once the deadline has passed, so that strays do not outlast it.
const MOST_LATE: usize = 16;

/// The reason why a query, or all queries for a name, returned no usable address.
#[derive(Debug)]
pub(super) enum ProbeError {
    /// The server failed.
    Failed(Failure),
    /// The query could not be sent for a reason on this host.
    Internal(io::Error),
}

impl ProbeError {
    /// Combines the errors of two queries of which one success would have sufficed. An internal error
    /// prevails: the query that was never sent might have succeeded.
    pub(super) fn or_worse(self, other: Self) -> Self {
        match (self, other) {
            (Self::Internal(error), _) | (_, Self::Internal(error)) => Self::Internal(error),
            (Self::Failed(one), Self::Failed(other)) => Self::Failed(one.or_worse(other)),
        }
    }
}

/// The response to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::probe) enum Response {
    /// Addresses of the queried type, at least one.
    Addresses {
        /// The name that has them: the queried one, or the end of its aliases.
        owner: Name,
        addresses: Vec<IpAddr>,
    },
    /// Anything else, the lack of a response included; not [`Answer::Right`].
    Other(Answer),
}

/// The reason why there is no message to read.
enum Lost {
    Answer(Answer),
    /// The query could not be sent for a reason on this host.
    Internal(io::Error),
}

/// Sends `query` to `server` and returns its response.
///
/// # Errors
/// The query cannot be sent for a reason on this host.
pub(in crate::probe) async fn exchange(
    server: SocketAddr,
    transport: Transport,
    query: Query,
    deadline: Instant,
) -> io::Result<Response> {
    let mut request = Message::query();
    request.metadata.recursion_desired = true;
    request.add_query(query.clone());
    let wire = request.to_vec().map_err(io::Error::other)?;
    let exchange = Exchange {
        server,
        request,
        wire,
        deadline,
    };
    match exchange.message(transport).await {
        Ok(message) => Ok(read(&message, &query)),
        Err(Lost::Answer(answer)) => Ok(Response::Other(answer)),
        Err(Lost::Internal(error)) => Err(error),
    }
}

/// A query under way.
struct Exchange {
    server: SocketAddr,
    request: Message,
    wire: Vec<u8>,
    deadline: Instant,
}

impl Exchange {
    async fn message(&self, transport: Transport) -> Result<Message, Lost> {
        let message = match transport {
            Transport::Udp => self.over_udp().await?,
            Transport::Tcp => self.over_tcp().await?,
        };
        // A truncated response is to be ignored and the query repeated over TCP (RFC 2181, section 9).
        if message.metadata.truncation {
            return match self.over_tcp().await {
                Err(Lost::Answer(answer)) => Err(Lost::Answer(Answer::Truncated {
                    silent: answer == Answer::Silence,
                })),
                message => message,
            };
        }
        Ok(message)
    }

    async fn over_udp(&self) -> Result<Message, Lost> {
        let any: SocketAddr = match self.server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        // A socket per query: its random source port makes spoofed responses harder (RFC 5452).
        let socket = UdpSocket::bind(any).await.map_err(unbound)?;
        let connected = socket.connect(self.server).await;
        connected.map_err(lost)?;
        socket.send(&self.wire).await.map_err(lost)?;

        let now = Instant::now();
        let resend_at = now + self.deadline.saturating_duration_since(now) / 3;
        let mut copies = 1;
        let mut strays = false;
        let mut buffer = vec![0; LARGEST_DATAGRAM];
        loop {
            tokio::select! {
                // Timers first: a flood of stray datagrams must not outlast the deadline.
                biased;
                () = sleep_until(self.deadline) => {
                    // After a stall of this process the response may be in the socket. tokio reads only
                    // once its driver has seen that, so the system is asked directly.
                    let socket = socket.into_std().map_err(Lost::Internal)?;
                    for _ in 0..MOST_LATE {
                        let Ok(length) = socket.recv(&mut buffer) else { break };
                        match buffer.get(..length).and_then(|bytes| self.response(bytes)) {
                            Some(response) => return Ok(response),
                            None => strays = true,
                        }
                    }
                    return Err(Lost::Answer(if strays { Answer::Stray } else { Answer::Silence }));
                }
                () = sleep_until(resend_at), if copies == 1 => {
                    copies += 1;
                    socket.send(&self.wire).await.map_err(lost)?;
                }
                received = socket.recv(&mut buffer) => {
                    let length = received.map_err(lost)?;
                    match buffer.get(..length).and_then(|bytes| self.response(bytes)) {
                        Some(response) => return Ok(response),
                        // Keep listening: a stray or forged datagram must not hide the real one.
                        None => strays = true,
                    }
                }
            }
        }
    }

    async fn over_tcp(&self) -> Result<Message, Lost> {
        let exchange = async {
            let mut stream = TcpStream::connect(self.server).await?;
            // Over TCP a two-byte length precedes each message (RFC 1035, section 4.2.2); both go
            // out in one write, as RFC 7766, section 8, asks.
            let length = u16::try_from(self.wire.len()).map_err(io::Error::other)?;
            let framed = [&length.to_be_bytes(), self.wire.as_slice()].concat();
            stream.write_all(&framed).await?;
            let length = stream.read_u16().await?;
            let mut response = vec![0; usize::from(length)];
            stream.read_exact(&mut response).await?;
            Ok(response)
        };
        match timeout_at(self.deadline, exchange).await {
            Err(_) => Err(Lost::Answer(Answer::Silence)),
            Ok(Err(error)) => Err(lost(error)),
            Ok(Ok(bytes)) => self.response(&bytes).ok_or(Lost::Answer(Answer::Stray)),
        }
    }

    /// Parses `bytes` and returns the message if it is the response to this query.
    fn response(&self, bytes: &[u8]) -> Option<Message> {
        let response = Message::from_vec(bytes).ok().or_else(|| cut_off(bytes))?;
        let metadata = &response.metadata;
        let negative = !matches!(
            metadata.response_code,
            ResponseCode::NoError | ResponseCode::NXDomain
        );
        // ID and question must match (RFC 5452, section 9.1). A server that reports an error such as
        // FORMERR need not repeat the question, which it may not have been able to parse.
        let ours = metadata.id == self.request.metadata.id
            && metadata.message_type == MessageType::Response
            && metadata.op_code == OpCode::Query
            && (response.queries == self.request.queries
                || negative && response.queries.is_empty());
        ours.then_some(response)
    }
}

/// Classifies an error of opening a socket. An address family that this host does not support is the
/// server's failure, not ours.
fn unbound(error: io::Error) -> Lost {
    match Errno::from_io_error(&error) {
        Some(Errno::AFNOSUPPORT) => Lost::Answer(Answer::Unreachable),
        _ => Lost::Internal(error),
    }
}

/// Classifies an error of a socket: the server is unreachable unless this host ran out of a resource.
fn lost(error: io::Error) -> Lost {
    match Errno::from_io_error(&error) {
        // Connecting a UDP socket fails with EAGAIN if no local port is free.
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN) => {
            Lost::Internal(error)
        }
        _ => Lost::Answer(Answer::Unreachable),
    }
}

/// Parses the header and the question of a truncated message, which may end in the middle of a record.
/// Its records are to be ignored.
fn cut_off(bytes: &[u8]) -> Option<Message> {
    let mut decoder = BinDecoder::new(bytes);
    let Header { metadata, counts } = Header::read(&mut decoder).ok()?;
    let mut message = Message::new(metadata.id, metadata.message_type, metadata.op_code);
    message.metadata = metadata;
    message.queries = Message::read_queries(&mut decoder, usize::from(counts.queries)).ok()?;
    message.metadata.truncation.then_some(message)
}

/// Reads the addresses of the queried type and name, following CNAME records.
fn read(message: &Message, query: &Query) -> Response {
    match message.metadata.response_code {
        ResponseCode::NoError => {}
        ResponseCode::NXDomain => return Response::Other(Answer::NxDomain),
        ResponseCode::ServFail => return Response::Other(Answer::ServFail),
        ResponseCode::Refused | ResponseCode::NotImp => return Response::Other(Answer::Refused),
        _ => return Response::Other(Answer::Rejected),
    }
    let mut owner = &query.name;
    // The records of an alias chain may come in any order. A chain is at most as long as the answer
    // section, which bounds the walk around a loop of aliases.
    for _ in &message.answers {
        let alias = message
            .answers
            .iter()
            .find_map(|record| match &record.data {
                RData::CNAME(target) if record.name == *owner => Some(&target.0),
                _ => None,
            });
        match alias {
            Some(target) => owner = target,
            None => break,
        }
    }
    let typed = message.answers.iter();
    let mut typed = typed
        .filter(|record| record.record_type() == query.query_type)
        .peekable();
    if typed.peek().is_none() {
        return Response::Other(without_address(message));
    }
    let named = typed.filter(|record| record.name == *owner);
    let addresses: Vec<_> = named.filter_map(|record| record.data.ip_addr()).collect();
    if addresses.is_empty() {
        return Response::Other(Answer::Foreign);
    }
    Response::Addresses {
        owner: owner.clone(),
        addresses,
    }
}

/// Tells apart the responses that have no record of the queried type.
fn without_address(message: &Message) -> Answer {
    if !message.answers.is_empty() {
        return Answer::Alias;
    }
    let metadata = &message.metadata;
    let knows = metadata.authoritative || metadata.recursion_available;
    if knows || !message.additionals.is_empty() {
        Answer::NoData
    } else {
        Answer::Lame
    }
}

#[cfg(test)]
impl Response {
    /// Returns the response of a server that knows the name.
    pub(super) fn known(query: Query) -> Self {
        Self::Addresses {
            owner: query.name,
            addresses: vec![[10, 96, 0, 1].into()],
        }
    }

    /// Returns a response of this class.
    pub(super) fn of(class: health::dns::DnsClass) -> Self {
        use health::dns::DnsClass;
        Self::Other(match class {
            DnsClass::NoData => Answer::NoData,
            DnsClass::NxDomain => Answer::NxDomain,
            DnsClass::Mismatch => Answer::Foreign,
            DnsClass::Truncated => Answer::Truncated { silent: true },
            DnsClass::Refused => Answer::Refused,
            DnsClass::ServFail => Answer::ServFail,
            DnsClass::Unreachable => Answer::Unreachable,
            DnsClass::Timeout => Answer::Silence,
        })
    }
}

#[cfg(test)]
mod tests;
