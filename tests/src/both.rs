//! The pipeline's tests, each on both APIs: the embedded one and the real one.
//!
//! A test is written once, as a function that is told what serves its APIs, and [`on_both!`] makes
//! two tests of it: `embedded::…` needs nothing but namespaces, `real::…` needs
//! [tools](crate::tools) too. What needs tools on either is in a module `with_tools`.
//!
//! On one alone are, each for its reason:
//!
//! - `rights`, on the real API: the embedded one asks nobody who they are.
//! - `real_parts::real`, on the real API: its own lease, which the embedded one has not.
//! - `conformance` and `convergence_real`, on the real API: their other halves are
//!   `apiserver/tests/conformance.rs` and `simulation/tests/convergence.rs`.
//! - `kubectl`, on the embedded API, which is what it is about.
//! - `sandbox` and `page`, on the embedded API that the sandbox brings.
//! - `namespaces`, on none: it is about these tests themselves.
//!
//! [`on_both!`]: crate::on_both

use anyhow::Result;

use crate::{control_plane::Server, fleet};

/// Makes two tests of each of these functions, `async fn name(server: Server) -> Result<()>`:
/// `embedded::name` and `real::name`. At most once in a module.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod embedded {
            $(#[test]
            fn $name() {
                let server = $crate::control_plane::Server::Embedded;
                $crate::both::run($crate::test_name!(), server, super::$name);
            })+
        }

        mod real {
            $(#[test]
            fn $name() {
                let server = $crate::control_plane::Server::Real;
                $crate::both::run($crate::test_name!(), server, super::$name);
            })+
        }
    };
}

/// Runs the body of the test `name` with what serves its APIs, [isolated](fleet::isolated).
///
/// # Panics
/// As [`fleet::isolated`] does.
pub fn run(name: &str, server: Server, body: impl AsyncFnOnce(Server) -> Result<()>) {
    fleet::isolated(name, async || body(server).await);
}
