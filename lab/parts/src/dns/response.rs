//! Responses on the wire.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use health::diagnosis::Transport;
use hickory_proto::op::Message;
use hickory_proto::rr::rdata::{A, AAAA, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use super::behaviour::Response;

/// The time to live of every record, in seconds: short, so that a client with a cache notices a
/// changed behaviour within a test.
const TIME_TO_LIVE: u32 = 1;

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) after: Duration,
    pub(super) bytes: Vec<u8>,
}

impl Response {
    /// Returns `true` if a TCP connection ends with this response.
    pub(super) fn closes(&self) -> bool {
        match self {
            Self::Close => true,
            Self::Truncated(response) | Self::Cut(response) | Self::Delayed(_, response) => {
                response.closes()
            }
            Self::Each(responses) => responses.iter().any(Self::closes),
            _ => false,
        }
    }

    /// Returns the messages of the response to a request, whose first query it is for. A message that cannot
    /// be encoded is left out.
    pub(super) fn encode(&self, request: &Message, transport: Transport) -> Vec<Sent> {
        match self {
            Self::Drop | Self::Close => Vec::new(),
            Self::Garbage => vec![Sent::at_once(b"no DNS message".to_vec())],
            Self::Truncated(response) | Self::Cut(response) if transport == Transport::Tcp => {
                response.encode(request, transport)
            }
            Self::Delayed(by, response) => {
                let mut sent = response.encode(request, transport);
                for message in &mut sent {
                    message.after += *by;
                }
                sent
            }
            Self::Each(responses) => {
                let each = responses.iter();
                let sent = each.flat_map(|response| response.encode(request, transport));
                sent.collect()
            }
            _ => {
                let message = self.message(request);
                let mut bytes = message.and_then(|message| message.to_vec().ok());
                if let (Self::Cut(_), Some(bytes)) = (self, &mut bytes) {
                    // Half of the address, which ends the message.
                    bytes.truncate(bytes.len() - 2);
                }
                bytes.map(Sent::at_once).into_iter().collect()
            }
        }
    }

    /// Returns the message of a response that consists of one.
    fn message(&self, request: &Message) -> Option<Message> {
        let query = request.queries.first()?;
        let mut message = Message::response(request.metadata.id, request.metadata.op_code);
        message.metadata.recursion_desired = request.metadata.recursion_desired;
        message.metadata.authoritative = true;
        message.add_query(query.clone());
        let name = query.name();
        let loopback = match query.query_type() {
            RecordType::AAAA => RData::AAAA(AAAA(Ipv6Addr::LOCALHOST)),
            _ => RData::A(A(Ipv4Addr::LOCALHOST)),
        };
        let answer = match self {
            Self::Loopback | Self::WrongId | Self::Cut(_) => Some((name.clone(), loopback)),
            Self::Ipv4(address) if query.query_type() == RecordType::A => {
                Some((name.clone(), RData::A(A(*address))))
            }
            Self::Ipv6(address) if query.query_type() == RecordType::AAAA => {
                Some((name.clone(), RData::AAAA(AAAA(*address))))
            }
            Self::Foreign | Self::WrongQuestion => Some((elsewhere(), loopback)),
            _ => None,
        };
        if let Some((name, data)) = answer {
            message.add_answer(Record::from_rdata(name, TIME_TO_LIVE, data));
        }
        match self {
            Self::Alias(of, response) => {
                let of = Name::from_ascii(of).ok()?;
                let mut query = query.clone();
                query.set_name(of.clone());
                let mut request = request.clone();
                request.queries = vec![query];
                let target = response.message(&request)?;
                message.metadata.response_code = target.metadata.response_code;
                let alias = RData::CNAME(CNAME(of));
                message.add_answer(Record::from_rdata(name.clone(), TIME_TO_LIVE, alias));
                message.answers.extend(target.answers);
            }
            Self::Code(code) => message.metadata.response_code = *code,
            Self::BareCode(code) => {
                message.metadata.response_code = *code;
                message.queries.clear();
            }
            Self::WrongId => message.metadata.id ^= 1,
            Self::Lame => message.metadata.authoritative = false,
            Self::WrongQuestion => {
                for query in &mut message.queries {
                    query.set_name(elsewhere());
                }
            }
            Self::Truncated(_) | Self::Cut(_) => message.metadata.truncation = true,
            _ => {}
        }
        Some(message)
    }
}

impl Sent {
    fn at_once(bytes: Vec<u8>) -> Self {
        let after = Duration::ZERO;
        Self { after, bytes }
    }
}

/// A name that is not queried.
fn elsewhere() -> Name {
    Name::from_labels(["elsewhere", "example"]).unwrap_or_else(|_| Name::root())
}
