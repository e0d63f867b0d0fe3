//! Who an agent is, among those of its cluster.

use uuid::Uuid;

/// This agent among the agents of the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) cluster: String,
    pub(crate) node: String,
    /// The identifier of this process. Names may be given twice by mistake, so only this one tells an
    /// agent from another.
    pub(crate) id: Uuid,
    /// The port it listens on, and the default for those of other agents.
    pub(crate) port: u16,
}
