//! Our programs on the embedded API, many times over: the convergence of the controllers in virtual
//! time, and a thousand agents.

pub mod agents;
pub mod convergence;
