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

use health::diagnosis::Transport;
use health::observation::{Failure, Pods};
use health::resolvers::{self, Answers};
use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use karmada_runtime::resolv_conf::ResolvConf;

use super::exchange::ProbeError;
use super::lookup::{Found, NotFound, transport};

/// The number of short lookups between two full ones. With the default period and threshold, full
/// lookups begin a failing streak, are in its middle, and are due when it turns the vote.
const SHORT_LOOKUPS: u32 = 2;

/// All that a lookup may query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LookupPlan {
    pub(super) servers: Vec<SocketAddr>,
    pub(super) candidates: Vec<Name>,
    pub(super) families: &'static [RecordType],
    pub(super) transport: Transport,
    /// True if the name itself is the first candidate.
    pub(super) as_it_is_first: bool,
}

impl LookupPlan {
    /// Returns the plan for `name` at `servers`.
    pub(super) fn new(name: &Name, servers: &[SocketAddr], conf: &ResolvConf) -> Self {
        Self {
            servers: servers.to_vec(),
            candidates: conf.candidates(name),
            families: conf.families,
            transport: transport(conf),
            as_it_is_first: conf.is_first(name),
        }
    }

    /// Returns the view that pods have of the answers to a lookup by this plan.
    pub(super) fn pods(&self, answers: &Answers, rotate: bool) -> Pods {
        let lookup = resolvers::Lookup {
            candidates: self.candidates.len(),
            as_it_is_first: self.as_it_is_first,
            servers: &self.servers,
            rotate,
            over_tcp: self.transport == Transport::Tcp,
            no_aaaa: !self.families.contains(&RecordType::AAAA),
        };
        resolvers::pods(&lookup, answers)
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
    /// The plan of the last full lookup.
    plan: LookupPlan,
    /// The failure of the last full lookup.
    failure: Failure,
    /// The number of short lookups since.
    short: u32,
}

impl NameState {
    /// Returns the query that last returned an address, if `plan` still has it.
    pub(super) fn known(&self, plan: &LookupPlan) -> Option<&Query> {
        self.known.as_ref().filter(|known| {
            plan.candidates.contains(&known.name) && plan.families.contains(&known.query_type)
        })
    }

    /// Returns the query of a short lookup, or `None` if the next lookup is a full one.
    pub(super) fn first(&self, plan: &LookupPlan) -> Option<Query> {
        let outage = self.outage.as_ref()?;
        if outage.plan != *plan || outage.short >= SHORT_LOOKUPS {
            return None;
        }
        let known = self.known(plan).cloned();
        known.or_else(|| {
            let (name, family) = plan.candidates.first().zip(plan.families.first())?;
            Some(Query::query(name.clone(), *family))
        })
    }

    /// Records the result of a lookup. A short one does not know every failure, so the failure of the
    /// last full lookup stands unless that of the short one is worse.
    pub(super) fn record(
        &mut self,
        result: Result<Found, NotFound>,
        plan: LookupPlan,
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
                    plan,
                    failure,
                    short: 0,
                });
                Err(error)
            }
        }
    }
}
