//! The phases of a long command: each says how long it will take, and how long it took.

use std::time::Instant;

/// A phase that has begun.
#[derive(Debug)]
pub(crate) struct Phase {
    name: &'static str,
    begun: Instant,
}

impl Phase {
    /// Prints the name of the phase, and how long it takes on two cores.
    pub(crate) fn begin(name: &'static str, expected: &str) -> Self {
        eprintln!("== {name} (about {expected})");
        Self {
            name,
            begun: Instant::now(),
        }
    }

    /// Prints how long it took.
    pub(crate) fn end(self) {
        eprintln!(
            "== {}: done after {:.0} s",
            self.name,
            self.begun.elapsed().as_secs_f64()
        );
    }
}
