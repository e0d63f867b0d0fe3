//! Every request of a program and every response to it, in order.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::kinds::Side;
use super::program::Process;
use crate::harness::pace::Pace;

/// A message between a program and an API.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Instant,
    pub(crate) process: Process,
    pub(crate) side: Side,
    /// The number of the request, which its response shares.
    pub(crate) request: usize,
    pub(crate) message: Message,
}

/// A part of one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Request {
        method: Method,
        /// The path with its query.
        path: String,
        body: Bytes,
    },
    /// The status of a response; `None` if the connection was lost.
    Response(Option<u16>),
    /// The whole body of a response, or a frame of a watch.
    Body(Bytes),
    /// A watch ended, regularly or not.
    Ended,
    /// The program dropped the request or the watch.
    Abandoned,
}

/// The record of one run. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) entries: Vec<Entry>,
    pub(crate) requests: usize,
    pace: Pace,
    /// The number of requests without a response.
    pub(crate) pending: usize,
    /// The number of delayed writes, abandoned or not.
    pub(crate) late: usize,
}

impl Record {
    pub(crate) fn len(&self) -> usize {
        self.shared.lock().entries.len()
    }

    /// Returns the entries from `nth` on.
    pub(crate) fn since(&self, nth: usize) -> Vec<Entry> {
        self.shared.lock().entries[nth..].to_vec()
    }

    /// Returns a request that exceeded the limit of one instant.
    pub(crate) fn without_pause(&self) -> Option<String> {
        self.shared.lock().pace.exceeded()
    }

    /// Counts a request. Returns `false` if this instant has too many.
    pub(crate) fn admits(&self, request: &str) -> bool {
        self.shared.lock().pace.admits(request)
    }

    /// Returns `true` while a program waits for a response, or an abandoned write is in flight.
    pub(crate) fn is_waiting(&self) -> bool {
        let shared = self.shared.lock();
        shared.pending + shared.late > 0
    }
}
