//! The pipeline's tests, each on both APIs: the embedded one and the real one.
//!
//! A test is one function that takes the [`ApiKind`] of its APIs, and [`on_both!`] makes two tests of
//! it: `embedded::…` needs only namespaces, `real::…` needs [`tools`] too. Tests that
//! need tools on either API are in a module `with_tools`.
//!
//! Real APIs make a test take four times as long. So most real halves are *long*: ignored, unless
//! `cargo xtask test --long` runs them. Every run has those of each program's main path and of the commands that users type.
//!
//! These run on one API only:
//!
//! - `rights` and `propagation::rights`, on the real API: the embedded one has no authentication.
//! - `install::with_tools::charts`, `…::day_2`, `…::egress`, `…::gateway`, `…::release` and `…::rotation`, on the real API: the embedded one has no tokens.
//! - `charts`, on the real API: the embedded one validates little.
//! - `placements::with_tools`, on the real API: the embedded one has no tokens.
//! - `propagation::kinds`, on the real API: the embedded one has few kinds and no defaults.
//! - `propagation::protected`, on the real API: the embedded one evaluates no admission policies.
//! - `propagation::services`, on the real API: the embedded one allocates nothing.
//! - `real_parts::real`, on the real API: it is about a lease that only that one has.
//! - `outage::with_tools::default_thresholds_move_traffic`, on the real API: it
//!   takes more than a minute.
//! - `external_dns`, on the real API: the embedded one brings no definition of its kind, and these take minutes.
//! - `load`, and `reachability::with_tools`, on the real API: they take minutes, and tokens.
//! - `propagation::takeover::with_tools::installers`, on the real API: the embedded one has neither
//!   `PodDisruptionBudget`s nor the scale of a Deployment.
//! - `conformance` and `sequences`, on the real API: their other halves are
//!   `lab/apiserver/tests/conformance.rs` and `lab/simulation/tests/sequences.rs`.
//! - `admission`, `placements::admission` and `confinement`, on the real API: the embedded one evaluates no
//!   admission policies.
//! - `clusters::with_tools`, on the real API: the embedded one has no tokens.
//! - `drills`, on the real API: the embedded one has neither tokens, quotas nor priority levels.
//! - `sandbox` and `page`, on the embedded API that the sandbox brings.
//! - `namespaces`, on none: it tests the isolation of tests.
//! - `signals::with_tools`, on the embedded API or none: it is about a Prometheus and a server of gRPC.
//!
//! [`on_both!`]: crate::on_both

use anyhow::Result;

use crate::{control_plane::ApiKind, fleet};

/// Makes two tests of each of these functions, `async fn name(server: ApiKind) -> Result<()>`:
/// `embedded::name` and `real::name`. After `long:`, the latter run only with `cargo xtask test --long`; after
/// `both long:`, neither runs without. A module can use it once.
#[macro_export]
macro_rules! on_both {
    (both long: $($name:ident),+ $(,)?) => {
        $crate::on_one!(embedded, Embedded, true, $($name),+);
        $crate::on_one!(real, Real, true, $($name),+);
    };
    (long: $($name:ident),+ $(,)?) => {
        $crate::on_one!(embedded, Embedded, false, $($name),+);
        $crate::on_one!(real, Real, true, $($name),+);
    };
    ($($name:ident),+ $(,)?) => {
        $crate::on_one!(embedded, Embedded, false, $($name),+);
        $crate::on_one!(real, Real, false, $($name),+);
    };
}

/// Makes a test of each of these functions, `embedded::name`, where another test is made for both. After `long:`,
/// they run only with `cargo xtask test --long`. A module can use it once.
#[macro_export]
macro_rules! on_embedded {
    (long: $($name:ident),+ $(,)?) => {
        $crate::on_one!(embedded, Embedded, true, $($name),+);
    };
    ($($name:ident),+ $(,)?) => {
        $crate::on_one!(embedded, Embedded, false, $($name),+);
    };
}

/// Makes the tests of [`on_both!`] and [`on_embedded!`] on one API.
#[doc(hidden)]
#[macro_export]
macro_rules! on_one {
    ($module:ident, $kind:ident, $long:literal, $($name:ident),+) => {
        mod $module {
            $(#[test]
            #[cfg_attr($long, ignore = "long")]
            fn $name() {
                let server = $crate::control_plane::ApiKind::$kind;
                $crate::both::run($crate::test_name!(), server, super::$name);
            })+
        }
    };
}

/// Runs the body of the test `name` with this server, [isolated](fleet::isolated).
///
/// # Panics
/// See [`fleet::isolated`].
pub fn run(name: &str, server: ApiKind, body: impl AsyncFnOnce(ApiKind) -> Result<()>) {
    fleet::isolated(name, async || body(server).await);
}
