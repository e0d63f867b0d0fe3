//! The agents of members: `join` installs them, `leave` takes them away, `renew` gives them new tokens.
//!
//! ```text
//!   clusters → rights, token (Karmada API) → kubeconfig → member → work → waiting
//! ```
//!
//! - What a cluster has in the Karmada API: `rights`; how members reach that: `kubeconfig`.
//! - What is in the member: `member`; what users change of it: `kustomize`; how it gets there: `work`, and why nobody has carried it out: `late`.
//! - Why what was carried out has not reported: `unreported`.

mod join;
pub(crate) mod kubeconfig;
mod kustomize;
mod late;
mod leave;
mod member;
mod renew;
mod rights;
pub(crate) mod unreported;
mod work;

pub(super) use self::join::run as join;
pub(super) use self::leave::run as leave;
pub(super) use self::renew::run as renew;
pub(crate) use self::renew::works;
pub(crate) use self::rights::ROLE;

#[cfg(test)]
mod tests;
