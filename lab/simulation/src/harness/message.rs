//! The messages between programs and APIs, and whose they are.

use std::fmt;

use bytes::Bytes;
use http::Method;
use karmada_runtime::program::Identity;
use tokio::time::Instant;

use super::fault::Api;

/// A program under simulation.
pub trait Role: Copy + fmt::Debug + Ord + Send + Sync + 'static {
    /// The number of processes of the program.
    const REPLICAS: u8 = 1;
    /// The time that a message takes at most, in milliseconds, so that requests overtake each other.
    const LATENCY: u64 = 20;

    /// Returns every program.
    fn all() -> Vec<Self>;

    /// Returns the names of the program.
    fn identity(self) -> Identity;

    /// Returns the name by which its requests and faults know the program.
    fn user_agent(self) -> String {
        self.identity().name.to_owned()
    }
}

/// One process of a replica of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process<R> {
    /// The program.
    pub program: R,
    /// The number of the replica.
    pub replica: u8,
    /// The number of earlier starts of that replica.
    pub life: u16,
}

impl<R: Role> fmt::Display for Process<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.program.user_agent();
        write!(f, "{name}-{}.{}", self.replica, self.life)
    }
}

/// A message between a program and an API.
#[derive(Clone, Debug)]
pub(crate) struct Entry<R> {
    pub(crate) at: Instant,
    pub(crate) process: Process<R>,
    pub(crate) api: Api,
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

impl Message {
    /// Returns the path of a write, unless it is that of a lease, or dry.
    pub(crate) fn written(&self) -> Option<&str> {
        match self {
            Self::Request { method, path, .. } if *method != Method::GET => Some(path.as_str())
                .filter(|path| !path.contains("/leases") && !path.contains("dryRun")),
            _ => None,
        }
    }
}
