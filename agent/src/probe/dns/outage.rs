//! The results of the lookups of one name, and how much of it the next round queries.
//!
//! A name that does not resolve gets a full lookup in the first such round and in every third one. The
//! rounds in between are [short](super::lookup): a dead server receives one query instead of all
//! candidates in both families. They miss no recovery:
//!
//! - They query every server, so the first to recover counts, whichever resolved the name before.
//! - Their query is the one that last returned an address. Before there is one, it is the first that a pod
//!   sends.
//! - A server that denies that name, or responds in any other way, gets all other queries in the same
//!   round. So the name may have moved to another suffix meanwhile. If the server takes longer than the
//!   first quarter of the round, these come too late, and the round is no full one.
//! - Whatever `resolv.conf` or the flags change makes the next lookup a full one.
//!
//! Only where a server stays silent on this query and responds to another one does it take until the next
//! full lookup, at most two rounds later.

use std::net::SocketAddr;

use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use karmada_rules::health::diagnosis::Transport;
use karmada_rules::health::observation::Failure;

use super::exchange::ProbeError;
use super::lookup::{Found, NotFound};
use super::resolv_conf::ResolvConf;

/// The number of short lookups between two full ones. With the default period and threshold, full
/// lookups begin a failing streak, are in its middle, and are due when it turns the vote.
const SHORT_LOOKUPS: u32 = 2;

/// All that a lookup may query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Questions {
    pub(super) servers: Vec<SocketAddr>,
    pub(super) candidates: Vec<Name>,
    pub(super) families: &'static [RecordType],
    pub(super) transport: Transport,
}

impl Questions {
    /// Returns the questions that `name` leads to, for `servers`.
    pub(super) fn new(name: &Name, servers: &[SocketAddr], conf: &ResolvConf) -> Self {
        Self {
            servers: servers.to_vec(),
            candidates: conf.candidates(name),
            families: conf.families,
            transport: conf.transport,
        }
    }
}

/// The results of the lookups of one name.
#[derive(Clone, Debug, Default)]
pub(super) struct NameState {
    /// The query that last returned an address.
    known: Option<Query>,
    /// Set while the name does not resolve.
    outage: Option<Outage>,
}

#[derive(Clone, Debug)]
struct Outage {
    /// What the last full lookup queried.
    questions: Questions,
    /// The failure of the last full lookup.
    failure: Failure,
    /// The number of short lookups since.
    short: u32,
}

impl NameState {
    /// Returns the query that last returned an address, if it is still one of `questions`.
    pub(super) fn known(&self, questions: &Questions) -> Option<&Query> {
        self.known.as_ref().filter(|known| {
            questions.candidates.contains(&known.name)
                && questions.families.contains(&known.query_type)
        })
    }

    /// Returns the query of a short lookup, or `None` if the next lookup is a full one.
    pub(super) fn first(&self, questions: &Questions) -> Option<Query> {
        let outage = self.outage.as_ref()?;
        if outage.questions != *questions || outage.short >= SHORT_LOOKUPS {
            return None;
        }
        let known = self.known(questions).cloned();
        known.or_else(|| {
            let (name, family) = questions
                .candidates
                .first()
                .zip(questions.families.first())?;
            Some(Query::query(name.clone(), *family))
        })
    }

    /// Records the result of a lookup. A short one does not know every failure, so the failure of the
    /// last full lookup stands unless that of the short one is worse.
    pub(super) fn record(
        &mut self,
        result: Result<Found, NotFound>,
        questions: Questions,
    ) -> Result<(), ProbeError> {
        let NotFound { error, complete } = match result {
            Ok(found) => {
                self.known = Some(found.query);
                self.outage = None;
                return Ok(());
            }
            Err(not_found) => not_found,
        };
        let ProbeError::Failed(failure) = error else {
            return Err(error);
        };
        match &mut self.outage {
            Some(outage) if !complete => {
                outage.short += 1;
                Err(ProbeError::Failed(outage.failure.or_worse(failure)))
            }
            _ => {
                self.outage = Some(Outage {
                    questions,
                    failure,
                    short: 0,
                });
                Err(error)
            }
        }
    }
}
