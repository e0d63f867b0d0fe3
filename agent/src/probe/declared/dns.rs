//! A name that is to have an address.

use std::net::SocketAddr;
use std::path::Path;

use futures::FutureExt;
use futures::future::BoxFuture;
use health::diagnosis::Transport;
use health::dns::DNS;
use health::failure::{FailureClass, Server};
use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use karmada_runtime::resolv_conf::ResolvConf;
use serde::Deserialize;
use tokio::time::Instant;

use super::kind::{Attempt, Kind};
use super::network::is_metadata_service;
use super::unmet::Unmet;
use crate::probe::dns::{Response, ask};

/// The file with the servers of this node's pods.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// A query.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Dns {
    /// Without a search list.
    name: String,
    #[serde(default)]
    record: Record,
    /// The servers; without any, those of `/etc/resolv.conf`.
    #[serde(default)]
    servers: Vec<String>,
}

/// The type of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum Record {
    #[default]
    A,
    #[serde(rename = "AAAA")]
    Aaaa,
}

impl Dns {
    fn query(&self) -> Result<Query, String> {
        let name = Name::from_ascii(&self.name);
        let mut name = name.map_err(|_| "name is no name in DNS".to_owned())?;
        name.set_fqdn(true);
        let record = match self.record {
            Record::A => RecordType::A,
            Record::Aaaa => RecordType::AAAA,
        };
        Ok(Query::query(name, record))
    }

    /// Returns the servers that the file names.
    fn given(&self) -> Result<Vec<SocketAddr>, String> {
        let given = self.servers.iter().map(|text| {
            // The address of a node has brackets if it is one of IPv6.
            let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
            let Server(server) = bare
                .unwrap_or(text)
                .parse()
                .map_err(|_| "servers has no address, such as 10.96.0.10".to_owned())?;
            if is_metadata_service(server.ip()) {
                return Err(
                    "servers has the metadata service of a cloud, which no probe may ask"
                        .to_owned(),
                );
            }
            Ok(server)
        });
        given.collect()
    }

    fn servers(&self) -> Result<Vec<SocketAddr>, String> {
        if self.servers.is_empty() {
            let conf = ResolvConf::read(Path::new(RESOLV_CONF));
            return Ok(conf.map_err(|error| error.to_string())?.servers);
        }
        self.given()
    }
}

impl Kind for Dns {
    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("name is empty".to_owned());
        }
        self.query()?;
        // Not those of the node: a file that it cannot read is no mistake in this one.
        self.given().map(drop)
    }

    fn classes(&self) -> &'static [FailureClass] {
        DNS.classes
    }

    fn observe<'a>(&'a self, attempt: &'a Attempt<'a>) -> BoxFuture<'a, Result<(), Unmet>> {
        async move {
            let query = self.query().map_err(Unmet::unobserved)?;
            let servers = self.servers().map_err(Unmet::unobserved)?;
            let mut left = u32::try_from(servers.len()).unwrap_or(u32::MAX);
            let mut first: Option<Unmet> = None;
            for server in servers {
                let now = Instant::now();
                // One that is silent leaves time for the others.
                let share = attempt.deadline.saturating_duration_since(now) / left.max(1);
                left = left.saturating_sub(1);
                let asked = ask(server, Transport::Udp, query.clone(), now + share).await;
                let unmet = match asked {
                    Ok(Response::Addresses { .. }) => return Ok(()),
                    Ok(Response::Other(answer)) => match answer.class() {
                        None => return Ok(()),
                        Some(class) => Unmet::failed(class.class(), server, ""),
                    },
                    Err(error) => Unmet::unobserved(error.to_string()),
                };
                first.get_or_insert(unmet);
            }
            Err(first.unwrap_or_else(|| Unmet::unobserved("there is no server to ask")))
        }
        .boxed()
    }
}
