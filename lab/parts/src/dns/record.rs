//! The state that the loops of a server share: its behaviour, and the queries that it received.

use std::collections::VecDeque;

use health::diagnosis::Transport;
use hickory_proto::op::Query;
use parking_lot::Mutex;

use super::behaviour::{Behaviour, Received, Response};

/// Bounds the record, so that a server that runs for long holds no more memory than at first.
pub(super) const RECORDED: usize = 256;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) behaviour: Mutex<Behaviour>,
    pub(super) received: Mutex<VecDeque<Received>>,
}

impl Shared {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        Self {
            behaviour: Mutex::new(behaviour),
            received: Mutex::default(),
        }
    }

    /// Records a query, and chooses the response to it.
    pub(super) fn receive(&self, transport: Transport, id: u16, query: Query) -> Response {
        let received = {
            let mut all = self.received.lock();
            let repeated = all.iter().any(|before| before.query == query);
            let received = Received {
                transport,
                id,
                query,
                repeated,
            };
            if all.len() == RECORDED {
                all.pop_front();
            }
            all.push_back(received.clone());
            received
        };
        // The lock is not held while the behaviour runs, so it may use the server.
        let behaviour = self.behaviour.lock().clone();
        behaviour.response_to(&received)
    }
}
