//! Our programs on the embedded API, in large numbers: the convergence of the controllers, of propagation and of
//! placements in virtual time, and a thousand agents of one cluster.

pub mod agents;
mod clock;
pub mod convergence;
pub mod harness;
pub mod placement;
pub mod propagation;
