//! The agents of members: `join` installs them, `leave` takes them away, `renew` gives them new tokens.
//!
//! ```text
//!   clusters → rights, token (Karmada API) → kubeconfig → member → work → waiting
//! ```
//!
//! - The objects of a cluster in the Karmada API: `rights`; how members reach that: `kubeconfig`.
//! - The agent in the member: `member`; the changes of users to it: `kustomize`; how it gets there: `work`, and why nobody has carried it out: `late`.
//! - Why an agent that was installed has not reported: `unreported`.

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
