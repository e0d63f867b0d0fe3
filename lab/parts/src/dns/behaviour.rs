//! The responses of a server.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use health::diagnosis::Transport;
use hickory_proto::op::{Query, ResponseCode};

/// A response to a query.
#[derive(Clone, Debug)]
pub enum Response {
    /// `127.0.0.1` or `::1`, whichever has the queried type.
    Loopback,
    /// This address if the query is for type A, else an empty answer section.
    Ipv4(Ipv4Addr),
    /// This address if the query is for type AAAA, else an empty answer section.
    Ipv6(Ipv6Addr),
    /// An alias of this full name, and the response for that, in the order that glibc reads alone.
    Alias(&'static str, Box<Self>),
    /// The loopback address of another name.
    Foreign,
    /// An empty answer section.
    NoData,
    /// [`Self::NoData`] of a server that is neither authoritative nor recursive.
    Lame,
    /// A response code without records.
    Code(ResponseCode),
    /// A response code in a message that does not repeat the question.
    BareCode(ResponseCode),
    /// Nothing, over TCP neither until the client gives up.
    Drop,
    /// Nothing; a TCP connection is closed.
    Close,
    /// [`Self::Loopback`] with the id of another message.
    WrongId,
    /// [`Self::Loopback`] for another question.
    WrongQuestion,
    /// Bytes that are no DNS message.
    Garbage,
    /// Over UDP a message with the TC bit and no records (RFC 1035, section 4.1.1); over TCP this
    /// response.
    Truncated(Box<Self>),
    /// [`Self::Truncated`], but over UDP the message ends in the middle of a record, as of servers and
    /// proxies that cut a response at its size (RFC 2181, section 9).
    Cut(Box<Self>),
    /// This response after a while.
    Delayed(Duration, Box<Self>),
    /// Each of these responses, one after the other.
    Each(Vec<Self>),
}

/// A query that the server received.
#[derive(Clone, Debug)]
pub struct Received {
    /// The transport it came over.
    pub transport: Transport,
    /// The id of the message.
    pub id: u16,
    /// The question.
    pub query: Query,
    /// Set if the same question came before.
    pub repeated: bool,
}

/// The choice of a response to each query.
#[derive(Clone)]
pub struct Behaviour(Arc<dyn Fn(&Received) -> Response + Send + Sync>);

impl Behaviour {
    /// Responds to each query as `choose` says.
    pub fn new(choose: impl Fn(&Received) -> Response + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }

    /// Returns the response to a query.
    pub fn response_to(&self, received: &Received) -> Response {
        (self.0)(received)
    }

    /// Responds so to queries for these full names, and with NXDOMAIN to all others.
    ///
    /// ```
    /// # use lab_parts::dns::{Behaviour, KUBERNETES, KUBERNETES_IP, Response};
    /// let cluster = Behaviour::zone([KUBERNETES], Response::Ipv4(KUBERNETES_IP));
    /// ```
    pub fn zone<'a>(names: impl IntoIterator<Item = &'a str>, response: Response) -> Self {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        Self::new(move |received| {
            // Names compare without regard to case (RFC 4343).
            let name = received.query.name().to_ascii();
            if names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                response.clone()
            } else {
                Response::Code(ResponseCode::NXDomain)
            }
        })
    }
}

impl From<Response> for Behaviour {
    /// Responds to all queries alike.
    fn from(response: Response) -> Self {
        Self::new(move |_| response.clone())
    }
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Behaviour").finish_non_exhaustive()
    }
}
