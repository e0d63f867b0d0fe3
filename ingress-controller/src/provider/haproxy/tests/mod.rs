//! Tests of the provider on a real HAProxy, which `cargo xtask test --real` needs.

mod with_haproxy;

use super::*;
