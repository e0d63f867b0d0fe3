//! A DNS server in this process that knows every name, and does with questions what a test says.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use hickory_proto::{
    op::{Message, MessageType, ResponseCode},
    rr::{RData, Record, RecordType, rdata::A},
};
use parking_lot::Mutex;
use tokio::{net::UdpSocket, task::JoinHandle};

/// The address of a name that nobody said more about.
const ANY: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// For how long an answer may be kept, in seconds.
const TTL: u32 = 1;

/// What a server does with questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// It answers them.
    #[default]
    Answers,
    /// It answers REFUSED.
    Refuses,
    /// It loses them.
    Drops,
}

/// A server over UDP. Dropping it ends it.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    behaviour: Mutex<Behaviour>,
    /// A name without its last dot, and its address.
    known: Option<(String, Ipv4Addr)>,
}

impl DnsServer {
    /// Answers at this address; with port 0 on a free port.
    pub async fn start(address: SocketAddr) -> Result<Self> {
        Self::serve(address, None).await
    }

    /// Answers at this address, and knows where this name is.
    pub async fn knowing(address: SocketAddr, name: &str, is_at: Ipv4Addr) -> Result<Self> {
        Self::serve(address, Some((name.to_owned(), is_at))).await
    }

    async fn serve(address: SocketAddr, known: Option<(String, Ipv4Addr)>) -> Result<Self> {
        let mut server = Self {
            address,
            shared: Arc::new(Shared {
                behaviour: Mutex::default(),
                known,
            }),
            serving: None,
        };
        server.restart().await?;
        Ok(server)
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it does this.
    pub fn set(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock() = behaviour;
    }

    /// Ends it; from then on nobody listens at its address.
    pub async fn stop(&mut self) -> Result<()> {
        let serving = self.serving.take();
        let serving = serving.with_context(|| format!("no DNS on {}", self.address))?;
        serving.abort();
        // It was told to end early.
        drop(serving.await);
        Ok(())
    }

    /// Starts it again after [`Self::stop`].
    pub async fn restart(&mut self) -> Result<()> {
        ensure!(self.serving.is_none(), "DNS on {} already", self.address);
        let socket = UdpSocket::bind(self.address)
            .await
            .with_context(|| format!("cannot listen on {}", self.address))?;
        self.address = socket.local_addr()?;
        self.serving = Some(tokio::spawn(answer_all(socket, Arc::clone(&self.shared))));
        Ok(())
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

async fn answer_all(socket: UdpSocket, shared: Arc<Shared>) {
    let mut buffer = [0; 4096];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        if let Some(answer) = shared.answer(&buffer[..length]) {
            // A question whose asker is gone needs no answer.
            drop(socket.send_to(&answer, from).await);
        }
    }
}

impl Shared {
    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let mut message = Message::from_vec(question).ok()?;
        message.metadata.message_type = MessageType::Response;
        let asked = message.queries.first()?.clone();
        let behaviour = *self.behaviour.lock();
        match behaviour {
            Behaviour::Drops => return None,
            Behaviour::Refuses => message.metadata.response_code = ResponseCode::Refused,
            Behaviour::Answers if asked.query_type() == RecordType::A => {
                let name = asked.name().to_ascii();
                let known = (self.known.iter())
                    .find(|(known, _)| known == name.trim_end_matches('.'))
                    .map(|(_, address)| *address);
                let address = RData::A(A(known.unwrap_or(ANY)));
                message.add_answer(Record::from_rdata(asked.name().clone(), TTL, address));
            }
            Behaviour::Answers => {}
        }
        message.to_vec().ok()
    }
}
