//! How a pod of a member cluster resolves a name: it asks the cluster's DNS, and once more when
//! there is no answer. What comes of it is told, as what pods see of their DNS.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use karmada_rules::health::failure::FailureClass;
use karmada_rules::health::observation::Failure;
use tokio::net::UdpSocket;
use tokio::time::{interval, timeout};

use super::dns::KUBERNETES;
use crate::facts::{Fact, Facts};

/// How long a pod waits for an answer before it asks again, or gives up.
const PATIENCE: Duration = Duration::from_millis(250);
const ATTEMPTS: usize = 2;
/// Between two questions of a cluster's other pods.
const PULSE: Duration = Duration::from_millis(100);
const LONGEST: usize = 1232;

/// The resolver of a cluster's pods.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    pub(super) cluster: String,
    pub(super) server: SocketAddr,
    pub(super) facts: Facts,
}

impl Lookup {
    /// Resolves the name of the cluster's API.
    pub(super) async fn resolve(&self) -> Result<(), Failure> {
        let result = match self.ask().await {
            Ok(()) => Ok(()),
            Err(class) => Err(Failure::new(class, self.server)),
        };
        self.facts.tell(Fact::Asked {
            cluster: self.cluster.clone(),
            result,
        });
        result
    }

    /// Resolves it again and again, as the cluster's other pods do.
    pub(super) async fn pulse(self) {
        let mut ticks = interval(PULSE);
        loop {
            ticks.tick().await;
            if let Err(failure) = self.resolve().await {
                tracing::debug!(%failure, "A name does not resolve");
            }
        }
    }

    async fn ask(&self) -> Result<(), FailureClass> {
        let unreachable = |_: io::Error| FailureClass::Unreachable;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(unreachable)?;
        socket.connect(self.server).await.map_err(unreachable)?;
        let name = Name::from_ascii(KUBERNETES).map_err(|_| FailureClass::Mismatch)?;
        let mut question = Message::query();
        question.add_query(Query::query(name, RecordType::A));
        let bytes = question.to_vec().map_err(|_| FailureClass::Mismatch)?;
        for _ in 0..ATTEMPTS {
            socket.send(&bytes).await.map_err(unreachable)?;
            let mut buffer = [0; LONGEST];
            if let Ok(received) = timeout(PATIENCE, socket.recv(&mut buffer)).await {
                let length = received.map_err(unreachable)?;
                return judge(&question, &buffer[..length]);
            }
        }
        Err(FailureClass::Timeout)
    }
}

fn judge(question: &Message, answer: &[u8]) -> Result<(), FailureClass> {
    let answer = Message::from_vec(answer).map_err(|_| FailureClass::Mismatch)?;
    if answer.metadata.id != question.metadata.id || answer.queries != question.queries {
        return Err(FailureClass::Mismatch);
    }
    match answer.metadata.response_code {
        ResponseCode::NoError if answer.answers.is_empty() => Err(FailureClass::NoData),
        ResponseCode::NoError => Ok(()),
        ResponseCode::NXDomain => Err(FailureClass::NxDomain),
        ResponseCode::ServFail => Err(FailureClass::ServFail),
        _ => Err(FailureClass::Refused),
    }
}
