//! Every decision of karmada-rs, pure: no client, no async runtime, no clock (`now` is a parameter),
//! no logging. A program fetches, calls one function here, and applies what it returns.

pub mod condition;
pub mod health;
pub mod ingress;
pub mod remedy;
pub mod reverse_index;
