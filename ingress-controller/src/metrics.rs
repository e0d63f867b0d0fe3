//! The metrics of this program alone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use karmada_runtime::events::EventReason;
use karmada_runtime::lease::Leadership;
use objects::Key;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::outage::Outage;
use crate::watch::SharedIndex;

/// The Services of each ingress that are served by readmitted clusters. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readmissions {
    services: Arc<Mutex<BTreeMap<Key, usize>>>,
}

impl Readmissions {
    /// Replaces the number of readmitted Services of the ingress `key`.
    pub(crate) fn set(&self, key: &Key, services: usize) {
        let mut all = self.services.lock();
        if services == 0 {
            all.remove(key);
        } else {
            all.insert(key.clone(), services);
        }
    }

    /// Forgets every ingress.
    pub(crate) fn clear(&self) {
        self.services.lock().clear();
    }

    pub(crate) fn total(&self) -> usize {
        self.services.lock().values().sum()
    }
}

const LAGGING: &str = "lagging_ingresses";
const REASON: &str = "reason";

/// The gauges, read at each scrape. A replica that does not lead shows 0, or no series, whatever it last saw.
pub(crate) struct Gauges {
    leadership: Leadership,
    index: Arc<SharedIndex>,
    readmissions: Readmissions,
    outages: Vec<Arc<Outage>>,
}

impl Gauges {
    /// The gauges with labels, and these.
    pub(crate) const LABELS: [(&'static str, &'static str); 1] = [(LAGGING, REASON)];

    pub(crate) fn new(
        leadership: &Leadership,
        index: &Arc<SharedIndex>,
        readmissions: &Readmissions,
        outages: Vec<Arc<Outage>>,
    ) -> Self {
        Self {
            leadership: leadership.clone(),
            index: Arc::clone(index),
            readmissions: readmissions.clone(),
            outages,
        }
    }
}

impl fmt::Debug for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gauges").finish_non_exhaustive()
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let leads = self.leadership.held_until().is_some();
        for (name, help, value) in [
            (
                "readmitted_services",
                "Backend Services that blocked clusters serve because no other cluster does, counted for each ingress",
                self.readmissions.total(),
            ),
            (
                "waiting_for_load_balancer",
                "Ingresses that wait for a load balancer to answer again, counted for each",
                self.outages.iter().map(|outage| outage.waiting()).sum(),
            ),
        ] {
            let value = i64::try_from(if leads { value } else { 0 }).unwrap_or(i64::MAX);
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        let lagging = leads.then(|| self.index.enforcement.lagging());
        let mut metric = encoder.encode_descriptor(
            LAGGING,
            "Ingresses for which a load balancer may send requests otherwise than their status says, counted for each load balancer, by the reason of the Event",
            None,
            MetricType::Gauge,
        )?;
        for (reason, ingresses) in lagging.into_iter().flatten() {
            let value = i64::try_from(ingresses).unwrap_or(i64::MAX);
            let labels = [(REASON, reason.as_str())];
            ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
