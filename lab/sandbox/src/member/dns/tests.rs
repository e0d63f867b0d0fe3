use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use karmada_rules::health::failure::FailureClass;

use super::*;
use crate::facts;
use crate::member::lookup::Lookup;

const TOO_LATE: Duration = Duration::from_secs(1);

async fn server() -> (DnsServer, Lookup) {
    let server = DnsServer::start(TOO_LATE).await.unwrap();
    let (facts, _) = facts::channel();
    let lookup = Lookup {
        cluster: "member1".to_owned(),
        server: server.address(),
        facts,
    };
    (server, lookup)
}

fn question() -> Message {
    let name = Name::from_ascii(KUBERNETES).unwrap();
    let mut question = Message::query();
    question.add_query(Query::query(name, RecordType::A));
    question
}

async fn class(lookup: &Lookup) -> Option<FailureClass> {
    lookup.resolve().await.err().map(|failure| failure.class)
}

#[tokio::test]
async fn every_fault_looks_to_a_pod_as_it_should_and_is_mended() {
    let (server, lookup) = server().await;
    let cases = [
        (DnsFault::Stop, FailureClass::Unreachable),
        (DnsFault::Refuse, FailureClass::Refused),
        (DnsFault::Servfail, FailureClass::ServFail),
        (DnsFault::Nxdomain, FailureClass::NxDomain),
        (DnsFault::Drop, FailureClass::Timeout),
        (DnsFault::Slow, FailureClass::Timeout),
    ];
    for (fault, expected) in cases {
        assert_eq!(class(&lookup).await, None, "before {fault:?}");
        server.set(fault);
        // The change is handled before the next question: a stopped server needs a turn to go.
        tokio::task::yield_now().await;
        assert_eq!(class(&lookup).await, Some(expected), "{fault:?}");
        server.set(DnsFault::None);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stopped_server_refuses_connections_and_returns_to_its_port() {
    let (server, _) = server().await;
    TcpStream::connect(server.address()).await.unwrap();
    server.set(DnsFault::Stop);
    tokio::task::yield_now().await;
    assert!(TcpStream::connect(server.address()).await.is_err());
    server.set(DnsFault::None);
    tokio::task::yield_now().await;
    TcpStream::connect(server.address()).await.unwrap();
}

#[tokio::test]
async fn the_same_is_answered_over_tcp() {
    let (server, _) = server().await;
    let question = question();
    let bytes = question.to_vec().unwrap();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream
        .write_u16(u16::try_from(bytes.len()).unwrap())
        .await
        .unwrap();
    stream.write_all(&bytes).await.unwrap();
    let length = stream.read_u16().await.unwrap();
    let mut answer = vec![0; usize::from(length)];
    stream.read_exact(&mut answer).await.unwrap();
    let answer = Message::from_vec(&answer).unwrap();
    assert_eq!(answer.answers.len(), 1);
    assert_eq!(answer.metadata.id, question.metadata.id);
}

#[test]
fn three_of_ten_questions_are_lost_and_garbage_gets_no_answer() {
    let bytes = question().to_vec().unwrap();
    let lost = (0..100).filter(|nth| reply(&bytes, DnsFault::Lose, *nth) == Reply::Nothing);
    assert_eq!(lost.count(), 30);
    for garbage in [&b""[..], b"x", &[0; 12], &[255; 600]] {
        assert_eq!(
            reply(garbage, DnsFault::None, 0),
            Reply::Nothing,
            "{garbage:?}"
        );
    }
}
