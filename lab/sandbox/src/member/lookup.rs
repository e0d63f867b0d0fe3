//! The resolver of a member cluster's pods, whose results are observed: a query to the cluster's DNS,
//! sent once more if no response comes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use health::dns::DnsClass;
use health::observation::Failure;
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use lab_parts::dns::KUBERNETES;
use tokio::net::UdpSocket;
use tokio::time::{interval, timeout};

use crate::update::{Update, UpdateSender};

/// The longest that a pod waits for a response before it sends the query again, or gives up.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(250);
const ATTEMPTS: usize = 2;
/// The time between two lookups of a cluster's other pods.
const REPEAT: Duration = Duration::from_millis(250);
/// The longest response, as over any UDP path without fragments (DNS Flag Day 2020).
const LONGEST: usize = 1232;

/// The resolver of a cluster's pods.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    pub(super) cluster: String,
    pub(super) server: SocketAddr,
    pub(super) updates: UpdateSender,
}

impl Lookup {
    /// Resolves the name of the cluster's API.
    pub(super) async fn resolve(&self) -> Result<(), Failure> {
        let result = match self.query().await {
            Ok(()) => Ok(()),
            Err(class) => Err(Failure::new(class, self.server)),
        };
        self.updates.send(Update::Lookup {
            cluster: self.cluster.clone(),
            result,
        });
        result
    }

    /// Resolves the name again and again, as the cluster's other pods do, and never returns.
    pub(super) async fn repeat(self) {
        let mut ticks = interval(REPEAT);
        loop {
            ticks.tick().await;
            if let Err(failure) = self.resolve().await {
                tracing::debug!(%failure, "A name does not resolve");
            }
        }
    }

    async fn query(&self) -> Result<(), DnsClass> {
        let unreachable = |_: io::Error| DnsClass::Unreachable;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(unreachable)?;
        socket.connect(self.server).await.map_err(unreachable)?;
        let name = Name::from_ascii(KUBERNETES).map_err(|_| DnsClass::Mismatch)?;
        let mut request = Message::query();
        request.add_query(Query::query(name, RecordType::A));
        let bytes = request.to_vec().map_err(|_| DnsClass::Mismatch)?;
        for _ in 0..ATTEMPTS {
            socket.send(&bytes).await.map_err(unreachable)?;
            let mut buffer = [0; LONGEST];
            if let Ok(received) = timeout(RESPONSE_TIMEOUT, socket.recv(&mut buffer)).await {
                let length = received.map_err(unreachable)?;
                return outcome(&request, &buffer[..length]);
            }
        }
        Err(DnsClass::Timeout)
    }
}

fn outcome(request: &Message, response: &[u8]) -> Result<(), DnsClass> {
    let response = Message::from_vec(response).map_err(|_| DnsClass::Mismatch)?;
    if response.metadata.id != request.metadata.id || response.queries != request.queries {
        return Err(DnsClass::Mismatch);
    }
    match response.metadata.response_code {
        ResponseCode::NoError if response.answers.is_empty() => Err(DnsClass::NoData),
        ResponseCode::NoError => Ok(()),
        ResponseCode::NXDomain => Err(DnsClass::NxDomain),
        ResponseCode::ServFail => Err(DnsClass::ServFail),
        _ => Err(DnsClass::Refused),
    }
}
