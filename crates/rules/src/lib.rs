//! Every decision of karmada-rs, pure: no client, no async runtime, no clock (`now` is a parameter),
//! no logging. The programs fetch, call one function here, and apply what it returns.

pub mod campaign;
pub mod condition;
pub mod fault;
pub mod index;
pub mod ingress;
pub mod observation;
pub mod quorum;
pub mod remedy;
pub mod report;
pub mod threshold;
