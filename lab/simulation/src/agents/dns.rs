//! A DNS server that knows every name, or loses every question.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// The longest question.
const LONGEST: usize = 4096;

/// The server. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Dns {
    address: SocketAddr,
    works: Arc<AtomicBool>,
    _serving: JoinSet<()>,
}

impl Dns {
    /// Starts it on a free port; it works.
    pub(super) async fn start() -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let socket = socket.context("cannot start a DNS server on 127.0.0.1")?;
        let address = socket.local_addr()?;
        let works = Arc::new(AtomicBool::new(true));
        let mut serving = JoinSet::new();
        serving.spawn(serve(socket, Arc::clone(&works)));
        Ok(Self {
            address,
            works,
            _serving: serving,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it works, or loses what it is asked.
    pub(super) fn works(&self, works: bool) {
        self.works.store(works, Ordering::Relaxed);
    }
}

async fn serve(socket: UdpSocket, works: Arc<AtomicBool>) {
    let mut buffer = [0; LONGEST];
    loop {
        // An earlier answer that found nobody is reported here, too; the next question comes.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        if works.load(Ordering::Relaxed)
            && let Some(answer) = answer(&buffer[..length])
        {
            drop(socket.send_to(&answer, from).await);
        }
    }
}

fn answer(question: &[u8]) -> Option<Vec<u8>> {
    let mut message = Message::from_vec(question).ok()?;
    message.metadata.message_type = MessageType::Response;
    let asked = message.queries.first()?.clone();
    if asked.query_type() == RecordType::A {
        let address = RData::A(A(Ipv4Addr::new(10, 96, 0, 1)));
        message.add_answer(Record::from_rdata(asked.name().clone(), 5, address));
    }
    message.to_vec().ok()
}
