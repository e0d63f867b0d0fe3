//! Programs that write, and those that only count their writes.

use std::future::Future;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::{WriteError, Writer};
use crate::lease::Leadership;
use crate::metrics::{Registry, WriteMetrics};
use crate::program::Program;

/// The fate of a program's writes.
#[derive(Clone, Debug)]
pub enum WriteMode {
    /// Each write is performed.
    Perform(Writer),
    /// Nothing is written, the lease included; each write is counted.
    DryRun(WouldWrite),
}

/// Counters of the writes that did not take place, by target.
#[derive(Clone, Debug, Default)]
pub struct WouldWrite {
    writes: Family<WouldWriteLabels, Counter>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WouldWriteLabels {
    target: &'static str,
}

impl WouldWrite {
    /// Registers `would_write_total{target}`.
    fn register(registry: &mut Registry) -> Self {
        let help = "Writes that were decided and, as only observation was asked for, not performed";
        Self {
            writes: registry.register("would_write", help, Family::default()),
        }
    }

    /// Returns the number of writes to `target`.
    pub fn of(&self, target: &'static str) -> u64 {
        self.writes
            .get_or_create(&WouldWriteLabels { target })
            .get()
    }
}

impl WriteMode {
    /// Returns the mode of `program` that writes while `leadership` holds, and that leadership.
    pub fn perform(program: &mut Program, leadership: Leadership) -> (Leadership, Self) {
        let metrics = WriteMetrics::register(&mut program.registry);
        let writer = Writer::new(leadership.clone(), metrics);
        (leadership, Self::Perform(writer))
    }

    /// Returns the mode of `program` that only counts, and a leadership that no lease limits.
    pub fn dry_run(program: &mut Program) -> (Leadership, Self) {
        let counters = WouldWrite::register(&mut program.registry);
        (Leadership::always(), Self::DryRun(counters))
    }

    /// Returns `true` if nothing is written.
    pub fn is_dry_run(&self) -> bool {
        matches!(self, Self::DryRun(_))
    }

    /// Performs the request `call` and returns its response; `None` if it is counted only.
    ///
    /// # Errors
    /// Fails as [`Writer::write`] does.
    pub async fn write<T>(
        &self,
        target: &'static str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<Option<T>, WriteError> {
        match self {
            Self::Perform(writer) => writer.write(target, call).await.map(Some),
            Self::DryRun(counters) => {
                let labels = WouldWriteLabels { target };
                counters.writes.get_or_create(&labels).inc();
                Ok(None)
            }
        }
    }
}
