//! The commands for people, on real parts and in a browser.

pub(crate) mod bench;
pub(crate) mod control_plane;
pub(crate) mod scenario;
#[cfg(feature = "browser")]
pub(crate) mod screenshots;
pub(crate) mod simulate;
pub(crate) mod soak;
pub(crate) mod upgrade;
