//! Gauges of a signal: about the agents' own cluster, about each of others, or of one of the signals that users declare.

use std::fmt;
use std::sync::Arc;

use health::signal::Signal;
use karmada_runtime::metrics::{LabelSet, Registry};
use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// Returns the name of a metric of `signal`.
pub(super) fn name(signal: &Signal, of: &str) -> String {
    format!("{}{of}", signal.metric_prefix)
}

/// The labels of a metric about a cluster that is not the agents' own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct OfMember<L> {
    pub(crate) member: Arc<str>,
    pub(crate) labels: L,
}

impl<L: EncodeLabelSet> EncodeLabelSet for OfMember<L> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        ("member", &*self.member).encode(encoder.encode_label())?;
        self.labels.encode(encoder)
    }
}

/// The labels of a metric of a declared signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct OfSignal<L> {
    pub(crate) signal: &'static str,
    pub(crate) labels: L,
}

impl<L: EncodeLabelSet> EncodeLabelSet for OfSignal<L> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        ("signal", self.signal).encode(encoder.encode_label())?;
        self.labels.encode(encoder)
    }
}

/// A gauge about the agents' own cluster, one about each of the others, or one of a declared signal.
#[derive(Clone, Debug)]
pub(super) enum Gauges<L> {
    Own(Family<L, Gauge>),
    Members(Family<OfMember<L>, Gauge>),
    Declared(&'static str, Family<OfSignal<L>, Gauge>),
}

impl<L: LabelSet + Default> Gauges<L> {
    /// Registers the metric of `signal` that is called so.
    pub(super) fn register(registry: &mut Registry, signal: &Signal, of: &str, help: &str) -> Self {
        let name = name(signal, of);
        if signal.is_of_own_cluster() {
            Self::Own(registry.register(&name, help, Family::default()))
        } else {
            Self::Members(registry.register(&name, help, Family::default()))
        }
    }

    /// Sets the gauge with these labels of the agents' own cluster, or of `member`.
    pub(super) fn set(&self, member: Option<&Arc<str>>, labels: L, value: i64) {
        match (self, member) {
            (Self::Own(gauges), _) => {
                gauges.get_or_create(&labels).set(value);
            }
            (Self::Members(gauges), Some(member)) => {
                let member = Arc::clone(member);
                let labels = OfMember { member, labels };
                gauges.get_or_create(&labels).set(value);
            }
            // Of each member, and of nothing else.
            (Self::Members(_), None) => {}
            (Self::Declared(signal, gauges), _) => {
                gauges
                    .get_or_create(&OfSignal { signal, labels })
                    .set(value);
            }
        }
    }

    /// Removes the gauges of all members: of each there may be one that is there no more.
    pub(super) fn clear_members(&self) {
        if let Self::Members(gauges) = self {
            gauges.clear();
        }
    }
}
