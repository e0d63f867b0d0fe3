//! The agents of members: `join` installs them, `leave` takes them away, `renew` gives them new tokens.
//!
//! ```text
//!   clusters → rights, token (Karmada API) → kubeconfig → member → work → waiting
//! ```
//!
//! - Which clusters are meant, and several at once: `clusters`.
//! - What a cluster has in the Karmada API, and how it is written: `rights`, `requests`.
//! - When a token is good, and where a new one comes from: `token`; how members reach the API: `kubeconfig`.
//! - What is in the member: `member`; how it gets there: `work`, and who has carried it out: `waiting`.

pub(crate) mod args;
mod clusters;
pub(crate) mod join;
pub(crate) mod kubeconfig;
pub(crate) mod leave;
mod member;
pub(crate) mod renew;
mod requests;
mod rights;
mod token;
mod waiting;
mod work;

#[cfg(test)]
mod tests;
