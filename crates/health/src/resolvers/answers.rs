//! The answers to one lookup, and the queries that led to them.

use std::net::SocketAddr;

use crate::dns::DnsClass;
use crate::observation::Family;

/// The answer to one query, as far as resolvers tell answers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Addresses of the queried type, all of them right.
    Right,
    /// Addresses of the queried type, of which one is not right.
    Stranger,
    /// Addresses of another name than the queried one and its aliases.
    Foreign,
    /// An alias without an address.
    Alias,
    /// NOERROR without a record.
    NoData,
    /// As [`Self::NoData`], by a server that is neither authoritative nor recursive.
    Lame,
    /// NXDOMAIN.
    NxDomain,
    /// SERVFAIL.
    ServFail,
    /// REFUSED or NOTIMP.
    Refused,
    /// FORMERR or any other code.
    Rejected,
    /// The response does not fit into a datagram, and none came over TCP.
    Truncated {
        /// No response came in time; otherwise there was no connection, or it ended.
        silent: bool,
    },
    /// Something that is no response to this query, which resolvers ignore.
    Stray,
    /// Nothing listens at the address, or there is no route to it.
    Unreachable,
    /// No response came in time.
    Silence,
}

impl Answer {
    /// Returns the class of a failure by this answer, or `None` if it is right.
    pub fn class(self) -> Option<DnsClass> {
        Some(match self {
            Self::Right => return None,
            Self::Stranger | Self::Foreign | Self::Stray => DnsClass::Mismatch,
            Self::Alias | Self::NoData | Self::Lame => DnsClass::NoData,
            Self::NxDomain => DnsClass::NxDomain,
            Self::ServFail => DnsClass::ServFail,
            Self::Refused | Self::Rejected => DnsClass::Refused,
            Self::Truncated { .. } => DnsClass::Truncated,
            Self::Unreachable => DnsClass::Unreachable,
            Self::Silence => DnsClass::Timeout,
        })
    }

    /// Returns `true` if no resolver takes it for a response.
    pub(super) fn is_silent(self) -> bool {
        matches!(self, Self::Silence | Self::Stray)
    }

    pub(super) fn has_address(self) -> bool {
        matches!(self, Self::Right | Self::Stranger | Self::Foreign)
    }
}

/// A lookup, as `/etc/resolv.conf` has it.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of that file"
)]
pub struct Lookup<'a> {
    /// The number of candidates.
    pub candidates: usize,
    /// True if the name itself is the first candidate; otherwise it is the last.
    pub as_it_is_first: bool,
    /// The servers, in their order.
    pub servers: &'a [SocketAddr],
    /// True if each query begins at another server.
    pub rotate: bool,
    /// True if queries go over TCP alone.
    pub over_tcp: bool,
    /// True if only A queries are sent.
    pub no_aaaa: bool,
}

/// The answers to the queries of one lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers(Vec<Given>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Given {
    candidate: usize,
    server: usize,
    family: Family,
    answer: Answer,
}

impl Lookup<'_> {
    /// Returns the place of the name itself among the candidates.
    pub(super) fn as_it_is(&self) -> usize {
        if self.as_it_is_first {
            0
        } else {
            self.candidates.saturating_sub(1)
        }
    }
}

impl Answers {
    /// Adds the answer of a server to the query for a candidate's addresses of this family.
    pub fn record(&mut self, candidate: usize, server: usize, family: Family, answer: Answer) {
        self.0.push(Given {
            candidate,
            server,
            family,
            answer,
        });
    }

    /// Returns `true` if a query for this candidate was sent.
    pub(super) fn has(&self, candidate: usize) -> bool {
        self.0.iter().any(|given| given.candidate == candidate)
    }

    /// Returns an answer, or `None` if that query was not sent.
    pub fn get(&self, candidate: usize, server: usize, family: Family) -> Option<Answer> {
        let mut all = self.0.iter();
        let given = all.find(|given| {
            (given.candidate, given.server, given.family) == (candidate, server, family)
        });
        given.map(|given| given.answer)
    }
}
