//! Member clusters: the clients of their APIs, and the loops that work on each of them apart from the others.

mod access;
mod background;
mod controller;

pub use access::{AccessError, Connect, ConnectError, MemberAccess, Unverified, Way, over_network};
pub use background::Background;
pub use controller::{Contact, MemberController, MemberQueues, ReconcileError, spawn, spawn_after};
