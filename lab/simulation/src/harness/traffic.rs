//! The requests of all programs of a world.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::pace::Pace;
use super::world::Log;

/// The requests of all programs. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    begun: Instant,
    shared: Arc<Mutex<Requests>>,
}

#[derive(Debug, Default)]
struct Requests {
    log: Vec<String>,
    count: u64,
    writes: Vec<String>,
    pace: Pace,
    /// The number of writes without a response.
    pending: usize,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            shared: Arc::default(),
        }
    }

    /// Adds a line to the log.
    pub(crate) fn note(&self, line: &str) {
        let at = self.begun.elapsed().as_millis();
        self.shared.lock().log.push(format!("{at} ms: {line}"));
    }

    pub(crate) fn requests(&self) -> u64 {
        self.shared.lock().count
    }

    /// Returns the writes from the `nth` on, each by its method and path.
    pub(crate) fn writes_since(&self, nth: usize) -> Vec<String> {
        self.shared.lock().writes[nth..].to_vec()
    }

    pub(crate) fn writes(&self) -> usize {
        self.shared.lock().writes.len()
    }

    /// Counts the writes of each of these programs, by the beginnings of their names.
    pub(crate) fn judged(
        &self,
        programs: impl IntoIterator<Item = &'static str>,
    ) -> BTreeMap<&'static str, u64> {
        let programs: Vec<_> = programs.into_iter().collect();
        let mut judged = BTreeMap::new();
        for write in &self.shared.lock().writes {
            let wrote = |program: &&&str| write.starts_with(**program);
            let program = programs.iter().find(wrote).copied();
            *judged.entry(program.unwrap_or_default()).or_default() += 1;
        }
        judged
    }

    /// Returns why the programs cannot be at rest, while a write is in flight.
    pub(crate) fn unrest(&self) -> Option<String> {
        let waits = || "programs wait for a response to a write".to_owned();
        (self.shared.lock().pending > 0).then(waits)
    }

    /// Fails once a request has exceeded the limit of one instant.
    pub(crate) fn check_pace(&self) -> Result<()> {
        let exceeded = self.shared.lock().pace.exceeded();
        if let Some(request) = exceeded {
            bail!("a program repeats a request without a pause: {request}");
        }
        Ok(())
    }

    /// Counts a request. Returns `false` if this instant has too many.
    pub(super) fn count(&self, line: &str) -> bool {
        let mut shared = self.shared.lock();
        shared.count += 1;
        shared.pace.admits(line)
    }
}

impl Log for Traffic {
    /// Has the response to each request but watches.
    fn text(&self) -> String {
        self.shared.lock().log.join("\n")
    }
}

/// A write in flight.
pub(super) struct Pending(Traffic);

impl Pending {
    pub(super) fn begin(traffic: &Traffic, line: &str) -> Self {
        let mut shared = traffic.shared.lock();
        shared.pending += 1;
        shared.writes.push(line.to_owned());
        Self(traffic.clone())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.shared.lock().pending -= 1;
    }
}
