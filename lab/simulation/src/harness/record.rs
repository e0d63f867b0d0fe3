//! Every request of a program and every response to it, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::fault::Api;
use super::log::Log;
use super::message::{Entry, Message, Process, Role};
use super::pace::Pace;

/// The record of one run. Clones share it.
#[derive(Clone, Debug)]
pub struct Record<R> {
    shared: Arc<Mutex<Shared<R>>>,
}

#[derive(Debug)]
struct Shared<R> {
    log: Log<R>,
    requests: usize,
    pace: Pace,
    /// The requests without a response, each with `true` if it is a write.
    pending: BTreeMap<usize, bool>,
}

impl<R> Default for Record<R> {
    fn default() -> Self {
        let shared = Shared {
            log: Log::default(),
            requests: 0,
            pace: Pace::default(),
            pending: BTreeMap::new(),
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
        }
    }
}

impl<R: Role> Record<R> {
    /// Adds a line to the log.
    pub(crate) fn note(&self, line: String) {
        self.shared.lock().log.note(line);
    }

    /// Returns the record so far.
    pub(crate) fn log(&self) -> Log<R> {
        self.shared.lock().log.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.shared.lock().log.entries.len()
    }

    /// Returns the entries from `nth` on.
    pub(crate) fn since(&self, nth: usize) -> Vec<Entry<R>> {
        self.shared.lock().log.entries[nth..].to_vec()
    }

    /// Returns the writes from the entry `nth` on.
    pub(crate) fn writes_since(&self, nth: usize) -> Vec<Entry<R>> {
        let shared = self.shared.lock();
        let entries = shared.log.entries[nth..].iter();
        let writes = entries.filter(|entry| entry.message.written().is_some());
        writes.cloned().collect()
    }

    /// Returns the number of requests.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.lock().requests as u64
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
    pub(super) fn admits(&self, request: &str) -> bool {
        self.shared.lock().pace.admits(request)
    }

    /// Returns `true` while a program waits for a response to a write.
    pub(crate) fn is_writing(&self) -> bool {
        self.shared
            .lock()
            .pending
            .values()
            .any(|is_write| *is_write)
    }

    /// Returns `true` while a program waits for a response.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.shared.lock().pending.is_empty()
    }
}

/// A request in flight, which records its end when it is dropped.
#[derive(Debug)]
pub(super) struct Exchange<R: Role> {
    record: Record<R>,
    process: Process<R>,
    api: Api,
    request: usize,
    is_over: bool,
}

impl<R: Role> Exchange<R> {
    pub(super) fn begin(
        record: &Record<R>,
        process: Process<R>,
        api: Api,
        message: Message,
    ) -> Self {
        let is_write = message.written().is_some();
        let mut shared = record.shared.lock();
        shared.requests += 1;
        let request = shared.requests;
        shared.pending.insert(request, is_write);
        drop(shared);
        let exchange = Self {
            record: record.clone(),
            process,
            api,
            request,
            is_over: false,
        };
        exchange.record(message);
        exchange
    }

    /// Marks the response as arrived, or as lost.
    pub(super) fn response_arrived(&self) {
        self.record.shared.lock().pending.remove(&self.request);
    }

    pub(super) fn record(&self, message: Message) {
        self.record.shared.lock().log.entries.push(Entry {
            at: Instant::now(),
            process: self.process,
            api: self.api,
            request: self.request,
            message,
        });
    }

    pub(super) fn end(&mut self, message: Message) {
        self.record(message);
        self.is_over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl<R: Role> Drop for Exchange<R> {
    fn drop(&mut self) {
        self.response_arrived();
        if !self.is_over {
            self.record(Message::Abandoned);
        }
    }
}
