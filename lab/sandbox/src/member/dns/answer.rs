//! What a member's DNS server answers to a question.

use std::net::Ipv4Addr;

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::facts::DnsFault;

/// The name that every cluster's DNS knows: that of its own API.
pub(crate) const KUBERNETES: &str = "kubernetes.default.svc.cluster.local.";
/// Where that API is, in a cluster as most are set up.
const API: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// How long an answer may be kept, as CoreDNS says for a cluster's own names.
const SECONDS_TO_LIVE: u32 = 30;
/// Of ten questions, so many are lost.
const LOST_OF_TEN: usize = 3;

/// What becomes of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Nothing,
    Now(Vec<u8>),
    /// After so long that nobody waits for it.
    Late(Vec<u8>),
}

/// Answers the `nth` question that the server gets. What is no question gets no answer.
pub(super) fn reply(question: &[u8], fault: DnsFault, nth: usize) -> Reply {
    let Some(healthy) = answer(question) else {
        return Reply::Nothing;
    };
    let failed = |code| {
        let mut answer = healthy.clone();
        answer.metadata.response_code = code;
        answer.answers.clear();
        answer
    };
    let answer = match fault {
        DnsFault::Stop | DnsFault::Drop => return Reply::Nothing,
        // Spread out, so that a question asked again is rarely lost again.
        DnsFault::Lose if nth * LOST_OF_TEN % 10 < LOST_OF_TEN => return Reply::Nothing,
        DnsFault::Refuse => failed(ResponseCode::Refused),
        DnsFault::Servfail => failed(ResponseCode::ServFail),
        DnsFault::Nxdomain => failed(ResponseCode::NXDomain),
        DnsFault::None | DnsFault::Slow | DnsFault::Lose => healthy,
    };
    match answer.to_vec() {
        Ok(bytes) if fault == DnsFault::Slow => Reply::Late(bytes),
        Ok(bytes) => Reply::Now(bytes),
        Err(_) => Reply::Nothing,
    }
}

/// As a healthy cluster's DNS answers: its API has an address of version 4, no other name exists.
fn answer(question: &[u8]) -> Option<Message> {
    let asked = Message::from_vec(question).ok()?;
    if asked.metadata.message_type != MessageType::Query {
        return None;
    }
    let query = asked.queries.first()?;
    let mut answer = Message::response(asked.metadata.id, asked.metadata.op_code);
    answer.metadata.recursion_desired = asked.metadata.recursion_desired;
    answer.metadata.authoritative = true;
    answer.add_query(query.clone());
    if Name::from_ascii(KUBERNETES).ok()? != *query.name() {
        answer.metadata.response_code = ResponseCode::NXDomain;
    } else if query.query_type() == RecordType::A {
        let record = Record::from_rdata(query.name().clone(), SECONDS_TO_LIVE, RData::A(A(API)));
        answer.add_answer(record);
    }
    Some(answer)
}
