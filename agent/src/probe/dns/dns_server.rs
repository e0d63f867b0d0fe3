//! A DNS server for tests, on a loopback port of its own, that answers as badly as it is told to.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use karmada_rules::health::diagnosis::Transport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

/// What the server does with a query.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// An address of the type asked for.
    Address,
    /// An alias, and the address of what it stands for, the latter first.
    Alias,
    /// An address, of another name.
    Foreign,
    /// An answer without address.
    NoData,
    Code(ResponseCode),
    /// A response code, in a message that does not repeat the question.
    BareCode(ResponseCode),
    Drop,
    /// An address, from the second datagram on.
    DropFirst,
    Late(Duration),
    WrongId,
    WrongQuestion,
    Garbage,
    /// Garbage, then the address.
    GarbageFirst,
    /// Over UDP cut off; over TCP as told.
    Truncated(Box<Self>),
    /// Nothing over one transport; over the other as told.
    Deaf(Transport, Box<Self>),
}

/// A running server; it ends when dropped.
#[derive(Debug)]
pub(super) struct DnsServer {
    pub(super) address: SocketAddr,
    asked: Log,
    _tasks: JoinSet<()>,
}

/// A query that the server got.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) over: Transport,
    pub(super) id: u16,
    pub(super) query: Query,
}

type Log = Arc<Mutex<Vec<Asked>>>;
type Script = Arc<dyn Fn(&Query) -> Reply + Send + Sync>;

impl DnsServer {
    /// Starts a server that replies to every query alike.
    pub(super) async fn replying(reply: Reply) -> Self {
        Self::start(move |_| reply.clone()).await
    }

    /// Starts a server that knows the names given and denies all others.
    pub(super) async fn knowing(names: &[&str]) -> Self {
        let names: Vec<_> = names
            .iter()
            .map(|name| Name::from_ascii(name).unwrap())
            .collect();
        Self::start(move |query| {
            if names.contains(&query.name) {
                Reply::Address
            } else {
                Reply::Code(ResponseCode::NXDomain)
            }
        })
        .await
    }

    pub(super) async fn start(script: impl Fn(&Query) -> Reply + Send + Sync + 'static) -> Self {
        let script: Script = Arc::new(script);
        let (udp, tcp) = sockets().await;
        let address = udp.local_addr().unwrap();
        let asked = Log::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve_udp(udp, Arc::clone(&script), Arc::clone(&asked)));
        tasks.spawn(serve_tcp(tcp, script, Arc::clone(&asked)));
        Self {
            address,
            asked,
            _tasks: tasks,
        }
    }

    /// What was asked so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many queries came over `transport`.
    pub(super) fn count(&self, transport: Transport) -> usize {
        self.asked()
            .iter()
            .filter(|asked| asked.over == transport)
            .count()
    }
}

/// An address of this machine on which nobody listens.
pub(super) fn closed_port() -> SocketAddr {
    ([127, 99, 99, 99], 1).into()
}

/// A port that is free for both transports.
async fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
            return (udp, tcp);
        }
    }
}

/// Notes a query, and says whether it was asked before.
fn note(log: &Log, over: Transport, request: &Message) -> bool {
    let query = request.queries[0].clone();
    let id = request.metadata.id;
    let mut log = log.lock().unwrap();
    let before = log.iter().any(|asked| asked.query == query);
    log.push(Asked { over, id, query });
    before
}

async fn serve_udp(socket: UdpSocket, script: Script, log: Log) {
    let mut buffer = [0; 512];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        let request = Message::from_vec(&buffer[..length]).unwrap();
        let query = request.queries[0].clone();
        let asked_before = note(&log, Transport::Udp, &request);
        let reply = match script(&query) {
            Reply::DropFirst if asked_before => Reply::Address,
            Reply::DropFirst => Reply::Drop,
            Reply::Late(delay) => {
                tokio::time::sleep(delay).await;
                Reply::Address
            }
            reply => reply,
        };
        for bytes in answers(&request, &reply, Transport::Udp) {
            socket.send_to(&bytes, from).await.unwrap();
        }
    }
}

async fn serve_tcp(listener: TcpListener, script: Script, log: Log) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let length = stream.read_u16().await.unwrap();
        let mut buffer = vec![0; usize::from(length)];
        stream.read_exact(&mut buffer).await.unwrap();
        let request = Message::from_vec(&buffer).unwrap();
        let query = request.queries[0].clone();
        note(&log, Transport::Tcp, &request);
        for bytes in answers(&request, &script(&query), Transport::Tcp) {
            reply_over(&mut stream, &bytes).await;
        }
    }
}

async fn reply_over(stream: &mut TcpStream, bytes: &[u8]) {
    stream
        .write_u16(u16::try_from(bytes.len()).unwrap())
        .await
        .unwrap();
    stream.write_all(bytes).await.unwrap();
}

/// The messages that `reply` consists of.
fn answers(request: &Message, reply: &Reply, transport: Transport) -> Vec<Vec<u8>> {
    let query = &request.queries[0];
    let mut answer = Message::response(request.metadata.id, request.metadata.op_code);
    answer.add_query(query.clone());
    let elsewhere = Name::from_ascii("elsewhere.example.").unwrap();
    let address = |name: &Name| {
        let data = match query.query_type {
            RecordType::AAAA => RData::AAAA(AAAA(Ipv6Addr::LOCALHOST)),
            _ => RData::A(A(Ipv4Addr::LOCALHOST)),
        };
        Record::from_rdata(name.clone(), 5, data)
    };
    match reply {
        Reply::Address => {
            answer.add_answer(address(&query.name));
        }
        Reply::Alias => {
            answer.add_answer(address(&elsewhere));
            let alias = RData::CNAME(CNAME(elsewhere));
            answer.add_answer(Record::from_rdata(query.name.clone(), 5, alias));
        }
        Reply::Foreign => {
            answer.add_answer(address(&elsewhere));
        }
        Reply::NoData => {}
        Reply::Code(code) => answer.metadata.response_code = *code,
        Reply::BareCode(code) => {
            answer.metadata.response_code = *code;
            answer.queries.clear();
        }
        Reply::Drop | Reply::DropFirst | Reply::Late(_) => return Vec::new(),
        Reply::WrongId => {
            answer.metadata.id ^= 1;
            answer.add_answer(address(&query.name));
        }
        Reply::WrongQuestion => {
            answer.queries[0].set_name(elsewhere.clone());
            answer.add_answer(address(&elsewhere));
        }
        Reply::Garbage => return vec![b"no DNS message".to_vec()],
        Reply::GarbageFirst => {
            return [Reply::Garbage, Reply::WrongId, Reply::Address]
                .iter()
                .flat_map(|reply| answers(request, reply, transport))
                .collect();
        }
        Reply::Truncated(over_tcp) => {
            if transport == Transport::Tcp {
                return answers(request, over_tcp, transport);
            }
            answer.metadata.truncation = true;
        }
        Reply::Deaf(over, _) if *over == transport => return Vec::new(),
        Reply::Deaf(_, otherwise) => return answers(request, otherwise, transport),
    }
    vec![answer.to_vec().unwrap()]
}
