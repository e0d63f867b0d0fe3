//! How many streams and connections there are. The members of a fleet count as one API, as in `requests`.

use std::sync::LazyLock;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::purpose::Purpose;
use crate::metrics::Registry;

/// The connections of this process.
pub(crate) static CONNECTIONS: LazyLock<ConnectionMetrics> =
    LazyLock::new(ConnectionMetrics::default);

/// The requests that are open and the connections of HTTP/2, by API and purpose.
#[derive(Debug, Default)]
pub(crate) struct ConnectionMetrics {
    streams: Family<Labels, Gauge>,
    connections: Family<Labels, Gauge>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    api: &'static str,
    purpose: &'static str,
}

impl ConnectionMetrics {
    /// Registers `api_streams{api,purpose}` and `api_connections{api,purpose}`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "api_streams",
            "Requests to an API that are open, a watch until it ends, by purpose; all members are one API",
            self.streams.clone(),
        );
        registry.register(
            "api_connections",
            "HTTP/2 connections to an API, by purpose; all members are one API",
            self.connections.clone(),
        );
    }

    /// Returns how many streams and connections are open.
    #[cfg(test)]
    pub(super) fn open(&self, api: &'static str, purpose: Purpose) -> (i64, i64) {
        let purpose = purpose.label();
        let labels = Labels { api, purpose };
        let streams = self.streams.get_or_create(&labels).get();
        (streams, self.connections.get_or_create(&labels).get())
    }

    pub(super) fn count_stream(&self, api: &'static str, purpose: Purpose) -> Counted {
        Counted::new(&self.streams, api, purpose)
    }

    pub(super) fn count_connection(&self, api: &'static str, purpose: Purpose) -> Counted {
        Counted::new(&self.connections, api, purpose)
    }
}

/// Something that a gauge counts until it is dropped.
#[derive(Debug)]
pub(super) struct Counted(Gauge);

impl Counted {
    fn new(gauges: &Family<Labels, Gauge>, api: &'static str, purpose: Purpose) -> Self {
        let purpose = purpose.label();
        let gauge = gauges.get_or_create_owned(&Labels { api, purpose });
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
