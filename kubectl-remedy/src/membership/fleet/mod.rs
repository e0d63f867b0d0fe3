//! The members of a fleet without Karmada: `join --fleet` makes them known, `leave --fleet` lets the fleet forget them, and
//! `renew --fleet` gives it new tokens of them.
//!
//! ```text
//!   context → account, role, token (member) → Secret, Cluster (fleet) → cluster-controller → ready
//! ```
//!
//! - The objects in a member: `account`. Those about it in the fleet: `access`.
//! - That no two Clusters are the same member: `ids`.

mod access;
mod account;
mod ids;
mod join;
mod leave;
mod renew;

pub(super) use self::join::run as join;
pub(super) use self::leave::run as leave;
pub(super) use self::renew::run as renew;
