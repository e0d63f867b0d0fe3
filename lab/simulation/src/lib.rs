//! Our programs on the embedded API, in large numbers: the convergence of the controllers in virtual
//! time, and a thousand agents of one cluster.

pub mod agents;
pub mod convergence;
