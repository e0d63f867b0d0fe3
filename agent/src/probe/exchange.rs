//! One question to one server: a datagram, sent again once, and TCP when the answer does not fit.
//!
//! The datagram's socket is connected, so that the system tells at once when nothing listens there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{RData, Record};
use karmada_rules::health::diagnosis::Transport;
use karmada_rules::health::failure::FailureClass;
use karmada_rules::health::observation::Failure;
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, sleep_until, timeout_at};

/// An answer without EDNS has at most 512 bytes (RFC 1035, section 4.2.1); servers have erred.
const LARGEST_DATAGRAM: usize = 4096;

/// Why a question brought no address.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The server failed us.
    Failed(Failure),
    /// We could not ask.
    Internal(io::Error),
}

impl Unanswered {
    /// What two questions come to that both brought no address. Where one could not be asked,
    /// there is no telling what it would have brought.
    pub(super) fn or_worse(self, other: Self) -> Self {
        match (self, other) {
            (Self::Internal(error), _) | (_, Self::Internal(error)) => Self::Internal(error),
            (Self::Failed(one), Self::Failed(other)) => Self::Failed(one.or_worse(other)),
        }
    }
}

/// The addresses that `server` has for `question`, at least one; it has until `deadline`.
pub(super) async fn ask(
    server: SocketAddr,
    transport: Transport,
    question: Query,
    deadline: Instant,
) -> Result<Vec<IpAddr>, Unanswered> {
    let mut query = Message::query();
    query.metadata.recursion_desired = true;
    query.add_query(question.clone());
    let wire = query
        .to_vec()
        .map_err(|error| Unanswered::Internal(io::Error::other(error)))?;
    let exchange = Exchange {
        server,
        query,
        wire,
        deadline,
    };
    let answer = match transport {
        Transport::Udp => exchange.over_udp().await?,
        Transport::Tcp => exchange.over_tcp().await?,
    };
    let answer = if answer.metadata.truncation {
        match exchange.over_tcp().await {
            Err(Unanswered::Failed(_)) => return Err(exchange.failed(FailureClass::Truncated)),
            answer => answer?,
        }
    } else {
        answer
    };
    addresses(&answer, &question).map_err(|class| exchange.failed(class))
}

/// A question under way.
struct Exchange {
    server: SocketAddr,
    query: Message,
    wire: Vec<u8>,
    deadline: Instant,
}

impl Exchange {
    async fn over_udp(&self) -> Result<Message, Unanswered> {
        let any: SocketAddr = match self.server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await.map_err(|e| self.unbound(e))?;
        let connected = socket.connect(self.server).await;
        connected.map_err(|e| self.lost(e))?;
        socket.send(&self.wire).await.map_err(|e| self.lost(e))?;

        let now = Instant::now();
        let resend_at = now + self.deadline.saturating_duration_since(now) / 3;
        let mut copies = 1;
        let mut strays = false;
        let mut buffer = vec![0; LARGEST_DATAGRAM];
        loop {
            tokio::select! {
                biased;
                () = sleep_until(self.deadline) => {
                    return Err(self.failed(if strays { FailureClass::Mismatch } else { FailureClass::Timeout }));
                }
                () = sleep_until(resend_at), if copies == 1 => {
                    copies += 1;
                    socket.send(&self.wire).await.map_err(|e| self.lost(e))?;
                }
                received = socket.recv(&mut buffer) => {
                    let length = received.map_err(|e| self.lost(e))?;
                    match buffer.get(..length).and_then(|bytes| self.answer(bytes)) {
                        Some(answer) => return Ok(answer),
                        None => strays = true,
                    }
                }
            }
        }
    }

    async fn over_tcp(&self) -> Result<Message, Unanswered> {
        let exchange = async {
            let mut stream = TcpStream::connect(self.server).await?;
            let length = u16::try_from(self.wire.len()).map_err(io::Error::other)?;
            let framed = [&length.to_be_bytes(), self.wire.as_slice()].concat();
            stream.write_all(&framed).await?;
            let length = stream.read_u16().await?;
            let mut answer = vec![0; usize::from(length)];
            stream.read_exact(&mut answer).await?;
            Ok(answer)
        };
        match timeout_at(self.deadline, exchange).await {
            Err(_) => Err(self.failed(FailureClass::Timeout)),
            Ok(Err(error)) => Err(self.lost(error)),
            Ok(Ok(bytes)) => self
                .answer(&bytes)
                .ok_or_else(|| self.failed(FailureClass::Mismatch)),
        }
    }

    /// The message in `bytes`, if it answers our question. A server that reports an error need not
    /// repeat the question.
    fn answer(&self, bytes: &[u8]) -> Option<Message> {
        let answer = Message::from_vec(bytes).ok()?;
        let metadata = &answer.metadata;
        let negative = !matches!(
            metadata.response_code,
            ResponseCode::NoError | ResponseCode::NXDomain
        );
        let ours = metadata.id == self.query.metadata.id
            && metadata.message_type == MessageType::Response
            && metadata.op_code == OpCode::Query
            && (answer.queries == self.query.queries || negative && answer.queries.is_empty());
        ours.then_some(answer)
    }

    fn failed(&self, class: FailureClass) -> Unanswered {
        Unanswered::Failed(Failure::new(class, self.server))
    }

    /// The socket could not be had; a family that this host does not speak is the server's failure.
    fn unbound(&self, error: io::Error) -> Unanswered {
        match Errno::from_io_error(&error) {
            Some(Errno::AFNOSUPPORT) => self.failed(FailureClass::Unreachable),
            _ => Unanswered::Internal(error),
        }
    }

    /// The server could not be reached, unless it was us who ran out of something.
    fn lost(&self, error: io::Error) -> Unanswered {
        match Errno::from_io_error(&error) {
            // The last is what a datagram's socket says when no port is free.
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN) => {
                Unanswered::Internal(error)
            }
            _ => self.failed(FailureClass::Unreachable),
        }
    }
}

/// The addresses in the answer, of the type asked for, of the name asked for or of one that it is
/// an alias of.
fn addresses(answer: &Message, question: &Query) -> Result<Vec<IpAddr>, FailureClass> {
    match answer.metadata.response_code {
        ResponseCode::NoError => {}
        ResponseCode::NXDomain => return Err(FailureClass::NxDomain),
        ResponseCode::ServFail => return Err(FailureClass::ServFail),
        _ => return Err(FailureClass::Refused),
    }
    let mut name = &question.name;
    for _ in &answer.answers {
        let alias = answer.answers.iter().find_map(|record| match &record.data {
            RData::CNAME(target) if record.name == *name => Some(&target.0),
            _ => None,
        });
        match alias {
            Some(target) => name = target,
            None => break,
        }
    }
    let typed = |record: &&Record| record.record_type() == question.query_type;
    let mut typed = answer.answers.iter().filter(typed).peekable();
    if typed.peek().is_none() {
        return Err(FailureClass::NoData);
    }
    let named = typed.filter(|record| record.name == *name);
    let addresses: Vec<_> = named.filter_map(|record| record.data.ip_addr()).collect();
    if addresses.is_empty() {
        return Err(FailureClass::Mismatch);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests;
