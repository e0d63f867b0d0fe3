//! The server: its clock, store, faults and counters.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use crate::clock::{self, Clock};
use crate::error::ApiError;
use crate::faults::Faults;
use crate::kinds;
use crate::metadata;
use crate::metrics::Requests;
use crate::store::{self, State};
use crate::write::{FieldValidation, Write, WriteOptions};

/// 2026-01-01T00:00:00Z.
const BEGINNING: i64 = 1_767_225_600;

/// A Kubernetes API server. Clones share one server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    state: Mutex<State>,
    faults: Faults,
    requests: Requests,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// Creates a server with a clock that starts at 2026-01-01T00:00:00Z, so that the same requests
    /// always get the same responses.
    pub fn new() -> Self {
        Self::starting_at(Timestamp::from_second(BEGINNING).unwrap_or_default())
    }

    /// Creates a server with a clock that starts at `now` and follows tokio's. If the runtime's clock is
    /// paused, call this within that runtime.
    pub fn starting_at(now: Timestamp) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock: Clock::starting_at(now),
                state: Mutex::new(store::new(now)),
                faults: Faults::default(),
                requests: Requests::default(),
            }),
        }
    }

    /// Returns an independent server that starts with the present objects of this one, without its faults,
    /// watches and counted requests.
    ///
    /// This is cheap compared to [`Self::install`]: the fork shares compiled schemas and stored
    /// objects, which never change in place. Its clock starts at the timestamp at which this
    /// server's clock started, and follows the runtime that calls `fork` regardless of where this
    /// server was created. Every fork therefore returns the same responses to the same requests:
    ///
    /// ```
    /// # use std::sync::LazyLock;
    /// # use embedded_apiserver::ApiServer;
    /// static PREPARED: LazyLock<ApiServer> = LazyLock::new(ApiServer::new); // and `install`
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let server = PREPARED.fork();
    /// # }
    /// ```
    #[must_use]
    pub fn fork(&self) -> Self {
        self.copied(self.shared.clock.again())
    }

    /// Returns a fork like [`Self::fork`], but with a clock like that of [`Self::starting_at`].
    #[must_use]
    pub fn fork_at(&self, now: Timestamp) -> Self {
        self.copied(Clock::starting_at(now))
    }

    fn copied(&self, clock: Clock) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                state: Mutex::new(self.state().clone()),
                faults: Faults::default(),
                requests: Requests::default(),
            }),
        }
    }

    /// Adds a `CustomResourceDefinition`, or replaces the spec of the existing one with its name.
    ///
    /// # Errors
    /// Returns an error if the definition is invalid or the server cannot use it.
    pub fn install(&self, definition: &Value) -> Result<(), ApiError> {
        let options = WriteOptions {
            dry_run: false,
            manager: "apiserver".to_owned(),
            validation: FieldValidation::Strict,
            is_status: false,
            is_apply: false,
            now: clock::seconds(self.now()),
        };
        let mut state = self.state();
        let (group, plural) = kinds::DEFINITIONS;
        let kind = state.registry.get(group, "v1", plural)?;
        let name = metadata::text(definition, "name");
        let is_known = state.find(&kind.collection(), name).is_some();
        let mut write = Write {
            state: &mut state,
            kind: &kind,
            options: &options,
            warnings: Vec::new(),
        };
        if is_known {
            write.update(None, name, true, |before| {
                let mut changed = before.clone();
                changed["spec"] = definition["spec"].clone();
                Ok(changed)
            })?;
        } else {
            write.create(None, definition.clone())?;
        }
        Ok(())
    }

    /// Returns the newest resource version, which every write advances.
    pub fn version(&self) -> u64 {
        self.state().version
    }

    /// Returns the faults of the server.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    pub(crate) fn requests(&self) -> &Requests {
        &self.shared.requests
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }
}
