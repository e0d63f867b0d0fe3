//! The agents of members: `join` installs them, `leave` takes them away, `renew` gives them new tokens.
//!
//! ```text
//!   clusters → rights, token (Karmada API) → kubeconfig → member → work → waiting
//! ```
//!
//! - What a cluster has in the Karmada API: `rights`; how members reach that: `kubeconfig`.
//! - What is in the member: `member`; how it gets there: `work`, and why nobody has carried it out: `late`.

pub(crate) mod join;
pub(crate) mod kubeconfig;
mod late;
pub(crate) mod leave;
mod member;
pub(crate) mod renew;
mod rights;
mod work;

#[cfg(test)]
mod tests;
